"""Every measure of labels against scikit-learn, on labels by chance in which classes may be absent."""

import warnings

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from sklearn import metrics

from bertsmith.tasks import measures
from bertsmith.tasks.measures import Measure

LABELS = 5
CLASSES = np.eye(LABELS, dtype=bool)
one_each = st.lists(st.tuples(st.integers(0, LABELS - 1), st.integers(0, LABELS - 1)), min_size=1, max_size=40)
sets = st.lists(st.booleans(), min_size=LABELS, max_size=LABELS)
several_each = st.lists(st.tuples(sets, sets), min_size=1, max_size=30)
NOTHING = [False] * LABELS


def close(value: float) -> object:
    return pytest.approx(value, abs=1e-12)


@given(one_each)
@example([(0, 0), (0, 0)])
@example([(0, 1), (1, 0)])
def test_one_label_each(pairs):
    gold, found = map(list, zip(*pairs, strict=True))
    counts = measures.count_labels(CLASSES[gold], CLASSES[found])
    averages = {"micro": measures.micro_f1, "macro": measures.macro_f1_present, "weighted": measures.weighted_f1}
    for average, value in averages.items():
        expected = metrics.f1_score(gold, found, average=average, zero_division=0)
        assert Measure(counts, value).point == close(expected), average
    with warnings.catch_warnings():  # scikit-learn's, when there is one class only
        warnings.simplefilter("ignore")
        expected = metrics.matthews_corrcoef(gold, found)
    assert Measure(counts, measures.matthews).point == close(expected)
    own = metrics.f1_score(gold, found, average=None, labels=range(LABELS), zero_division=0)
    counts_of = [measures.of_label(counts, label) for label in range(LABELS)]
    assert [Measure(some, measures.micro_f1).point for some in counts_of] == close(own)
    right = measures.mean(np.equal(gold, found))
    assert right.point == close(metrics.accuracy_score(gold, found)) == close(Measure(counts, measures.micro_f1).point)


@given(several_each)
@example([(NOTHING, NOTHING)])
@example([(NOTHING, [True] * LABELS), ([True] * LABELS, NOTHING)])
def test_several_labels_each(pairs):
    gold, found = (np.array(side) for side in zip(*pairs, strict=True))
    counts = measures.count_labels(gold, found)
    macro = measures.macro_f1_of_all(counts)
    averages = {"micro": measures.micro_f1, "macro": macro, "weighted": measures.weighted_f1}
    for average, value in averages.items():
        expected = metrics.f1_score(gold, found, average=average, zero_division=0)
        assert Measure(counts, value).point == close(expected), average
    assert measures.mean((gold == found).all(axis=1)).point == close(metrics.accuracy_score(gold, found))


@given(one_each, st.integers(2, 6))
def test_many_sums_at_once(pairs, times):
    """What resampling relies on: a value for each row of sums, the same as one by one."""
    gold, found = map(list, zip(*pairs, strict=True))
    counts = measures.count_labels(CLASSES[gold], CLASSES[found])
    sums = np.arange(times)[:, None] * counts.sum(axis=0, dtype=float)
    macros = [measures.macro_f1_of_all(counts), measures.macro_f1_present]
    for value in [measures.micro_f1, *macros, measures.weighted_f1, measures.matthews]:
        together = value(sums)
        assert together.shape == (times,)
        assert together.tolist() == [float(value(row)) for row in sums]
        assert np.isfinite(together).all()


def test_large_counts_stay_exact():
    """Matthews of a million examples, where the fourth power of a count leaves the whole numbers of a float."""
    random = np.random.default_rng(0)
    gold = random.integers(2, size=1_000_000)
    found = np.where(random.random(1_000_000) < 0.9, gold, 1 - gold)
    counts = measures.count_labels(CLASSES[gold, :2], CLASSES[found, :2])
    assert Measure(counts, measures.matthews).point == close(metrics.matthews_corrcoef(gold, found))


def test_a_share_of_nothing():
    assert measures.share([1, 2, 0], [2, 0, 0]).tolist() == [0.5, 0, 0]
    assert float(measures.share(0, 0)) == 0
