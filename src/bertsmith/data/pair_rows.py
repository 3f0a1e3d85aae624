"""Rows of two segments for next-sentence and sentence-order prediction. In: a corpus. Out: a stream of A and B.

Built as BERT's create_pretraining_data.py does it (Devlin et al. 2019, A.2): sentences of a document are taken until
the row is full and parted in two at random; B is what follows (label 0) or, half of the time, begins anywhere in
another document (label 1), whereupon what was taken for B goes back. ALBERT's rows always hold what follows, and half
of the time the two are swapped (label 1). In one document of ten the rows are made for a shorter length, drawn anew.

One thing differs unless asked for with `lone="random"`: a sentence that is left alone makes a row of one segment that
asks nothing (label -100), and no row takes fewer than two sentences where there are two. The originals always pair such
a sentence with another document, so that 57 % of the pairs of a small encyclopedia do not follow, and a short A tells.
"""

from collections.abc import Iterator
from functools import cached_property
from typing import Literal

import numpy as np

from bertsmith.data.rows import NO_PAIR, Array, Layout, Spans, fit
from bertsmith.data.rows_stream import Recent, Unit
from bertsmith.data.shards import Corpus
from bertsmith.errors import BertsmithError

Kind = Literal["next", "order"]
Lone = Literal["single", "random"]
STRETCH = 512  # sentences of a document that are gone through by themselves, so that a book is no long loop
BLOCK = 1 << 24  # tokens of text whose rows are made at once: some hundred thousand rows, under a second
SHORT = 0.1  # share of documents with shorter rows


