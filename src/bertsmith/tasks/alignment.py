"""Words and the pieces that a tokenizer made of them, found by character offsets.

In: a text, the spans of its words, the offsets of its pieces. Out: numbers of pieces. Nothing is matched by its
spelling, so that any tokenizer serves.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bertsmith.data.examples import TagExample
from bertsmith.data.words import split_words
from bertsmith.tasks.measures import Array


def split_text(text: str) -> TagExample:
    """A raw text as words, which are those of BERT's own tokenizer whatever the model's: every model gets the same.

    What another tokenizer calls a word is no better: sentencepiece keeps `France,` in one.
    """
    return TagExample(text, split_words(text))


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
    # One piece for several words: "..." of three marks. All at once, for a text may be full of them.
    solid = np.flatnonzero(bounds[:, 1] > bounds[:, 0])
    lost = np.flatnonzero(firsts < 0)
    starts, ends = np.asarray(spans, dtype=np.int64).reshape(-1, 2)[lost].T
    places = np.searchsorted(np.maximum.accumulate(bounds[solid, 1]), starts, side="right")  # the first that ends later
    reaching = np.append(solid, len(bounds))[places]
    reaches = np.append(bounds[:, 0], len(text) + 1)[reaching] < ends
    firsts[lost[reaches]] = lasts[lost[reaches]] = reaching[reaches]
    return Alignment(firsts, lasts, owners)
