"""Intervals against explicit resampling and the binomial truth, comparisons against trying every exchange."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from sklearn.metrics import f1_score

from bertsmith.errors import BertsmithError
from bertsmith.evaluation import intervals
from bertsmith.evaluation.intervals import compare, interval
from bertsmith.tasks import measures
from bertsmith.tasks.calibration import calibration_error
from bertsmith.tasks.measures import Measure

CLASSES = np.eye(3, dtype=bool)


def draw(n: int, seed: int, share: float = 0.7) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    gold = random.integers(3, size=n)
    return gold, np.where(random.random(n) < share, gold, random.integers(3, size=n))


def macro(gold: np.ndarray, found: np.ndarray) -> Measure:
    return Measure(measures.count_labels(CLASSES[gold], CLASSES[found]), measures.macro_f1_present)


def test_explicit_resampling():
    """So few examples of so many kinds that examples are drawn one by one: the same draws, scored by scikit-learn."""
    gold, found = draw(40, 0)
    random = np.random.default_rng([5, 0])
    drawn = [random.integers(40, size=40) for _ in range(300)]
    slow = [f1_score(gold[i], found[i], average="macro", zero_division=0) for i in drawn]
    expected = np.quantile(slow, [0.05, 0.95])
    assert interval(macro(gold, found), level=0.9, samples=300, seed=5) == pytest.approx(expected.tolist(), abs=1e-12)


def test_explicit_resampling_of_kinds():
    """So many examples of few kinds that how often each kind is drawn comes at once: the samples written out."""
    gold, found = draw(400, 1)
    counts = measures.count_labels(CLASSES[gold], CLASSES[found])
    kinds, sizes = np.unique(counts, axis=0, return_counts=True)
    weights = np.random.default_rng([2, 0]).multinomial(400, sizes / 400, size=200)
    slow = [float(measures.macro_f1_present(np.repeat(kinds, some, axis=0).sum(axis=0))) for some in weights]
    expected = np.quantile(slow, [0.025, 0.975])
    assert interval(macro(gold, found), samples=200, seed=2) == pytest.approx(expected.tolist(), abs=1e-12)


@pytest.mark.parametrize("n", [60, 2000])
def test_blocks_do_not_show(monkeypatch, n):
    """Memory is bounded by drawing in blocks; their size changes nothing."""
    ours, theirs = macro(*draw(n, 2)), macro(*draw(n, 2, 0.6))
    whole = interval(ours, samples=100), compare(ours, theirs, samples=100)
    monkeypatch.setattr(intervals, "_ROOM", 130)
    assert (interval(ours, samples=100), compare(ours, theirs, samples=100).low) == (whole[0], whole[1].low)


def test_coverage_of_accuracy():
    """Of 300 experiments with a known accuracy about 95 in 100 intervals hold it; their width is the binomial's."""
    random, truth, n = np.random.default_rng(0), 0.8, 200
    held, widths = 0, []
    for seed in range(300):
        low, high = interval(measures.mean(random.random(n) < truth), samples=500, seed=seed)
        held += low <= truth <= high
        widths.append(high - low)
    assert 0.90 <= held / 300 <= 0.98
    exact = stats.norm.interval(0.95, scale=(truth * (1 - truth) / n) ** 0.5)
    assert np.mean(widths) == pytest.approx(exact[1] - exact[0], rel=0.05)


def test_scipy_agrees():
    values = np.random.default_rng(4).gamma(2.0, size=120)
    found = stats.bootstrap((values,), np.mean, n_resamples=4000, method="percentile", rng=np.random.default_rng(1))
    expected = found.confidence_interval
    assert interval(measures.mean(values), samples=4000) == pytest.approx((expected.low, expected.high), rel=0.02)


def exact_p(a: Measure, b: Measure) -> float:
    """Every way to exchange the two models' answers, example by example."""
    observed, as_large, n = abs(a.point - b.point), 0, len(a.counts)
    for swapped in product([False, True], repeat=n):
        turn = np.array(swapped)[:, None]
        one, other = np.where(turn, b.counts, a.counts), np.where(turn, a.counts, b.counts)
        as_large += abs(float(a.value(one.sum(axis=0)) - b.value(other.sum(axis=0)))) >= observed - 1e-12
    return as_large / 2**n


