"""Records become texts that belong together, or a query with texts that answer it more or less.

In: a table and its columns by role. Out: `PairExample`s (embed) or `RankExample`s (rerank).

A row is a text with another and a number that says how well they go together, or a text with one that belongs to it
and, if there are any, negatives that do not: in a column, in several (negative_1, negative_2, …), or as a list in one.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from bertsmith.data.cells import describe, is_missing, list_cell, sound, text_cell
from bertsmith.data.columns import Columns, normalize
from bertsmith.data.examples import PairExample, RankExample
from bertsmith.data.negatives import mine
from bertsmith.data.numbers import number_cell
from bertsmith.data.table import Table
from bertsmith.errors import BertsmithError

NEGATIVE = re.compile(r"(?:hard_)?neg(?:ative)?s?_?[0-9]{0,3}")


def pair_examples(table: Table, columns: Mapping[str, str], *, gold: bool = True) -> list[PairExample]:
    """`columns` are those of `find_columns`. With negatives a number has no use, and its column is not read."""
    wrong = find_negatives(table, columns) if gold else []
    label = _find_label(table, columns, wrong) if gold else None
    examples = []
    for i in range(len(table.records)):
        text, pair = text_cell(table, i, columns["text"]), text_cell(table, i, columns["pair"])
        number = None if label is None else grade_cell(table, i, label)
        examples.append(PairExample(text, pair, _negatives(table, i, wrong, pair), number, table.where(i)))
    return examples


def rank_examples(table: Table, columns: Mapping[str, str], *, negatives: int, gold: bool = True) -> list[RankExample]:
    """One for each query, with the texts of all of its rows.

    Where no row has a number or a negative, each query gets `negatives` texts of other queries that are most like it by
    their words; they have no gain.
    """
    wrong = find_negatives(table, columns) if gold else []
    label = _find_label(table, columns, wrong) if gold else None
    found: dict[str, tuple[list[str], list[float], str]] = {}
    for i in range(len(table.records)):
        query, text = text_cell(table, i, columns["query"]), text_cell(table, i, columns["passage"])
        texts, gains, _ = found.setdefault(query.strip(), ([], [], table.where(i)))
        rest = _negatives(table, i, wrong, text)
        texts += [text, *rest]
        gains += [1.0 if label is None else grade_cell(table, i, label), *[0.0] * len(rest)]
    if wrong and label is None:
        _refuse_both_ways(found)
    examples = [RankExample(query, tuple(texts), tuple(gains) if gold else None, where)
                for query, (texts, gains, where) in found.items()]  # fmt: skip
    if not gold or label is not None or any(0.0 in gains for _, gains, _ in found.values()):
        return examples
    _tell(columns, f"{table.name} has no text that does not answer its query, so the {negatives:,} texts of other "
                   f"queries that share most words with a query (by BM25) stand against its own")  # fmt: skip
    return mine(examples, negatives, table.name)


def find_negatives(table: Table, columns: Mapping[str, str]) -> list[str]:
    """The columns of negatives: the one that has the role, and those that are called so."""
    taken = {column for role, column in columns.items() if role != "negative"}
    named = [column for column in table.columns if NEGATIVE.fullmatch(normalize(column)) and column not in taken]
    chosen = columns.get("negative")
    return named if chosen is None or chosen in named else [chosen, *named]


def grade_cell(table: Table, index: int, column: str) -> float:
    """The number there; true and false are 1 and 0."""
    value = table.records[index][column]
    return float(value) if isinstance(value, bool) else number_cell(table, index, column)


def scale_of(numbers: Sequence[float]) -> tuple[float, float]:
    """What means not at all and what means perfectly: 0 and 1 where all numbers lie there, else their ends."""
    least, most = min(numbers), max(numbers)
    return (0.0, 1.0) if least >= 0 and most <= 1 else (least, most)


def _find_label(table: Table, columns: Mapping[str, str], wrong: Sequence[str]) -> str | None:
    label = columns.get("label")
    if label is None or wrong:
        if label is not None:
            _tell(columns, f'left out column "{label}", since column "{wrong[0]}" says what does not belong together')
        return None
    if table.records:
        least, most = scale_of([grade_cell(table, i, label) for i in range(len(table.records))])
        if (least, most) != (0.0, 1.0):
            _tell(columns, f'took the numbers of column "{label}" from {least:g} (not at all) to {most:g} (perfectly)')
    return label


def _negatives(table: Table, index: int, columns: Sequence[str], positive: str) -> tuple[str, ...]:
    found: list[str] = []
    for column in columns:
        value: Any = table.records[index][column]
        if is_missing(value) or (isinstance(value, str) and not value.strip()):
            continue
        listed = list_cell(value)
        for text in [value] if listed is None else listed:
            if not isinstance(text, str):
                raise BertsmithError(f"{table.where(index, column)}: a text is needed here, not {describe(text)}.")
            if text.strip() == positive.strip():
                raise BertsmithError(
                    f"{table.where(index, column)}: the negative is the very text that belongs to the other; take one "
                    f"of the two out."
                )
            found.append(sound(text, table, index, column))
    return tuple(dict.fromkeys(found))


def _refuse_both_ways(found: Mapping[str, tuple[list[str], list[float], str]]) -> None:
    """A text that answers a query in one row and does not in another."""
    for query, (texts, gains, where) in found.items():
        right = {text.strip() for text, gain in zip(texts, gains, strict=True) if gain}
        both = next((text for text, gain in zip(texts, gains, strict=True) if not gain and text.strip() in right), None)
        if both is not None:
            raise BertsmithError(
                f'{where}: the query "{query[:60]}" has the text "{both[:60]}" both as one that answers it and as a '
                f"negative; take one of them out."
            )


def _tell(columns: Mapping[str, str], sentence: str) -> None:
    if isinstance(columns, Columns):
        columns.notes.append(sentence)
