"""All frequent substrings of the words, and where they stand: what unigram training begins with.

In: a table of words. Out: `Substrings`, found length by length: one of n characters is frequent only if its first n - 1
and its last n - 1 are.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bertsmith.text.training.table import WordTable

Ints = NDArray[np.int64]
Places = NDArray[np.int32]


@dataclass
class Level:
    """The frequent substrings of one length in the order of their texts, and every place where one begins."""

    length: int
    counts: Ints
    first: Ints  # where each occurs first
    places: Places
    ids: Places  # which substring begins at each place


def find_substrings(table: WordTable, longest: int, min_count: int = 2) -> list[Level]:
    """The levels 1, 2, …; all single characters are there, however rare."""
    codes, characters = np.unique(table.codes, return_inverse=True)
    weights = np.repeat(table.counts, table.lengths)
    left = np.repeat(np.cumsum(table.lengths), table.lengths) - np.arange(len(table.codes))  # characters to the end
    levels = [_gather(1, np.arange(len(table.codes)), characters.astype(np.int64), weights, 0)]
    for length in range(2, longest + 1):
        last = levels[-1]
        frequent = np.full(len(table.codes) + 1, -1, dtype=np.int32)
        frequent[last.places] = last.ids
        places = last.places[left[last.places] >= length].astype(np.int64)
        places = places[frequent[places + 1] >= 0]
        if not len(places):
            break
        keys = frequent[places].astype(np.int64) * len(codes) + characters[places + length - 1]
        levels.append(_gather(length, places, keys, weights, min_count))
    return levels


def _gather(length: int, places: Ints, keys: Ints, weights: Ints, min_count: int) -> Level:
    distinct, first, ids = np.unique(keys, return_index=True, return_inverse=True)
    counts = np.zeros(len(distinct), dtype=np.int64)
    np.add.at(counts, ids, weights[places])
    kept = counts >= min_count
    number = np.cumsum(kept) - 1
    stays = kept[ids]
    return Level(
        length, counts[kept], places[first[kept]], places[stays].astype(np.int32), number[ids[stays]].astype(np.int32)
    )
