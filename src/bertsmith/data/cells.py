"""One cell of a table becomes what an example needs: a text, a list, or nothing; else an error that names the cell."""

import ast
import json
from typing import Any

from bertsmith.data import findings
from bertsmith.data.table import Table
from bertsmith.errors import BertsmithError


def is_missing(value: Any) -> bool:
    """None and NaN, by whatever library."""
    return value is None or (isinstance(value, float) and value != value)


def describe(value: Any) -> str:
    """As in `a number (3)`."""
    if is_missing(value):
        return "nothing"
    kinds = ((bool, "true or false"), ((int, float), "a number"), (str, "a text"), (dict, "an object"))
    for kind, words in kinds:
        if isinstance(value, kind):
            return f"{words} ({shorten(value)})"
    return f"a list ({shorten(value)})" if isinstance(value, (list, tuple)) else f"a {type(value).__name__}"


def shorten(value: Any, limit: int = 40) -> str:
    return findings.shorten(value if isinstance(value, str) else repr(value), limit)


def text_cell(table: Table, index: int, column: str) -> str:
    """The text there; an empty one passes, for it is the data doctor who judges it."""
    value = table.records[index][column]
    if is_missing(value):
        raise BertsmithError(f"{table.where(index, column)}: the text is missing; give one or take the row out.")
    if not isinstance(value, str):
        raise BertsmithError(f"{table.where(index, column)}: a text is needed here, not {describe(value)}.")
    return sound(value, table, index, column)


def sound(text: str, table: Table, index: int, column: str) -> str:
    """The text itself, when it can be written as UTF-8: JSON may hold half of a surrogate pair."""
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise BertsmithError(
                f"{table.where(index, column)}: character {error.start + 1:,} is half of a surrogate pair "
                f"(\\u{ord(text[error.start]):04x}), which is no character; remove it."
            ) from None
    return text


def list_cell(value: Any) -> list[Any] | None:
    """A list as such, or written as JSON or Python inside a text: ["a", "b"]; None: it is no list."""
    if isinstance(value, (list, tuple)):
        return list(value)
    if not isinstance(value, str) or not (value.startswith("[") and value.endswith("]")):
        return None
    for parse in (json.loads, ast.literal_eval):
        try:
            found = parse(value)
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            continue
        if isinstance(found, list):
            return found
    return None
