"""Much text to ids, fast. In: clean documents and where their sentences end. Out: the engine's very ids, and counts.

A corpus has few distinct chunks between spaces, so each is cut by the engine once and looked up from then on. That
gives the ids of the whole text only where the engine itself never looks across a space: BERT's splitting and the
byte-level one of GPT-2 are such. Any other tokenizer gets each document whole.
"""

import json
import re
from collections.abc import Sequence
from itertools import chain
from typing import Any

import numpy as np

from bertsmith.text.chunk_table import LONGEST, ChunkTable, Growing
from bertsmith.text.tokenizer import Tokenizer

CHUNKS = 1 << 20  # how many are remembered before the table begins anew
CHARACTERS = 64 << 20  # and how long they may be together
_LOCAL = {"BertNormalizer", "NFD", "NFC", "NFKD", "NFKC", "Nmt", "Lowercase", "StripAccents"}
_LOCAL_BYTES = {"NFC", "Lowercase"}
# Byte-level splitting gives a space to the word behind it, so runs of white space need the whole text.
_RUNS = ("  ", " \n", "\n ", "\n\n")
_ODD_SPACE = re.compile("[\t\x0b-\r\x1c-\x1f\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]")
_FIRST = "\n\n"  # stands before the first chunk of a document; such a run cannot be in one


