"""Calibration error against the textbook's loop, the temperature against scipy, thresholds against trying them all."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar
from scipy.special import expit, log_softmax
from scipy.special import softmax as softmax_of
from sklearn.metrics import f1_score

from bertsmith.tasks.calibration import (
    best_threshold,
    calibration_error,
    find_thresholds,
    fit_temperature,
    reliability,
    sigmoid,
    softmax,
)

chances = st.one_of(st.floats(0, 1), st.sampled_from([i / 10 for i in range(11)]))
judged = st.lists(st.tuples(chances, st.booleans()), min_size=1, max_size=50)


def textbook_error(confidences: list[float], right: list[bool]) -> float:
    """Equation 3 of Guo et al. 2017: bins ((m - 1) / 10, m / 10]."""
    edges, total = np.linspace(0, 1, 11), 0.0
    for low, high in pairwise(edges):
        inside = [i for i, c in enumerate(confidences) if low < c <= high or (c == 0 and low == 0)]
        if inside:
            accuracy = np.mean([right[i] for i in inside])
            confidence = np.mean([confidences[i] for i in inside])
            total += len(inside) / len(confidences) * abs(accuracy - confidence)
    return total


@given(judged)
@example([(0.0, False), (1.0, True)])
@example([(0.3, True), (0.7, False), (0.1 + 0.2, True)])
def test_error(pairs):
    confidences, right = map(list, zip(*pairs, strict=True))
    measure = calibration_error(np.array(confidences), np.array(right))
    assert measure.point == pytest.approx(textbook_error(confidences, right), abs=1e-12)
    bins = reliability(np.array(confidences), np.array(right))
    assert (
        sum(b["count"] for b in bins) == len(pairs) and [b["low"] for b in bins] == np.linspace(0, 1, 11)[:-1].tolist()
    )
    gaps = sum(b["count"] * abs(b["confidence"] - b["accuracy"]) for b in bins)
    assert gaps / len(pairs) == pytest.approx(measure.point, abs=1e-12)


def test_squashing():
    scores = np.random.default_rng(0).normal(0, 30, (50, 7))
    assert np.abs(softmax(scores) - softmax_of(scores, axis=-1)).max() < 1e-14
    assert np.abs(sigmoid(scores) - expit(scores)).max() < 1e-14
    assert softmax(np.array([1e4, -1e4])).tolist() == [1, 0] and sigmoid(np.array([1e4, -1e4])).tolist() == [1, 0]


def draw(several: bool, seed: int, truth: float) -> tuple[np.ndarray, np.ndarray]:
    """Scores that are `truth` times too large for the labels drawn from them."""
    random = np.random.default_rng(seed)
    scores = random.normal(0, 2, (400, 4))
    if several:
        return scores * truth, random.random((400, 4)) < expit(scores)
    gumbel = scores + random.gumbel(size=scores.shape)
    return scores * truth, np.eye(4, dtype=bool)[gumbel.argmax(axis=1)]


@pytest.mark.parametrize("several", [False, True])
@pytest.mark.parametrize("truth", [0.4, 1.0, 3.0])
def test_temperature(several, truth):
    scores, gold = draw(several, 7, truth)

    def cost(log_temperature: float) -> float:
        cooled = scores / np.exp(log_temperature)
        if several:
            return float((np.logaddexp(0, cooled) - gold * cooled).sum())
        return float(-log_softmax(cooled, axis=1)[gold].sum())

    expected = minimize_scalar(cost, bounds=(-3, 3), method="bounded", options={"xatol": 1e-9})
    found = fit_temperature(scores, gold, several)
    assert np.log(found) == pytest.approx(expected.x, abs=1e-5)
    assert found == pytest.approx(truth, rel=0.25)  # and that is what was done to the scores


def test_temperature_without_a_minimum():
    scores = np.array([[5.0, -5.0], [-5.0, 5.0]])
    assert fit_temperature(scores, np.eye(2), several=False) == pytest.approx(0.05)  # all right: as sure as it may be
    assert fit_temperature(scores, 1 - np.eye(2), several=False) == pytest.approx(20)  # all wrong
    assert fit_temperature(np.zeros((3, 2)), np.eye(2)[[0, 1, 1]], several=False) == 1


def best_f1(probabilities: np.ndarray, gold: np.ndarray) -> float:
    bounds = np.unique(probabilities)
    return max(float(f1_score(gold, probabilities >= bound, zero_division=0)) for bound in bounds)


@given(st.lists(st.tuples(chances, st.booleans()), min_size=1, max_size=25))
@example([(0.5, True), (0.5, False), (0.5, True)])
@example([(0.0, True)])
def test_threshold_is_the_best(pairs):
    probabilities, gold = (np.array(side) for side in zip(*pairs, strict=True))
    threshold = best_threshold(probabilities, gold)
    if not gold.any():
        assert threshold is None
        return
    found = f1_score(gold, probabilities >= threshold, zero_division=0)
    assert found == pytest.approx(best_f1(probabilities, gold), abs=1e-12)


def test_one_for_all_or_each_its_own():
    random = np.random.default_rng(3)
    gold = random.random((90, 4)) < [0.5, 0.2, 0.05, 0.0]
    probabilities = np.clip(0.4 * gold + random.random((90, 4)) * [0.6, 0.5, 0.4, 0.3], 0, 1)
    one, each = (find_thresholds(probabilities, gold, each=each) for each in (False, True))
    assert len(set(one)) == 1 and len(one) == 4
    micro = f1_score(gold, probabilities >= one, average="micro", zero_division=0)
    assert micro == pytest.approx(best_f1(probabilities.ravel(), gold.ravel()))
    own = f1_score(gold, probabilities >= each, average=None, zero_division=0)
    assert own[:3] == pytest.approx([best_f1(probabilities[:, i], gold[:, i]) for i in range(3)])
    assert each[3] == one[3]  # nothing to learn from
    assert find_thresholds(probabilities, np.zeros_like(gold), each=True) == [0.5] * 4
