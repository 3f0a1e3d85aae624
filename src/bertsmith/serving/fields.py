"""What a job takes: its fields, and whether what came from JSON fits them.

In: a job and its fields from JSON. Out: the fields as the method takes them, or a `Refusal` that names the wrong one.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from bertsmith.serving.asks import Refusal

Kind = Literal["text", "texts", "count", "place", "flag", "choice", "numbers"]


@dataclass(frozen=True)
class Field:
    name: str
    kind: Kind  # "texts": a list; a "text" that `many` allows may be a list of them, one answer each
    help: str
    required: bool = False
    many: bool = False
    ids: bool = False  # whether token ids do in place of a text
    choices: tuple[str, ...] = ()
    most: int | None = None  # of a count, or how many texts there may be


@dataclass(frozen=True)
class Job:
    name: str  # of the method of `Model`, or of the function of `bertsmith.inspect`
    help: str
    fields: tuple[Field, ...]
    example: Mapping[str, Any]
    gives_vectors: bool = False
    looks: bool = False  # a function of `bertsmith.inspect`, whose answer is a picture
    tokens: int | None = None  # of a text that is looked at, at most

    def field(self, name: str) -> Field | None:
        return next((field for field in self.fields if field.name == name), None)


def take_fields(job: Job, given: Mapping[str, Any]) -> dict[str, Any]:
    """The fields as the method takes them; one that is missing, unknown or of another kind is named."""
    for name in given:
        if job.field(name) is None:
            known = ", ".join(field.name for field in job.fields)
            raise Refusal("input", f"{job.name} has no field {name[:40]!r}; its fields are {known}.")
    found = {}
    for field in job.fields:
        value = given.get(field.name)
        if value is None:
            if field.required:
                raise Refusal("input", f"{job.name} needs the field {field.name!r}: {field.help}")
            continue
        if not _fits(field, value):
            raise Refusal("input", f"{job.name}: the field {field.name!r} must be {_describe(field)}.")
        found[field.name] = value
    return found


def _fits(field: Field, value: Any) -> bool:
    match field.kind:
        case "text":
            is_many = field.many and isinstance(value, list) and all(_is_text(field, one) for one in value)
            return is_many or _is_text(field, value)
        case "texts":
            is_many = field.many and isinstance(value, list) and bool(value) and isinstance(value[0], list)
            lists = value if is_many else [value]
            if field.most is not None and any(len(one) > field.most for one in lists if isinstance(one, list)):
                return False
            return all(isinstance(one, list) and all(isinstance(text, str) for text in one) for one in lists)
        case "place":
            return _is_number(value) and value >= 0
        case "count":
            return _is_number(value) and 1 <= value <= (field.most or value)
        case "flag":
            return isinstance(value, bool)
        case "choice":
            return isinstance(value, str) and value in field.choices
        case "numbers":
            if isinstance(value, str):
                return value in field.choices
            is_many = field.many and isinstance(value, list) and bool(value) and isinstance(value[0], list)
            lists = value if is_many else [value]
            return all(isinstance(one, list) and all(_is_number(number) for number in one) for one in lists)


def _is_number(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_text(field: Field, value: Any) -> bool:
    if isinstance(value, list) and field.ids:
        return bool(value) and all(_is_number(one) for one in value)
    return isinstance(value, str)


def _describe(field: Field) -> str:
    match field.kind:
        case "text":
            return "a text or a list of texts" if field.many else "a text"
        case "texts":
            return "a list of texts" if field.most is None else f"a list of at most {field.most} texts"
        case "place":
            return "a whole number from 0 on"
        case "count":
            return "a whole number of at least 1" if field.most is None else f"a whole number from 1 to {field.most}"
        case "flag":
            return "true or false"
        case "choice":
            return f"one of {', '.join(field.choices)}"
        case "numbers":
            return " or ".join(["a list of whole numbers", *(repr(choice) for choice in field.choices)])
