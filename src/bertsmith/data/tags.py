"""Records become words with their tags. In: a table and its columns by role. Out: `TagExample`s.

Words come as a list with a list of tags (CoNLL, JSONL, or both parted by spaces in a cell), or as a raw text with its
entities marked by character offsets, `[start, end, label]` or `{"start", "end", "label"}`, which become B- and I- tags.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from bertsmith.data.cells import describe, is_missing, list_cell, shorten, sound, text_cell
from bertsmith.data.examples import TagExample
from bertsmith.data.findings import counted
from bertsmith.data.labels import plain_label
from bertsmith.data.table import Table
from bertsmith.data.words import split_words
from bertsmith.errors import BertsmithError

Span = tuple[int, int]


def tag_examples(
    table: Table, columns: Mapping[str, str], *, label_names: Sequence[str] | None = None, gold: bool = True
) -> list[TagExample]:
    """`columns` are those of `find_columns`; without tags or entities, or with `gold=False`, tags are None.

    `label_names[n]` is the name of tag n where the tags are numbers.
    """
    if "words" not in columns:
        return [_from_text(table, i, columns, gold) for i in range(len(table.records))]
    tags = columns.get("tags") if gold else None
    return [_from_words(table, i, columns["words"], tags, label_names) for i in range(len(table.records))]


def _from_words(table: Table, index: int, column: str, tagged: str | None, names: Sequence[str] | None) -> TagExample:
    words = _words(table, index, column)
    tags = None
    if tagged is not None:
        tags = tuple(_tags(table, index, tagged, names))
        if len(tags) != len(words):
            counts = f"{len(words):,} word{'s' * (len(words) != 1)} but {len(tags):,} tag{'s' * (len(tags) != 1)}"
            raise BertsmithError(f"{table.where(index)}: {counts}; each word needs one tag.")
    spans, start = [], 0
    for word in words:
        spans.append((start, start + len(word)))
        start += len(word) + 1
    return TagExample(" ".join(words), tuple(spans), tags, table.where(index))


def _words(table: Table, index: int, column: str) -> list[str]:
    value = table.records[index][column]
    found = list_cell(value)
    if found is None:
        found = text_cell(table, index, column).split()
    words = []
    for number, word in enumerate(found, 1):
        if isinstance(word, dict):  # Prodigy's: {"text": …, "start": …, "end": …}
            word = word.get("text")
        if isinstance(word, int) and not isinstance(word, bool):
            word = str(word)
        if not isinstance(word, str) or not word.strip():
            what = "is empty" if isinstance(word, str) else f"is {describe(word)}"
            raise BertsmithError(f"{table.where(index, column)}: word {number:,} of the sentence {what}; give a word.")
        words.append(sound(word, table, index, column))
    return words


def _tags(table: Table, index: int, column: str, names: Sequence[str] | None) -> list[str]:
    value = table.records[index][column]
    if is_missing(value):
        raise BertsmithError(f"{table.where(index, column)}: no tags; give one for each word or take the row out.")
    found = list_cell(value)
    if found is None:
        found = value.split() if isinstance(value, str) else [value]
    tags = [sound(plain_label(tag), table, index, column) for tag in found]
    for number, tag in enumerate(tags, 1):
        if not tag:
            raise BertsmithError(f"{table.where(index, column)}: the tag of word {number:,} is empty.")
        if names is not None and tag not in names:
            if not tag.isdecimal() or int(tag) >= len(names):
                raise BertsmithError(
                    f'{table.where(index, column)}: tag "{tag}" of word {number:,} is none of the {len(names):,} names '
                    f"given, which are numbered 0 to {len(names) - 1:,}."
                )
            tags[number - 1] = names[int(tag)]
    return tags


def _from_text(table: Table, index: int, columns: Mapping[str, str], gold: bool) -> TagExample:
    text = text_cell(table, index, columns["text"])
    spans = split_words(text)
    marked = columns.get("entities") if gold else None
    if marked is None:
        return TagExample(text, spans, None, table.where(index))
    tags = ["O"] * len(spans)
    starts = {start: word for word, (start, _) in enumerate(spans)}
    ends = {end: word for word, (_, end) in enumerate(spans)}
    for number, (start, end, label) in enumerate(_entities(table, index, marked), 1):
        sound(label, table, index, marked)
        where = f"{table.where(index, marked)}: entity {number:,} (characters {start:,} to {end:,})"
        first, last = starts.get(start), ends.get(end)
        if first is None or last is None or last < first:
            raise BertsmithError(f"{where} {_misfit(text, spans, start, end)}.")
        if any(tag != "O" for tag in tags[first : last + 1]):
            raise BertsmithError(f"{where} overlaps with another one; a word has one tag, so take one of them out.")
        tags[first : last + 1] = [f"B-{label}"] + [f"I-{label}"] * (last - first)
    return TagExample(text, spans, tuple(tags), table.where(index))


def _misfit(text: str, spans: Sequence[Span], start: int, end: int) -> str:
    if not 0 <= start < end <= len(text):
        return f"is not inside the text, which has {counted(len(text), 'character')}"
    near = [span for span in spans if span[0] < end and span[1] > start]
    fit = f'; the words there are "{shorten(text[near[0][0] : near[-1][1]])}", {near[0][0]:,} to {near[-1][1]:,}'
    return f'is "{shorten(text[start:end])}", which does not begin and end with a word{fit if near else ""}'


def _entities(table: Table, index: int, column: str) -> list[tuple[int, int, str]]:
    value = table.records[index][column]
    if isinstance(value, str):
        try:
            value = json.loads(value or "[]")
        except (ValueError, RecursionError):
            value = list_cell(value)
    if is_missing(value) or not isinstance(value, (list, tuple)):
        raise BertsmithError(
            f"{table.where(index, column)}: a list of entities is needed here ([] for none), not {describe(value)}."
        )
    return [_entity(entity, f"{table.where(index, column)}: entity {i:,}") for i, entity in enumerate(value, 1)]


def _entity(entity: Any, where: str) -> tuple[int, int, str]:
    if isinstance(entity, dict):
        start, end = (entity.get(key, entity.get(f"{key}_offset")) for key in ("start", "end"))
        entity = (start, end, entity.get("label"))
    whole = isinstance(entity, (list, tuple)) and len(entity) == 3
    if not whole or not all(isinstance(place, int) for place in entity[:2]) or not plain_label(entity[2]):
        raise BertsmithError(f'{where} must be [start, end, label] or {{"start": …, "end": …, "label": …}}.')
    return entity[0], entity[1], plain_label(entity[2])
