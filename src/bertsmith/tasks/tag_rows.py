"""Sentences of words as rows for the encoder, each word asked for once.

In: an encoding that was not cut, and where the words begin in it. Out: rows with the places whose scores are wanted. A
text that is too long becomes windows that share a quarter of their room, and each word is asked for in the window in
which the nearer edge is farthest from it; an edge where the text itself ends is no edge.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bertsmith.errors import BertsmithError
from bertsmith.tasks.alignment import Alignment
from bertsmith.tasks.measures import Array
from bertsmith.tasks.task import Row
from bertsmith.text.encoding import Encoding
from bertsmith.text.tokenizer import Tokenizer
from bertsmith.text.truncation import keep, slide

Ranges = list[tuple[int, int]]
FILLER = -1  # the gold of a place that is not trained


@dataclass
class TagRow(Row):
    """`at` has a place for each of `words` and `pieces`; a row that is asked for nothing has one place and no words."""

    words: Sequence[int] = ()  # the word that each place belongs to; -1: none
    pieces: Sequence[int] = ()  # the number of each place's piece in the whole text


@dataclass(frozen=True)
class Layout:
    """How texts become rows of at most `length` ids by a policy for those that do not fit."""

    tokenizer: Tokenizer
    length: int
    truncate: str

    @property
    def lead(self) -> int:
        """How many special tokens stand before the text."""
        slots = self.tokenizer.template.slots(False, specials=True)
        return next(i for i, slot in enumerate(slots) if slot.sequence is not None)

    @property
    def specials(self) -> int:
        return self.tokenizer.template.specials(paired=False)

    def cut(self, count: int, where: str) -> list[Ranges]:
        """The rows that a text of `count` pieces becomes: the ranges of pieces in each."""
        room = self.length - self.specials
        if count <= room:
            return [[(0, count)]]
        if room < 1:
            raise BertsmithError(f"length={self.length} leaves no room for text beside {self.specials} special tokens.")
        if self.truncate == "error":
            raise BertsmithError(
                f"{where or 'the text'} has {count + self.specials} tokens, but at most {self.length} fit; "
                f"use truncate='windows', or a shorter text."
            )
        if self.truncate == "windows":
            return [[window] for window in slide(count, room, room // 4)]
        return keep([count], room, self.truncate)

    def rows(self, whole: Encoding, words: Alignment, every: bool, gold: Array | None, where: str) -> list[TagRow]:
        """The rows of one text; `every` asks for all pieces, not only for each word's first."""
        count = len(whole) - self.specials
        cuts = self.cut(count, where)
        pieces, owners = list_places(words, every)
        homes = find_homes(pieces, owners, words, cuts, count)
        by_home = np.argsort(homes, kind="stable")
        bounds = np.searchsorted(homes[by_home], np.arange(len(cuts) + 1))
        rows = []
        for ranges, start, end in zip(cuts, bounds[:-1], bounds[1:], strict=True):
            mine = by_home[start:end]
            golds = None
            if gold is not None:  # a word that is not there, number -1, is the last in both lists
                is_first = np.append(words.firsts, -1)[owners[mine]] == pieces[mine]
                golds = np.where(is_first, np.append(gold, FILLER)[owners[mine]], FILLER)
            rows.append(self._row(whole, ranges, pieces[mine], owners[mine], golds))
        rows[0].dropped = count - sum(b - a for a, b in cuts[0]) if len(cuts) == 1 else 0
        return rows

    def _row(self, whole: Encoding, ranges: Ranges, pieces: Array, owners: Array, gold: Array | None) -> TagRow:
        count = len(whole) - self.specials
        ids, segments = whole.ids, whole.segments
        if ranges != [(0, count)]:
            kept = np.concatenate([np.arange(start, end) for start, end in ranges])
            order = [*range(self.lead), *(kept + self.lead).tolist(), *range(self.lead + count, len(whole))]
            ids, segments = [ids[i] for i in order], [segments[i] for i in order]
            at = (np.searchsorted(kept, pieces) + self.lead).tolist()
        else:
            at = (pieces + self.lead).tolist()
        if not at:  # the scores of no place at all would be taken for those of all
            return TagRow(ids, segments, [0], gold=None if gold is None else np.array([FILLER]))
        return TagRow(ids, segments, at, gold=gold, words=owners.tolist(), pieces=pieces.tolist())


def list_places(words: Alignment, every: bool) -> tuple[Array, Array]:
    """The pieces to ask for and their words, in order: a piece that serves several words is there for each."""
    if not every:
        there = np.flatnonzero(words.firsts >= 0)
        return words.firsts[there], there
    lent = np.append(words.owners, -1)[words.firsts] != np.arange(len(words.firsts))
    borrowing = np.flatnonzero((words.firsts >= 0) & lent)
    pieces = np.concatenate([np.arange(len(words.owners)), words.firsts[borrowing]])
    owners = np.concatenate([words.owners, borrowing])
    order = np.argsort(pieces, kind="stable")
    return pieces[order], owners[order]


def find_homes(pieces: Array, owners: Array, words: Alignment, cuts: list[Ranges], count: int) -> Array:
    """The number of the row in which each piece is asked for: with its word if that is there; -1 if it was cut away."""
    if cuts == [[(0, count)]]:
        return np.zeros(len(pieces), dtype=np.int64)
    firsts = np.where(owners >= 0, np.append(words.firsts, -1)[owners], pieces)
    lasts = np.where(owners >= 0, np.append(words.lasts, -1)[owners], pieces)
    order = np.argsort(pieces, kind="stable")
    ordered = pieces[order]
    homes, best = np.full(len(pieces), -1), np.full(len(pieces), -np.inf)
    # Window by window: a table of all windows and all pieces would grow with the square of the text.
    for number, ranges in enumerate(cuts):
        for start, end in ranges:
            held = order[slice(*np.searchsorted(ordered, (start, end)))]
            near = _context(firsts[held], lasts[held], (ranges[0][0], ranges[-1][1]), count)
            better = near > best[held]
            homes[held[better]], best[held[better]] = number, near[better]
    return homes


def _context(firsts: Array, lasts: Array, window: tuple[int, int], count: int) -> Array:
    """How far the nearer edge of a window is; below zero if the edge goes through the word."""
    start, end = window
    left = firsts - start if start > 0 else np.full(len(firsts), np.inf)
    right = end - 1 - lasts if end < count else np.full(len(firsts), np.inf)
    return np.minimum(left, right)
