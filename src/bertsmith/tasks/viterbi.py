"""The best sequence of tags that is well-formed: a search over whole sentences, exact.

In: a score for each word and label. Out: a label for each word, so that their sum is the largest of all sequences that
the scheme allows.
"""

from collections.abc import Sequence

import numpy as np

from bertsmith.data.schemes import allowed
from bertsmith.tasks.measures import Array


class Grammar:
    """Which label may follow which, begin a sentence and end one; costs are 0 or minus infinity."""

    def __init__(self, labels: Sequence[str], scheme: str) -> None:
        def cost(right: Sequence[bool]) -> Array:
            return np.where(np.asarray(right, dtype=bool), 0.0, -np.inf)

        self.follows = np.stack([cost([allowed(a, b, scheme) for b in labels]) for a in labels])  # (before, after)
        self.begins = cost([allowed(None, label, scheme) for label in labels])
        self.ends = cost([allowed(label, None, scheme) for label in labels])

    def cost(self, path: Array) -> float:
        """0 if a path is well-formed, else minus infinity."""
        return float(self.begins[path[0]] + self.follows[path[:-1], path[1:]].sum() + self.ends[path[-1]])


def best_path(scores: Array, grammar: Grammar) -> Array:
    """scores (words, labels), logarithms of probabilities -> (words,) numbers of labels.

    Where the labels allow no sequence at all (a set with holes), the best label of each word.
    """
    alone = scores.argmax(axis=1)
    # The best of all sequences is also the best of the allowed ones, if it is among them: mostly it is.
    if len(scores) == 0 or grammar.cost(alone) == 0:
        return np.asarray(alone)
    total = scores[0] + grammar.begins
    came_from = np.zeros(scores.shape, dtype=np.int64)
    for word in range(1, len(scores)):
        ways = total[:, None] + grammar.follows  # (before, after)
        came_from[word] = ways.argmax(axis=0)
        total = ways.max(axis=0) + scores[word]
    total = total + grammar.ends
    if not np.isfinite(total.max()):
        return np.asarray(alone)
    path = np.zeros(len(scores), dtype=np.int64)
    path[-1] = total.argmax()
    for word in range(len(scores) - 1, 0, -1):
        path[word - 1] = came_from[word, path[word]]
    return path
