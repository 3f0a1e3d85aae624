"""`bertsmith.benchmark`: one encoder on all tasks of a benchmark, several seeds each, and a table of the medians.

In: the benchmark's name, a folder with its tasks, a model. Out: plain JSON, and in `out` the same as `results.json` and
`results.md`, beside a folder a run. The same call again skips the runs that are finished.
"""

import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, fields
from pathlib import Path
from statistics import fmean
from typing import Any

from bertsmith.arguments import checked
from bertsmith.data.columns import find_roles
from bertsmith.data.reading import read_table
from bertsmith.errors import BertsmithError
from bertsmith.evaluation.benchmarks import BenchmarkTask, TaskFiles, choose_tasks, find_tasks, plain
from bertsmith.evaluation.spreading import spread_of
from bertsmith.evaluation.tables import as_markdown, benchmark_notes, benchmark_rows
from bertsmith.loading import find_device
from bertsmith.many import Done, Job, Many, as_record, digest, open_place, refuse_other, take_seeds
from bertsmith.models.adapter_folders import digest_weights
from bertsmith.models.files import write_json
from bertsmith.models.hub import find_default, locate
from bertsmith.tasks.catalog import find_task
from bertsmith.tasks.texts import list_names, take_count
from bertsmith.training.choices import COLUMNS, TaskChoices, plain_value, refuse_unused, sort_choices
from bertsmith.workers import refuse_second_run

Say = Callable[[str], None]
RESULTS = "results.json"
# What the rows and the seeds settle: of the choices about a task only how long inputs are read is free, and `swap`.
FREE = ("truncate", "length", "swap")
OWN = ("seed", "metric", *COLUMNS, *(each.name for each in fields(TaskChoices) if each.name not in FREE))


@dataclass(frozen=True)
class Measured:
    """A task with its files, how many examples they hold, and what its runs are."""

    files: TaskFiles
    start: Path
    counts: tuple[int, int]
    settings: Mapping[str, Any]
    jobs: list[Job]

    @property
    def is_subset(self) -> bool:
        return any(count < size for count, size in zip(self.counts, self.files.task.sizes, strict=True))


@checked("device")
def benchmark(
    name: str,
    folder: str | Path,
    model: str | Path | None = None,
    *,
    tasks: Sequence[str] | None = None,
    complete: bool = False,
    seeds: int | Sequence[int] = 5,
    jobs: int = 1,
    start: Mapping[str, str | Path] | None = None,
    out: str | Path | None = None,
    keep_models: bool = False,
    overwrite: bool = False,
    device: str = "auto",
    threads: int | None = None,
    download: bool = False,
    say: Say | None = None,
    **settings: Any,
) -> dict[str, Any]:
    """Fine-tune `model` on the tasks of a benchmark that `folder` holds, and give the median over seeds for each.

    `tasks` names some of them; `complete` leaves out those of which only a part is there. `jobs` fine-tunings run side
    by side. `start` gives a task another model to start from. `settings` are those of training/choices.py and win over
    the rows of evaluation/benchmarks.py; `swap` is for the tasks whose pairs have no order. Runs whose weights are not
    kept stay as scores and reports.
    """
    say = say or (lambda sentence: None)
    numbers = take_seeds(seeds)
    if take_count("jobs", jobs) > 1:
        refuse_second_run()
    find_device(device)
    refuse_own(settings)
    settings = {setting: plain_value(setting, value) for setting, value in settings.items()}
    if keep_models and out is None:
        raise BertsmithError("keep_models needs a folder to keep them in: give out.")
    tasks = None if tasks is None else list_names("tasks", tasks)
    rows = choose_tasks(name, tasks)
    check_settings(rows, settings)
    found, notes = find_tasks(name, Path(folder).expanduser(), tasks)
    if settings.get("swap"):
        notes.append(tell_swapped(name, [files.task for files in found]))
    starts = find_starts(rows, model, start or {}, download)
    for note in notes:
        say(note)
    with ExitStack() as left:
        place = open_place(out) if out else Path(left.enter_context(tempfile.TemporaryDirectory(prefix="bertsmith-")))
        modes = {"keep_model": keep_models, "overwrite": overwrite}
        plans = [plan(files, starts[files.task.name], numbers, place, device, settings, modes) for files in found]
        if complete:
            plans = leave_subsets(plans, folder, say)
        todo = order_jobs(plans)
        with Many(min(jobs, len(todo)), threads, say, len(todo), out is not None) as many:
            done = dict(zip([job.name for job in todo], many.run(todo), strict=True))
            seconds = many.seconds()
        result = gather(name, folder, plans, numbers, done, seconds)
        if out is not None:
            write_json(place / RESULTS, result)
            (place / "results.md").write_text(tell_markdown(result), encoding="utf-8")
    return result


def refuse_own(settings: Mapping[str, Any]) -> None:
    for name in OWN:
        if name in settings:
            instead = "give seeds" if name == "seed" else "the benchmark's own rows settle it"
            raise BertsmithError(f"{name} cannot be chosen for a benchmark: {instead}; leave it out.")


def check_settings(rows: Sequence[BenchmarkTask], settings: Mapping[str, Any]) -> None:
    """A value that is refused must not cost the first runs."""
    sort_choices(settings)
    for row in rows:
        choices, _, _ = sort_choices({**row.settle(settings), **row.columns})
        refuse_unused(row.kind, choices)


def tell_swapped(benchmark: str, rows: Sequence[BenchmarkTask]) -> str:
    """Which tasks are learnt both ways round; that some are is what `swap` asks for."""
    both = [row.title for row in rows if row.both_ways]
    if not both:
        able = ", ".join(row.name for row in choose_tasks(benchmark, None) if row.both_ways)
        titles = ", ".join(row.title for row in rows)
        raise BertsmithError(
            f"swap is for pairs whose order means nothing, those of {able}, and has no use in {titles}; leave it out."
        )
    return f"learnt both ways round (swap): {', '.join(both)}."


