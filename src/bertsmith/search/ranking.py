"""Which passages come first. In: vectors or scores. Out: passages' numbers and their scores, best first.

Equal scores go by the passage's number, so that a search gives the same every time.
"""

from collections.abc import Sequence

import numpy as np
import torch

from bertsmith.tasks.measures import Array

BLOCK = 2048  # passages compared at once: they stay in the processor's cache while they become float32
PANEL = 16 * BLOCK  # passages whose scores are in memory, whatever the size of the index
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
    for start in range(0, len(vectors) if len(queries) else 0, PANEL):
        for i, scores in enumerate(_compare(vectors[start : start + PANEL], queries)):  # (passages of the panel,)
            numbers, values = best[i]
            worst = values[-1] if len(values) == count else -np.inf
            better = np.flatnonzero(scores > worst)  # one that is equal comes later, so it stays behind
            found = np.concatenate([numbers, start + better]), np.concatenate([values, scores[better]])
            best[i] = take_best(*found, count)
    return best


def _compare(vectors: Array, queries: Array) -> Array:
    """All products, (queries, passages); torch makes float32 of float16 seven times as fast as numpy does."""
    asked, stored = torch.from_numpy(queries), torch.from_numpy(vectors)
    return torch.cat([asked @ block.float().T for block in stored.split(BLOCK)], dim=1).numpy()


def fuse(rankings: Sequence[Ranking], count: int) -> Ranking:
    """Reciprocal rank fusion: a passage's score is the sum of 1 / (60 + rank) over the rankings that have it."""
    scores: dict[int, float] = {}
    for numbers, _ in rankings:
        for rank, number in enumerate(numbers.tolist(), 1):
            scores[number] = scores.get(number, 0.0) + 1 / (FUSED + rank)
    return take_best(np.fromiter(scores, np.int64), np.fromiter(scores.values(), np.float64), count)
