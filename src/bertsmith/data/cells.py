"""One cell of a table becomes what an example needs: a text, a list, or nothing; else an error that names the cell."""

import ast
import json
import re
from typing import Any

from bertsmith.data import findings
from bertsmith.data.table import Table
from bertsmith.errors import BertsmithError

# An array as pandas writes it into a CSV file, parts with white space between them: ['a' 'b'], [ 2 27].
_PART = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|[^\s,'"\[\]]+""")
_ARRAY = re.compile(rf"\[\s*(?:{_PART.pattern})(?:\s+(?:{_PART.pattern}))+\s*\]")


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
    """A list as such, or written as JSON, Python or numpy inside a text: ["a", "b"], ['a' 'b']; None: it is no list."""
    if isinstance(value, (list, tuple)):
        return list(value)
    if not isinstance(value, str) or not (value.startswith("[") and value.endswith("]")):
        return None
    if _ARRAY.fullmatch(value):  # first, since Python joins 'a' 'b' to one text
        return _read_array(value)
    found = _parse(value)
    return found if isinstance(found, list) else None


def object_cell(value: str) -> dict[str, Any] | None:
    """An object written as JSON or Python inside a text; None: it is none."""
    found = _parse(value) if value.startswith("{") and value.endswith("}") else None
    return found if isinstance(found, dict) else None


def _parse(value: str) -> Any:
    for parse in (json.loads, ast.literal_eval):
        try:
            return parse(value)
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            continue
    return None


def _read_array(value: str) -> list[Any] | None:
    try:
        found = [ast.literal_eval(part) for part in _PART.findall(value[1:-1])]
    except (ValueError, SyntaxError):  # words in brackets
        return None
    return None if ... in found else found
