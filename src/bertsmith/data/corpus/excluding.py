"""Benchmarks stay out of the corpus. In: their files. Out: which paragraphs share a run of words with one of them.

Every string in a file counts: the lines and cells of text and tables, all strings of JSON and Parquet at any depth, the
sentences of CoNLL. Words are compared without case and punctuation; a CJK character is a word. A run may go on from one
paragraph of a document to the next, as it does where each sentence has a line of its own: all that it touches go.
"""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np

from bertsmith.errors import BertsmithError
from bertsmith.text.normalizing import normalize_text
from bertsmith.text.records import read_parquet_rows
from bertsmith.text.sources import walk
from bertsmith.text.streams import PACKINGS, decode, open_stream, refuse_binary

_WORDS = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]|[^\W_\u3040-\u30ff\u3400-\u9fff]+")
_TAGGED = {".conll": 0, ".conllu": 1, ".bio": 0, ".iob": 0, ".iob2": 0, ".bioes": 0}  # the column of the words
_FACTOR = np.uint64(0x9E3779B97F4A7C15)
_TABLE = 24  # bits of a gram that a first look compares
_KNOWN_WORDS = 1 << 20
_LONGEST = 1 << 30  # bytes of one file


class WordHashes(dict[str, int]):
    """A 64-bit number for each word, made once."""

    def __missing__(self, word: str) -> int:
        self[word] = value = int.from_bytes(blake2b(word.encode("utf-8", "replace"), digest_size=8).digest(), "little")
        return value

    def of(self, texts: Iterable[str]) -> tuple[np.ndarray, np.ndarray]:
        """The numbers of all words in a row, and how many each text has."""
        if len(self) > _KNOWN_WORDS:
            self.clear()
        words: list[str] = []
        counts = []
        for text in texts:
            more = _WORDS.findall(text.lower())
            words += more
            counts.append(len(more))
        return np.fromiter(map(self.__getitem__, words), np.uint64, len(words)), np.array(counts, np.int64)


def hash_grams(words: np.ndarray, counts: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray]:
    """The hashes of each text's runs of `size` words, and at which of all words each begins."""
    per_text = np.maximum(counts - size + 1, 0)
    length = len(words) - size + 1
    if length <= 0 or not per_text.any():
        return np.empty(0, np.uint64), np.empty(0, np.int64)
    hashes = np.zeros(length, np.uint64)
    for place in range(size):
        hashes = hashes * _FACTOR + words[place : place + length]
    starts = np.cumsum(counts) - counts
    within = np.arange(int(per_text.sum())) - np.repeat(np.cumsum(per_text) - per_text, per_text)
    places = np.repeat(starts, per_text) + within
    return hashes[places], places


class Excluded:
    """The runs of words of the excluded files, sorted, each with the number of the first file that has it."""

    def __init__(self, grams: np.ndarray, files: np.ndarray, size: int) -> None:
        self.grams, self.files, self.size = grams, files, size
        self._words = WordHashes()
        # Most runs are nowhere: a look at a table of flags is faster than a search for each.
        self._flags = np.zeros(1 << _TABLE, bool)
        self._flags[(grams >> np.uint64(64 - _TABLE)).astype(np.int64)] = True

    def find(self, documents: Sequence[Sequence[str]]) -> dict[int, int]:
        """The paragraphs that share a run, counted through all documents, each with the number of the file it is of."""
        words, counts = self._words.of(paragraph for document in documents for paragraph in document)
        ends = np.cumsum(counts)
        after = np.cumsum([len(document) for document in documents], dtype=np.int64)
        totals = np.diff(np.concatenate([[0], ends])[after], prepend=0)
        hashes, begin = hash_grams(words, totals, self.size)
        maybe = self._flags[(hashes >> np.uint64(64 - _TABLE)).astype(np.int64)]
        hashes, begin = hashes[maybe], begin[maybe]
        places = np.minimum(np.searchsorted(self.grams, hashes), max(len(self.grams) - 1, 0))
        found: dict[int, int] = {}
        if len(self.grams):
            hit = self.grams[places] == hashes
            first, last = (np.searchsorted(ends, begin[hit] + way, side="right") for way in (0, self.size - 1))
            for place, one, other in zip(places[hit], first, last, strict=True):
                for paragraph in range(int(one), int(other) + 1):
                    found.setdefault(paragraph, int(self.files[place]))
        return found

    def save(self, folder: Path) -> None:
        np.save(folder / "grams.npy", self.grams)
        np.save(folder / "gram-files.npy", self.files)

    @classmethod
    def load(cls, folder: Path, size: int) -> "Excluded":
        return cls(np.load(folder / "grams.npy", "r"), np.load(folder / "gram-files.npy", "r"), size)


