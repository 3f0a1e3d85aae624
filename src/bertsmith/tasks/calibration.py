"""Whether a probability means what it says: the calibration error, its bins, the temperature that mends it, thresholds.

In: scores before the softmax or sigmoid, or the probabilities after it, with the gold. Out: plain numbers to save.
"""

from typing import Any

import numpy as np

from bertsmith.errors import BertsmithError
from bertsmith.tasks.measures import Array, Measure, share

BINS = 10
_COLDEST, _HOTTEST = 0.05, 20.0


def find_bins(confidences: Array) -> Array:
    """The bin of each probability, counted from 0: ten of equal width, the upper bound inside (Guo et al. 2017)."""
    return np.digitize(confidences, np.linspace(0, 1, BINS + 1)[1:-1], right=True)


def calibration_error(confidences: Array, right: Array) -> Measure:
    """ECE: how far confidence and accuracy are apart, the mean over bins weighted by their examples.

    A bin's weight times its gap is |sum of (confidence - right)| / examples, so one column a bin suffices.
    """
    gaps = np.zeros((len(confidences), BINS + 1))
    gaps[np.arange(len(gaps)), find_bins(confidences)] = np.asarray(confidences) - np.asarray(right)
    gaps[:, BINS] = 1
    spread = _spread(gaps, np.asarray(confidences, dtype=np.float64))
    return Measure(gaps, lambda sums: share(np.abs(sums[..., :BINS]).sum(axis=-1), sums[..., BINS]), spread=spread)


def _spread(gaps: Array, confidences: Array) -> Array:
    """How the sums of the gaps vary from one set of examples to another.

    Two right and two wrong examples are imagined in each bin that has some (Agresti & Coull 1998): a few that all are
    right would seem to be so always.
    """
    bins, n, more = find_bins(confidences), max(len(gaps), 1), 2
    sizes, sure = np.bincount(bins, minlength=BINS), np.bincount(bins, confidences, minlength=BINS)
    squares = np.bincount(bins, confidences**2 + (1 - confidences) ** 2, minlength=BINS)
    weights = share(sizes, n * (sizes + 2 * more))
    means = weights * (gaps[:, :BINS].sum(axis=0) + more * share(2 * sure - sizes, sizes))
    powers = weights * ((gaps[:, :BINS] ** 2).sum(axis=0) + more * share(squares, sizes))
    found = np.zeros((BINS + 1, BINS + 1))
    found[:BINS, :BINS] = n * (np.diag(powers) - np.outer(means, means))
    return found


def reliability(confidences: Array, right: Array) -> list[dict[str, Any]]:
    """The bins of a reliability diagram: `low, high, count` and the mean `confidence` and `accuracy` of those in it."""
    bins, edges = find_bins(confidences), np.linspace(0, 1, BINS + 1)
    counts, sure, hits = (np.bincount(bins, w, minlength=BINS) for w in (None, confidences, np.asarray(right, float)))
    means = zip(edges[:-1], edges[1:], counts, share(sure, counts), share(hits, counts), strict=True)
    names = ("low", "high", "count", "confidence", "accuracy")
    return [dict(zip(names, (float(a), float(b), int(n), float(c), float(r)), strict=True)) for a, b, n, c, r in means]


def softmax(scores: Array) -> Array:
    powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=-1, keepdims=True))


def sigmoid(scores: Array) -> Array:
    return np.asarray(0.5 * (1 + np.tanh(0.5 * scores)))  # no overflow at either end


def fit_temperature(scores: Array, gold: Array, several: bool) -> float:
    """The T between 1/20 and 20 that makes scores / T likeliest: (n, labels) and the gold as 0 and 1.

    The cost is convex in 1 / T and its slope is what is expected of the scores less what was seen, so halving the
    bracket on the slope's sign finds the one minimum.
    """
    scores, gold = np.asarray(scores, dtype=np.float64), np.asarray(gold, dtype=np.float64)
    chances = sigmoid if several else softmax

    def slope(temperature: float) -> float:
        return float((scores * (chances(scores / temperature) - gold)).sum())

    if slope(1.0) == 0:  # nothing to learn: no examples, or scores that say nothing
        return 1.0
    cold, hot = np.log(_COLDEST), np.log(_HOTTEST)
    for _ in range(48):
        middle = (cold + hot) / 2
        # A positive slope in 1 / T: too sure, so hotter.
        cold, hot = (middle, hot) if slope(np.exp(middle)) > 0 else (cold, middle)
    return float(np.exp((cold + hot) / 2))


def best_threshold(chances: Array, gold: Array) -> float | None:
    """The bound on probabilities (any shape) that gives the best F1 against gold 0 and 1; None if nothing is gold.

    It lies in the middle between the last probability that is taken and the first that is not.
    """
    chances, gold = np.ravel(chances).astype(np.float64), np.ravel(gold).astype(bool)
    if not gold.any():
        return None
    order = np.argsort(-chances, kind="stable")
    falling = chances[order]
    f1 = 2 * np.cumsum(gold[order]) / (np.arange(1, len(order) + 1) + gold.sum())
    f1[:-1][falling[:-1] == falling[1:]] = -1  # equal probabilities cannot be parted
    last = int(np.argmax(f1))
    below = falling[last + 1] if last + 1 < len(falling) else 0.0
    return float((falling[last] + below) / 2)


def find_thresholds(chances: Array, gold: Array, each: bool) -> list[float]:
    """A threshold a label: the one that is best for all together (micro F1), or each label's own best.

    A label that is gold nowhere keeps the common one. Own thresholds of rare labels follow chance more than the label.
    """
    common = best_threshold(chances, gold)
    common = 0.5 if common is None else common
    own = [best_threshold(chances[:, i], gold[:, i]) if each else None for i in range(np.shape(gold)[1])]
    return [common if threshold is None else threshold for threshold in own]


def fixed_threshold(chosen: Any, several: bool) -> float | None:
    """The number that a user chose for every label; None for "one", "each" or no choice: to be found."""
    if chosen is not None and not several:
        raise BertsmithError("thresholds are for texts with several labels, but these have one each; leave it out.")
    if chosen is None or chosen in ("one", "each"):
        return None
    if isinstance(chosen, float | int) and 0 <= chosen <= 1:
        return float(chosen)
    raise BertsmithError(f"thresholds={chosen!r} is not a choice; use 'one', 'each' or a number from 0 to 1.")
