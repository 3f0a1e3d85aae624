"""Documents cut into rows of one segment. In: a corpus and the longest row. Out: a stream of [CLS] text [SEP].

Nothing crosses a document. A piece ends with a sentence where one ends in its last quarter, else where it is full; each
token of the corpus is in exactly one piece, and an epoch is all pieces in an order of its own.
"""

from functools import cached_property

import numpy as np

from bertsmith.data.rows import Array, Layout, Spans
from bertsmith.data.rows_stream import Recent, Unit
from bertsmith.data.shards import Corpus
from bertsmith.errors import BertsmithError

STRETCH = 1 << 16  # tokens of a document that are cut by themselves, so that the longest document is no long loop


class SingleRows:
    """A stream whose units are epochs; `phase` tells those with one seed apart."""

    paired = False

    def __init__(self, corpus: Corpus, length: int, seed: int = 0, phase: int = 0) -> None:
        if not len(corpus.tokens):
            raise BertsmithError(f"{corpus.folder} has no text in its part {corpus.split!r}; build it from more.")
        self.corpus, self.length, self.key = corpus, length, (seed, phase)
        self.layout = Layout(corpus)
        self.layout.room(length, paired=False)
        self._recent = Recent()

    @cached_property
    def spans(self) -> Spans:
        """All pieces of the corpus."""
        return Spans.single(*cut_pieces(self.corpus, self.layout.room(self.length, paired=False)))

    @cached_property
    def total(self) -> int:
        """Tokens of an epoch, special ones among them."""
        return int(self.layout.sizes(self.spans).sum())

    def unit_at(self, position: int) -> int:
        return position // self.total

    def first_of(self, number: int) -> int:
        return number * self.total

    def unit(self, number: int) -> Unit:
        return self._recent[number] or self._recent.keep(number, self._shuffle(number))

    def _shuffle(self, epoch: int) -> Unit:
        order = np.random.default_rng([*self.key, epoch]).permutation(len(self.spans))
        sizes = self.layout.sizes(self.spans)[order]
        return Unit(self.spans, order, np.cumsum(sizes) - sizes)


def cut_pieces(corpus: Corpus, room: int) -> tuple[Array, Array]:
    """Where each piece of at most `room` tokens begins, and how many it has.

    All documents take a step at a time together: there are as many steps as the longest stretch has pieces.
    """
    sentences = np.asarray(corpus.sentences).view(np.int64)  # searchsorted would turn two kinds of integers into floats
    edges = _edges(corpus, sentences, room)
    begin, end = edges[:-1], edges[1:]
    starts, sizes = [], []
    while len(begin):
        full = begin + room
        bound = sentences[np.searchsorted(sentences, full, side="right") - 1]
        stop = np.where(bound >= full - room // 4, bound, full)
        stop = np.where(full >= end, end, stop)
        starts.append(begin)
        sizes.append(stop - begin)
        left = stop < end
        begin, end = stop[left], end[left]
    return np.concatenate(starts), np.concatenate(sizes)


def _edges(corpus: Corpus, sentences: Array, room: int) -> Array:
    """The bounds of documents, and in long ones those of stretches: a sentence's end if there is one near."""
    documents = np.asarray(corpus.documents).view(np.int64)
    more = np.maximum(np.diff(documents) - 1, 0) // STRETCH  # bounds inside each document
    owners = np.repeat(np.arange(len(more)), more)
    nth = np.arange(len(owners)) - np.repeat(np.cumsum(more) - more, more) + 1
    wanted = documents[owners] + nth * STRETCH
    near = sentences[np.searchsorted(sentences, wanted)]
    return np.unique(np.concatenate([documents, np.where(near < wanted + room, near, wanted)]))
