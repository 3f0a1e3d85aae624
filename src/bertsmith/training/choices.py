"""What a person may choose for a fine-tuning beside the data: about the task, and about training (`Training`).

The same names everywhere: keyword arguments in Python, flags on the command line, keys of a TOML file.
"""

import difflib
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from bertsmith.errors import BertsmithError
from bertsmith.training.settings import Training, check_types

COLUMNS = (
    "text", "pair", "label", "words", "tags", "entities", "question", "context", "answers", "id", "prompt", "choices",
    "answer",
)  # fmt: skip

SETTLED = ("thresholds", "scheme", "label_scheme", "calibrate", "dev_share")  # by a fine-tuning, for good


@dataclass(frozen=True)
class TaskChoices:
    """About the task; what a task has no use for is refused by it or has no effect."""

    several: bool | None = None  # classify: any number of labels a text; None: as the data looks
    separator: str | None = None  # classify: between several labels in one cell
    label_names: str | None = None  # a file with one label name a line, where the data has numbers
    positive: str | None = None  # classify: the label whose F1 is asked for, of two
    thresholds: str | float | None = None  # classify, several labels: one, each, or a number
    scheme: str | None = None  # tag: of the data; None: found
    label_scheme: str | None = None  # tag: what the head is trained in
    truncate: str | None = None  # what to do with long inputs
    length: int | None = None  # tokens in a row; None: as many as the model takes
    overlap: int | None = None  # span: pieces of the context that neighbouring windows share
    question_length: int | None = None  # span
    answer_length: int | None = None  # span
    calibrate: bool = False  # fit a temperature on the development set
    dev_share: float = 0.1  # of the training examples, where no development set is given

    def __post_init__(self) -> None:
        check_types(self)
        for name in ("length", "question_length", "answer_length"):
            if getattr(self, name) is not None and getattr(self, name) < 1:
                raise BertsmithError(f"{name} is {getattr(self, name)}; it must be at least 1.")
        if not 0 < self.dev_share < 1:
            raise BertsmithError(f"dev_share is {self.dev_share}; it must be between 0 and 1.")


def sort_choices(given: Mapping[str, Any]) -> tuple[TaskChoices, Training, dict[str, str]]:
    """What was given by name, as choices about the task, about training, and role -> column."""
    known = {field.name: kind for kind in (TaskChoices, Training) for field in fields(kind)}
    parts: dict[Any, dict[str, Any]] = {TaskChoices: {}, Training: {}, "columns": {}}
    for name, value in given.items():
        if name in COLUMNS:
            parts["columns"] |= take_columns({name: value})
        elif name in known:
            parts[known[name]][name] = str(value) if isinstance(value, Path) else value
        else:
            raise BertsmithError(f"{name} is not a setting{suggest(name, [*known, *COLUMNS])}.")
    return TaskChoices(**parts[TaskChoices]), Training(**parts[Training]), parts["columns"]


def take_columns(given: Any) -> dict[str, str]:
    """Role -> column, as a person gave it."""
    if not isinstance(given, Mapping):
        raise BertsmithError(f'columns is {given!r}; give each role its column, as in {{"text": "review"}}.')
    for role in given:
        if role not in COLUMNS:
            raise BertsmithError(f"{role} is not a column's role{suggest(str(role), [*COLUMNS])}.")
    return {role: _take_column(role, value) for role, value in given.items() if value is not None}


def _take_column(role: str, value: Any) -> str:
    """A column's name, or its number counted from 1."""
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise BertsmithError(f"{role} is {value!r}; give the name or the number of a column.")
    return str(value)


def refuse_training(given: Mapping[str, Any]) -> None:
    """What a fine-tuned model cannot be given any more: it was settled when it was trained."""
    settled = {field.name: field.default for field in fields(Training)}
    settled |= {field.name: field.default for field in fields(TaskChoices) if field.name in SETTLED}
    for name, value in given.items():
        if name in settled and value != settled[name]:
            raise BertsmithError(f"{name} is settled when a model is fine-tuned; leave it out here.")


def suggest(name: str, known: list[str]) -> str:
    near = difflib.get_close_matches(name.replace("-", "_"), known, 1)
    return f"; did you mean {near[0]}" if near else ""


def read_toml(path: str | Path) -> dict[str, Any]:
    """A file of settings, flat or in tables, whose names do not matter."""
    try:
        content = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise BertsmithError(f"{path} cannot be read: {error.strerror or error}.") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BertsmithError(f"{path} is not valid TOML: {error}.") from error
    found: dict[str, Any] = {}
    for name, value in content.items():
        for key, inner in value.items() if isinstance(value, dict) else [(name, value)]:
            key = key.replace("-", "_")
            if key in found:
                raise BertsmithError(f"{path} has {key} twice; leave one of them out.")
            found[key] = inner
    return found


def as_asked(choices: TaskChoices, training: Training) -> dict[str, Any]:
    """What a run is known by: another value makes it another run."""
    return {**asdict(choices), **asdict(training)}
