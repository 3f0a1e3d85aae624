"""Many fine-tunings, one after the other or side by side; what is finished is not done again.

In: `Job`s. Out: a `Done` each. A job's folder is a run of `finetune` with a `result.json` beside it, which stays when
the weights are taken away: the same jobs again skip what has one, and `finetune` goes on with what was begun.
"""

import os
import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field, replace
from math import isfinite
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from bertsmith.errors import BertsmithError, Stopped
from bertsmith.finetuning import Run, finetune
from bertsmith.models.files import TASK_FILE, read_json, take_folder, write_json
from bertsmith.training.differences import tell_differences
from bertsmith.training.interrupts import terminable
from bertsmith.training.watching import show_time
from bertsmith.workers import Lost, Workers, count_cores

RESULT = "result.json"
MOST_SEEDS = 1000  # to count: a larger number is meant as the seed itself, and as many runs would fill the memory
Say = Callable[[str], None]


@dataclass(frozen=True)
class Job:
    name: str  # for people
    folder: Path
    asked: Mapping[str, Any]  # what it is known by, plain JSON
    given: Mapping[str, Any]  # to `finetune`, beside the folder
    shown: tuple[str, ...] = ()  # metrics of dev that must exist; else the one that chooses
    keep_model: bool = False
    overwrite: bool = False


@dataclass(frozen=True)
class Done:
    metrics: dict[str, Any] = field(default_factory=dict)  # split -> metric -> value, low, high, n
    metric: str = ""  # the one that chose the checkpoint
    seconds: float = 0.0
    error: str | None = None  # one sentence, where it failed
    before: bool = False  # finished by an earlier command

    def value(self, metric: str, split: str = "dev") -> float:
        return float(self.metrics[split][metric]["value"])


class Many:
    """A context manager. `total` is how many runs there will be, for the lines that tell of each."""

    def __init__(self, jobs: int, threads: int | None, say: Say, total: int, is_kept: bool = True) -> None:
        self.say, self.total, self.is_kept = say, total, is_kept
        self.count = self.finished = 0
        self.threads = share_threads(jobs) if threads is None and jobs > 1 else threads
        self.workers = Workers(jobs, self.threads or 1, run_job) if jobs > 1 else None
        self.started = time.monotonic()

    def __enter__(self) -> Self:
        self._left = ExitStack()
        if self.workers is not None:  # without them a run keeps signals itself, until it is whole
            self._left.enter_context(terminable())
            self._left.enter_context(self.workers)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self._left.__exit__(kind, error, _)
        if isinstance(error, KeyboardInterrupt | Stopped):
            again = "goes on" if self.is_kept else "starts anew (with out it would go on)"
            number = getattr(error, "number", signal.SIGINT)
            raise Stopped(
                f"stopped; {self.finished:,} of {self.total:,} runs are finished, and the same command {again}.", number
            ) from None

    def run(self, jobs: Sequence[Job]) -> list[Done]:
        """In the order of the jobs; a line is said for each that is done."""
        found = {place: done for place, job in enumerate(jobs) if (done := read_done(job)) is not None}
        for place, done in found.items():
            self._tell(jobs[place], done)
        left = [place for place in range(len(jobs)) if place not in found]
        todo = [replace(jobs[place], given={**jobs[place].given, "threads": self.threads}) for place in left]
        for place, said in self._run(todo):
            done = Done(error=f"{said.why}.") if isinstance(said, Lost) else said
            found[left[place]] = done
            self._tell(jobs[left[place]], done)
        return [found[place] for place in range(len(jobs))]

    def _run(self, jobs: Sequence[Job]) -> Iterator[tuple[int, Any]]:
        if self.workers is not None:
            return self.workers.run(jobs)
        return ((place, run_job(job)) for place, job in enumerate(jobs))

    def _tell(self, job: Job, done: Done) -> None:
        self.count += 1
        self.finished += done.error is None
        where = f"[{self.count}/{self.total}] {job.name}"
        if done.error is not None:
            self.say(f"{where}: failed: {done.error}")
            return
        told = ", ".join(f"{name} {done.value(name):.4f}" for name in job.shown or (done.metric,))
        self.say(f"{where}: {told} " + ("(finished before)" if done.before else f"in {show_time(done.seconds)}"))

    def seconds(self) -> float:
        return time.monotonic() - self.started


def run_job(job: Job) -> Done:
    """One fine-tuning; whatever goes wrong with it is one sentence, for the others must go on."""
    begun = time.monotonic()
    try:
        (job.folder / RESULT).unlink(missing_ok=True)
        run = finetune(out=job.folder, check=False, overwrite=job.overwrite, **job.given)
        assert run is not None
        done = take_result(job, run, time.monotonic() - begun)
        if done.error is None:
            write_done(job, done)
        if not job.keep_model:
            drop_weights(job.folder)
        return done
    except Stopped:
        raise
    except BertsmithError as error:
        return Done(error=str(error))
    except Exception as error:
        return Done(error=f"{type(error).__name__}: {next(iter(str(error).splitlines()), 'it does not say why')}")


