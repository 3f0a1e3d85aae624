"""A score that knows how certain it is: what each example adds, and how the sums become a value.

Every metric here is a function of sums over examples (right ones and all of them; true positives, predicted, gold), so
resampling examples for an interval or a paired test is one matrix product, whatever the metric. A share of nothing is 0
here, as in scikit-learn with zero_division=0.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
LOWER_IS_BETTER = frozenset({"ece", "mse", "mae"})


@dataclass(frozen=True)
class Measure:
    counts: Array  # (examples, k)
    value: Callable[[Array], Array]  # sums (…, k) -> values (…)
    among: int | None = None  # how many of the examples count in it, where that is not all
    labels: tuple[str, ...] = ()  # those whose thirds the counts are, so that two models' can be laid side by side
    is_share: bool = False  # from 0, where all examples are wrong, to 1, where all are right
    spread: Array | None = None  # (k, k) covariances of the sums, where the value is of gaps that chance alone widens

    @property
    def point(self) -> float:
        return float(self.value(self.counts.sum(axis=0)))


def share(part: Any, whole: Any) -> Array:
    """part / whole, and 0 where the whole is 0."""
    part, whole = np.asarray(part, dtype=np.float64), np.asarray(whole, dtype=np.float64)
    return np.divide(part, whole, out=np.zeros(np.broadcast_shapes(part.shape, whole.shape)), where=whole != 0)


def mean(values: Array) -> Measure:
    """The mean of one value an example: accuracy, exact match."""
    values = np.asarray(values, dtype=np.float64)
    is_share = bool(np.isin(values, (0, 1)).all())
    return ratio(np.stack([values, np.ones_like(values)], axis=1), is_share=is_share)


def ratio(counts: Array, *, is_share: bool = True) -> Measure:
    """The first of two counts over the second."""
    return Measure(counts, lambda sums: share(sums[..., 0], sums[..., 1]), is_share=is_share)


def count_labels(gold: Array, found: Array) -> Array:
    """Which labels examples have and which they were given, (examples, labels) of 0 and 1 -> (examples, 3 · labels).

    The thirds are: rightly given, given, gold. All of the measures below are functions of their sums.
    """
    gold, found = np.asarray(gold, dtype=bool), np.asarray(found, dtype=bool)
    return np.concatenate([gold & found, found, gold], axis=1).astype(np.uint8)


def thirds(sums: Array) -> tuple[Array, Array, Array]:
    """(…, 3 · labels) -> rightly given, given, gold, each (…, labels)."""
    right, found, gold = np.split(np.asarray(sums, dtype=np.float64), 3, axis=-1)
    return right, found, gold


def tabulate(labels: Sequence[str], sums: Array) -> list[dict[str, Any]]:
    """A row a label: `label, precision, recall, f1`, `support` (how often it is gold) and `given` (how often found)."""
    right, found, gold = thirds(sums)
    columns = [share(right, found), share(right, gold), share(2 * right, found + gold)]
    return [
        {"label": label, "precision": float(p), "recall": float(r), "f1": float(f), "support": int(g), "given": int(n)}
        for label, p, r, f, g, n in zip(labels, *columns, gold, found, strict=True)
    ]


def micro_f1(sums: Array) -> Array:
    right, found, gold = (each.sum(axis=-1) for each in thirds(sums))
    return share(2 * right, found + gold)


def macro_f1_of_all(counts: Array) -> Callable[[Array], Array]:
    """The mean over all labels; one that is gold nowhere is 0, as in scikit-learn's for several labels.

    A label whose gold a sample of the examples has missed is left out of that sample's mean: as a 0 it would draw the
    interval of rare labels below the value itself.
    """
    never = int((thirds(counts.sum(axis=0))[2] == 0).sum())

    def value(sums: Array) -> Array:
        right, found, gold = thirds(sums)
        return share(share(2 * right, found + gold).sum(axis=-1), (gold > 0).sum(axis=-1) + never)

    return value


def macro_f1_present(sums: Array) -> Array:
    """The mean over the labels that are given or gold somewhere, as in scikit-learn's for one label an example."""
    right, found, gold = thirds(sums)
    present = (found + gold) > 0
    return share(share(2 * right, found + gold).sum(axis=-1), present.sum(axis=-1))


def weighted_f1(sums: Array) -> Array:
    """The mean over the labels, each counted as often as it is gold."""
    right, found, gold = thirds(sums)
    return share((gold * share(2 * right, found + gold)).sum(axis=-1), gold.sum(axis=-1))


def of_label(counts: Array, label: int) -> Array:
    """The three counts of one label, by its number; `micro_f1` of them is its F1."""
    return counts[:, label :: counts.shape[1] // 3]


def matthews(sums: Array) -> Array:
    """Matthews' correlation for one label an example, of any number of classes (Gorodkin 2004); 0 if undefined."""
    right, found, gold = thirds(sums)
    total, agreed = gold.sum(axis=-1), right.sum(axis=-1)
    covariance = agreed * total - (found * gold).sum(axis=-1)
    # The root of each factor, not of the product: counts of some 100,000 to the fourth power lose whole numbers.
    spread = np.sqrt(total**2 - (found**2).sum(axis=-1)) * np.sqrt(total**2 - (gold**2).sum(axis=-1))
    return share(covariance, spread)
