"""`bertsmith.sweep`: the same fine-tuning with other settings and seeds, and which of them does best.

In: what `finetune` takes, some settings with several values. Out: plain JSON, the best combination first, and in `out`
the same as `results.json`, beside a folder a run. The same call again skips the runs that are finished.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from bertsmith.arguments import checked
from bertsmith.data.columns import find_roles
from bertsmith.data.reading import read_sides, read_table
from bertsmith.data.table import Table
from bertsmith.errors import BertsmithError
from bertsmith.evaluation.spreading import spread_of
from bertsmith.finetuning import finetune
from bertsmith.loading import find_device
from bertsmith.many import Done, Job, Many, digest, open_place, refuse_other, take_seeds
from bertsmith.models.adapter_folders import digest_weights
from bertsmith.models.files import write_json
from bertsmith.models.hub import find_default, locate
from bertsmith.sweep_results import Combination, Setting, Tried, gather, name_folder
from bertsmith.tasks.catalog import find_task
from bertsmith.tasks.texts import take_count
from bertsmith.training.choices import refuse_unused, sort_choices
from bertsmith.training.proposals import Proposals
from bertsmith.training.space import Space, draw, make_space
from bertsmith.workers import refuse_second_run

Say = Callable[[str], None]
RESULTS = "results.json"


@checked("device", "out")
def sweep(
    task: str,
    train: Any,
    dev: Any = None,
    *,
    out: str | Path,
    test: Any = None,
    model: str | Path | None = None,
    seeds: int | Sequence[int] = 3,
    samples: int | None = None,
    search: Literal["grid", "optuna"] = "grid",
    trials: int | None = None,
    sample_seed: int = 0,
    jobs: int = 1,
    keep_models: bool = False,
    overwrite: bool = False,
    device: str = "auto",
    threads: int | None = None,
    format: str | None = None,
    download: bool = False,
    check: bool = True,
    say: Say | None = None,
    **settings: Any,
) -> dict[str, Any]:
    """Fine-tune with each combination of the settings that are lists, with each seed, and rank them by their medians.

    The development set ranks them; `test` only measures the best. `samples` draws so many of the combinations. With
    `search="optuna"` a number may be a range, `rate="1e-5:1e-3"`, and `trials` combinations are tried.
    """
    say = say or (lambda sentence: None)
    numbers = take_seeds(seeds)
    if take_count("jobs", jobs) > 1:
        refuse_second_run()
    find_device(device)
    space = make_space(settings)
    proposals = check_search(space, search, trials, samples, sample_seed)
    grid = draw(space.combinations(), samples, sample_seed) if proposals is None else []
    check_combinations(task, space, grid)
    source = locate(find_default() if model is None else model, download=download).resolve()
    tables, sources = read_all(task, train, dev, test, space, format)
    examine(task, tables, source, device, {**space.fixed, **first_of(space)}, check, say)
    named = None if model is None else str(model)
    setting = Setting(
        task, tables, sources, format, source, named, device, open_place(out), numbers, space.fixed, digest(tables),
        digest_weights(source), keep_models, overwrite,
    )  # fmt: skip
    count = len(grid) if proposals is None else trials or 0
    with Many(min(jobs, count * len(numbers)), threads, say, count * len(numbers)) as many:
        if proposals is None:
            tried = run_all(setting, grid, many)
        else:
            tried = run_proposed(setting, proposals, count, max(1, jobs // len(numbers)), many)
        seconds = many.seconds()
    result = gather(setting, tried, seconds)
    write_json(setting.place / RESULTS, result)
    return result


def run_all(setting: Setting, combinations: Sequence[Combination], many: Many) -> Tried:
    jobs = [refuse_other(setting.jobs(combination)) for combination in combinations]
    done = iter(many.run([job for some in jobs for job in some]))
    return [(combination, some, [next(done) for _ in some])
            for combination, some in zip(combinations, jobs, strict=True)]  # fmt: skip


def run_proposed(setting: Setting, proposals: Proposals, trials: int, at_once: int, many: Many) -> Tried:
    """A few at a time, as many as keep the workers busy; one that was tried before is not run again."""
    tried: dict[str, tuple[Combination, list[Job], list[Done]]] = {}
    left = trials
    while left:
        proposed = proposals.ask(min(at_once, left))
        left -= len(proposed)
        new = {name_folder(one): one for one in proposed if name_folder(one) not in tried}
        for found in run_all(setting, list(new.values()), many):
            tried[name_folder(found[0])] = found
        proposals.tell([median_of(tried[name_folder(one)][2]) for one in proposed])
    return list(tried.values())


def median_of(done: Sequence[Done]) -> float | None:
    spread = spread_of([each.value(each.metric) for each in done if each.error is None])
    return None if spread is None else spread.median


def check_search(
    space: Space, search: str, trials: int | None, samples: int | None, seed: int
) -> Proposals | None:  # fmt: skip
    if search not in ("grid", "optuna"):
        raise BertsmithError(f"search={search!r} is not a choice; use grid or optuna.")
    if not space.lists and not space.ranges:
        raise BertsmithError(
            "there is nothing to try: give at least one setting several values, as in --rate 2e-5,5e-5,1e-4."
        )
    if search == "grid":
        if space.ranges:
            name = next(iter(space.ranges))
            raise BertsmithError(f"{name} is a range, which a grid cannot try; list values, or use --search optuna.")
        if trials is not None:
            raise BertsmithError("trials is for --search optuna; for a part of the grid use --samples.")
        return None
    if samples is not None:
        raise BertsmithError("samples is for the grid; with --search optuna use --trials.")
    if trials is None:
        raise BertsmithError("--search optuna needs --trials: how many combinations to try.")
    take_count("trials", trials)
    return Proposals(space, seed)


def check_combinations(task: str, space: Space, grid: Sequence[Combination]) -> None:
    """Values that fit alone may not fit together; that must not cost the first runs."""
    find_task(task)
    for combination in grid or [first_of(space)]:
        choices, _, _ = sort_choices({**space.fixed, **combination})
        refuse_unused(task, choices)


def first_of(space: Space) -> Combination:
    ends = {name: int(span.low) if span.whole else span.low for name, span in space.ranges.items()}
    return {**{name: values[0] for name, values in space.lists.items()}, **ends}


def read_all(
    task: str, train: Any, dev: Any, test: Any, space: Space, format: str | None
) -> tuple[dict[str, Table], dict[str, str]]:
    """Read once what all runs use; beside it the paths, for the command that repeats one."""
    tables = dict(zip(("train", "dev"), read_sides(train, dev, format), strict=False))
    if test is not None:
        tables["test"] = read_table(test, name="" if isinstance(test, str | Path) else "test", format=format)
    kind = find_task(task)
    _, _, columns = sort_choices({**space.fixed, **first_of(space)})
    find_roles([*tables.values()], kind.roles, columns, kind.required)
    given = {"train": train, "dev": dev, "test": test}
    return tables, {side: str(source) for side, source in given.items() if isinstance(source, str | Path)}


def examine(
    task: str, tables: Mapping[str, Table], source: Path, device: str, settings: Mapping[str, Any], check: bool,
    say: Say,
) -> None:  # fmt: skip
    """What `finetune` says of the data and the settings before it begins, once for all runs: only what is wrong."""

    def warn(sentence: str) -> None:
        if sentence.startswith("warning: "):
            say(sentence)

    finetune(task, tables["train"], tables.get("dev"), test=tables.get("test"), out="unused", model=source,
             device=device, check=check, dry_run=True, say=warn, **settings)  # fmt: skip
