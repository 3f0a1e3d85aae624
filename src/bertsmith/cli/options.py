"""The options that the verbs share, and where the model comes from when none is named."""

import functools
import inspect
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_type_hints

import typer

from bertsmith.cli.flags import find_group

if TYPE_CHECKING:
    from bertsmith.model import Model

Device = Literal["auto", "cpu", "cuda", "mps"]
Dtype = Literal["float32", "bfloat16", "float16"]
CutPolicy = Literal["error", "head", "tail", "head+tail"]
Policy = Literal[CutPolicy, "windows"]

Texts = Annotated[
    list[str], typer.Argument(metavar="TEXT", help="The texts, or - for standard input, one text a line.")
]
TextsOrFile = Annotated[
    list[str] | None,
    typer.Argument(metavar="TEXT", help="The texts, or - for standard input, one text a line; else --in FILE."),
]
_LONG = typer.Option(help="What to do with a text that is longer than the model takes.")
TextsOrPairs = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="TEXT", help="The texts, or - for standard input: a text a line, or a text, a tab and its pair."
    ),
]
Pair = Annotated[
    str | None,
    typer.Option(metavar="TEXT|COLUMN", help="A second text, put behind each TEXT; with --in its column."),
]
TextColumn = Annotated[str | None, typer.Option(metavar="COLUMN", help="With --in: the column of the text.")]
Truncate = Annotated[Policy, _LONG]
Cut = Annotated[CutPolicy, _LONG]  # for a verb that has no use for windows
OwnCut = Annotated[
    Policy | None, typer.Option(help="What to do with a text that is longer than the model takes; else as it learnt.")
]
Format = Annotated[
    Literal["csv", "tsv", "jsonl", "json", "parquet", "conll", "squad", "lines"] | None,
    typer.Option(help="What the files hold; else it is told by their names and their content."),
]
File = Annotated[
    str | None,
    typer.Option(
        "--in", metavar="FILE", help="Ask about each row of this file (CSV, JSON Lines, …), - for standard input."
    ),
]
Json = Annotated[bool, typer.Option("--json", help="JSON lines on a terminal too; a pipe gets them anyway.")]
ResultJson = Annotated[bool, typer.Option("--json", help="The result as JSON on a terminal too.")]
Download = Annotated[bool, typer.Option("--download", help="Fetch a NAME that is not here yet.")]
# Of the verbs that make something: a file of settings stands behind flags that were not given, so none has a default.
TrainingDevice = Annotated[Device | None, typer.Option(show_default=False, help="Where it runs.  [default: auto]")]
StartingModel = Annotated[
    str | None,
    typer.Option(
        metavar="PATH|NAME",
        help="The encoder to start from; else the one that BERTSMITH_MODEL names, else the default one.",
    ),
]
Check = Annotated[bool, typer.Option("--check/--no-check", show_default=False, help="Ask the data doctor first.")]
# Of the verbs that read raw text.
Sources = Annotated[
    list[str],
    typer.Argument(
        metavar="SOURCES", help="Files, folders, globs: txt, md, jsonl, json, parquet, also packed (gz, xz, zst)."
    ),
]
Field = Annotated[str, typer.Option(metavar="NAME", help="The field of the text in JSON and Parquet.")]


@dataclass(frozen=True)
class ModelOptions:
    """Which model, and how it runs."""

    model: Annotated[
        str | None,
        typer.Option(
            metavar="PATH|NAME",
            envvar="BERTSMITH_MODEL",
            help="A folder, or a name on the hub that is here already; else the default one.",
        ),
    ] = None
    use: Annotated[
        str | None, typer.Option(metavar="NAME|PATH", help="One of the model's adapters, or the folder of another.")
    ] = None
    device: Annotated[Device, typer.Option(help="Where it runs.")] = "auto"
    dtype: Annotated[Dtype, typer.Option(help="The precision it runs in.")] = "float32"
    batch_tokens: Annotated[int | None, typer.Option(metavar="N", min=1, help="Most tokens in one batch.")] = None
    threads: Annotated[int | None, typer.Option(metavar="N", min=1, help="CPU threads.")] = None
    download: Download = False
    as_json: Json = False

    def load(self) -> "Model":
        """The model that the options name."""
        import logging

        import bertsmith

        logging.getLogger("bertsmith.cuts").disabled = True  # `output.Cuts` says it once, for all chunks together
        model = bertsmith.load(
            self.model,
            device=self.device,
            dtype=self.dtype,
            download=self.download,
            threads=self.threads,
            batch_tokens=self.batch_tokens,
        )
        return model if self.use is None else model.use(self.use)


def look_here(task: str | None) -> None:
    """Let a task of the person's own, module:Class, be found in the folder they are in, as `python -m` would."""
    if task is not None and ":" in task and "" not in sys.path and os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())


def spread(verb: Callable[..., None]) -> Callable[..., None]:
    """`verb` as typer wants it: a parameter that is a dataclass or a group of flags becomes one option a field."""
    parameters: list[inspect.Parameter] = []
    groups: dict[str, Any] = {}
    for parameter in inspect.signature(verb).parameters.values():
        group = Whole(parameter.annotation) if is_dataclass(parameter.annotation) else find_group(parameter.annotation)
        if group is None:
            parameters.append(parameter.replace(kind=parameter.KEYWORD_ONLY))
        else:
            groups[parameter.name] = group
            parameters += group.parameters()

    @functools.wraps(verb)
    def flat(**given: Any) -> None:
        verb(**{name: group.gather(given) for name, group in groups.items()}, **given)

    flat.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return flat


@dataclass(frozen=True)
class Whole:
    """The fields of a dataclass as options with its own defaults; the verb gets the dataclass."""

    kind: Any

    def parameters(self) -> list[inspect.Parameter]:
        hints = get_type_hints(self.kind, include_extras=True)
        return [
            inspect.Parameter(field.name, inspect.Parameter.KEYWORD_ONLY, default=field.default,
                              annotation=hints[field.name])
            for field in fields(self.kind)
        ]  # fmt: skip

    def gather(self, given: dict[str, Any]) -> Any:
        return self.kind(**{field.name: given.pop(field.name) for field in fields(self.kind)})