def find_starts(
    rows: Sequence[BenchmarkTask], model: str | Path | None, start: Mapping[str, str | Path], download: bool
) -> dict[str, Path]:
    """Task -> the model that it starts from."""
    others = {plain(task): source for task, source in start.items()}
    for task in others:
        if task not in {plain(row.name) for row in rows}:
            known = ", ".join(row.name for row in rows)
            raise BertsmithError(f"start names {task}, which is not among the tasks here ({known}).")
    usual = None if {plain(row.name) for row in rows} <= set(others) else model or find_default()
    sources = {row.name: others.get(plain(row.name), usual) for row in rows}
    return {task: locate(source, download=download).resolve() for task, source in sources.items() if source is not None}


def plan(
    files: TaskFiles, start: Path, seeds: Sequence[int], place: Path, device: str, settings: Mapping[str, Any],
    modes: Mapping[str, bool],
) -> Measured:  # fmt: skip
    """Read a task's files once, so that a broken one is known before any run; a run a seed."""
    row, kind = files.task, find_task(files.task.kind)
    tables = {"train": read_table(files.train), "dev": read_table(files.dev)}
    find_roles([*tables.values()], kind.roles, row.columns, kind.required)
    counts = len(tables["train"].records), len(tables["dev"].records)
    settled = row.settle(settings)
    known = {"task": row.kind, "model": str(start), "weights": digest_weights(start), **digest(tables), **settled}
    given = {"task": row.kind, "train": str(files.train), "dev": str(files.dev), "model": start, "device": device}
    jobs = [
        Job(f"{row.title} seed {seed}", place / f"{row.name}-seed{seed}", {**known, "seed": seed},
            {**given, **settled, **row.columns, "seed": seed}, row.metrics, **modes)
        for seed in seeds
    ]  # fmt: skip
    return Measured(files, start, counts, settled, refuse_other(jobs))


def leave_subsets(plans: Sequence[Measured], folder: str | Path, say: Say) -> list[Measured]:
    whole = [each for each in plans if not each.is_subset]
    if not whole:
        raise BertsmithError(f"{folder} holds no task in full; leave complete out to run on the parts that are there.")
    if len(whole) < len(plans):
        named = ", ".join(each.files.task.title for each in plans if each.is_subset)
        say(f"left out, as only a part of each is here: {named}.")
    return whole


def order_jobs(plans: Sequence[Measured]) -> list[Job]:
    """The longest first, so that no worker is left alone with one at the end."""
    longest = sorted(plans, key=lambda each: -each.counts[0] * float(each.settings.get("epochs") or 3))
    return [job for each in longest for job in each.jobs]


def gather(
    name: str, folder: str | Path, plans: Sequence[Measured], seeds: Sequence[int], done: Mapping[str, Done],
    seconds: float,
) -> dict[str, Any]:  # fmt: skip
    """All that is known at the end, plain JSON."""
    tasks = [tell_task(each, seeds, [done[job.name] for job in each.jobs]) for each in plans]
    scored = [task for task in tasks if task["score"] is not None and task["in_mean"]]
    means = [take_mean(scored)] if scored else []
    whole = [task for task in scored if task["subset"] is None]
    if whole and len(whole) < len(scored):
        means.insert(0, take_mean(whole))
    return {
        "benchmark": name,
        "folder": str(folder),
        "seeds": list(seeds),
        "tasks": tasks,
        "means": means,
        "runs": sum(len(task["runs"]) for task in tasks),
        "failed": sum(run["error"] is not None for task in tasks for run in task["runs"]),
        "seconds": seconds,
    }


def tell_task(measured: Measured, seeds: Sequence[int], done: Sequence[Done]) -> dict[str, Any]:
    row, files = measured.files.task, measured.files
    good = [each for each in done if each.error is None]
    metrics = {metric: spread_of([each.value(metric) for each in good]) for metric in row.metrics}
    score = spread_of([fmean(each.value(metric) for metric in row.metrics) for each in good])
    sides = dict(zip(("train", "dev"), zip((files.train, files.dev), measured.counts, row.sizes, strict=True),
                     strict=True))  # fmt: skip
    parts = [f"{side} {count:,} of {size:,}" for side, (_, count, size) in sides.items() if count < size]
    return {
        "task": row.name,
        "title": row.title,
        "kind": row.kind,
        "model": str(measured.start),
        "settings": dict(measured.settings),
        **{side: {"file": path.name, "examples": count, "of": size} for side, (path, count, size) in sides.items()},
        "subset": ", ".join(parts) or None,
        "in_mean": row.in_mean,
        "metrics": {metric: spread.as_json() for metric, spread in metrics.items() if spread is not None},
        "score": None if score is None else score.as_json(),
        "runs": [as_record(seed, job.folder, each) for seed, job, each in zip(seeds, measured.jobs, done, strict=True)],
    }


def take_mean(tasks: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Of the tasks' medians; a task with two metrics counts with their mean, as GLUE has it."""
    return {
        "value": fmean(task["score"]["median"] for task in tasks),
        "tasks": [task["title"] for task in tasks],
        "complete": all(task["subset"] is None for task in tasks),
    }


def tell_markdown(result: Mapping[str, Any]) -> str:
    notes = "\n".join(f"- {note}" for note in benchmark_notes(result))
    return f"# {result['benchmark']}\n\n{as_markdown(benchmark_rows(result))}\n{notes}\n"
