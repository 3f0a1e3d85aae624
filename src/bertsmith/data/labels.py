"""Records become texts with their labels. In: a table and its columns by role. Out: `TextExample`s.

A label is a string, whatever it was: 1 and 1.0 are "1", true is "true"; white space around it goes. An empty one is an
error, unless a text may have several labels: then it has none. Or each label is a column of its own, with 1 where a
text has it. An empty text passes; the data doctor judges it.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bertsmith.data.cells import describe, is_missing, list_cell, sound, text_cell
from bertsmith.data.columns import cut_columns
from bertsmith.data.decoding import bare_lines, decode
from bertsmith.data.examples import TextExample
from bertsmith.data.table import Table
from bertsmith.errors import BertsmithError

SEPARATORS = (";", "|", ",")
YES, NO = ("1", "1.0", "true", "yes"), ("0", "0.0", "false", "no", "")


def text_examples(
    table: Table,
    columns: Mapping[str, str],
    *,
    several: bool | None = None,
    separator: str | None = None,
    label_names: Sequence[str] | None = None,
    gold: bool = True,
) -> list[TextExample]:
    """`columns` are those of `find_columns`; without a label column, or with `gold=False`, labels are None.

    `several`: a text may have any number of labels, as lists or cut at `separator` (None: the one that most cells
    have); None: it is so where the column holds lists. `label_names[n]` is the name of label n where numbers are given.
    A label column a,b,c that the table does not have stands for the columns a, b and c, a label each.
    """
    text, pair, label = columns["text"], columns.get("pair"), columns.get("label") if gold else None
    golds: Sequence[tuple[str, ...] | None] = [None] * len(table.records)
    if label is not None and label in table.columns:
        golds = _read_column(table, label, several, separator, label_names)
    elif label is not None:
        golds = _read_flags(table, cut_columns(table, label), separator, label_names)
    examples = []
    for i, labels in enumerate(golds):
        other = text_cell(table, i, pair) if pair is not None else None
        examples.append(TextExample(text_cell(table, i, text), other, labels, table.where(i)))
    return examples


def _read_column(
    table: Table, column: str, several: bool | None, separator: str | None, names: Sequence[str] | None
) -> list[tuple[str, ...]]:
    if several is None:
        several = any(list_cell(record[column]) is not None for record in table.records)
    if separator is not None:
        _check_separator(separator, several)
    elif several:
        separator = guess_separator(table, column)
    golds = []
    for i in range(len(table.records)):
        found = _labels(table, i, column, several, separator)
        golds.append(tuple(dict.fromkeys(_name(value, names, table, i, column) for value in found)))
    return golds


def _read_flags(
    table: Table, columns: Sequence[str], separator: str | None, names: Sequence[str] | None
) -> list[tuple[str, ...]]:
    """The names of the columns that hold a 1; an empty cell is a 0."""
    if separator is not None or names is not None:
        extra = "label_names" if separator is None else "separator"
        raise BertsmithError(
            f"{extra} is for labels in one column, but here each has a column of its own; leave it out."
        )
    golds = []
    for i, record in enumerate(table.records):
        cells = {column: plain_label(record[column]).lower() for column in columns}
        wrong = next((column for column, cell in cells.items() if cell not in (*YES, *NO)), None)
        if wrong is not None:
            raise BertsmithError(
                f"{table.where(i, wrong)}: 1 or 0 is needed in a column that is a label, not "
                f"{describe(record[wrong])}; correct it or take the row out."
            )
        golds.append(tuple(column for column, cell in cells.items() if cell in YES))
    return golds


def _check_separator(separator: str, several: bool) -> None:
    """One that would part nothing was given by mistake, and x;y would be learnt as a class of its own."""
    if not separator:
        raise BertsmithError("separator is empty; give the sign between the labels of a text, or leave separator out.")
    if not several:
        raise BertsmithError(
            f"separator is {separator!r}, but the texts are taken to have one label each; for several say several=True "
            "(--several), or leave separator out."
        )


def plain_label(value: Any) -> str:
    """A label as a string; "" where there is none."""
    if is_missing(value):
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    written = str(value).strip()
    return "" if written.lower() == "nan" else written


def guess_separator(table: Table, column: str, known: Sequence[str] = ()) -> str | None:
    """What parts the labels in the cells of a column: the separator that most cells hold; None: no cell holds one.

    A sign in a label that is `known` parts none; beside known labels one that no cell holds is as good as any.
    """
    cells = [record[column] for record in table.records if isinstance(record[column], str)]
    counts = {
        separator: sum(separator in cell for cell in cells)
        for separator in SEPARATORS
        if not any(separator in label for label in known)
    }
    best = max(counts, key=lambda separator: counts[separator], default=None)
    return best if best is not None and (counts[best] or known) else None


def share_separator(train: Table, columns: Mapping[str, str], choices: Mapping[str, Any]) -> dict[str, Any]:
    """The choices with what parts the labels of train: in the few cells of dev another sign may be more frequent."""
    label = columns.get("label")
    if choices.get("several") and choices.get("separator") is None and label in train.columns:
        return {**choices, "separator": guess_separator(train, label)}
    return dict(choices)


def read_label_names(path: str | Path) -> list[str]:
    """The names of numbered labels, one a line, the first is number 0."""
    try:
        raw = Path(path).read_bytes()
    except OSError as error:
        raise BertsmithError(f"{path} cannot be read: {error.strerror}.") from None
    lines = [line.strip() for _, line in bare_lines(decode(raw, str(path)))]
    while lines and not lines[-1]:
        lines.pop()
    for number, line in enumerate(lines, 1):
        if not line or line in lines[: number - 1]:
            what = f'"{line}" stands there twice' if line else "an empty line"
            raise BertsmithError(f"{path}, line {number:,}: {what}; give one name a line.")
    if not lines:
        raise BertsmithError(f"{path} is empty; give one name a line.")
    return lines


def _labels(table: Table, index: int, column: str, several: bool, separator: str | None) -> list[str]:
    value = table.records[index][column]
    found = list_cell(value)
    if found is None:
        if isinstance(value, dict):
            raise BertsmithError(f"{table.where(index, column)}: a label is needed here, not {describe(value)}.")
        written = plain_label(value)
        found = written.split(separator) if several and separator else [written]
        if several:
            return [label for part in found if (label := plain_label(part))]
    elif (odd := next((one for one in found if isinstance(one, list | tuple | dict)), None)) is not None:
        raise BertsmithError(
            f"{table.where(index, column)}: a label is needed here, not {describe(odd)}; for entities that are marked "
            "in a text say task tag (--task tag)."
        )
    elif not several and len(found) != 1:
        raise BertsmithError(
            f"{table.where(index, column)}: {len(found)} labels where one is needed; to allow any number a text, say "
            "several=True (--several)."
        )
    labels = [plain_label(value) for value in found]
    if "" in labels:
        raise BertsmithError(f"{table.where(index, column)}: the label is empty; give one or take the row out.")
    return labels


def _name(label: str, names: Sequence[str] | None, table: Table, index: int, column: str) -> str:
    if names is None or (label in names and not label.isdecimal()):
        return sound(label, table, index, column)
    if not label.isdecimal() or int(label) >= len(names):
        raise BertsmithError(
            f'{table.where(index, column)}: label "{label}" is none of the {len(names):,} names given, which are '
            f"numbered 0 to {len(names) - 1:,}{_hint_several(label, names)}."
        )
    return names[int(label)]


def _hint_several(label: str, names: Sequence[str]) -> str:
    """What to do where the label is known ones with a separator between them."""
    for sign in SEPARATORS:
        parts = [part.strip() for part in label.split(sign)]
        if len(parts) > 1 and all(part in names or (part.isdecimal() and int(part) < len(names)) for part in parts):
            flag = sign if sign == "," else f"'{sign}'"
            return f'; for several labels a text say several=True, separator="{sign}" (--several --separator {flag})'
    return ""
