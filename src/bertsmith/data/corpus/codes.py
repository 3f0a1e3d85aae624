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
from bertsmith.text.sources import Document, Part, read_part

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
        row = parse_row(document, settings)
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
    text, where = document.text, document.where
    if document.is_cut:
        raise BertsmithError(f"{where}: the row is too long for one document; put it on several lines.")
    if text.startswith(("[", "{")):
        try:
            value = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise BertsmithError(f"{where}: not JSON ({error}).") from None
        if isinstance(value, dict):
            if settings.field not in value:
                raise BertsmithError(f'{where}: there is no field "{settings.field}"; name it with --field.')
            value = value[settings.field]
        numbers = value
    else:
        try:
            numbers = [int(word) for word in text.replace(",", " ").split()]
        except ValueError:
            raise BertsmithError(f"{where}: a row of codes holds whole numbers, not {text[:40]!r}.") from None
    if not isinstance(numbers, list) or not all(type(number) is int for number in numbers):
        raise BertsmithError(f"{where}: a row of codes is a list of whole numbers, not {text[:40]!r}.")
    top = min(settings.vocabulary or LARGEST, LARGEST)
    if numbers and not (min(numbers) >= 0 and max(numbers) < top):
        odd = next(number for number in numbers if not 0 <= number < top)
        raise BertsmithError(f"{where}: the code {odd} is not between 0 and {top - 1:,}, the last of the vocabulary.")
    return np.array(numbers, np.int64)
