"""Rows of ready-made integers, such as the codes of sounds, pictures or genes. In: lines. Out: arrays of codes.

A line is a document: whole numbers with spaces or commas between, a JSON array, or an object with the array in a field.
"""

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from bertsmith.data.corpus.settings import CorpusSettings
from bertsmith.errors import BertsmithError
from bertsmith.text.sources import LONGEST, Document, Part, read_part
from bertsmith.text.streams import line_of

if TYPE_CHECKING:
    from bertsmith.data.corpus.staging import Staged

LARGEST = (1 << 31) - 8  # room for the special ids
ROWS = 4096  # rows that are worked on at a time
SPECIALS = ("pad", "unk", "cls", "sep", "mask")  # they get the ids behind the codes


def read_codes(part: Part, settings: CorpusSettings, staged: "Staged") -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """The codes of many rows one after the other, and how many each row has."""
    if part.source.kind not in ("text", "records"):
        raise BertsmithError(f"{part.source.path}: codes are read from lines of text or JSON Lines; convert the file.")
    lines = replace(part, source=replace(part.source, kind="text"))
    rows: list[np.ndarray] = []
    for document in read_part(lines, unit="line"):
        try:
            row = parse_row(document, settings)
        except BertsmithError as error:  # only now is it worth counting lines
            line = line_of(part.source.path, part.source.packing, document.start)
            raise BertsmithError(f"{part.source.path}, line {line:,}: {error}") from None
        staged.documents += 1
        staged.characters += len(document.text)
        staged.size += document.size
        if not len(row):
            staged.dropped["empty"].add(document.text)
            continue
        rows.append(row)
        if len(rows) >= ROWS:
            yield np.concatenate(rows), np.array([len(row) for row in rows])
            rows = []
    if rows:
        yield np.concatenate(rows), np.array([len(row) for row in rows])


def parse_row(document: Document, settings: CorpusSettings) -> np.ndarray:
    """The codes of one line; what is wrong with it is an error that does not yet say where it stands."""
    text = document.text
    if document.is_cut:
        raise BertsmithError(f"the row is longer than {LONGEST >> 20} MiB; put it on several lines.")
    numbers = _read_json(text, settings.field) if text.startswith(("[", "{")) else _read_words(text)
    top = min(settings.vocabulary or LARGEST, LARGEST)
    if numbers and not (min(numbers) >= 0 and max(numbers) < top):
        odd = next(number for number in numbers if not 0 <= number < top)
        more = ", or raise --vocabulary" if settings.vocabulary and 0 <= odd < LARGEST else ""
        raise BertsmithError(f"the code {odd} is not between 0 and {top - 1:,}; correct the row{more}.")
    return np.array(numbers, np.int64)


def _read_words(text: str) -> list[int]:
    numbers = []
    for word in text.replace(",", " ").split():
        try:
            numbers.append(int(word))
        except ValueError:
            told = f"{word[:40]!r} is not a whole number"
            raise BertsmithError(f"{told}; a row of codes has whole numbers with spaces or commas between.") from None
    return numbers


def _read_json(text: str, field: str) -> list[int]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BertsmithError(f"not JSON ({error}); write a row as [1, 2, 3] on one line.") from None
    if isinstance(value, dict):
        if field not in value:
            keys = ", ".join(f'"{key}"' for key in list(value)[:8]) or "none"
            raise BertsmithError(f'there is no field "{field}" (fields: {keys}); name it with --field.')
        value = value[field]
    if not isinstance(value, list):
        raise BertsmithError(
            f"a row of codes is a list of whole numbers, not {str(value)[:40]}; write it as [1, 2, 3]."
        )
    odd = [one for one in value if type(one) is not int]
    if odd:
        raise BertsmithError(f"{json.dumps(odd[0])[:40]} is not a whole number; a row of codes has no other values.")
    return value
