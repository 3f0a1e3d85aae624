"""`bertsmith sweep`: which rate, how many epochs, …: each combination with several seeds, and their medians."""

import os
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from bertsmith.cli.finetune import check_task, read_settings
from bertsmith.cli.flags import ColumnFlags, combine, require
from bertsmith.cli.lists import ListFlags, parse_seeds
from bertsmith.cli.options import Check, Download, Format, ResultJson, StartingModel, TrainingDevice, look_here
from bertsmith.cli.output import drop_nan, wants_json, write_json, write_note, write_table
from bertsmith.errors import BertsmithError
from bertsmith.training.choices import COLUMNS, TaskChoices
from bertsmith.training.settings import Training


def sweep(
    *,
    train: Annotated[
        str | None, typer.Option(metavar="FILE", help="Examples to learn from: a file or a folder.")
    ] = None,
    dev: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Examples to choose by; else each seed sets a part of train apart."),
    ] = None,
    test: Annotated[
        str | None, typer.Option(metavar="FILE", help="Examples that choose nothing; they measure the best at the end.")
    ] = None,
    out: Annotated[str | None, typer.Option(metavar="DIR", help="The folder for results.json and the runs.")] = None,
    task: Annotated[
        str | None, typer.Option(metavar="NAME", help="As in finetune; else guessed from the data.")
    ] = None,
    model: StartingModel = None,
    settings: Annotated[
        Path | None,
        typer.Option(metavar="FILE.toml", help="Settings, an array where several are to be tried; flags win over it."),
    ] = None,
    seeds: Annotated[
        str, typer.Option(metavar="N|LIST", help="How many seeds each combination is run with, or the seeds: 1,2,3.")
    ] = "3",
    jobs: Annotated[int, typer.Option(metavar="N", min=1, help="Fine-tunings side by side on the device.")] = 1,
    samples: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Try so many of the combinations; else all.")
    ] = None,
    search: Annotated[
        Literal["grid", "optuna"], typer.Option(help="All combinations, or those that optuna proposes (an extra).")
    ] = "grid",
    trials: Annotated[int | None, typer.Option(metavar="N", min=1, help="With optuna: combinations to try.")] = None,
    sample_seed: Annotated[
        int, typer.Option(metavar="N", min=0, help="What the draw of --samples and optuna's proposals depend on.")
    ] = 0,
    keep_models: Annotated[
        bool, typer.Option("--keep-models", help="Keep each run's weights, not its scores only.")
    ] = False,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Start anew where DIR holds these runs already.")
    ] = False,
    check: Check = True,
    device: TrainingDevice = None,
    threads: Annotated[int | None, typer.Option(metavar="N", min=1, help="CPU threads of each fine-tuning.")] = None,
    format: Format = None,
    download: Download = False,
    as_json: ResultJson = False,
    columns: Annotated[dict[str, str], ColumnFlags()],
    choices: Annotated[dict[str, Any], ListFlags(TaskChoices, "Task")],
    training: Annotated[dict[str, Any], ListFlags(Training, "Training", without=("seed",))],
) -> None:
    """Find the settings that do best on your data: every combination of the lists you give, with several seeds.

    The same command again goes on after a kill, and skips the runs that are finished.
    With --search optuna a number may be a range: --rate 1e-5:1e-3 --trials 12.

    \b
    Examples:
      bertsmith sweep --train reviews.csv --rate 5e-5,1e-4 --epochs 2 --seeds 2 --out tried
      bertsmith sweep --train train.conll --dev dev.conll --epochs 1,2 --seeds 1 --jobs 2 --out tried-tags
    """
    flags = {"task": task, "train": train, "dev": dev, "test": test, "model": model, "out": out, "device": device,
             "threads": threads, "format": format}  # fmt: skip
    check_values({**columns, **choices, **training})
    asked = combine(read_settings(settings) if settings else {}, {**flags, **columns, **choices, **training})
    require(asked, ("train", "out"))
    asked.setdefault("model", os.environ.get("BERTSMITH_MODEL") or None)
    as_json = wants_json(as_json)
    modes = {"samples": samples, "search": search, "trials": trials, "sample_seed": sample_seed, "jobs": jobs,
             "keep_models": keep_models, "overwrite": overwrite, "check": check, "download": download}  # fmt: skip
    found = carry_out(asked, {**modes, "seeds": parse_seeds(seeds)})
    show(found, as_json)
    if found["failed"]:
        raise typer.Exit(1)


def check_values(given: dict[str, Any]) -> None:
    """A value that a setting refuses is a mistake in the command."""
    from bertsmith.training.space import make_space

    try:
        make_space(given)
    except BertsmithError as error:
        raise typer.BadParameter(str(error)) from error


def carry_out(asked: dict[str, Any], modes: dict[str, Any]) -> dict[str, Any]:
    """Finds out what the data is for, where that was not said, and sweeps."""
    import bertsmith
    from bertsmith.checking import choose_kind
    from bertsmith.data.reading import read_sides

    task, train, dev = asked.pop("task", None), asked.pop("train"), asked.pop("dev", None)
    if "-" in (train, dev, asked.get("test")):
        raise typer.BadParameter("a sweep reads its data more than once; give files, not standard input.")
    if task is None:
        chosen = {name: column for name, column in asked.items() if name in COLUMNS}
        task = choose_kind(None, read_sides(train, None, asked.get("format"))[0], chosen)
        write_note(f"The data looks made for {task}, so that is what the models learn (--task NAME chooses another).")
    else:
        check_task(task)
    look_here(task)
    return bertsmith.sweep(task, train, dev, say=write_note, **modes, **asked)


def show(found: dict[str, Any], as_json: bool) -> None:
    from bertsmith.evaluation.tables import NUMBERS, sweep_notes, sweep_rows

    if as_json:
        write_json(drop_nan(found))
    else:
        title = f"{found['task']}: {found['metric']} on the development set, in percent"
        write_table(title, sweep_rows(found), numbers=NUMBERS, narrow=True)
    for note in sweep_notes(found):
        write_note(note)
