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
    edge_place: Ints
    edge_length: Ints
    edge_piece: Ints

    def text(self, piece: int) -> str:
        begin = int(self.place[piece])
        return self.codes[begin : begin + int(self.length[piece])].tobytes().decode("utf-32-le")


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
    for number in np.flatnonzero(chosen & np.isin(length, [len(text) for text in taken])).tolist():
        begin = int(place[number])
        if table.codes[begin : begin + int(length[number])].tobytes().decode("utf-32-le") in taken:
            chosen[number] = False
    number = np.cumsum(chosen) - 1
    places, lengths, pieces = [], [], []
    for level, offset in zip(levels, offsets, strict=False):
        ids = level.ids + offset
        stays = chosen[ids]
        places.append(level.places[stays].astype(np.int64))
        lengths.append(np.full(int(stays.sum()), level.length))
        pieces.append(number[ids[stays]])
    edge_place, edge_length, edge_piece = np.concatenate(places), np.concatenate(lengths), np.concatenate(pieces)
    order = np.argsort(edge_place, kind="stable")
    return Seeds(table.codes, length[chosen], count[chosen], place[chosen], edge_place[order], edge_length[order],
                 edge_piece[order])  # fmt: skip


def link_words(seeds: Seeds, table: WordTable) -> Lattice:
    """All ways to cut each word."""
    word = np.repeat(np.arange(len(table.lengths)), table.lengths)[seeds.edge_place]
    return make_lattice(
        table.lengths, seeds.edge_place - table.starts[word], seeds.edge_length, seeds.edge_piece, word
    )


def link_alternatives(seeds: Seeds) -> Lattice:
    """All ways to cut each candidate into others: the edges within the place where it stands, less its own."""
    begins = np.searchsorted(seeds.edge_place, np.arange(len(seeds.codes) + 1))
    parts: list[tuple[Ints, Ints, Ints]] = []
    for offset in range(LONGEST_PIECE):
        longer = np.flatnonzero((seeds.length > offset) & (seeds.length > 1))
        place = seeds.place[longer] + offset
        amount = begins[place + 1] - begins[place]
        word = np.repeat(longer, amount)
        edge = np.arange(len(word)) + np.repeat(begins[place] - np.cumsum(amount) + amount, amount)
        length = seeds.edge_length[edge]
        fits = (length <= seeds.length[word] - offset) & (length < seeds.length[word])
        parts.append((word[fits], np.full(int(fits.sum()), offset), edge[fits]))
    word, start, edge = (np.concatenate(column) for column in zip(*parts, strict=True))
    return make_lattice(seeds.length, start, seeds.edge_length[edge], seeds.edge_piece[edge], word)