class Encoder:
    def __init__(self, tokenizer: Tokenizer) -> None:
        self._engine = tokenizer._engine
        parts = json.loads(self._engine.to_str())
        self.way = _find_way(parts)
        self._model = self._engine.model
        self._plain = _PlainWords(parts, self.way)
        self._forget()

    def encode(self, texts: Sequence[str], ends: Sequence[Sequence[int]]) -> tuple[np.ndarray, np.ndarray]:
        """The ids of all texts in a row (int32), and how many each sentence has; `ends` as `sentence_ends` gives them.

        White space between two sentences belongs to the second.
        """
        slow = [number for number, text in enumerate(texts) if not self._is_fast(text, ends[number])]
        if len(slow) == len(texts):
            return self._encode_whole(texts, ends)
        if slow:
            return self._encode_mixed(texts, ends, frozenset(slow))
        lengths: list[int] = []
        cut = self._cut_bytes if self.way in ("bytes", "prefixed bytes") else self._cut_words
        spread = " ".join([cut(text, stops, lengths) for text, stops in zip(texts, ends, strict=True) if stops])
        ids, per_chunk = self._look_up(spread, sum(lengths))
        # A sum over each sentence's chunks: the difference of the running total at its bounds.
        total = np.concatenate([[0], np.cumsum(per_chunk)])
        bounds = np.cumsum(np.array(lengths, np.int64))
        return ids, np.diff(total[bounds], prepend=0)

    def _is_fast(self, text: str, ends: Sequence[int]) -> bool:
        if self.way == "words":
            return True
        if self.way == "marked words":
            return all(text[end - 1] in " \n" for end in ends[:-1])
        if self.way is None or any(run in text for run in _RUNS) or _ODD_SPACE.search(text):
            return False
        if text.startswith((" ", "\n")) or text.endswith((" ", "\n")):
            return False
        if self.way == "prefixed bytes" and "\n" in text:
            return False  # the engine would put a space before a chunk that begins with a line end
        return all(text[end - 1] in " \n" for end in ends[:-1])

    def _cut_words(self, text: str, ends: Sequence[int], lengths: list[int]) -> str:
        """The chunks of a text with spaces between, and how many each sentence has."""
        text, start = text.replace("\n", " "), 0
        if all(text[end - 1] == " " for end in ends[:-1]):
            # Every sentence but the last ends with a space, so it has as many chunks as spaces.
            for end in ends:
                lengths.append(text.count(" ", start, end))
                start = end
            lengths[-1] += 1
            return text
        sentences = [text[start:end] for start, end in zip([0, *ends], ends, strict=False)]
        lengths += [sentence.count(" ") + 1 for sentence in sentences]
        return " ".join(sentences)

    def _cut_bytes(self, text: str, ends: Sequence[int], lengths: list[int]) -> str:
        start, before = 0, 1  # a chunk begins with each space, and the first with the text
        for end in ends:
            stop = end if end == len(text) else end - 1
            lengths.append(text.count(" ", start, stop) + text.count("\n", start, stop) + before)
            start, before = stop, 0
        return _FIRST + (text.replace("\n", " \n") if "\n" in text else text)

    def _look_up(self, spread: str, count: int) -> tuple[np.ndarray, np.ndarray]:
        """The ids of `count` chunks with a space between each two, and how many each has."""
        if not count:
            return np.empty(0, np.int32), np.empty(0, np.int64)
        if len(self._index) > CHUNKS or self._index.characters > CHARACTERS:
            self._forget()
        text = spread.encode("utf-8")
        spaces = np.flatnonzero(np.frombuffer(text, np.uint8) == ord(" "))
        starts, stops = np.concatenate([[0], spaces + 1]), np.concatenate([spaces, [len(text)]])
        has_zero = b"\0" in text  # which the table takes for an end
        places = np.full(count, -1) if has_zero else self._table.find(text, starts, stops - starts)
        rest = np.flatnonzero(places < 0)
        chunks = [text[start:stop].decode("utf-8") for start, stop in zip(starts[rest], stops[rest], strict=True)]
        places[rest] = np.fromiter(map(self._index.__getitem__, chunks), np.int64, len(chunks))
        if self._index.new:
            self._learn(self._index.take_new())
        counts = self._counts.values[places]
        before = np.cumsum(counts) - counts
        where = np.repeat(self._starts.values[places] - before, counts) + np.arange(counts.sum())
        return self._ids.values[where], counts

    def _learn(self, chunks: list[str]) -> None:
        spelled = [_spell(chunk) for chunk in chunks] if self.way in ("bytes", "prefixed bytes") else chunks
        found = [self._cut_plain(chunk) for chunk in spelled]
        odd = [number for number, ids in enumerate(found) if ids is None]
        if odd:
            read = self._engine.encode_batch_fast([spelled[number] for number in odd], add_special_tokens=False)
            for number, encoding in zip(odd, read, strict=True):
                found[number] = encoding.ids
        pieces = [ids for ids in found if ids is not None]
        counts = np.fromiter(map(len, pieces), np.int64, len(pieces))
        ids = np.fromiter(chain.from_iterable(pieces), np.int32, int(counts.sum()))
        self._ids.extend(ids)
        self._starts.extend(len(self._ids) - len(ids) + np.cumsum(counts) - counts)
        self._counts.extend(counts)
        # A chunk with a zero byte keeps its number there, but is not to be found: it is longer than any that is.
        self._table.add([_long_if_zero(chunk.encode("utf-8")) for chunk in chunks])

    def _cut_plain(self, chunk: str) -> list[int] | None:
        words = self._plain.cut(chunk)
        if words is None:
            return None
        ids: list[int] = []
        for word in words:
            known = self._words.get(word)
            if known is None:
                known = self._words[word] = [piece.id for piece in self._model.tokenize(word)]
            ids += known
        return ids

    def _forget(self) -> None:
        self._index = _Index()
        self._table = ChunkTable()
        self._words: dict[str, list[int]] = {}
        self._ids, self._counts, self._starts = Growing(np.int32), Growing(np.int64), Growing(np.int64)

    def _encode_whole(self, texts: Sequence[str], ends: Sequence[Sequence[int]]) -> tuple[np.ndarray, np.ndarray]:
        ids, counts = [np.empty(0, np.int32)], [np.empty(0, np.int64)]
        for text, stops, read in zip(
            texts, ends, self._engine.encode_batch(list(texts), add_special_tokens=False), strict=True
        ):
            starts = [start for start, _ in read.offsets]
            bounds = [len(text[:stop].rstrip()) for stop in stops[:-1]]
            # A sentence begins with the first piece behind the white space of the one before, or with that space.
            cuts = np.searchsorted(np.maximum.accumulate(starts), bounds) if starts else np.zeros(len(bounds), int)
            ids.append(np.array(read.ids, np.int32))
            counts.append(np.diff([0, *cuts, len(starts)]) if stops else np.empty(0, np.int64))
        return np.concatenate(ids), np.concatenate(counts)

    def _encode_mixed(
        self, texts: Sequence[str], ends: Sequence[Sequence[int]], slow: frozenset[int]
    ) -> tuple[np.ndarray, np.ndarray]:
        """Runs of fast and of slow documents one after the other."""
        found = []
        start = 0
        for number in range(1, len(texts) + 1):
            if number == len(texts) or (number in slow) != (start in slow):
                way = self._encode_whole if start in slow else self.encode
                found.append(way(texts[start:number], ends[start:number]))
                start = number
        return np.concatenate([ids for ids, _ in found]), np.concatenate([counts for _, counts in found])


