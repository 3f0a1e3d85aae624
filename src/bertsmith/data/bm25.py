"""Ranking by the words that query and passage share: BM25 (Robertson & Zaragoza 2009, section 3), as before BERT.

In: texts. Out: an inverted index in flat arrays, for each word its passages and what the word adds to their scores, so
that a query costs a sum of slices and the arrays may stay on disk. Words are Unicode's, in lower case. The weight of a
word that n of N passages have is ln(1 + (N - n + 0.5) / (n + 0.5)), which is never negative (Lucene's form).
"""

import re
from array import array
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
K1, B = 1.2, 0.75
ARRAYS = ("postings", "impacts", "starts", "words", "word_starts")
_WORD = re.compile(r"\w+")


def split_words(text: str) -> list[str]:
    return _WORD.findall(text.lower())


def build(texts: Iterable[str]) -> dict[str, Array]:
    """The arrays of `Bm25`, by the names in ARRAYS."""
    numbers: defaultdict[str, int] = defaultdict()
    numbers.default_factory = numbers.__len__
    tokens, lengths = array("i"), array("i")
    for text in texts:
        words = split_words(text)
        tokens.extend(map(numbers.__getitem__, words))
        lengths.append(len(words))
    vocabulary = sorted(numbers)
    places = np.empty(len(vocabulary), dtype=np.int64)  # from the number of a word to its place in the vocabulary
    places[[numbers[word] for word in vocabulary]] = np.arange(len(vocabulary))
    words_of, passages, counts = _count(places, np.frombuffer(tokens, np.int32), np.frombuffer(lengths, np.int32))
    starts = np.searchsorted(words_of, np.arange(len(vocabulary) + 1))
    impacts = _weigh(words_of, passages, counts, starts, np.frombuffer(lengths, np.int32))
    spelled = [word.encode("utf-8", "surrogatepass") for word in vocabulary]
    return {
        "postings": passages.astype(np.int32),
        "impacts": impacts,
        "starts": starts.astype(np.int64),
        "words": np.frombuffer(b"".join(spelled), dtype=np.uint8),
        "word_starts": np.cumsum([0, *map(len, spelled)], dtype=np.int64),
    }


def _count(places: Array, tokens: Array, lengths: Array) -> tuple[Array, Array, Array]:
    """For each word and passage that has it, ordered by both: the word's place, the passage, how often."""
    keys = places[tokens] * len(lengths)
    keys += np.repeat(np.arange(len(lengths)), lengths)
    keys.sort()
    firsts = np.flatnonzero(np.diff(keys, prepend=-1))
    counts = np.diff(firsts, append=len(keys))
    return keys[firsts] // max(len(lengths), 1), keys[firsts] % max(len(lengths), 1), counts


def _weigh(words: Array, passages: Array, counts: Array, starts: Array, lengths: Array) -> Array:
    """What each occurrence adds to the score of its passage."""
    having = np.diff(starts)
    weights = np.log1p((len(lengths) - having + 0.5) / (having + 0.5))
    damping = K1 * (1 - B + B * lengths / max(lengths.mean(), 1e-9)) if len(lengths) else lengths
    found: Array = weights[words] * counts * (K1 + 1) / (counts + damping[passages])
    return found.astype(np.float32)


class Bm25:
    def __init__(self, arrays: Mapping[str, Array], passages: int) -> None:
        self._arrays = arrays
        self._vocabulary = _Vocabulary(arrays["words"], arrays["word_starts"])
        self._passages = passages

    def scores(self, query: str) -> Array:
        """The score of every passage, float32; 0 where no word is shared."""
        scores = np.zeros(self._passages, dtype=np.float32)
        for word, times in Counter(split_words(query)).items():
            place = self._vocabulary.find(word)
            if place is not None:
                start, stop = self._arrays["starts"][place : place + 2]
                # A passage occurs once in a word's slice, so adding by index is safe.
                scores[self._arrays["postings"][start:stop]] += times * self._arrays["impacts"][start:stop]
        return scores


class _Vocabulary:
    """Sorted words end to end: a lookup reads some twenty of them, wherever the array lies."""

    def __init__(self, words: Array, starts: Array) -> None:
        self._words, self._starts = words, starts

    def __len__(self) -> int:
        return len(self._starts) - 1

    def __getitem__(self, place: int) -> bytes:
        return bytes(self._words[self._starts[place] : self._starts[place + 1]])

    def find(self, word: str) -> int | None:
        spelled = word.encode("utf-8", "surrogatepass")
        words: Any = self
        place = bisect_left(words, spelled)
        return place if place < len(self) and self[place] == spelled else None
