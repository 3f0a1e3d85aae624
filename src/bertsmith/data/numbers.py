"""Records become texts with a number. In: a table and its columns by role. Out: `NumberExample`s.

A number is one of JSON or a frame, or one written in a cell: 4.75, -3, 1e-2. Whatever else stands there is an error.
"""

import math
from collections.abc import Mapping
from typing import Any

from bertsmith.data.cells import describe, is_missing, text_cell
from bertsmith.data.examples import NumberExample
from bertsmith.data.table import Table
from bertsmith.errors import BertsmithError


def number_examples(table: Table, columns: Mapping[str, str], *, gold: bool = True) -> list[NumberExample]:
    """`columns` are those of `find_columns`; without a label column, or with `gold=False`, numbers are None."""
    text, pair, label = columns["text"], columns.get("pair"), columns.get("label") if gold else None
    if label is not None and label not in table.columns:
        raise BertsmithError(f'"{label}" are several columns, but a number stands in one; name that one as label.')
    examples = []
    for i in range(len(table.records)):
        other = text_cell(table, i, pair) if pair is not None else None
        number = None if label is None else number_cell(table, i, label)
        examples.append(NumberExample(text_cell(table, i, text), other, number, table.where(i)))
    return examples


def number_cell(table: Table, index: int, column: str) -> float:
    """The finite number there."""
    value: Any = table.records[index][column]
    if value is None or (isinstance(value, str) and not value.strip()):
        raise BertsmithError(f"{table.where(index, column)}: the number is missing; give one or take the row out.")
    try:
        # Python reads 1_000 as a number, but no table means that.
        number = math.inf if isinstance(value, bool) or "_" in str(value) else float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        found = "one that does not exist (NaN)" if is_missing(value) else describe(value)
        raise BertsmithError(
            f"{table.where(index, column)}: a finite number is needed here, not {found}{_mend(value)}."
        )
    return number


def _mend(value: Any) -> str:
    """What to do about a number that was written for people."""
    for sign, advice in ((",", "write decimals with a point, thousands without a comma"), ("%", "leave the sign out")):
        if (
            isinstance(value, str)
            and sign in value
            and value.replace(sign, "").replace(".", "").strip(" -").isdecimal()
        ):
            return f"; {advice}"
    return ""
