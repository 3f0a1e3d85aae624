"""How certain a score is, and whether one model's is really better than another's on the same examples.

An interval is the percentile bootstrap: the score of many samples drawn from the examples with replacement, and between
which values the middle of them lies (Efron 1979; Efron & Tibshirani 1993, chapter 13); Wilson's (1927) where all
examples are right or all wrong. Of gaps (the calibration error) samples lie above the value, as chance opens gaps where
there are none: their interval begins at the least gaps of which chance makes those that were seen. A comparison is the
paired approximate randomisation test: how often a difference as large comes out when, for each example, chance decides
which model's answer is whose (Noreen 1989; recommended for NLP by Dror et al. 2018); its interval is the paired
bootstrap's.

In: `Measure`s. Out: numbers, the same for the same seed.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from statistics import NormalDist

import numpy as np

from bertsmith.errors import BertsmithError
from bertsmith.tasks.measures import Array, Measure

_ROOM = 2**20  # numbers drawn at a time: 8 MiB


@dataclass(frozen=True)
class Comparison:
    difference: float  # of the first's value less the second's
    low: float
    high: float
    p: float  # two-sided: the chance of so large a difference between equals


def interval(measure: Measure, *, level: float = 0.95, samples: int = 2000, seed: int = 0) -> tuple[float, float]:
    """Between which values `measure` lies with this confidence; samples where it is undefined (nan) are left out.

    Where examples are there, but none of them counts, it may be anything.
    """
    if measure.among == 0 and measure.is_share:
        return 0.0, 1.0
    _check(measure)
    if measure.spread is not None:
        return _bound_gaps(measure, measure.spread, level, samples, seed)
    kinds, kind_of = _group(measure.counts)
    values = [measure.value(weights @ kinds) for weights in _draw(kind_of, len(kinds), samples, seed)]
    low, high = _middle(np.concatenate(values), level)
    if low == high and low in (0, 1) and measure.is_share:
        return _widen(low, len(measure.counts) if measure.among is None else measure.among, level)
    return low, high


def _widen(value: float, examples: int, level: float) -> tuple[float, float]:
    """Where all examples are right, or all wrong, samples of them show no spread: Wilson's interval does."""
    far = NormalDist().inv_cdf((1 + level) / 2) ** 2
    slack = far / (examples + far)
    return (1 - slack, 1.0) if value else (0.0, slack)


def _bound_gaps(measure: Measure, spread: Array, level: float, samples: int, seed: int) -> tuple[float, float]:
    """Test inversion (Carpenter 1999) below: gaps so small that chance, added to them, seldom makes the ones seen.

    Above, the value and as much as chance adds to it beyond what it mostly adds.
    """
    sums, value, tail = measure.counts.sum(axis=0, dtype=np.float64), measure.point, (1 - level) / 2
    if np.isnan(value):
        return value, value
    random, varies = np.random.default_rng([seed, 0]), spread.any(axis=0)
    chance = random.multivariate_normal(np.zeros(len(sums)), spread, size=samples, check_valid="ignore")

    def add_chance(part: float) -> Array:
        return measure.value(np.where(varies, part * sums, sums) + chance)

    least, most = 0.0, 1.0
    for _ in range(40):
        part = (least + most) / 2
        least, most = (part, most) if (add_chance(part) >= value).mean() < tail else (least, part)
    mostly, far = np.quantile(add_chance(1.0), [0.5, 1 - tail])
    return least * value, min(value + float(far - mostly), 1.0)


def compare(a: Measure, b: Measure, *, samples: int = 10000, level: float = 0.95, seed: int = 0) -> Comparison:
    """Two models' measures of one kind on the same examples in the same order, the counts meaning the same in both."""
    _check(a)
    if a.labels != b.labels:
        both = (*a.labels, *(label for label in b.labels if label not in a.labels))
        a, b = _lay_out(a, both), _lay_out(b, both)
    if a.counts.shape != b.counts.shape:
        raise BertsmithError(
            f"The two scores cannot be compared: one is of {len(a.counts):,} examples with {a.counts.shape[1]} counts "
            f"each, the other of {len(b.counts):,} with {b.counts.shape[1]}; score both on one file with one metric."
        )
    width = a.counts.shape[1]
    kinds, kind_of = _group(np.hstack([a.counts, b.counts]))
    sums = (weights @ kinds for weights in _draw(kind_of, len(kinds), samples, seed))
    differences = [a.value(both[:, :width]) - b.value(both[:, width:]) for both in sums]
    low, high = _middle(np.concatenate(differences), level)
    return Comparison(a.point - b.point, low, high, _swap(a, b, kinds, np.bincount(kind_of), samples, seed))


