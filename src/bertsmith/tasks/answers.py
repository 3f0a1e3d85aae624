"""Where answers may stand in a context, and the best of them by the scores of its windows.

In: the pieces of a context with their characters, scores of starts and ends a window. Out: spans of characters. Every
span of at most so many pieces is weighed, not only those of the best starts and ends: one array for each context,
`spans[i, k]` the score of the answer from piece i to piece i + k, the windows' scores laid into it.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from torch import Tensor

from bertsmith.tasks.measures import Array
from bertsmith.tasks.result import check_finite
from bertsmith.tasks.task import Row
from bertsmith.text.encoding import Encoding


@dataclass(frozen=True, eq=False)
class Context:
    """The pieces of a text; the spans from a piece that opens to one that closes are all different, and never blank.

    Pieces of white space or of nothing ("▁") neither open nor close. Where several pieces are parts of one character
    (bytes of an emoji) only the first opens and only the last closes.
    """

    ids: list[int]
    starts: Array  # (pieces,) the first character of each
    ends: Array  # (pieces,) the character behind its last
    opens: Array  # (pieces,) bool
    closes: Array  # (pieces,) bool

    @classmethod
    def of(cls, text: str, encoding: Encoding) -> "Context":
        starts, ends = np.array(encoding.offsets, np.int64).reshape(-1, 2).T.copy()
        solid = np.flatnonzero([bool(text[start:end].strip()) for start, end in encoding.offsets])
        # A normaliser may swap marks on a letter; widened to be in order, no span can end before it begins.
        starts[solid] = first = np.minimum.accumulate(starts[solid][::-1])[::-1]
        ends[solid] = last = np.maximum.accumulate(ends[solid])
        opens, closes = np.zeros(len(starts), bool), np.zeros(len(starts), bool)
        opens[solid] = np.diff(first, prepend=-1) > 0
        closes[solid] = np.diff(last, append=len(text) + 1) > 0
        return cls(encoding.ids, starts, ends, opens, closes)

    def find(self, start: int, end: int) -> tuple[int, int] | None:
        """The first and the last piece of the characters from `start` to before `end`; None if they have none."""
        within = np.flatnonzero((self.opens | self.closes) & (self.ends > start) & (self.starts < end))
        return (int(within[0]), int(within[-1])) if len(within) else None

    def characters(self, first: int, last: int) -> slice:
        """The characters from one piece to another."""
        return slice(int(self.starts[first]), int(self.ends[last]))


@dataclass(kw_only=True)
class SpanRow(Row):
    """A window: pieces `begin` to before `end` of its context, the first of them at place `first` of the row."""

    context: Context
    first: int
    begin: int
    end: int


@dataclass(frozen=True)
class Candidates:
    """Every answer that a context allows, by the sum of its start's and its end's score."""

    spans: Array  # (pieces, longest answer), minus infinity where no answer is
    nothing: float  # the score of no answer at all

    @property
    def best(self) -> float:
        return float(self.spans.max(initial=-np.inf))

    def top(self, count: int) -> list[tuple[int, int]]:
        """The first and the last piece of the `count` best, the best first, of equals the earlier."""
        flat = self.spans.ravel()
        if count == 1:
            chosen = np.array([flat.argmax()]) if len(flat) else np.zeros(0, np.int64)
        else:
            count = min(count, len(flat))
            chosen = np.sort(np.argpartition(-flat, count - 1)[:count]) if count else np.zeros(0, np.int64)
            chosen = chosen[np.argsort(-flat[chosen], kind="stable")]
        starts, more = np.divmod(chosen[flat[chosen] > -np.inf], self.spans.shape[1])
        return list(zip(starts.tolist(), (starts + more).tolist(), strict=True))

    def log_total(self, with_nothing: bool) -> float:
        """The logarithm of the sum over all answers, which makes their scores probabilities."""
        peak = max(self.best, self.nothing) if with_nothing else self.best
        if peak == -np.inf:
            return peak
        total = float(np.exp(self.spans - peak).sum(dtype=np.float64))
        return float(peak + np.log(total + (np.exp(self.nothing - peak) if with_nothing else 0.0)))


def weigh(rows: Sequence[SpanRow], scores: Sequence[Tensor], longest: int) -> Candidates:
    """All answers of at most `longest` pieces in these windows of one context.

    Where windows overlap, a span has its best score in any of them: raw scores of one network are comparable, and the
    window that sees a span with more around it need not be guessed. That there is no answer must hold in every window,
    so its score is the least (BERT's own code, section 4.3 of the paper): the score of [CLS] as start and as end.
    """
    context = rows[0].context
    spans = np.full((len(context.ids), longest), -np.inf, np.float32)
    nothing = np.inf
    for row, score in zip(rows, scores, strict=True):
        values = score.float().numpy()
        check_finite(values)
        nothing = min(nothing, float(values[0, 0] + values[0, 1]))
        seen = slice(row.begin, row.end)
        within = values[row.first : row.first + row.end - row.begin]
        starts = np.where(context.opens[seen], within[:, 0], -np.inf)
        ends = np.full(len(within) + longest, -np.inf, np.float32)
        ends[: len(within)] = np.where(context.closes[seen], within[:, 1], -np.inf)
        here = starts[:, None] + sliding_window_view(ends, longest)[:-1]
        np.maximum(spans[seen], here, out=spans[seen])
    return Candidates(spans, nothing)


def mark_gold(rows: Sequence[SpanRow], context: Context, answers: Sequence[tuple[str, int]] | None) -> None:
    """Give each window its gold, (1, 2): the places of the first answer that it holds whole, else the first token.

    So a window without the answer learns to say so (section 4.3 of the paper, and BERT's own code for 1.1 too). Where
    no window holds one, as it is longer than the overlap, or was cut or cleaned away, or is not known, the gold is
    negative: there is nothing right to learn.
    """
    found = [context.find(start, start + len(text)) for text, start in answers or ()]
    spans = [span for span in found if span is not None]
    held = [next((s for s in spans if row.begin <= s[0] and s[1] < row.end), None) for row in rows]
    absent = 0 if answers == () or any(held) else -1
    for row, span in zip(rows, held, strict=True):
        shift = row.first - row.begin
        row.gold = np.array([[absent, absent] if span is None else [span[0] + shift, span[1] + shift]])
