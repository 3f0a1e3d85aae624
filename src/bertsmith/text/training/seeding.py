"""The candidates of unigram training, where they stand in the words, and what else could stand in their place.

In: a table of words. Out: `Seeds`, and the two lattices that are made of them.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bertsmith.text.training.lattice import Lattice, make_lattice
from bertsmith.text.training.substrings import find_substrings
from bertsmith.text.training.table import WordTable

Ints = NDArray[np.int64]

LONGEST_PIECE = 16
FEWEST, TIMES, MOST = 200_000, 12, 1_000_000  # candidates: so many times the size, within bounds


@dataclass
class Seeds:
    """Candidates by length and text; `place` is one where each stands; edges are all their occurrences by place."""

    codes: NDArray[np.uint32]
    length: Ints
    count: Ints
    place: Ints
    edge_place: NDArray[np.int32]
    edge_length: NDArray[np.int8]
    edge_piece: NDArray[np.int32]

    def text(self, piece: int) -> str:
        return _text(self.codes, int(self.place[piece]), int(self.length[piece]))


def find_seeds(table: WordTable, room: int, min_count: int, taken: frozenset[str]) -> Seeds:
    """The characters, and the substrings that cover most of the text; none is a text that is `taken`."""
    levels = find_substrings(table, LONGEST_PIECE, min_count)
    length = np.concatenate([np.full(len(level.counts), level.length) for level in levels])
    count = np.concatenate([level.counts for level in levels])
    place = np.concatenate([level.first for level in levels])
    offsets = np.cumsum([0, *(len(level.counts) for level in levels)])
    most = min(max(TIMES * room, FEWEST), MOST)
    # Characters first, then by what they cover, then by length and text, which is the order they have.
    ranked = np.lexsort((-count * length, length > 1))[:most]
    chosen = np.zeros(len(count), dtype=bool)
    chosen[ranked] = True
    chosen[: offsets[1]] = True
    for candidate in np.flatnonzero(chosen & np.isin(length, [len(text) for text in taken])).tolist():
        if _text(table.codes, int(place[candidate]), int(length[candidate])) in taken:
            chosen[candidate] = False
    number = (np.cumsum(chosen) - 1).astype(np.int32)
    places, lengths, pieces = [], [], []
    for level, offset in zip(levels, offsets, strict=False):
        stays = chosen[level.ids + offset]
        places.append(level.places[stays])
        lengths.append(np.full(len(places[-1]), level.length, dtype=np.int8))
        pieces.append(number[level.ids[stays] + offset])
    levels.clear()
    edge_place = np.concatenate(places)
    order = np.argsort(edge_place, kind="stable")
    return Seeds(table.codes, length[chosen], count[chosen], place[chosen], edge_place[order],
                 np.concatenate(lengths)[order], np.concatenate(pieces)[order])  # fmt: skip


def link_words(seeds: Seeds, table: WordTable) -> Lattice:
    """All ways to cut each word."""
    word = np.repeat(np.arange(len(table.lengths), dtype=np.int32), table.lengths)[seeds.edge_place]
    start = (seeds.edge_place - table.starts.astype(np.int32)[word]).astype(np.int8)
    return make_lattice(table.lengths, word, start, seeds.edge_length, seeds.edge_piece)


def link_alternatives(seeds: Seeds) -> Lattice:
    """All ways to cut each candidate into others: the edges within the place where it stands, less its own."""
    begins = np.searchsorted(seeds.edge_place, np.arange(len(seeds.codes) + 1))
    parts: list[tuple[NDArray[np.int32], NDArray[np.int8], Ints]] = []
    for offset in range(LONGEST_PIECE):
        longer = np.flatnonzero((seeds.length > offset) & (seeds.length > 1))
        place = seeds.place[longer] + offset
        amount = begins[place + 1] - begins[place]
        word = np.repeat(longer, amount)
        edge = np.arange(len(word)) + np.repeat(begins[place] - np.cumsum(amount) + amount, amount)
        length = seeds.edge_length[edge]
        fits = (length <= seeds.length[word] - offset) & (length < seeds.length[word])
        word = word[fits].astype(np.int32)
        parts.append((word, np.full(len(word), offset, dtype=np.int8), edge[fits]))
    words, starts, edges = zip(*parts, strict=True)
    edge = np.concatenate(edges)
    pieces = seeds.edge_piece[edge]
    return make_lattice(seeds.length, np.concatenate(words), np.concatenate(starts), seeds.edge_length[edge], pieces)


def _text(codes: NDArray[np.uint32], begin: int, length: int) -> str:
    return codes[begin : begin + length].tobytes().decode("utf-32-le")