class PairRows:
    """A stream whose units are blocks of an epoch, each with documents from everywhere.

    How many tokens the rows of a block will have shows when they are made. So that the place of a block in the stream
    follows from its number alone, each is given what the first one has: a block with more leaves its last rows out, one
    with fewer takes its first rows again. That is a few rows in a thousand (less in a large corpus).
    """

    paired = True

    def __init__(
        self, corpus: Corpus, length: int, kind: Kind = "next", seed: int = 0, phase: int = 0, *,
        lone: Lone = "single", short: float = SHORT, block: int = BLOCK,
    ) -> None:  # fmt: skip
        self.corpus, self.length, self.kind, self.key = corpus, length, kind, (seed, phase)
        self.lone, self.short, self.block = lone, short, block
        self.layout = Layout(corpus)
        self.room = self.layout.room(length, paired=True)
        self.sentences = np.asarray(corpus.sentences).view(np.int64)
        self._refuse_unfit()
        self._recent = Recent()
        self._order: tuple[int, Array] | None = None

    def _refuse_unfit(self) -> None:
        bounds = np.asarray(self.corpus.first_sentences)
        counts = np.diff(bounds)
        self.documents = np.stack([bounds[:-1], bounds[1:]])[:, counts > 0]  # first sentence, and that behind the last
        where = f"the part {self.corpus.split!r} of {self.corpus.folder}"
        if not (counts > 1).any():
            told = f"{where} has no document of two sentences, of which pairs are made"
            raise BertsmithError(f"{told}; ask for words alone (asks masked), or build it from longer documents.")
        if self.documents.shape[1] < 2 and (self.kind == "next" or self.lone == "random"):
            told = f"{where} is a single document; a sentence that does not follow is from another one"
            raise BertsmithError(f"{told}: ask for words alone (asks masked) or their order, or build it from more.")

    @cached_property
    def _stretches(self) -> Array:
        """(3, stretches): first sentence, the one behind the last, and the document; in the corpus's order."""
        first, last = self.documents
        parts = -(-(last - first) // STRETCH)
        owners = np.repeat(np.arange(len(parts)), parts)
        nth = np.arange(len(owners)) - np.repeat(np.cumsum(parts) - parts, parts)
        begin = first[owners] + nth * STRETCH
        return np.stack([begin, np.minimum(begin + STRETCH, last[owners]), owners])

    @cached_property
    def _weights(self) -> Array:
        """Tokens of each stretch; one giant sentence must not leave a block without any."""
        sizes = self.sentences[self._stretches[1]] - self.sentences[self._stretches[0]]
        return np.minimum(sizes, max(self.block // 8, 1))

    @cached_property
    def blocks(self) -> int:
        """Of an epoch."""
        return max(1, -(-int(self._weights.sum()) // self.block))

    @cached_property
    def block_total(self) -> int:
        """Tokens of a block in the stream."""
        made = self._make(0)
        share = self._weights[self._members(0)].sum() * self.blocks / self._weights.sum()
        return max(int(self.layout.sizes(made).sum() / share), self.length)

    def unit_at(self, position: int) -> int:
        return position // self.block_total

    def first_of(self, number: int) -> int:
        return number * self.block_total

    def unit(self, number: int) -> Unit:
        return self._recent[number] or self._recent.keep(number, self._shuffle(number))

    def _shuffle(self, number: int) -> Unit:
        spans = self._make(number)
        order = self._generator(number, 1).permutation(len(spans))
        sizes = self.layout.sizes(spans)
        while sizes[order].sum() < self.block_total:
            order = np.concatenate([order, order])
        starts = np.cumsum(sizes[order]) - sizes[order]
        rows = int(np.searchsorted(starts, self.block_total))
        return Unit(spans, order[:rows], starts[:rows])

    def _generator(self, number: int, use: int) -> np.random.Generator:
        epoch, block = divmod(number, self.blocks)
        return np.random.default_rng([*self.key, epoch, block, use])

    def _members(self, number: int) -> Array:
        """The stretches of a block, in the corpus's order."""
        epoch, block = divmod(number, self.blocks)
        held = self._order
        if held is None or held[0] != epoch:
            shuffled = np.random.default_rng([*self.key, epoch]).permutation(self._stretches.shape[1])
            self._order = held = (epoch, shuffled)
        weights = self._weights[held[1]]
        starts, total = np.cumsum(weights) - weights, int(weights.sum())
        edges = [total * (block + more) // self.blocks for more in (0, 1)]
        begin, end = np.searchsorted(starts, edges)
        return np.sort(held[1][begin:end])

    def _make(self, number: int) -> Spans:
        stretches = self._stretches[:, self._members(number)]
        return Spans.join(list(self._go_through(stretches, self._generator(number, 2))))

    def _go_through(self, stretches: Array, draw: np.random.Generator) -> Iterator[Spans]:
        """The first rows of all stretches, then their second ones, and so on until the last is used up."""
        at, stop, owners = stretches
        short = draw.random(len(at)) < self.short
        targets = np.where(short, draw.integers(2, self.room + 1, len(at)), self.room)
        while len(at):
            end = np.searchsorted(self.sentences, self.sentences[at] + targets)  # with it the target is reached
            end = np.maximum(end, at + 2) if self.lone == "single" else end
            end = np.minimum(end, stop)
            middle = at + 1 + draw.integers(0, np.maximum(end - at - 1, 1))
            is_lone, coin = end - at < 2, draw.random(len(at)) < 0.5
            put_back = (coin & (self.kind == "next")) & ~is_lone | is_lone & (self.lone == "random")
            first, second = np.stack([at, middle]), np.stack([middle, end])
            if put_back.any():
                left = targets[put_back] - self._size(first[:, put_back])
                second[:, put_back] = self._draw_elsewhere(owners[put_back], left, draw)
            swapped = (coin & (self.kind == "order")) & ~is_lone
            labels = np.where(is_lone & ~put_back, NO_PAIR, put_back | swapped)
            first, second = np.where(swapped, second, first), np.where(swapped, first, second)
            yield self._truncate(first, second, labels, draw)
            at = np.where(put_back, middle, end)
            more = at < stop
            at, stop, owners, targets = at[more], stop[more], owners[more], targets[more]

    def _draw_elsewhere(self, owners: Array, wanted: Array, draw: np.random.Generator) -> Array:
        """(2, rows): sentences of any other document, from a random one on until there are as many tokens as wanted."""
        others = draw.integers(0, self.documents.shape[1] - 1, len(owners))
        begin, stop = self.documents[:, others + (others >= owners)]
        at = begin + draw.integers(0, stop - begin)
        end = np.searchsorted(self.sentences, self.sentences[at] + wanted)
        return np.stack([at, np.minimum(np.maximum(end, at + 1), stop)])

    def _size(self, segment: Array) -> Array:
        return self.sentences[segment[1]] - self.sentences[segment[0]]

    def _truncate(self, first: Array, second: Array, labels: Array, draw: np.random.Generator) -> Spans:
        """Each token that the longer segment loses is its first or its last one, by a coin."""
        sizes = self._size(first), self._size(second)
        kept = fit(*sizes, np.where(sizes[1] > 0, self.room, self.room + self._more_alone))
        begins = []
        for segment, size, left in zip((first, second), sizes, kept, strict=True):
            from_front = np.zeros_like(size)
            is_cut = left < size
            from_front[is_cut] = draw.binomial((size - left)[is_cut], 0.5)
            begins.append(self.sentences[segment[0]] + from_front)
        return Spans(begins[0], kept[0], begins[1], kept[1], labels)

    @property
    def _more_alone(self) -> int:
        """How many more tokens fit into a row of one segment."""
        return int(self.layout.specials[1] - self.layout.specials[0])
