"""Scores of rankings equal slow versions of their definitions, and scikit-learn's where it has them."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score, ndcg_score

from bertsmith.evaluation.intervals import interval
from bertsmith.tasks.retrieval import score_rankings

NAMES = "abcdefgh"
RANKINGS = st.lists(st.permutations(NAMES), min_size=1, max_size=5)
GOLD = st.dictionaries(st.sampled_from(NAMES), st.integers(1, 3).map(float), min_size=1)


def slow(ranking, gold, cut):
    """trec_eval's definitions, term by term."""
    gains = [gold.get(name, 0) for name in ranking]
    ideal = sorted(gold.values(), reverse=True)
    total = sum(gains[i] / math.log2(i + 2) for i in range(min(cut, len(gains))))
    best = sum(ideal[i] / math.log2(i + 2) for i in range(min(cut, len(ideal))))
    hits = [i for i in range(len(gains)) if gains[i] > 0]
    precisions = [sum(gain > 0 for gain in gains[: i + 1]) / (i + 1) for i in hits]
    firsts = [i for i in hits if i < cut]
    return {
        f"mrr@{cut}": 1 / (firsts[0] + 1) if firsts else 0,
        f"ndcg@{cut}": total / best,
        "map": sum(precisions) / len(gold),
        f"recall@{cut}": len(firsts) / len(gold),
    }


@given(st.data(), RANKINGS, st.integers(1, 9), st.integers(1, 8))
def test_measures_are_the_means_of_the_definitions(data, rankings, cut, shown):
    golds = [data.draw(GOLD) for _ in rankings]
    cut_off = [ranking[:shown] for ranking in rankings]
    found = score_rankings(cut_off, golds, cuts=(cut,), main=cut)
    expected = [slow(ranking, gold, cut) for ranking, gold in zip(cut_off, golds, strict=True)]
    for name, measure in found.items():
        assert measure.point == pytest.approx(np.mean([one[name] for one in expected])), name


@given(st.permutations(NAMES), GOLD, st.integers(1, 8))
def test_ndcg_and_average_precision_are_scikit_learn_s(ranking, gold, cut):
    truth = np.array([[gold.get(name, 0) for name in ranking]])
    order = np.arange(len(ranking), 0, -1)[None]
    found = score_rankings([ranking], [gold], main=cut)
    assert found[f"ndcg@{cut}"].point == pytest.approx(ndcg_score(truth, order, k=cut))
    assert found["map"].point == pytest.approx(average_precision_score(truth[0] > 0, order[0]))


def test_the_example_of_the_textbook():
    """Manning, Raghavan & Schütze, chapter 8: relevant at ranks 1, 3 and 6 of 10."""
    ranking = [f"d{i}" for i in range(10)]
    found = score_rankings([ranking], [{"d0": 1.0, "d2": 1.0, "d5": 1.0}])
    assert found["map"].point == pytest.approx((1 + 2 / 3 + 3 / 6) / 3)
    assert found["recall@5"].point == pytest.approx(2 / 3)


def test_twins_count_once_and_nothing_counts_nothing():
    found = score_rankings([["a", "a", "b"], []], [{"b": 1.0}, {}])
    assert found["mrr@10"].point == pytest.approx((1 / 2 + 0) / 2)
    assert found["recall@1"].point == 0
    low, high = interval(found["mrr@10"])
    assert 0 <= low <= high <= 0.5
