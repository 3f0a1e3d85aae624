"""Kills a training run with SIGKILL at chosen and at random moments and starts it again until it is finished.

What it leaves must be what an undisturbed run leaves: weights, optimizer, log, to the byte.

    make soak                                          20 kills alone and 20 with two processes
    python tests/whole/soak_resume.py soak 20 [SEED]   the same
    python tests/whole/soak_resume.py run MODEL OUT    the run itself, in a process of its own or under torchrun
"""

import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from ready import Starter
from training.texts import make_texts

HOLD = "SOAK_HOLD"  # "step-4": where a run comes to rest; "save-8": or in which of its saves
# The loop saves after each record of the log, so that hardly a moment is far from a save.
UNEQUAL = ("report.html", "README.md", "metrics.json", ".lock")
SETTINGS: dict[str, Any] = {
    "batch": 8, "rate": 2e-3, "evaluate_every": 10, "log_every": 2, "save_minutes": 0.0, "unfreeze": 0.3,
    "layer_decay": 0.9, "r_drop": 0.5, "adversarial": 0.5, "batch_tokens": 100,
}  # fmt: skip
PATIENCE = 600  # seconds until a process that should have come to a moment has hung, on a machine however busy


def train(model: Path, out: Path, steps: int) -> None:
    from bertsmith.finetuning import finetune

    rank = os.environ.get("RANK", "0")
    (out.parent / f"pid-{rank}").write_text(str(os.getpid()))
    if HOLD in os.environ:
        hold(*os.environ[HOLD].split("-"), out.parent / "held")
    finetune(
        "classify", make_texts(100), make_texts(20, seed=1), out=out, model=model, device="cpu", threads=1,
        keep_checkpoints=True, max_steps=steps, **SETTINGS,
    )  # fmt: skip


def hold(moment: str, step: str, mark: Path) -> None:
    """Come to rest in that step, or while its checkpoint is written, and say so: a kill then comes at no other moment.

    Of several processes the first one rests, and the others wait for it.
    """
    from bertsmith.training.folder import RunFolder
    from bertsmith.training.study import TaskStudy

    works, write = TaskStudy.works, RunFolder._write

    def rest() -> None:
        mark.touch()
        time.sleep(PATIENCE)

    def works_until(self: Any, now: int, *others: Any) -> Any:
        if now == int(step) and os.environ.get("RANK", "0") == "0":
            rest()
        return works(self, now, *others)

    def write_half(self: Any, path: Path, write_files: Any, state: Any) -> None:
        def write_and_rest(to: Path) -> None:
            write_files(to)
            if path.name == f"last-{int(step):06d}":
                rest()

        write(self, path, write_and_rest, state)

    if moment == "step":
        TaskStudy.works = works_until  # type: ignore[method-assign]
    else:
        RunFolder._write = write_half  # type: ignore[method-assign]


