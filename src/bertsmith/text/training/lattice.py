"""All ways to cut words into pieces, as one graph over all words, walked by depth with arrays.

In: edges (from a node, over a piece, to a node). Out: expected counts of the pieces (forward-backward), best ways
(Viterbi). Probabilities are multiplied and added as they are, not as logarithms, in a fixed order: by the depth at
which an edge ends, then by its length; weights carry a power of two a character against underflow.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Places = NDArray[np.int32]

LONGEST_WORD = 32  # characters that a probability can be multiplied over without leaving the range of floats
_STEP = 6  # the power of two that each character weighs more; it changes no rounding


@dataclass
class Lattice:
    """Nodes stand before, between and behind the characters of each word, numbered word by word."""

    first: Ints  # the node before each word
    last: Ints  # the node behind each word
    nodes: int
    start: Places  # of each edge, sorted by the depth of its end, by its length, by its start
    length: NDArray[np.int8]
    piece: Places
    depth: NDArray[np.int8]  # of the edge's end, counted from its word's start

    def keep(self, pieces: NDArray[np.bool_], number: Places) -> None:
        """Leaves out the edges of dropped pieces and gives the others their new numbers."""
        stays = pieces[self.piece]
        self.start, self.length, self.depth = self.start[stays], self.length[stays], self.depth[stays]
        self.piece = number[self.piece[stays]]

    def expect(self, probability: Floats, counts: Floats) -> Floats:
        """How often each piece is expected in the words, which occur `counts` times."""
        groups = list(self._groups())
        weight = self._weights(probability)
        forward = np.zeros(self.nodes)
        forward[self.first] = 1.0
        for part, length in groups:
            start = self.start[part]
            forward[start + length] += forward[start] * weight[part]  # within a group each end occurs once
        backward = np.zeros(self.nodes)
        backward[self.last] = counts / forward[self.last]
        for part, length in reversed(groups):
            start = self.start[part]
            flow = weight[part] * backward[start + length]
            backward[start] += flow
            weight[part] = flow * forward[start]
        return np.bincount(self.piece, weights=weight, minlength=len(probability)).astype(np.float64)

    def best(self, probability: Floats) -> NDArray[np.int64]:
        """For each node the edge by which the most probable way comes to it, -1 where none does."""
        weight = self._weights(probability)
        reached = np.zeros(self.nodes)
        reached[self.first] = 1.0
        edge = np.full(self.nodes, -1, dtype=np.int64)
        for part, length in self._groups():
            start = self.start[part]
            end = start + length
            value = reached[start] * weight[part]
            better = (value >= reached[end]) & (value > 0)  # of equals the longer piece
            reached[end[better]] = value[better]
            edge[end[better]] = np.arange(part.start, part.stop)[better]
        return edge

    def walk(self, edge: Ints) -> Iterator[tuple[Ints, Places]]:
        """Goes the best ways of all words back at once: at each step the words still going, and their pieces."""
        words = np.flatnonzero((self.last > self.first) & (edge[self.last] >= 0))
        nodes = self.last[words]
        while len(words):
            taken = edge[nodes]
            yield words, self.piece[taken]
            nodes = self.start[taken].astype(np.int64)
            going = nodes > self.first[words]
            words, nodes = words[going], nodes[going]

    def _weights(self, probability: Floats) -> Floats:
        scale = np.ldexp(1.0, _STEP * np.arange(LONGEST_WORD + 1))
        return probability[self.piece] * scale[self.length]

    def _groups(self) -> Iterator[tuple[slice, int]]:
        """The edges by depth of their end and length."""
        key = self.depth.astype(np.int32) * (LONGEST_WORD + 1) + self.length
        bounds = np.flatnonzero(np.concatenate(([True], key[1:] != key[:-1], [True]))) if len(key) else np.array([0])
        for begin, stop in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
            yield slice(begin, stop), int(self.length[begin])


def make_lattice(
    lengths: Ints, word: Places, start: NDArray[np.int8], length: NDArray[np.int8], piece: Places
) -> Lattice:
    """A lattice over words of these lengths; `start` counts from the start of the edge's word.

    Edges of one start and length come in the order of their words.
    """
    first = np.cumsum(lengths + 1) - lengths - 1
    depth = start + length
    order = np.argsort(depth.astype(np.int16) * (LONGEST_WORD + 1) + length, kind="stable")
    node = first.astype(np.int32)[word] + start
    nodes = int((lengths + 1).sum())
    return Lattice(first, first + lengths, nodes, node[order], length[order], piece[order], depth[order])
