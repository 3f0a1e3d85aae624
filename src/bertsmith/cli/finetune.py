"""`bertsmith finetune`: a person's own examples and a pretrained encoder become a model that works."""

import os
import shlex
from collections.abc import Callable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any

import typer

from bertsmith.cli.flags import ColumnFlags, Flags, check_flags, combine, require
from bertsmith.cli.mix import carry_out_mix, describe_mix
from bertsmith.cli.options import Check, Download, Format, ResultJson, StartingModel, TrainingDevice, look_here
from bertsmith.cli.output import drop_nan, wants_json, write_json, write_note
from bertsmith.errors import BertsmithError
from bertsmith.training.choices import COLUMNS, TaskChoices, read_toml, sort_choices, suggest
from bertsmith.training.settings import Training

# What a file of settings may hold beside the settings themselves.
RUN = ("task", "train", "dev", "test", "model", "out", "device", "threads", "format")
USES = {
    "classify": 'classify "A text."',
    "tag": 'tag "A text."',
    "span": 'answer "A question?" --context "A text."',
    "regress": 'score "A text."',
    "choose": 'choose "A question?" "One choice" "Another"',
    "embed": 'similar "A text." "Another text." "A third."',
    "rerank": 'rerank "A query" --texts FILE',
}


def finetune(
    *,
    train: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Examples to learn from: a file, a folder, or - for standard input."),
    ] = None,
    dev: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Examples to choose and tune by; else a part of train is set apart."),
    ] = None,
    test: Annotated[
        str | None, typer.Option(metavar="FILE", help="Examples that only measure the finished model.")
    ] = None,
    out: Annotated[str | None, typer.Option(metavar="DIR", help="The folder for the model and its report.")] = None,
    task: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="classify, tag, span, regress, choose, embed, rerank or module:Class; else guessed."
        ),
    ] = None,
    model: StartingModel = None,
    settings: Annotated[
        Path | None, typer.Option(metavar="FILE.toml", help="A file with any of these settings; flags win over it.")
    ] = None,
    members: Annotated[
        Path | None,
        typer.Option(metavar="FILE.toml", help="Several tasks on one encoder: a table [members.NAME] each."),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be done, and do nothing.")] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Start anew where DIR holds a run already.")] = False,
    keep_checkpoints: Annotated[
        bool, typer.Option("--keep-checkpoints", help="Keep the best and the last checkpoint of training.")
    ] = False,
    check: Check = True,
    device: TrainingDevice = None,
    threads: Annotated[int | None, typer.Option(metavar="N", min=1, help="CPU threads.")] = None,
    format: Format = None,
    download: Download = False,
    as_json: ResultJson = False,
    columns: Annotated[dict[str, str], ColumnFlags()],
    choices: Annotated[dict[str, Any], Flags(TaskChoices, "Task")],
    training: Annotated[dict[str, Any], Flags(Training, "Training")],
) -> None:
    """Fine-tune a model on your own examples, and tell how well it does.

    The same command again goes on after a kill; a finished run is left alone.

    \b
    Examples:
      bertsmith finetune --train reviews.csv --out my-classifier
      bertsmith finetune --task tag --train train.conll --dev dev.conll --epochs 5 --out my-tagger
      bertsmith finetune --members examples/mix.toml --out my-mix

    \b
    mix.toml, with mixing = "together", "proportional", "temperature" or "round-robin":
      epochs = 5
      [members.intent]
      task = "classify"
      train = "train.csv"
      [members.slots]
      task = "tag"
      train = "train.conll"
      weight = 0.5
    """
    flags = {"task": task, "train": train, "dev": dev, "test": test, "model": model, "out": out, "device": device,
             "threads": threads, "format": format}  # fmt: skip
    check_flags({**columns, **choices, **training})
    if task is not None:
        check_task(task)
    if members is not None:
        if settings is not None:
            raise typer.BadParameter("--members holds the settings too; write them there, and leave --settings out.")
        asked = describe_mix(members, {**flags, **columns, **choices, **training})
    else:
        asked = combine(read_values(settings) if settings else {}, {**flags, **columns, **choices, **training})
        require(asked, ("train", "out"))
    asked.setdefault("model", os.environ.get("BERTSMITH_MODEL") or None)
    is_first = os.environ.get("RANK", "0") == "0"  # of the processes of torchrun
    say = write_note if is_first else (lambda sentence: None)
    as_json = wants_json(as_json)
    modes = {"dry_run": dry_run, "overwrite": overwrite, "keep_checkpoints": keep_checkpoints, "check": check}
    result = (carry_out if members is None else carry_out_mix)(asked, {**modes, "download": download}, say)
    if result is not None and is_first and as_json:
        write_json(drop_nan(result))


