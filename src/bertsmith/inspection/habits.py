"""What a head of attention does, in numbers: how spread it is, how far it looks, and at what (Clark et al. 2019).

In: weights (layers, heads, pieces, pieces) and what is known of the pieces. Out: numbers for each head, and a name
where one habit takes more than half of its weight.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bertsmith.inspection.words import Array

Mask = NDArray[np.bool_]
KINDS = ("itself", "previous", "next", "first token", "separator", "same word")
HABITUAL = 0.5  # the share from which a head is called by what it looks at
BROAD = 0.85  # of the largest entropy that the head could have: it looks at everything about alike


@dataclass(frozen=True)
class Habits:
    """Of each head, (layers, heads): means over the queries that have a choice."""

    entropy: Array  # in bits
    distance: Array  # in pieces
    shares: dict[str, Array]  # by kind; NaN where no query of the text has such a key
    names: tuple[tuple[str, ...], ...]
    named: Array  # the share that goes with the name


def study(weights: Array, visible: Mask, words: Sequence[int | None], separators: Sequence[int]) -> Habits:
    """`visible` (layers, pieces, pieces) says what each query may look at, `separators` where those tokens stand."""
    bits = _spread(weights)  # (layers, heads, pieces)
    choice = visible.sum(axis=-1) > 1  # a query with one key has no choice
    choice |= ~choice.any(axis=-1, keepdims=True)
    entropy = _mean(bits, choice)
    distance = _mean(_distances(weights), choice)
    shares = {kind: _share(weights, wanted, visible, choice) for kind, wanted in _kinds(words, separators).items()}
    most = _mean(np.log2(np.maximum(visible.sum(axis=-1), 1)).astype(np.float32)[:, None], choice)
    names, named = _name(shares, entropy, most)
    return Habits(entropy, distance, shares, names, named)


def _spread(weights: Array) -> Array:
    found: Array = -(weights * np.log2(np.where(weights > 0, weights, 1))).sum(axis=-1)
    return np.maximum(found, 0)


def _distances(weights: Array) -> Array:
    place = np.arange(weights.shape[-1], dtype=np.float32)
    found: Array = (weights * np.abs(place[:, None] - place)).sum(axis=-1)
    return found


def _mean(values: Array, which: Mask) -> Array:
    """The mean of (layers, heads, pieces) over the pieces that count in a layer, (layers, pieces)."""
    counted = which[:, None].astype(np.float32)
    found: Array = (values * counted).sum(axis=-1) / np.maximum(counted.sum(axis=-1), 1)
    return found


def _kinds(words: Sequence[int | None], separators: Sequence[int]) -> dict[str, Mask]:
    """Of each kind which keys a query means by it, (pieces, pieces)."""
    count = len(words)
    own = np.eye(count, dtype=bool)
    first, ends = np.zeros_like(own), np.zeros_like(own)
    first[:, 0] = True
    ends[:, list(separators)] = True
    number = np.array([-1 if word is None else word for word in words])
    same = (number[:, None] == number) & (number >= 0)
    others = ~own
    masks = (own, np.eye(count, k=-1, dtype=bool), np.eye(count, k=1, dtype=bool), first & others, ends, same & others)
    return dict(zip(KINDS, masks, strict=True))


def _share(weights: Array, wanted: Mask, visible: Mask, choice: Mask) -> Array:
    """How much of a query's weight goes to such keys, over the queries that have one."""
    reachable = wanted & visible  # (layers, pieces, pieces)
    able = reachable.any(axis=-1) & choice
    found = _mean((weights * reachable[:, None]).sum(axis=-1), able)
    found[~able.any(axis=-1)] = np.nan
    return found


def _name(shares: dict[str, Array], entropy: Array, most: Array) -> tuple[tuple[tuple[str, ...], ...], Array]:
    stacked = np.nan_to_num(np.stack(list(shares.values())), nan=-1.0)  # (kinds, layers, heads)
    # Few queries have another piece of their word: this name is for heads that have no other.
    stacked[-1][stacked[:-1].max(axis=0) >= HABITUAL] = -1
    best, top = stacked.argmax(axis=0), stacked.max(axis=0)
    names = []
    named = np.where(top >= HABITUAL, top, 0).astype(np.float32)
    for layer in range(best.shape[0]):
        row = []
        for head in range(best.shape[1]):
            if top[layer, head] >= HABITUAL:
                row.append(KINDS[best[layer, head]])
            elif entropy[layer, head] >= BROAD * most[layer, 0]:
                row.append("broad")
            else:
                row.append("mixed")
        names.append(tuple(row))
    return tuple(names), named
