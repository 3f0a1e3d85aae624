"""How well predicted numbers follow the gold ones: Pearson's and Spearman's correlation, squared and absolute error.

In: predicted and gold numbers, one each an example. Out: `Measure`s, so that they have intervals like every score here.
"""

import numpy as np

from bertsmith.tasks.measures import Array, Measure, mean, share


def pearson(found: Array, gold: Array) -> Measure:
    """A function of sums: n, x, y, xx, yy, xy. Where one side is constant it is undefined, and 0 here."""
    x, y = _standardise(found), _standardise(gold)
    return Measure(np.stack([np.ones_like(x), x, y, x * x, y * y, x * y], axis=1), _correlate)


def spearman(found: Array, gold: Array) -> Measure:
    """Pearson's of the ranks. They are taken once, over the whole set: a sample has the ranks of the whole in it.

    Ranking anew in each sample would cost a sort each; the intervals agree to about the third digit from some hundred
    examples on.
    """
    return pearson(rank(found), rank(gold))


def squared_error(found: Array, gold: Array) -> Measure:
    return mean((_numbers(found) - _numbers(gold)) ** 2)


def absolute_error(found: Array, gold: Array) -> Measure:
    return mean(np.abs(_numbers(found) - _numbers(gold)))


def rank(values: Array) -> Array:
    """From 1 for the least; equal values share the mean of their ranks, as in scipy's rankdata."""
    _, kind, counts = np.unique(_numbers(values), return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return np.asarray((last - (counts - 1) / 2)[kind], dtype=np.float64)


def _numbers(values: Array) -> Array:
    return np.asarray(values, dtype=np.float64)


def _standardise(values: Array) -> Array:
    """Correlation does not see shift and scale, but sums of squares of large numbers lose their digits."""
    values = _numbers(values)
    if not len(values) or values.min() == values.max():  # the mean of equal numbers may differ from them by rounding
        return np.zeros_like(values)
    values = values / np.abs(values).max()
    centred = values - values.mean()
    spread = np.abs(centred).max()
    return np.asarray(centred / spread) if spread > 0 else np.zeros_like(values)


def _correlate(sums: Array) -> Array:
    n, x, y, xx, yy, xy = np.moveaxis(np.asarray(sums, dtype=np.float64), -1, 0)
    # A sample of one example again and again has a variance of 0, but for rounding.
    spreads = [np.where(n * aa - a * a > 1e-12 * n * aa, n * aa - a * a, 0.0) for a, aa in ((x, xx), (y, yy))]
    return np.clip(share(n * xy - x * y, np.sqrt(spreads[0]) * np.sqrt(spreads[1])), -1.0, 1.0)