def check_task(name: str) -> None:
    """Before the data is read; a name that is no task's is a mistake in the command."""
    from bertsmith.tasks.catalog import find_task

    look_here(name)
    try:
        find_task(name)
    except BertsmithError as error:
        raise typer.BadParameter(str(error)) from error


def read_settings(path: Path) -> dict[str, Any]:
    """What the file says, if it says nothing that is not a setting."""
    found = read_toml(path)
    known = [*RUN, *COLUMNS, *(field.name for kind in (TaskChoices, Training) for field in fields(kind))]
    for name, value in found.items():
        if name not in known:
            raise BertsmithError(f"{path} has {name}, which is not a setting{suggest(name, known)}")
        if name in RUN and not isinstance(value, int if name == "threads" else str):
            raise BertsmithError(
                f"{path}: {name} is {value!r}; it must be {'a number' if name == 'threads' else 'text'}."
            )
    return found


def read_values(path: Path) -> dict[str, Any]:
    """What the file says, if each can be the value of a setting; for a sweep it may hold several of each."""
    found = read_settings(path)
    try:
        sort_choices({name: value for name, value in found.items() if name not in RUN})
    except BertsmithError as error:
        raise BertsmithError(f"{path}: {error}") from None
    return found


def carry_out(asked: dict[str, Any], modes: Mapping[str, Any], say: Callable[[str], None]) -> dict[str, Any] | None:
    """Reads the data, says what it takes it for, and trains; None after a dry run."""
    import bertsmith
    from bertsmith.checking import choose_kind
    from bertsmith.data.columns import find_roles
    from bertsmith.data.findings import counted
    from bertsmith.data.reading import read_sides, read_table
    from bertsmith.models.files import take_folder
    from bertsmith.tasks.catalog import find_task
    from bertsmith.training.watching import Events, ProgressBar

    # Settings are looked at before the data: a large file must not be read for nothing.
    _, _, columns = sort_choices({name: value for name, value in asked.items() if name not in RUN})
    train, *others = read_sides(asked.pop("train"), asked.pop("dev", None), asked.get("format"))
    if asked.get("test") is not None:
        asked["test"] = read_table(asked["test"], format=asked.get("format"))
    tables = [train, *others, *filter(None, [asked.get("test")])]
    task = asked.pop("task", None)
    if task is None:
        task = choose_kind(None, train, columns)
        say(f"The data looks made for {task}, so that is what the model learns (--task NAME chooses another).")
    look_here(task)
    kind = find_task(task)
    found = find_roles(tables, kind.roles, columns, kind.required)
    for table, roles in zip(tables, found, strict=True):
        taken = ", ".join(f'{role} from column "{column}"' for role, column in roles.items())
        say(f"{table.name}: {counted(len(table.records), 'example')}; {taken}.")
    dev = others[0] if others else None
    with ProgressBar(say) as bar, Events(take_folder(asked["out"])) as events:
        run = bertsmith.finetune(task, train, dev, watchers=[bar, events], say=say, **modes, **asked)
    if run is None:
        say("This was a dry run: nothing was trained and nothing written.")
        return None
    use = USES.get(task, "info") + (' --pair "Another text."' if "pair" in found[0] and task != "embed" else "")
    say(f"to use it: bertsmith {use} --model {shlex.quote(str(run.folder))}")
    return {"task": task, "folder": str(run.folder), "metrics": run.metrics}
