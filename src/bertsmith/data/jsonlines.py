"""JSON becomes a table. In: the text of a file with one object a line, one array of objects, SQuAD's nesting, or what
pandas writes.

A key that an object lacks is None in its record, as null is.
"""

import json
from typing import Any

from bertsmith.data.columns import KNOWN, normalize
from bertsmith.data.decoding import bare_lines
from bertsmith.data.records import gather
from bertsmith.data.squad import is_squad, read_squad
from bertsmith.data.table import Table
from bertsmith.errors import BertsmithError

SHAPES = "one object a line, one array of objects, or the nesting of SQuAD"


def read_json(text: str, name: str, *, by_line: bool = False) -> Table:
    """`by_line`: each line is an object, for the file is called so; otherwise the content tells."""
    start = text.lstrip()
    if not start:
        raise BertsmithError(f"{name} is empty.")
    if not start.startswith("[") and (by_line or is_by_line(text)):
        return _read_lines(text, name)
    try:
        content = json.loads(text)
    except json.JSONDecodeError as error:
        raise BertsmithError(
            f"{name}, line {error.lineno:,}: not JSON ({error.msg.lower()} at character {error.colno:,} of the line)."
        ) from None
    except ValueError as error:
        raise BertsmithError(f"{name}: not JSON ({explain_number(error)}).") from None
    except RecursionError:
        raise BertsmithError(f"{name} is nested too deeply; it must hold {SHAPES}.") from None
    return _read_content(content, name)


def _read_content(content: Any, name: str) -> Table:
    if is_squad(content):
        return read_squad(content, name)
    if isinstance(content, dict):
        content = _turn(content) or content
    if isinstance(content, dict) and isinstance(content.get("data"), list):
        content = content["data"]
    if isinstance(content, list):
        return gather(content, name, unit="record", kind="json")
    if isinstance(content, dict) and any(normalize(key) in KNOWN for key in content):
        return gather([content], name, unit="record", kind="json")
    kind = "an object without a known column" if isinstance(content, dict) else f"a {type(content).__name__}"
    raise BertsmithError(f"{name} holds {kind}; it must hold {SHAPES}.")


def _turn(content: dict[str, Any]) -> list[dict[str, Any]]:
    """The records of a table as pandas writes it, a column an object, or names and rows apart; none if it is none."""
    names, rows = content.get("columns"), content.get("data")
    if content.keys() == {"columns", "index", "data"} and isinstance(names, list) and isinstance(rows, list):
        named = [str(name) for name in names]
        is_table = len(set(named)) == len(named)
        is_table = is_table and all(isinstance(row, list) and len(row) == len(named) for row in rows)
        return [dict(zip(named, row, strict=True)) for row in rows] if is_table else []
    columns = list(content.values())
    if not columns or not all(isinstance(column, dict) and column.keys() == columns[0].keys() for column in columns):
        return []
    is_known = any(normalize(name) in KNOWN for name in content)
    return [{name: column[row] for name, column in content.items()} for row in columns[0]] if is_known else []


def is_by_line(text: str) -> bool:
    """Whether the first line is a whole object and more comes after it."""
    lines = (line for _, line in bare_lines(text) if line.strip())
    first = next(lines, "")
    if next(lines, None) is None:
        return False
    try:
        return isinstance(json.loads(first), dict)
    except (ValueError, RecursionError):
        # A broken line among whole ones: the error should name it, not the end of the first object.
        return first.rstrip().endswith("}") and first.count('"') > 1


def _read_lines(text: str, name: str) -> Table:
    records, numbers = [], []
    for number, line in bare_lines(text):
        if line.strip():
            records.append(parse_line(line, f"{name}, line {number:,}"))
            numbers.append(number)
    if len(records) == 1 and is_squad(records[0]):
        return read_squad(records[0], name)
    return gather(records, name, rows=numbers, unit="line", kind="jsonl")


def explain_number(error: ValueError) -> str:
    """What Python's reader says where no rule of JSON is broken: a number may have so many digits at most."""
    return f"a number of too many digits: {str(error).split(';')[0]}"


def parse_line(line: str, where: str) -> dict[str, Any]:
    try:
        record = json.loads(line)
    except json.JSONDecodeError as error:
        raise BertsmithError(
            f"{where}: not JSON ({error.msg.lower()} at character {error.colno:,}); each line must hold one object."
        ) from None
    except ValueError as error:
        raise BertsmithError(f"{where}: not JSON ({explain_number(error)}).") from None
    except RecursionError:
        raise BertsmithError(f"{where}: nested too deeply; each line must hold one object.") from None
    if not isinstance(record, dict):
        raise BertsmithError(f"{where}: each line must hold one object, not {line.strip()[:40]}.")
    return record