def _lay_out(measure: Measure, labels: tuple[str, ...]) -> Measure:
    """The same with the counts of each of these labels in its place: models number their labels each in its own way."""
    places = [labels.index(label) for label in measure.labels]
    counts = np.zeros((len(measure.counts), 3, len(labels)), dtype=measure.counts.dtype)
    counts[:, :, places] = measure.counts.reshape(len(counts), 3, len(places))
    return replace(measure, counts=counts.reshape(len(counts), -1), labels=labels)


def _swap(a: Measure, b: Measure, kinds: Array, sizes: Array, samples: int, seed: int) -> float:
    """The p of the randomisation test. Of `sizes[j]` like examples a coin each decides how many change sides."""
    width = kinds.shape[1] // 2
    gain = kinds[:, width:] - kinds[:, :width]
    differ = gain.any(axis=1)
    order = np.argsort(sizes[differ] > 1, kind="stable")  # those that are alone first
    gain, sizes = gain[differ][order], sizes[differ][order]
    alone = int((sizes == 1).sum())
    sum_a, sum_b = a.counts.sum(axis=0, dtype=np.float64), b.counts.sum(axis=0, dtype=np.float64)
    observed = abs(float(a.value(sum_a) - b.value(sum_b)))
    random = np.random.default_rng([seed, 1])
    as_large = 0
    for count in _blocks(samples, max(len(sizes), 1)):
        coins = random.integers(2, size=(count, alone), dtype=np.uint8).astype(np.float64)  # a binomial costs far more
        moved = coins @ gain[:alone]
        moved += random.binomial(sizes[alone:], 0.5, size=(count, len(sizes) - alone)) @ gain[alone:]
        found = np.abs(a.value(sum_a + moved) - b.value(sum_b - moved))
        as_large += int((found >= observed - 1e-12).sum())
    # The observed arrangement is one of the possible ones: without it p could be 0 (Noreen 1989).
    return (as_large + 1) / (samples + 1)


def _group(counts: Array) -> tuple[Array, Array]:
    """The kinds of rows there are, and each row's kind: a million right answers are one row that counts a million."""
    rows = np.ascontiguousarray(counts)
    if not rows.shape[1]:  # of tags without an entity, gold or found, there is nothing to count: all are alike
        return rows[:1].astype(np.float64), np.zeros(len(rows), dtype=np.int64)
    whole = rows.view(np.dtype((np.void, rows.itemsize * rows.shape[1])))[:, 0]
    _, firsts, kind_of = np.unique(whole, return_index=True, return_inverse=True)
    return rows[firsts].astype(np.float64), kind_of


def _draw(kind_of: Array, kinds: int, samples: int, seed: int) -> Iterator[Array]:
    """How often each kind of example is in each sample, (some samples, kinds) at a time."""
    random, n = np.random.default_rng([seed, 0]), len(kind_of)
    few = kinds * 8 < n  # drawing a kind's number at once costs as much as drawing some eight examples
    for count in _blocks(samples, kinds if few else n):
        if few:
            yield random.multinomial(n, np.bincount(kind_of) / n, size=count).astype(np.float64)
            continue
        drawn = kind_of[random.integers(n, size=(count, n))] + kinds * np.arange(count)[:, None]
        yield np.bincount(drawn.ravel(), minlength=count * kinds).reshape(count, kinds).astype(np.float64)


def _blocks(samples: int, width: int) -> Iterator[int]:
    most = max(1, _ROOM // width)
    yield from (min(most, samples - start) for start in range(0, samples, most))


def _middle(values: Array, level: float) -> tuple[float, float]:
    known = values[~np.isnan(values)]
    if not len(known):
        return float("nan"), float("nan")
    low, high = np.quantile(known, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def _check(measure: Measure) -> None:
    if not len(measure.counts):
        raise BertsmithError("There are no examples to score; give a file that has some.")
