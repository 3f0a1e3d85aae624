"""Which passages come first. In: vectors or scores. Out: passages' numbers and their scores, best first.

Equal scores go by the passage's number, so that a search gives the same every time.
"""

from collections.abc import Sequence

import numpy as np

from bertsmith.tasks.measures import Array

BLOCK = 8192  # passages compared at once: what is in memory of an index of any size
FUSED = 60  # the constant of reciprocal rank fusion (Cormack, Clarke & Büttcher 2009)

Ranking = tuple[Array, Array]  # passages' numbers, scores


def take_best(numbers: Array, scores: Array, count: int) -> Ranking:
    """The `count` best of these."""
    if len(scores) > count:
        worst = np.partition(scores, len(scores) - count)[len(scores) - count]
        kept = scores >= worst  # all that are equal to the last one, so that the order below decides
        numbers, scores = numbers[kept], scores[kept]
    order = np.lexsort((numbers, -scores))[:count]
    return numbers[order], scores[order]


def rank_words(scores: Array, count: int) -> Ranking:
    """The best of the passages that have a score at all."""
    found = np.flatnonzero(scores > 0)
    return take_best(found, scores[found], count)


def rank_vectors(vectors: Array, queries: Array, count: int) -> list[Ranking]:
    """For each query, (n, width), the passages whose vectors, (passages, width) and of length 1, are nearest."""
    best: list[Ranking] = [(np.zeros(0, np.int64), np.zeros(0, np.float32)) for _ in queries]
    for start in range(0, len(vectors) if len(queries) else 0, BLOCK):
        block = np.asarray(vectors[start : start + BLOCK]).astype(np.float32)
        numbers = np.arange(start, start + len(block))
        for i, scores in enumerate(queries @ block.T):  # (passages of the block,)
            found, values = take_best(numbers, scores, count)
            best[i] = take_best(np.concatenate([best[i][0], found]), np.concatenate([best[i][1], values]), count)
    return best


def fuse(rankings: Sequence[Ranking], count: int) -> Ranking:
    """Reciprocal rank fusion: a passage's score is the sum of 1 / (60 + rank) over the rankings that have it."""
    scores: dict[int, float] = {}
    for numbers, _ in rankings:
        for rank, number in enumerate(numbers.tolist(), 1):
            scores[number] = scores.get(number, 0.0) + 1 / (FUSED + rank)
    return take_best(np.fromiter(scores, np.int64), np.fromiter(scores.values(), np.float64), count)