@pytest.mark.parametrize("seed", range(4))
def test_every_exchange(seed):
    gold, found = draw(10, seed, 0.9)
    other = draw(10, seed + 50, 0.2)[1]
    random = np.random.default_rng(seed)
    values = measures.mean(random.random(10)), measures.mean(random.random(10) + 0.2)
    for a, b in [(macro(gold, found), macro(gold, other)), values]:
        assert compare(a, b, samples=20000).p == pytest.approx(exact_p(a, b), abs=0.015)


def test_like_examples_are_exchanged_one_by_one():
    """30 examples where only one model is right, 12 where only the other is: the sign test, in closed form."""
    a = measures.mean(np.repeat([1, 1, 0], [50, 30, 12]))
    b = measures.mean(np.repeat([1, 0, 1], [50, 30, 12]))
    found = compare(a, b, samples=40000)
    assert found.p == pytest.approx(stats.binomtest(30, 42).pvalue, rel=0.2)
    assert found.difference == pytest.approx(18 / 92)
    # Of the paired difference: its variance is that of 1, -1 and 0 drawn 92 times.
    sigma = ((42 / 92 - (18 / 92) ** 2) / 92) ** 0.5
    assert (found.low, found.high) == pytest.approx((18 / 92 - 1.96 * sigma, 18 / 92 + 1.96 * sigma), abs=0.012)


def test_equals_are_rarely_told_apart():
    random = np.random.default_rng(9)
    chances = []
    for _ in range(200):
        gold = random.integers(3, size=80)
        one, other = (np.where(random.random(80) < 0.7, gold, random.integers(3, size=80)) for _ in range(2))
        chances.append(compare(macro(gold, one), macro(gold, other), samples=400).p)
    assert np.mean(np.array(chances) < 0.05) < 0.1


def test_the_same_model():
    measure = macro(*draw(30, 3))
    found = compare(measure, measure)
    assert (found.difference, found.low, found.high, found.p) == (0, 0, 0, 1)


def test_one_example():
    right, wrong = measures.mean(np.array([1])), measures.mean(np.array([0]))
    assert interval(right) == pytest.approx((0.2065, 1), abs=1e-4)  # one right answer says little
    assert compare(right, wrong) == intervals.Comparison(1, 1, 1, 1)


@given(st.lists(st.integers(0, 5), min_size=1, max_size=30), st.integers(0, 3))
def test_inside_and_repeatable(values, seed):
    measure = measures.mean(np.array(values))
    low, high = interval(measure, samples=50, seed=seed)
    assert (low, high) == interval(measure, samples=50, seed=seed)
    if set(values) not in ({0}, {1}):  # these are widened
        assert min(values) - 1e-9 <= low <= high <= max(values) + 1e-9
        assert len(set(values)) > 1 or low == high == pytest.approx(values[0])


def test_undefined_samples_are_left_out():
    def value(sums: np.ndarray) -> np.ndarray:
        return np.where(sums[..., 1] > 0, sums[..., 0] / np.maximum(sums[..., 1], 1), np.nan)

    low, high = interval(Measure(np.array([[1, 1], [0, 1], [0, 0], [0, 0]]), value))
    assert (low, high) == (0, 1)
    assert np.isnan(interval(Measure(np.zeros((3, 2)), value))).all()


def test_mistakes():
    with pytest.raises(BertsmithError, match="no examples to score"):
        interval(measures.mean(np.zeros(0)))
    with pytest.raises(BertsmithError, match="one is of 2 examples with 2 counts each, the other of 3 with 2"):
        compare(measures.mean(np.zeros(2)), measures.mean(np.zeros(3)))


@pytest.mark.parametrize("right", [0, 12])
def test_without_a_mistake_the_interval_is_wilsons(right):
    """Of the F1 of labels and entities too: that twelve answers are right does not make the thirteenth certain."""
    gold = np.arange(12) % 3
    counts = measures.count_labels(CLASSES[gold], CLASSES[gold if right else (gold + 1) % 3])
    found = stats.binomtest(right, 12).proportion_ci(0.95, method="wilson")
    of_labels = [measures.micro_f1, measures.macro_f1_present, measures.macro_f1_of_all(counts), measures.weighted_f1]
    for measure in [
        measures.ratio(np.array([[int(i < right), 1] for i in range(12)])),
        *(Measure(counts, value, is_share=True) for value in of_labels),
    ]:
        assert interval(measure) == pytest.approx((found.low, found.high), abs=1e-12)


