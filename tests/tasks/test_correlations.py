"""Correlations and errors against scipy and scikit-learn, their intervals against plain resampling."""

import numpy as np
import pytest
import scipy.stats
import sklearn.metrics
from hypothesis import assume, given
from hypothesis import strategies as st

from bertsmith.evaluation.intervals import interval
from bertsmith.tasks import correlations
from bertsmith.tasks.correlations import absolute_error, pearson, rank, spearman, squared_error

NUMBERS = st.floats(-1e6, 1e6).map(lambda number: round(number, 3))
FEW = st.integers(-3, 3).map(float)  # many ties
PAIRS = st.lists(st.tuples(NUMBERS, NUMBERS) | st.tuples(FEW, FEW), min_size=3, max_size=40)


@given(PAIRS)
def test_pearson_and_spearman_are_those_of_scipy(pairs):
    x, y = np.array(pairs).T
    assume(len(set(x)) > 1 and len(set(y)) > 1)
    assert spearman(x, y).point == pytest.approx(scipy.stats.spearmanr(x, y).statistic, abs=1e-9)
    assert pearson(x, y).point == pytest.approx(scipy.stats.pearsonr(x, y).statistic, abs=1e-7)


@given(PAIRS)
def test_ranks_and_errors_are_theirs(pairs):
    x, y = np.array(pairs).T
    assert rank(x).tolist() == scipy.stats.rankdata(x).tolist()
    assert squared_error(x, y).point == pytest.approx(sklearn.metrics.mean_squared_error(y, x))
    assert absolute_error(x, y).point == pytest.approx(sklearn.metrics.mean_absolute_error(y, x))


def test_far_from_zero_no_digit_is_lost():
    chance = np.random.default_rng(0)
    x = chance.normal(size=200)
    y = x + chance.normal(size=200)
    wanted = scipy.stats.pearsonr(x, y).statistic
    assert pearson(1e9 + x, y - 1e7).point == pytest.approx(wanted, abs=1e-6)
    assert pearson(1e300 * x, 1e-300 * y).point == pytest.approx(wanted, abs=1e-9)


@pytest.mark.parametrize("measure", [pearson, spearman])
def test_what_is_undefined_is_zero(measure):
    for x, y in (([0.1] * 7, range(7)), (range(7), [0.3] * 7), ([1.0], [2.0])):
        found = measure(np.array(x, float), np.array(y, float))
        assert found.point == 0 and np.isfinite(interval(found, samples=50)).all()


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (pearson, lambda x, y: scipy.stats.pearsonr(x, y).statistic),
        (spearman, lambda x, y: scipy.stats.spearmanr(x, y).statistic),
        (absolute_error, lambda x, y: np.abs(x - y).mean()),
    ],
)
def test_intervals_are_those_of_plain_resampling(ours, theirs):
    """Spearman's ranks are taken once, which moves the ends by little."""
    chance = np.random.default_rng(3)
    x = chance.normal(size=300)
    y = np.round(x + chance.normal(size=300), 1)
    low, high = interval(ours(x, y), samples=1500)
    drawn = [theirs(x[some], y[some]) for some in chance.integers(300, size=(1500, 300))]
    assert [low, high] == pytest.approx(np.quantile(drawn, [0.025, 0.975]).tolist(), abs=0.015)


def test_a_sum_is_all_that_a_measure_keeps():
    found = correlations.pearson(np.arange(5.0), np.array([1.0, 3, 2, 5, 4]))
    assert found.counts.shape == (5, 6) and found.value(2 * found.counts.sum(axis=0)) == pytest.approx(found.point)
