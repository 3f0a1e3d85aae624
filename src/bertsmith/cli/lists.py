"""Settings as flags that take several values: `--rate 2e-5,5e-5`, or a range, `--rate 1e-5:1e-3`.

In: the dataclasses of the settings. Out: what was given, as the lists that `bertsmith.sweep` tries.
"""

import inspect
from dataclasses import dataclass, field
from typing import Annotated, Any

import typer

from bertsmith.cli.flags import Flags
from bertsmith.cli.sentences import SETTINGS
from bertsmith.training.space import kinds_of

WHOLE = ("separator", "label_names", "positive", "metric", "cache")  # a comma in them is part of the text
YES, NO = ("yes", "true", "on", "1"), ("no", "false", "off", "0")


@dataclass(frozen=True)
class ListFlags(Flags):
    """As `Flags`, each flag one text; `without` names the fields that get none."""

    without: tuple[str, ...] = field(default=(), kw_only=True)

    def parameters(self) -> list[inspect.Parameter]:
        return [_make(each.name, self.panel) for each in self._fields()]

    def gather(self, given: dict[str, Any]) -> dict[str, Any]:
        return {name: parse_values(name, text) for name, text in super().gather(given).items()}

    def _fields(self) -> list[Any]:
        return [each for each in super()._fields() if each.name not in self.without]


def _make(name: str, panel: str) -> inspect.Parameter:
    is_switch = kinds_of(name)[0] is bool
    metavar = "TEXT" if name in WHOLE else "yes,no" if is_switch else "LIST"
    option = typer.Option(help=SETTINGS[name], metavar=metavar, show_default=False, rich_help_panel=panel,
                          callback=_refuse_flag if is_switch else None)  # fmt: skip
    return inspect.Parameter(
        name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=Annotated[str | None, option]
    )


def _refuse_flag(value: str | None) -> str | None:
    """A switch without a value, as `finetune` has it, would take the next flag for one."""
    if value is not None and value.startswith("--"):
        raise typer.BadParameter("give yes or no, or yes,no to try both.")
    return value


def parse_values(name: str, text: str) -> Any:
    """One value, a list of them, or a range as it stands."""
    kinds = kinds_of(name)
    if name in WHOLE:
        return text
    if ":" in text and {int, float} & set(kinds):
        return text
    values = [_parse(name, part.strip(), kinds) for part in text.split(",")]
    return values if len(values) > 1 else values[0]


def _parse(name: str, text: str, kinds: tuple[Any, ...]) -> Any:
    """As the setting's type has it; what no type fits goes on as text, or is refused here if only numbers do."""
    if not text:
        raise typer.BadParameter(f"--{name.replace('_', '-')} has an empty value; separate values by single commas.")
    if bool in kinds and text.lower() in (*YES, *NO):
        return text.lower() in YES
    for kind in (int, float):
        if kind in kinds:
            try:
                return kind(text)
            except ValueError:
                continue
    if {int, float, bool} & set(kinds) and str not in kinds:
        wanted = "yes or no" if bool in kinds else "a whole number" if float not in kinds else "a number"
        raise typer.BadParameter(f"--{name.replace('_', '-')} has {text!r}, which is not {wanted}.")
    return text


def parse_seeds(text: str) -> int | list[int]:
    """A number alone says how many; with a comma they are the seeds themselves."""
    parts = [part.strip() for part in text.split(",")]
    if len(parts) > 1 and not parts[-1]:
        parts.pop()  # `7,` is the seed 7
    if not all(part.isdecimal() and part.isascii() for part in parts):
        raise typer.BadParameter(f"--seeds is {text!r}; give how many, as in 5, or the seeds, as in 1,2,3.")
    return [int(part) for part in parts] if "," in text else int(parts[0])