def test_rare_labels_do_not_draw_the_interval_below_its_value():
    """28 labels, most of them rarer than one in fifty: half of the intervals lay below what they were for."""
    often = 1 / np.arange(1, 29) ** 1.3
    for seed in range(20):
        random = np.random.default_rng(seed)
        gold, guess = random.choice(28, size=(2, 100), p=often / often.sum())
        found = np.where(random.random(100) < 0.8, gold, guess)
        counts = measures.count_labels(np.eye(28)[gold], np.eye(28)[found])
        measure = Measure(counts, measures.macro_f1_of_all(counts))
        expected = f1_score(np.eye(28)[gold], np.eye(28)[found], average="macro", zero_division=0)
        low, high = interval(measure, samples=400)
        assert measure.point == pytest.approx(expected, abs=1e-12)
        assert low <= expected <= high


@pytest.mark.parametrize(("excess", "most"), [(0.0, 1.0), (0.12, 0.98)])
def test_coverage_of_calibration_error(excess, most):
    """Confidences that mean what they say, or are too high by so much: samples of either lie above what is true."""
    random, held = np.random.default_rng(0), 0
    for seed in range(200):
        sure = random.uniform(0.4, 1, size=150)
        measure = calibration_error(sure, random.random(150) < sure - excess)
        low, high = interval(measure, samples=300, seed=seed)
        assert low <= measure.point <= high
        held += low <= excess <= high
    assert 0.93 <= held / 200 <= most


@pytest.mark.parametrize("right", [100, 150, 190])
def test_calibration_error_of_one_confidence(right):
    """With a single confidence it is a share less a number, and so is its interval."""
    measure = calibration_error(np.full(200, 0.25), np.arange(200) < right)
    found = stats.binomtest(right, 200).proportion_ci(0.95, method="wilson")
    assert interval(measure) == pytest.approx((found.low - 0.25, found.high - 0.25), abs=0.015)


def test_calibration_error_without_a_mistake():
    """Twelve certain answers that are right do not make the thirteenth certain."""
    low, high = interval(calibration_error(np.ones(12), np.ones(12)))
    assert low == 0
    assert 0.1 < high < 0.3


@pytest.mark.parametrize("value", [measures.micro_f1, measures.macro_f1_present, measures.weighted_f1])
def test_models_that_number_their_labels_otherwise(value):
    """The same answers by a model whose labels stand in another order, and that knows one more: the same comparison."""
    gold, found = draw(60, 7)
    other = draw(60, 8, 0.3)[1]
    other = np.where(np.random.default_rng(0).random(60) < 0.5, gold, other)

    def measure(numbers: np.ndarray, labels: str, answers: np.ndarray) -> Measure:
        known = np.eye(len(labels), dtype=bool)
        return Measure(measures.count_labels(known[numbers[gold]], known[numbers[answers]]), value, labels=(*labels,))

    ours = measure(np.array([0, 1, 2]), "abc", found)
    expected = compare(ours, measure(np.array([0, 1, 2]), "abc", other), samples=500)
    again = compare(ours, measure(np.array([3, 2, 0]), "cdba", other), samples=500)
    assert (again.difference, again.low, again.high) == pytest.approx(
        (expected.difference, expected.low, expected.high), abs=0.03
    )
    assert again.p == pytest.approx(exact_enough(gold, found, other, value), abs=0.05)


def exact_enough(gold: np.ndarray, one: np.ndarray, other: np.ndarray, value) -> float:
    """The randomisation test written out: whole answers change sides, and scikit-learn scores them."""
    average = {measures.micro_f1: "micro", measures.macro_f1_present: "macro", measures.weighted_f1: "weighted"}[value]

    def differ(first: np.ndarray, second: np.ndarray) -> float:
        a, b = (f1_score(gold, answers, average=average, zero_division=0) for answers in (first, second))
        return abs(a - b)

    random, observed = np.random.default_rng(1), differ(one, other)
    coins = random.random((400, len(gold))) < 0.5
    return float(np.mean([differ(np.where(c, one, other), np.where(c, other, one)) >= observed - 1e-12 for c in coins]))