def take_result(job: Job, run: Run, seconds: float) -> Done:
    """A score that does not exist, as a correlation of answers that are all the same, is a failure, not a gap."""
    about = read_json(run.folder / TASK_FILE) if (run.folder / TASK_FILE).exists() else {}
    dev = run.metrics.get("dev", {})
    metric = about.get("run", {}).get("metric") or next(iter(dev), "")
    for name in job.shown or (metric,):
        if name not in dev:
            return Done(error=f"it has no {name or 'score'} on the development set.")
        if dev[name]["value"] is None or not isfinite(dev[name]["value"]):
            return Done(error=f"its {name} does not exist: all its answers are the same, or all that is right is.")
    return Done(_plain(run.metrics), metric, seconds)


def write_done(job: Job, done: Done) -> None:
    record = {"asked": job.asked, "metrics": done.metrics, "metric": done.metric, "seconds": done.seconds}
    aside = job.folder / f".{RESULT}.part"
    write_json(aside, record)
    os.replace(aside, job.folder / RESULT)


def drop_weights(folder: Path) -> None:
    for path in folder.rglob("*.safetensors"):
        path.unlink()


def read_done(job: Job) -> Done | None:
    """What a finished run came to; None: it is still to do, or to be done again."""
    path = job.folder / RESULT
    if job.overwrite or not path.exists() or (job.keep_model and not any(job.folder.rglob("*.safetensors"))):
        return None
    known = read_json(path)
    return Done(known["metrics"], known["metric"], known["seconds"], before=True)


def refuse_other(jobs: Sequence[Job]) -> list[Job]:
    """Stop where a folder holds a finished run with other settings; else the jobs, as they have to be carried out."""
    found = []
    for job in jobs:
        path = job.folder / RESULT
        if path.exists() and not job.overwrite:
            known, asked = read_json(path).get("asked", {}), dict(job.asked)
            differences = tell_differences(known, asked)
            if differences:
                raise BertsmithError(
                    f"{job.folder} holds a run with other settings ({differences[0]}); give another "
                    f"folder, the same settings to go on, or --overwrite to start anew."
                )
            if read_done(job) is None:  # its weights were taken away, and now they are wanted
                job = replace(job, overwrite=True)
        found.append(job)
    return found


def open_place(out: str | Path) -> Path:
    """The folder that the runs' folders are in, made if need be."""
    place = take_folder(out)
    try:
        place.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BertsmithError(f"{place} cannot be used as a folder for the runs: {error.strerror or error}.") from error
    return place


def take_seeds(given: Any) -> list[int]:
    """So many, counted from 1, or the very ones."""
    if isinstance(given, bool) or not isinstance(given, int | Sequence) or isinstance(given, str):
        raise BertsmithError(f"seeds is {given!r}; give how many, or a list of whole numbers.")
    if isinstance(given, int) and given > MOST_SEEDS:
        raise BertsmithError(
            f"seeds is {given}, and a number alone says how many runs there are; for the seed {given} itself give "
            f"[{given}] (--seeds {given},)."
        )
    seeds = list(range(1, given + 1)) if isinstance(given, int) else list(given)
    for seed in seeds:
        if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed < 2**63:
            raise BertsmithError(f"seeds has {seed!r}; each must be a whole number that is not negative.")
        if seeds.count(seed) > 1:
            raise BertsmithError(f"seeds has {seed} more than once; the same seed gives the same run, so name it once.")
    if not seeds:
        raise BertsmithError("seeds is 0; there must be at least one run.")
    return seeds


def share_threads(jobs: int) -> int:
    """How many threads each of the workers gets."""
    named = os.environ.get("OMP_NUM_THREADS", "")
    return max(1, (int(named) if named.isdecimal() else count_cores()) // jobs)


def digest(tables: Mapping[str, Any]) -> dict[str, str]:
    """What the data is known by, side -> a checksum of its records, whatever file they are in."""
    import hashlib

    found = {}
    for side, table in tables.items():
        total = hashlib.sha256(repr(table.columns).encode())
        for record in table.records:
            total.update(repr(record).encode("utf-8", "surrogatepass"))
        found[side] = total.hexdigest()[:16]
    return found


def _plain(value: Any) -> Any:
    """As JSON has it: no NaN."""
    if isinstance(value, Mapping):
        return {key: _plain(one) for key, one in value.items()}
    return None if isinstance(value, float) and not isfinite(value) else value


def as_record(seed: int, folder: Path, done: Done) -> dict[str, Any]:
    """A run as `results.json` tells of it."""
    metrics = {name: one["value"] for name, one in done.metrics.get("dev", {}).items()}
    facts = {name: value for name, value in asdict(done).items() if name in ("seconds", "error")}
    return {"seed": seed, "folder": folder.name, "metrics": metrics, **facts}
