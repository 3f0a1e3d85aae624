"""`bertsmith pretrain`: a corpus becomes an encoder of one's own, or a trained one learns on in it."""

import os
import shlex
from collections.abc import Callable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any

import typer

from bertsmith.cli.flags import Flags, combine, require
from bertsmith.cli.options import Download, ResultJson, TrainingDevice
from bertsmith.cli.output import drop_nan, wants_json, write_json, write_note
from bertsmith.errors import BertsmithError
from bertsmith.objectives.wording import read_asks
from bertsmith.training.choices import read_toml, suggest
from bertsmith.training.pretraining_settings import IDLE, Pretraining
from bertsmith.training.reading_ahead import read_ahead
from bertsmith.training.recipes import KINDS, RECIPES, Asking, Shape, find_recipe

# What a file of settings may hold beside the settings themselves.
RUN: dict[str, Any] = {
    **dict.fromkeys(("corpus", "recipe", "model", "out", "device"), str), "threads": int, "minutes": (int, float),
}  # fmt: skip
TRAINING = tuple(field.name for field in fields(Pretraining) if field.name not in IDLE)


def pretrain(
    *,
    corpus: Annotated[
        str | None, typer.Option(metavar="DIR", help="The folder that bertsmith corpus build wrote.")
    ] = None,
    out: Annotated[str | None, typer.Option(metavar="DIR", help="The folder for the encoder and its report.")] = None,
    recipe: Annotated[
        str | None,
        typer.Option(metavar="NAME", help=f"{', '.join(RECIPES)}; else smith, with --model that of its family."),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(metavar="PATH|NAME", help="Go on with this model, whose tokenizer (or more) made the corpus."),
    ] = None,
    minutes: Annotated[
        float | None,
        typer.Option(
            metavar="X",
            help="Take so long: the first passes tell how many steps that is. On a CPU with a tiny encoder, unless "
            "sizes are given.",
        ),
    ] = None,
    settings: Annotated[
        Path | None, typer.Option(metavar="FILE.toml", help="A file with any of these settings; flags win over it.")
    ] = None,
    plan: Annotated[bool, typer.Option("--plan", help="Say what would be done, and do nothing.")] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Start anew where DIR holds a run already.")] = False,
    keep_checkpoints: Annotated[
        bool, typer.Option("--keep-checkpoints", help="Keep the last checkpoint of training.")
    ] = False,
    device: TrainingDevice = None,
    threads: Annotated[int | None, typer.Option(metavar="N", min=1, help="CPU threads.")] = None,
    download: Download = False,
    as_json: ResultJson = False,
    shape: Annotated[dict[str, Any], Flags(Shape, "Encoder, else as the recipe has it", by_recipe=True)],
    asking: Annotated[dict[str, Any], Flags(Asking, "What is asked, else as the recipe has it", by_recipe=True)],
    training: Annotated[
        dict[str, Any], Flags(Pretraining, "Training, else as the recipe has it", TRAINING, by_recipe=True)
    ],
) -> None:
    """Pretrain an encoder on plain text: raw words in, a model of your own out.

    The same command again goes on after a kill; a finished run is left alone. Without --minutes, --max-steps or
    --epochs the whole corpus is read once.

    \b
    Examples:
      bertsmith pretrain --corpus my-corpus --minutes 20 --out my-encoder --plan
      bertsmith pretrain --corpus my-corpus --depth 2 --width 64 --tokens 2048 --max-steps 20 --out my-encoder
      bertsmith pretrain --corpus my-corpus --recipe albert --asks "masked+order*1-0" --out my-albert --plan
      bertsmith pretrain --corpus my-corpus --model my-bert --tokens 2048 --max-steps 5 --out my-further-bert
    """
    run = {"corpus": corpus, "out": out, "recipe": recipe, "model": model, "minutes": minutes, "device": device,
           "threads": threads}  # fmt: skip
    given = {**shape, **asking, **training}
    if settings is None and (recipe or not model):  # else the rest is not known yet
        check_flags(recipe, given)
    if minutes is not None and ("max_steps" in given or "epochs" in given):
        raise typer.BadParameter("--minutes say how long; leave --max-steps and --epochs out.")
    asked = combine(read_settings(settings, recipe, model, given) if settings else {}, {**run, **given})
    require(asked, ("corpus",) if plan else ("corpus", "out"))
    is_first = os.environ.get("RANK", "0") == "0"  # of the processes of torchrun
    say = write_note if is_first else (lambda sentence: None)
    as_json = wants_json(as_json)
    modes = {"plan": plan, "overwrite": overwrite, "keep_checkpoints": keep_checkpoints, "download": download}
    result = carry_out(asked, modes, say)
    if is_first and as_json and result is not None:
        write_json(drop_nan(result))


