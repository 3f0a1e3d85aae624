"""The parts of request bodies that several kinds of client share: texts or token ids, texts or pairs of them.

In: what JSON holds. Out: the same, checked; what does not fit is told in one sentence.
"""

from typing import Annotated, Any, TypeVar

from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ConfigDict, Field, PlainValidator, ValidationError, WithJsonSchema
from pydantic_core import PydanticCustomError

LARGEST_ID = 2**31 - 1
TEXT = {"type": "string", "minLength": 1}
TEXTS = {"type": "array", "items": TEXT, "minItems": 1}
IDS = {"type": "array", "items": {"type": "integer", "minimum": 0, "maximum": LARGEST_ID}, "minItems": 1}


class Shape(BaseModel):
    """A body; keys that it does not know are left alone, for clients send more than is read."""

    model_config = ConfigDict(extra="ignore", protected_namespaces=())


Body = TypeVar("Body", bound=Shape)


def check(kind: type[Body], given: Any) -> Body:
    """For a body whose shape shows only when it is read."""
    try:
        return kind.model_validate(given)
    except ValidationError as error:
        found = [{**one, "loc": ("body", *one["loc"])} for one in error.errors()]
        raise RequestValidationError(found) from error


def shown_as(*examples: dict[str, Any]) -> ConfigDict:
    """For the documentation; each runs as it stands."""
    return ConfigDict(json_schema_extra={"examples": list(examples)})


def answered(example: Any) -> dict[int | str, dict[str, Any]]:
    """For the documentation: what an answer looks like."""
    return {200: {"content": {"application/json": {"example": example}}}}


def is_ids(value: Any) -> bool:
    return isinstance(value, list) and all(type(id) is int and 0 <= id <= LARGEST_ID for id in value)


def _is_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(text, str) for text in value)


def _take_inputs(value: Any) -> Any:
    if isinstance(value, str) or _is_texts(value) or is_ids(value):
        return value
    if isinstance(value, list) and all(is_ids(one) for one in value):
        return value
    raise PydanticCustomError(
        "inputs", "it must be a text, a list of texts, a list of token ids, or a list of such lists"
    )


def _take_ids(value: Any) -> Any:
    if is_ids(value) or (isinstance(value, list) and all(is_ids(one) for one in value)):
        return value
    raise PydanticCustomError("ids", "it must be a list of token ids, or a list of such lists")


def _take_texts(value: Any) -> Any:
    if isinstance(value, str) or _is_texts(value):
        return value
    raise PydanticCustomError("texts", "it must be a text or a list of texts")


def _take_pairs(value: Any) -> Any:
    if isinstance(value, str) or (_is_texts(value) and 1 <= len(value) <= 2):
        return value
    if isinstance(value, list) and all(_is_texts(one) and 1 <= len(one) <= 2 for one in value):
        return value
    raise PydanticCustomError(
        "pairs", "it must be a text, a pair of texts, or a list in which each is a list of one text or of two"
    )


# One sentence for what does not fit, where a union of types would give one for each.
Inputs = Annotated[
    Any, PlainValidator(_take_inputs), WithJsonSchema({"anyOf": [TEXT, TEXTS, IDS, {"type": "array", "items": IDS}]})
]
Ids = Annotated[Any, PlainValidator(_take_ids), WithJsonSchema({"anyOf": [IDS, {"type": "array", "items": IDS}]})]
Texts = Annotated[Any, PlainValidator(_take_texts), WithJsonSchema({"anyOf": [TEXT, TEXTS]})]
Pairs = Annotated[
    Any,
    PlainValidator(_take_pairs),
    WithJsonSchema({"anyOf": [TEXT, {**TEXTS, "maxItems": 2}, {"type": "array", "items": {**TEXTS, "maxItems": 2}}]}),
]
Count = Annotated[int, Field(ge=1, le=LARGEST_ID)]