class Run:
    """One training run in processes of its own, to be killed and started again."""

    def __init__(self, model: Path, out: Path, steps: int, ranks: int = 1) -> None:
        self.model, self.out, self.steps, self.ranks = model, out, steps, ranks
        self.process: subprocess.Popen[bytes] | None = None
        out.parent.mkdir(parents=True, exist_ok=True)

    def start(self, **more: str) -> None:
        for path in (*self.out.parent.glob("pid-*"), *self.out.parent.glob("held")):
            path.unlink()
        launch = ["-m", "torch.distributed.run", "--nproc-per-node", str(self.ranks), "--standalone"]
        command = [sys.executable, *(launch if self.ranks > 1 else []), __file__, "run"]
        command += [str(self.model), str(self.out), str(self.steps)]
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", **more}
        with (self.out.parent / "errors.txt").open("wb") as errors:
            self.process = subprocess.Popen(command, env=environment, stdout=errors, stderr=errors)

    def finish(self, starter: Starter | None = None) -> None:
        """With a starter: from a process that has imported torch, and without torchrun."""
        if starter is not None:
            words = ["whole.soak_resume", "run", self.model, self.out, str(self.steps)]
            folder = self.out.parent
            done = starter.run(words, folder) if self.ranks == 1 else starter.run_ranks(words, folder, self.ranks)
            assert done.returncode == 0, done.stderr
            return
        self.start()
        assert self.process is not None
        status = self.process.wait(PATIENCE)
        assert status == 0, (self.out.parent / "errors.txt").read_text()

    def kill_at(self, moment: str) -> None:
        """As a run that HOLD describes comes to rest there, which no clock decides."""
        assert self.kill_when((self.out.parent / "held").exists, **{HOLD: moment})

    def kill_when(self, moment: Callable[[], bool], **more: str) -> bool:
        """Start, wait for the moment, kill all processes at once; false if the run was finished before."""
        self.start(**more)
        assert self.process is not None
        until = time.monotonic() + PATIENCE
        while not moment():
            if self.process.poll() is not None:
                assert self.process.returncode == 0, (self.out.parent / "errors.txt").read_text()
                return False
            assert time.monotonic() < until, "the run hangs"
            time.sleep(0.0005)
        os.kill(self.process.pid, signal.SIGKILL)
        for path in self.out.parent.glob("pid-*") if self.ranks > 1 else ():
            with suppress(ProcessLookupError):
                os.kill(int(path.read_text()), signal.SIGKILL)
        self.process.wait()
        for path in self.out.parent.glob("pid-*"):  # those that torchrun started are nobody's children now
            while _is_alive(int(path.read_text())):
                time.sleep(0.001)
        return True

    def step(self) -> int:
        """The newest checkpoint's."""
        found = [int(name[5:]) for name in _names(self.out / "checkpoints") if name.startswith("last-")]
        return max(found, default=0)

    def moment(self, name: str) -> Callable[[], bool]:
        """`claim`: as the folder is taken; `save`, `best`: while a checkpoint is written; `results`: at the end."""
        if name == "claim":
            return lambda: bool(_names(self.out))
        if name == "results":
            return lambda: any(entry.startswith(f".{self.out.name}.") for entry in _names(self.out.parent))
        begin, kind = self.step(), {"save": ".last-", "best": ".best-"}[name]

        def is_there() -> bool:
            is_written = any(entry.startswith(kind) for entry in _names(self.out / "checkpoints"))
            is_late = self.step() > begin + 30  # there may be no better one to come
            return is_late or (is_written and self.step() > begin)

        return is_there

    def after(self, steps: int, seconds: float) -> Callable[[], bool]:
        """So many steps behind where it stands, and a little later."""
        target, reached = min(self.step() + steps, self.steps), 0.0

        def is_there() -> bool:
            nonlocal reached
            if not reached and self.step() >= target:
                reached = time.monotonic()
            return bool(reached) and time.monotonic() >= reached + seconds

        return is_there

    @property
    def half_written(self) -> list[str]:
        return [name for name in _names(self.out / "checkpoints") if name.endswith(".part")]


def _names(folder: Path) -> list[str]:
    try:
        return os.listdir(folder)
    except FileNotFoundError:
        return []


def _is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def contents(out: Path) -> dict[str, bytes]:
    """All that must be equal; the report, the card and the metrics tell times and speeds."""
    files = [path for path in out.rglob("*") if path.is_file() and path.name not in UNEQUAL]
    assert {"log.jsonl", "bertsmith.json", "run.json"} < {path.name for path in files}
    return {str(path.relative_to(out)): path.read_bytes() for path in files}


def differences(one: Path, other: Path) -> list[str]:
    ours, theirs = contents(one), contents(other)
    return [name for name in {**ours, **theirs} if ours.get(name) != theirs.get(name)]


def soak(kills: int, seed: int) -> None:
    from training.made import make_folder

    with tempfile.TemporaryDirectory() as folder:
        model = make_folder(Path(folder) / "model")
        for ranks in (1, 2):
            steps, chance = 40 * kills, random.Random(seed)
            undisturbed = Run(model, Path(folder) / f"whole{ranks}" / "out", steps, ranks)
            undisturbed.finish()
            run = Run(model, Path(folder) / f"killed{ranks}" / "out", steps, ranks)
            half_written = 0
            for number in range(kills):
                named = {0: "claim", kills - 1: "results"}.get(number) or chance.choice(["save", "best", "", ""])
                moment = run.moment(named) if named else run.after(chance.randint(0, 20), chance.uniform(0, 0.2))
                assert run.kill_when(moment) or named == "results", "the run was over too soon"
                half_written += bool(run.half_written)
                print(f"{ranks} process(es), kill {number + 1}: {named or 'at random'}, step {run.step()}", flush=True)
            run.finish()
            found = differences(undisturbed.out, run.out)
            assert not found, f"not equal: {found}"
            assert half_written, "no kill came while a checkpoint was written"
            print(f"{ranks} process(es): {kills} kills, {half_written} in the middle of a save, all bytes equal")


if __name__ == "__main__":
    if sys.argv[1] == "run":
        train(Path(sys.argv[2]), Path(sys.argv[3]), int(sys.argv[4]))
    else:
        soak(int(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else random.randrange(10**6))