def list_excluded(given: Iterable[str | Path]) -> list[Path]:
    """The files that are named, and all those in the folders that are."""
    found: dict[Path, None] = {}
    for one in given:
        path = Path(one).expanduser()
        if path.is_dir():
            for place, _, names in walk(path):
                found.update((place / name, None) for name in names)
            if not any(path in file.parents for file in found):
                raise BertsmithError(f"{path} holds no file; name the files or folders whose text is to stay out.")
        elif path.is_file():
            found[path] = None
        else:
            raise BertsmithError(f"{path} is not there; name the files or folders whose text is to stay out.")
    return list(found)


def gather_grams(files: Sequence[Path], size: int) -> tuple[Excluded, list[dict[str, Any]]]:
    """All runs of `size` words, and for each file how many strings it has and how many are too short for one."""
    hashes, owners, told = [np.empty(0, np.uint64)], [np.empty(0, np.int64)], []
    words = WordHashes()
    for number, path in enumerate(files):
        # Cleaned as the corpus is: an é of two characters, as macOS writes it, is none of its own there.
        strings = [string for string in map(normalize_text, read_strings(path)) if string]
        some, counts = words.of(strings)
        grams = np.unique(hash_grams(some, counts, size)[0])
        hashes.append(grams)
        owners.append(np.full(len(grams), number))
        told.append({"file": str(path), "strings": len(strings), "too_short": int((counts < size).sum())})
    every, first = np.unique(np.concatenate(hashes), return_index=True)
    return Excluded(every, np.concatenate(owners)[first].astype(np.uint32), size), told


def read_strings(path: Path) -> Iterator[str]:
    """Every string in a file, whatever it is made of."""
    packing = PACKINGS.get(path.suffix.lower(), "")
    suffix = (path.with_suffix("") if packing else path).suffix.lower()
    if suffix in (".parquet", ".pq"):
        for row in read_parquet_rows(path, packing):
            yield from _strings_in([row])
        return
    with open_stream(path, packing) as stream:
        raw = stream.read(_LONGEST + 1)
    if len(raw) > _LONGEST:
        raise BertsmithError(f"{path} is larger than {_LONGEST >> 30} GiB, too large for a file to exclude; split it.")
    refuse_binary(raw[:4096], path)
    text = decode(raw, path, packing, 0).removeprefix("\ufeff")
    if suffix in (".json", ".jsonl", ".ndjson"):
        yield from _json_strings(text)
    elif suffix in _TAGGED:
        yield from _tagged_sentences(text, _TAGGED[suffix])
    else:
        for line in text.split("\n"):
            yield from line.split("\t")


def _json_strings(text: str) -> Iterator[str]:
    """Of one value, or of one a line; a line that is not JSON counts as it stands."""
    try:
        values = [json.loads(text)]
    except (ValueError, RecursionError):
        values = []
        for line in text.split("\n"):
            try:
                values.append(json.loads(line))
            except (ValueError, RecursionError):
                values.append(line)
    yield from _strings_in(values)


def _strings_in(values: list[Any]) -> Iterator[str]:
    while values:
        value = values.pop()
        if isinstance(value, str):
            yield value
        elif isinstance(value, dict):
            values += value.values()
        elif isinstance(value, list):
            values += value


def _tagged_sentences(text: str, column: int) -> Iterator[str]:
    words: list[str] = []
    for line in [*text.split("\n"), ""]:
        cells = line.split()
        if not cells:
            yield " ".join(words)
            words = []
        elif len(cells) > column and not line.startswith("#"):
            words.append(cells[column])
