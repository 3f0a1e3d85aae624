"""The options that the verbs share, and where the model comes from when none is named."""

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_type_hints

import typer

if TYPE_CHECKING:
    from bertsmith.model import Model

Device = Literal["auto", "cpu", "cuda", "mps"]
Dtype = Literal["float32", "bfloat16", "float16"]
CutPolicy = Literal["error", "head", "tail", "head+tail"]
Policy = Literal[CutPolicy, "windows"]

Texts = Annotated[
    list[str], typer.Argument(metavar="TEXT", help="The texts, or - for standard input, one text a line.")
]
_LONG = typer.Option(help="What to do with a text that is longer than the model takes.")
Truncate = Annotated[Policy, _LONG]
Cut = Annotated[CutPolicy, _LONG]  # for a verb that has no use for windows
Json = Annotated[bool, typer.Option("--json", help="JSON lines on a terminal too; a pipe gets them anyway.")]


@dataclass(frozen=True)
class ModelOptions:
    """Which model, and how it runs."""

    model: Annotated[
        str | None,
        typer.Option(
            metavar="PATH|NAME",
            envvar="BERTSMITH_MODEL",
            help="A folder, or a name on the hub that is here already; else the demo model.",
        ),
    ] = None
    device: Annotated[Device, typer.Option(help="Where it runs.")] = "auto"
    dtype: Annotated[Dtype, typer.Option(help="The precision it runs in.")] = "float32"
    batch_tokens: Annotated[int | None, typer.Option(metavar="N", min=1, help="Most tokens in one batch.")] = None
    threads: Annotated[int | None, typer.Option(metavar="N", min=1, help="CPU threads.")] = None
    download: Annotated[bool, typer.Option("--download", help="Fetch a NAME that is not here yet.")] = False
    as_json: Json = False

    def load(self) -> "Model":
        """The model that the options name."""
        import logging

        import bertsmith

        logging.getLogger("bertsmith.cuts").disabled = True  # `output.Cuts` says it once, for all chunks together
        return bertsmith.load(
            self.model,
            device=self.device,
            dtype=self.dtype,
            download=self.download,
            threads=self.threads,
            batch_tokens=self.batch_tokens,
        )


def spread(verb: Callable[..., None]) -> Callable[..., None]:
    """`verb` as typer wants it: a parameter that is a dataclass becomes one option for each of its fields."""
    parameters: list[inspect.Parameter] = []
    groups: dict[str, type[Any]] = {}
    for parameter in inspect.signature(verb).parameters.values():
        kind = parameter.annotation
        if not is_dataclass(kind):
            parameters.append(parameter.replace(kind=parameter.KEYWORD_ONLY))
            continue
        assert isinstance(kind, type)
        groups[parameter.name] = kind
        hints = get_type_hints(kind, include_extras=True)
        parameters += [
            inspect.Parameter(field.name, parameter.KEYWORD_ONLY, default=field.default, annotation=hints[field.name])
            for field in fields(kind)
        ]

    @functools.wraps(verb)
    def flat(**given: Any) -> None:
        for name, kind in groups.items():
            given[name] = kind(**{field.name: given.pop(field.name) for field in fields(kind)})
        verb(**given)

    flat.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return flat