def check_flags(recipe: str | None, given: Mapping[str, Any]) -> None:
    """A wrong value of a flag is a mistake in the command; the same value in a file is one in the file."""
    try:
        check_values(recipe, given)
        if "preset" in given:
            from bertsmith.models.families import find_preset

            find_preset(given["preset"])
    except BertsmithError as error:
        raise typer.BadParameter(str(error)) from error


def check_values(recipe: str | None, given: Mapping[str, Any]) -> None:
    alone = {name: value for name, value in given.items() if name not in ("asks", "teacher")}  # these need each other
    asks = given.get("asks", "masked")
    if not isinstance(asks, str):
        raise BertsmithError(f'asks is {asks!r}; it must be text, as in "masked".')
    read_asks(asks)
    find_recipe(recipe or "smith", alone)


def read_settings(path: Path, recipe: str | None, model: str | None, given: Mapping[str, Any]) -> dict[str, Any]:
    """What the file says, if it says nothing that is not a setting or cannot be one; the rest: what the flags say."""
    found = read_toml(path)
    for name, value in found.items():
        if name in RUN:
            if isinstance(value, bool) or not isinstance(value, RUN[name]):
                wanted = "text" if RUN[name] is str else "a number"
                raise BertsmithError(f"{path}: {name} is {value!r}; it must be {wanted}.")
        elif name not in KINDS and name not in IDLE:  # those are refused with their reason
            raise BertsmithError(f"{path} has {name}, which is not a setting{suggest(name, [*RUN, *KINDS])}")
    recipe = recipe or found.get("recipe")
    if recipe or not (model or "model" in found):  # else what the others go with is not known yet
        check_file(path, recipe, {name: value for name, value in found.items() if name not in RUN}, given)
    return found


def check_file(path: Path, recipe: str | None, own: Mapping[str, Any], given: Mapping[str, Any]) -> None:
    """What is wrong of a file alone may be right with the flags: its small steps with their short rows."""
    try:
        check_values(recipe, own)
    except BertsmithError as alone:
        try:
            check_values(recipe, {**own, **given})
        except BertsmithError as error:
            raise BertsmithError(f"{path}: {error}" if str(error) == str(alone) else str(error)) from None


def carry_out(asked: dict[str, Any], modes: Mapping[str, Any], say: Callable[[str], None]) -> dict[str, Any] | None:
    """Trains, with a bar; None after a plan."""
    read_ahead(asked.get("device"))
    import bertsmith
    from bertsmith.models.files import take_folder
    from bertsmith.training.watching import Events, ProgressBar

    corpus, out = asked.pop("corpus"), asked.pop("out", "encoder")
    with ProgressBar(say) as bar, Events(take_folder(out)) as events:
        run = bertsmith.pretrain(corpus, out, watchers=[bar, events], say=say, **modes, **asked)
    if run is None:
        say("This was a plan: nothing was trained and nothing written.")
        return None
    say(f"to use it: bertsmith {find_use(run.folder, run.metrics)}")
    return {"folder": str(run.folder), "metrics": run.metrics}


def find_use(folder: Path, metrics: Mapping[str, float]) -> str:
    """What a person may try next with what is in the folder; `metrics` tell whether it learnt to fill masks itself."""
    from bertsmith.models.files import read_settings as read_model

    fills = any(name.startswith(("masked", "distilled")) for name in metrics)
    has_generator = not fills and (folder / "generator" / "config.json").exists()
    filling = folder / "generator" if has_generator else folder
    architectures = read_model(filling).get("architectures") or [""]
    is_asked = architectures[0].endswith(("MaskedLM", "PreTraining")) and (fills or has_generator or not metrics)
    if not is_asked or not (filling / "tokenizer.json").exists():  # without words to fill, or of codes
        return f"info --model {shlex.quote(str(folder))}"
    from bertsmith.text.loading import load_tokenizer

    mask = load_tokenizer(filling).mask_token or "[MASK]"
    return f"fill {shlex.quote(f'It was a {mask}.')} --model {shlex.quote(str(filling))}"
