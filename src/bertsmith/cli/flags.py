"""Settings as flags. In: dataclasses and the roles of columns. Out: one typer option a field, made from its type.

A flag that was not given says nothing, so a file of settings can stand behind the flags and defaults behind both.
"""

import inspect
from collections.abc import Iterable, Mapping
from dataclasses import Field, dataclass, fields
from types import NoneType
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

import typer
from typer.core import TyperCommand

from bertsmith.cli import sentences
from bertsmith.errors import BertsmithError
from bertsmith.training.choices import COLUMNS as ROLES
from bertsmith.training.choices import sort_choices

METAVARS = {int: "N", float: "X", str: "TEXT"}
ALSO: dict[str, tuple[str, ...]] = {"max_steps": ("--max-steps", "--steps")}  # what others call it, too


@dataclass(frozen=True)
class Flags:
    """`settings: Annotated[dict[str, Any], Flags(Training, "Training")]` gives a verb those that the user gave.

    `panel` is the heading in `--help`; `only` names the fields that get a flag, all of them by default. Where a recipe
    of pretraining has the defaults, none are shown, and some fields are told of in other words.
    """

    kind: type[Any]
    panel: str
    only: tuple[str, ...] = ()
    by_recipe: bool = False

    def parameters(self) -> list[inspect.Parameter]:
        hints = get_type_hints(self.kind)
        return [_make(field, hints[field.name], self.panel, self.by_recipe) for field in self._fields()]

    def gather(self, given: dict[str, Any]) -> dict[str, Any]:
        """Takes its own out of all that typer parsed."""
        values = {field.name: given.pop(field.name) for field in self._fields()}
        return {name: value for name, value in values.items() if value is not None}

    def _fields(self) -> list[Field[Any]]:
        return [field for field in fields(self.kind) if not self.only or field.name in self.only]


@dataclass(frozen=True)
class ColumnFlags:
    """The same for columns: role -> column."""

    only: tuple[str, ...] = ROLES

    def parameters(self) -> list[inspect.Parameter]:
        return [
            _parameter(role, str, f"The column of {sentences.COLUMNS[role]}.", "Columns", metavar="COLUMN")
            for role in self.only
        ]

    def gather(self, given: dict[str, Any]) -> dict[str, str]:
        values = {role: given.pop(role) for role in self.only}
        return {role: column for role, column in values.items() if column is not None}


class PanelCommand(TyperCommand):
    """A command whose plain `--help` keeps options under the headings of their panels."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        panels: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            heading = "Arguments" if parameter.param_type_name == "argument" else "Options"
            record = parameter.get_help_record(ctx)
            if record is not None:
                panels.setdefault(getattr(parameter, "rich_help_panel", None) or heading, []).append(record)
        for heading, records in panels.items():
            with formatter.section(heading):
                formatter.write_dl(records)


def _make(field: Field[Any], hint: Any, panel: str, by_recipe: bool) -> inspect.Parameter:
    """The option for a field: its default is shown, but not passed on."""
    kinds = [kind for kind in get_args(hint) if kind is not NoneType] if NoneType in get_args(hint) else [hint]
    kind = kinds[0]
    words = ALSO.get(field.name, ())
    if kind is bool:
        name = field.name.replace("_", "-")
        words = (f"--{name}/--no-{name}",)
    help = (sentences.PRETRAINING.get(field.name) if by_recipe else None) or sentences.SETTINGS[field.name]
    if not by_recipe and field.default is not None and not isinstance(field.default, bool):
        help += (
            f"  [default: {field.default:g}]" if isinstance(field.default, float) else f"  [default: {field.default}]"
        )
    parser = _number_or_word if {str, float} <= set(kinds) else None
    metavar = None if get_origin(kind) is Literal or kind is bool else METAVARS[kind]
    return _parameter(field.name, kind, help, panel, words, metavar=metavar, parser=parser)


def _parameter(
    name: str, kind: Any, help: str, panel: str, words: Iterable[str] = (), *, metavar: str | None = None,
    parser: Any = None,
) -> inspect.Parameter:  # fmt: skip
    option = typer.Option(*words, help=help, metavar=metavar, show_default=False, rich_help_panel=panel, parser=parser)
    return inspect.Parameter(
        name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=Annotated[kind | None, option]
    )


def _number_or_word(value: str) -> Any:
    try:
        return float(value)
    except ValueError:
        return value


def find_group(annotation: Any) -> Any:
    """The group of flags that a parameter's annotation holds, or None."""
    return next((part for part in get_args(annotation)[1:] if isinstance(part, Flags | ColumnFlags)), None)


def check_flags(given: Mapping[str, Any]) -> None:
    """A wrong value of a flag is a mistake in the command; the same value in a file is one in the file."""
    try:
        sort_choices(given)
    except BertsmithError as error:
        raise typer.BadParameter(str(error)) from error


def require(asked: Mapping[str, Any], names: Iterable[str]) -> None:
    """What neither the flags nor a file of settings named is a mistake in the command."""
    for name in names:
        if name not in asked:
            raise typer.BadParameter(f"--{name} is missing.")


def combine(file: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """What a file of settings says, with the flags that were given over it."""
    return {**file, **{name: value for name, value in given.items() if value is not None}}