class _Index(dict[str, int]):
    """Gives each new chunk the next number."""

    def __init__(self) -> None:
        self.new: list[str] = []
        self.characters = 0

    def __missing__(self, chunk: str) -> int:
        self[chunk] = number = len(self)
        self.new.append(chunk)
        return number

    def take_new(self) -> list[str]:
        new, self.new = self.new, []
        self.characters += sum(map(len, new))
        return new


def _long_if_zero(chunk: bytes) -> bytes:
    return chunk if b"\0" not in chunk else bytes(LONGEST + 1)


class _PlainWords:
    """Chunks of printable ASCII become the words that the engine hands to its model, without the engine's detour."""

    _BERT = re.compile("[A-Za-z0-9]+|[^A-Za-z0-9]")
    _GPT = re.compile("'(?:s|t|re|ve|m|ll|d)| ?[A-Za-z]+| ?[0-9]+| ?[^A-Za-z0-9 ]+")

    def __init__(self, parts: dict[str, Any], way: str | None) -> None:
        added = [token["content"].lower() for token in parts["added_tokens"]]
        # A mark that stands in each added token is found faster than the tokens themselves.
        marks = [next((letter for letter in content if not letter.isalnum()), "") for content in added]
        sought = marks if all(marks) else added
        self._added = re.compile("|".join(sorted({re.escape(one) for one in sought}))) if added else None
        self._pattern = {"words": self._BERT, "bytes": self._GPT, "prefixed bytes": self._GPT}.get(way or "")
        self._is_prefixed = way == "prefixed bytes"
        cleaner = parts["normalizer"] or {}
        steps = cleaner.get("normalizers", [cleaner])
        self._is_lower = any(step.get("type") == "Lowercase" or step.get("lowercase") for step in steps)

    def cut(self, chunk: str) -> list[str] | None:
        """None: the engine must look."""
        if self._pattern is None or not (chunk.isascii() and chunk.isprintable()):
            return None
        low = chunk.lower()
        if self._added is not None and self._added.search(low):
            return None
        chunk = low if self._is_lower else chunk
        if self._pattern is self._BERT:
            if chunk.isalnum():
                return [chunk]
            return [chunk[:-1], chunk[-1]] if chunk[:-1].isalnum() else self._BERT.findall(chunk)
        if self._is_prefixed and not chunk.startswith(" "):
            chunk = f" {chunk}"
        return [word.replace(" ", "Ġ") for word in self._GPT.findall(chunk)]


def _spell(chunk: str) -> str:
    """A chunk as it stands in its text: with the white space before it."""
    if chunk.startswith(_FIRST):
        return chunk[len(_FIRST) :]
    return chunk if chunk.startswith("\n") else f" {chunk}"


def _find_way(parts: dict[str, Any]) -> str | None:
    """ "words": BERT's; "marked words": split at spaces, then marked; "bytes", "prefixed bytes": GPT-2's; or None."""
    splitter, model = parts["pre_tokenizer"] or {}, parts["model"]
    cleaner = parts["normalizer"] or {"type": "Sequence", "normalizers": []}
    steps = cleaner["normalizers"] if cleaner["type"] == "Sequence" else [cleaner]
    if not all(step["type"] in _LOCAL for step in steps) or model.get("dropout"):
        return None
    added = parts["added_tokens"]
    if any(_has_space(token["content"]) for token in added):
        return None
    if splitter.get("type") == "BertPreTokenizer":
        return "words"
    several = splitter.get("pretokenizers", [])
    if several and several[0]["type"] == "WhitespaceSplit":  # whatever comes then sees one word
        # But for a mark on the first word of a text alone.
        return None if any(one.get("prepend_scheme") == "first" for one in several) else "marked words"
    if splitter.get("type") == "ByteLevel" and splitter.get("use_regex", True):
        if any(step["type"] not in _LOCAL_BYTES for step in steps) or any(token["rstrip"] for token in added):
            return None
        return "prefixed bytes" if splitter["add_prefix_space"] else "bytes"
    return None


def _has_space(content: str) -> bool:
    """A run of white space is no hindrance: a text that has one is read whole."""
    return any(character.isspace() for character in content) and not (len(content) > 1 and content.isspace())
