"""Words and the pieces that a tokenizer made of them: splitting a raw text, and finding each word's pieces.

In: a text, spans of characters. Out: spans again, or numbers of pieces. Everything goes by character offsets, so that
any tokenizer serves and nothing is ever matched by its spelling.
"""

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from bertsmith.data.examples import TagExample
from bertsmith.tasks.measures import Array

_IDEOGRAPHS = (
    (0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xF900, 0xFAFF), (0x20000, 0x2A6DF), (0x2A700, 0x2CEAF), (0x2F800, 0x2FA1F),
)  # fmt: skip


def split_text(text: str) -> TagExample:
    """A raw text as words: cut at white space; every mark of punctuation and every ideograph is a word of its own.

    These are the words that BERT's own tokenizer makes, so its models see what they were trained on, and every other
    model gets the same words. (What a tokenizer calls a word is no better: sentencepiece keeps `France,` in one.)
    """
    spans = []
    start = -1  # of the word that is being read
    for i, character in enumerate(text):
        kind = _kind(character)
        if kind != "word" and start >= 0:
            spans.append((start, i))
            start = -1
        if kind == "alone":
            spans.append((i, i + 1))
        elif kind == "word" and start < 0:
            start = i
    if start >= 0:
        spans.append((start, len(text)))
    return TagExample(text, tuple(spans))


@lru_cache(maxsize=65536)
def _kind(character: str) -> str:
    if character.isspace():
        return "space"
    code = ord(character)
    if code < 128:  # as BERT has it, $ + ^ and the like are punctuation
        return "word" if character.isalnum() or not character.isprintable() else "alone"
    alone = unicodedata.category(character)[0] == "P" or any(first <= code <= last for first, last in _IDEOGRAPHS)
    return "alone" if alone else "word"


@dataclass(frozen=True)
class Alignment:
    """Which pieces belong to which word; -1 stands for none."""

    firsts: Array  # (words,) the first piece of each; a word of control characters alone has none
    lasts: Array  # (words,)
    owners: Array  # (pieces,) the word of each piece


def align(text: str, spans: Sequence[tuple[int, int]], offsets: Sequence[tuple[int, int]]) -> Alignment:
    """A word's first piece is the first that begins in it; if none does, the first that reaches into it."""
    word_at = np.full(len(text) + 1, -1)  # of each character
    for word, (start, end) in enumerate(spans):
        word_at[start:end] = word
    bounds = np.asarray(offsets, dtype=np.int64).reshape(-1, 2)
    owners = np.where(bounds[:, 1] > bounds[:, 0], word_at[bounds[:, 0]], -1)
    firsts, lasts = np.full(len(spans), -1), np.full(len(spans), -1)
    pieces = np.flatnonzero(owners >= 0)
    lasts[owners[pieces]] = pieces  # of several values for one place the last one stays
    firsts[owners[pieces[::-1]]] = pieces[::-1]
    for lost in np.flatnonzero(firsts < 0).tolist():  # one piece for several words: "..." of three marks
        start, end = spans[lost]
        reaching = np.flatnonzero((bounds[:, 0] < end) & (bounds[:, 1] > start) & (bounds[:, 1] > bounds[:, 0]))
        if len(reaching):
            firsts[lost] = lasts[lost] = reaching[0]
    return Alignment(firsts, lasts, owners)
