"""`bertsmith finetune --members FILE.toml`: several tasks on one encoder, from a file that describes them."""

import shlex
from collections.abc import Callable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

import typer

from bertsmith.errors import BertsmithError
from bertsmith.training.choices import TaskChoices, sort_choices, suggest
from bertsmith.training.settings import Training

RUN = {"model": str, "out": str, "device": str, "threads": int, "mixing": str, "temperature": float}
OF_MEMBERS = ("task", "train", "dev", "test", "format")  # flags of one task
ASKS = {
    "classify": 'classify "A text."',
    "tag": 'tag "A text."',
    "span": 'answer "A question?" --context "A text."',
    "regress": 'score "A text."',
    "choose": 'choose "A question?" "One choice" "Another"',
    "rerank": 'rerank "A query" --texts FILE',
    "mask": 'fill "A [MASK]."',
}


def describe_mix(path: Path, given: Mapping[str, Any]) -> dict[str, Any]:
    """What the file and the flags ask for, flags over the file: the arguments of `bertsmith.finetune_together`."""
    from bertsmith.training.members import read_mix

    for name in OF_MEMBERS:
        if given.get(name) is not None:
            raise typer.BadParameter(f"--{name} is of one task; with --members, write it in {path}.")
    settings, members = read_mix(path)
    known = [*RUN, *(field.name for kind in (TaskChoices, Training) for field in fields(kind))]
    for name, value in settings.items():
        if name not in known:
            raise BertsmithError(f"{path} has {name}, which is not a setting{suggest(name, known)}")
        kind = RUN.get(name)
        if kind and (isinstance(value, bool) or not isinstance(value, (int, float) if kind is float else kind)):
            raise BertsmithError(f"{path}: {name} is {value!r}; it must be {'text' if kind is str else 'a number'}.")
    for name in ("out", "model"):
        if name in settings and (name == "out" or (path.parent / settings[name]).exists()):
            settings[name] = str(path.parent / settings[name])
    asked = {**settings, **{name: value for name, value in given.items() if value is not None}}
    if "out" not in asked:
        raise typer.BadParameter("--out is missing.")
    sort_choices({name: value for name, value in asked.items() if name not in RUN})  # before any data is read
    return {**asked, "members": members}


def carry_out_mix(asked: dict[str, Any], modes: Mapping[str, Any], say: Callable[[str], None]) -> dict[str, Any] | None:
    """Trains and says how to use what it left; None after a dry run."""
    import bertsmith
    from bertsmith.cli.options import look_here
    from bertsmith.evaluation.report import read_metrics
    from bertsmith.models.files import take_folder
    from bertsmith.training.watching import Events, ProgressBar

    for member in asked["members"].values():
        task = member.get("task")
        look_here(task if isinstance(task, str) else None)
    with ProgressBar(say) as bar, Events(take_folder(asked["out"])) as events:
        run = bertsmith.finetune_together(watchers=[bar, events], say=say, **modes, **asked)
    if run is None:
        say("This was a dry run: nothing was trained and nothing written.")
        return None
    facts = read_metrics(run.folder)
    pairs = {one["name"] for one in facts.members if one.get("pairs")}
    for name, member in asked["members"].items():
        ask = ASKS.get(str(member.get("task")), "info") + (' --pair "Another text."' if name in pairs else "")
        ask = ask.replace("[MASK]", facts.mask)
        say(f"to use {name}: bertsmith {ask} --model {shlex.quote(str(run.folder))} --use {name}")
    return {"task": "several", "folder": str(run.folder), "metrics": run.metrics}
