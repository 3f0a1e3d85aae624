"""An endless stream of rows, and the passes that it is read in. In: a number. Out: the rows of that pass.

Rows stand in the stream one behind the other, epoch after epoch. Pass g takes the rows that begin within tokens
[g T, (g + 1) T) of the stream: which they are follows from g alone, for any number of processes, and each row of the
stream is in exactly one pass. A pass holds exactly T tokens: its last row is cut where it does not fit, and what is
missing is filler; neither is more than a row.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from bertsmith.data.rows import Array, Layout, Rows, Spans
from bertsmith.data.shards import Corpus
from bertsmith.errors import BertsmithError

_HELD = 2  # units in memory: a pass may lie in two of them


@dataclass(frozen=True)
class Unit:
    """A part of the stream that is made at once: an epoch, or a block of one."""

    spans: Spans  # of all its rows, in any order
    order: Array  # (rows in the stream,): which row comes when
    starts: Array  # where each begins, counted from the unit's first token


class Stream(Protocol):
    corpus: Corpus
    length: int  # no row is longer
    layout: Layout
    paired: bool

    def unit_at(self, position: int) -> int:
        """The number of the unit that a token of the stream lies in."""

    def first_of(self, number: int) -> int:
        """Where a unit begins in the stream."""

    def unit(self, number: int) -> Unit: ...


class Recent:
    """The last few units that were asked for, so that neighbouring passes make them once."""

    def __init__(self) -> None:
        self._held: dict[int, Unit] = {}

    def __getitem__(self, number: int) -> Unit | None:
        return self._held.get(number)

    def keep(self, number: int, unit: Unit) -> Unit:
        others = [(n, u) for n, u in self._held.items() if n != number]
        self._held = dict([*others[1 - _HELD :], (number, unit)])  # replaced, not changed: threads may be reading
        return unit


class Passes:
    """The passes of T tokens through a stream: `rows_of(number)` is a pure function."""

    def __init__(self, stream: Stream, tokens: int) -> None:
        if tokens < stream.length:
            raise BertsmithError(f"a pass of {tokens} tokens cannot hold a row of {stream.length}; make it larger.")
        self.stream, self.tokens = stream, tokens

    def rows_of(self, number: int) -> Rows:
        spans = self._spans_of(number)
        stream, layout = self.stream, self.stream.layout
        sizes = layout.sizes(spans)
        starts = np.cumsum(sizes) - sizes
        whole = int(np.searchsorted(starts + sizes, self.tokens, side="right"))
        kept, rest = spans.take(slice(whole)), spans.take(slice(whole, whole + 1))
        cut = int(sizes[whole:].sum())
        if len(rest):
            fitting = layout.cut(rest, self.tokens - int(starts[whole]))
            if fitting is not None:
                kept = Spans.join([kept, fitting])
                cut -= int(layout.sizes(fitting)[0])
        order = np.argsort(-layout.sizes(kept), kind="stable")  # like lengths together, as attention on a CPU likes it
        return layout.lay(stream.corpus.tokens, kept.take(order), self.tokens, stream.length, stream.paired, cut)

    def _spans_of(self, number: int) -> Spans:
        """All rows that begin within the pass."""
        low, high = number * self.tokens, (number + 1) * self.tokens
        found, unit = [], self.stream.unit_at(low)
        while (first := self.stream.first_of(unit)) < high:
            made = self.stream.unit(unit)
            begin, end = np.searchsorted(made.starts, (low - first, high - first))
            found.append(made.spans.take(made.order[begin:end]))
            unit += 1
        return Spans.join(found)
