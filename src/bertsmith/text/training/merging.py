"""Byte-pair merging over distinct words: again and again the most frequent pair of neighbours becomes one symbol.

In: the symbols of all words in one array, how often each word occurs. Out: the merges in order. After Sennrich et al.
2016, with exact counts: a pair's count is kept up to date from the places that a merge touches, never counted anew.
"""

from collections.abc import Callable
from heapq import heapify, heappop, heappush

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Places = NDArray[np.int32]

_SHIFT = 32
_MASK = (1 << _SHIFT) - 1
_NONE = -1


class Merger:
    """The words as linked symbols, and where each pair stands.

    Pairs below `floor` are not followed, as nearly all of the millions of rare pairs never come to be merged; when the
    rest is used up, `follow` takes them in by a lower floor. Counts of followed pairs are exact at any time, since a
    pair of known symbols only becomes rarer.
    """

    def __init__(self, symbols: Places, lengths: Ints, counts: Ints, names: list[str]) -> None:
        size, stops = len(symbols), np.cumsum(lengths)
        self.names = names
        self.ids = {name: id for id, name in enumerate(names)}
        self.symbol = symbols.astype(np.int32)
        self.after = np.arange(1, size + 1, dtype=np.int32)
        self.before = np.arange(-1, size - 1, dtype=np.int32)
        self.after[stops - 1] = _NONE
        self.before[stops - lengths] = _NONE
        self.weight = np.repeat(counts, lengths)
        self.floor = 1
        self.count: dict[int, int] = {}
        self.places: dict[int, Places] = {}
        self.heap: list[tuple[int, str, str, int]] = []

    def follow(self, floor: int) -> None:
        """Finds all pairs that occur at least `floor` times."""
        self.floor = floor
        self.count.clear()
        self.places.clear()
        self.heap.clear()
        self._take_in(np.flatnonzero(self.after >= 0).astype(np.int32))
        heapify(self.heap)

    def best(self) -> tuple[int, int] | None:
        """The most frequent pair of symbols that is followed; of several the first in the order of their texts."""
        while self.heap:
            count, left, right, key = heappop(self.heap)
            now = self.count.get(key)
            if now == -count:
                return key >> _SHIFT, key & _MASK
            if now is not None:  # it became rarer since it was put here
                heappush(self.heap, (-now, left, right, key))
        return None

    def forget(self, left: int, right: int) -> None:
        """Leaves a pair as it is for good."""
        key = left << _SHIFT | right
        del self.count[key], self.places[key]

    def merge(self, left: int, right: int, name: str) -> int:
        """Makes one symbol of the pair wherever it stands, from the left where occurrences overlap."""
        key = left << _SHIFT | right
        at = self._occurrences(left, right, self.places.pop(key))
        del self.count[key]
        known = self.ids.get(name)
        new = len(self.names) if known is None else known
        if known is None:
            self.names.append(name)
            self.ids[name] = new
        second = self.after[at]
        third = self.after[second]
        self._take_out(self._links(np.concatenate((self.before[at], at, second))))
        self.symbol[at] = new
        self.after[at] = third
        self.after[second] = _NONE
        self.before[third[third >= 0]] = at[third >= 0]
        if known is None:
            self._take_in(self._links(np.concatenate((self.before[at], at))))
        else:  # two ways to one text, so a pair with it may have become more frequent
            self.follow(self.floor)
        return new

    def _occurrences(self, left: int, right: int, at: Places) -> Places:
        second = self.after[at]
        at = at[(self.symbol[at] == left) & (second >= 0) & (self.symbol[second] == right)]
        if left != right or len(at) < 2:
            return at
        # In a run "aaaa" the links 1, 3, … from its start are merged.
        number = np.arange(len(at))
        begins = np.concatenate(([True], at[1:] != self.after[at[:-1]]))
        return at[(number - np.maximum.accumulate(np.where(begins, number, 0))) % 2 == 0]

    def _links(self, at: Places) -> Places:
        at = np.unique(at[at >= 0])
        return at[self.after[at] >= 0]

    def _groups(self, links: Places) -> tuple[Ints, Ints, Ints, Places]:
        """The pairs at links: their keys, how often each occurs, where each begins in the sorted places."""
        keys = self.symbol[links].astype(np.int64) << _SHIFT | self.symbol[self.after[links]]
        order = np.argsort(keys, kind="stable")
        keys, places = keys[order], links[order]
        begins = np.flatnonzero(np.concatenate(([True], keys[1:] != keys[:-1])))
        return keys[begins], np.add.reduceat(self.weight[places], begins), begins, places

    def _take_out(self, links: Places) -> None:
        if not len(links):
            return
        keys, lost, _, _ = self._groups(links)
        count = self.count
        for key, less in zip(keys.tolist(), lost.tolist(), strict=True):
            now = count.get(key)
            if now is None:
                continue
            if now - less >= self.floor:
                count[key] = now - less
            else:
                del count[key], self.places[key]

    def _take_in(self, links: Places) -> None:
        if not len(links):
            return
        keys, sums, begins, places = self._groups(links)
        stops = np.append(begins[1:], len(places))
        for group in np.flatnonzero(sums >= self.floor).tolist():
            key, count = int(keys[group]), int(sums[group])
            self.count[key] = count
            self.places[key] = places[begins[group] : stops[group]].copy()
            heappush(self.heap, (-count, self.names[key >> _SHIFT], self.names[key & _MASK], key))


def learn_merges(
    merger: Merger,
    most: int,
    join: Callable[[str, str], str],
    min_count: int,
    taken: frozenset[str] = frozenset(),
    tell: Callable[[int, int], None] | None = None,
) -> list[tuple[str, str]]:
    """At most so many merges of pairs that occur `min_count` times; none makes a text that is `taken`."""
    merges: list[tuple[str, str]] = []
    # A guess at what the last merges will still count; too high costs one more pass, too low some memory.
    floor = max(min_count, int(merger.weight.sum()) // (200 * max(most, 1)))
    merger.follow(floor)
    while len(merges) < most:
        pair = merger.best()
        if pair is None:
            if floor <= min_count:
                break
            floor = max(min_count, floor // 8)
            merger.follow(floor)
            continue
        left, right = merger.names[pair[0]], merger.names[pair[1]]
        name = join(left, right)
        if name in taken:
            merger.forget(*pair)
            continue
        merger.merge(*pair, name)
        merges.append((left, right))
        if tell is not None and len(merges) % 100 == 0:
            tell(len(merges), most)
    return merges
