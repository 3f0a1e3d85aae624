"""The best well-formed sequence: equal to trying all of them, and words merged from their pieces."""

from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bertsmith.data.schemes import allowed
from bertsmith.tasks.aggregation import merge_pieces
from bertsmith.tasks.viterbi import Grammar, best_path

LABELS = {
    "iob1": ["O", "B-X", "I-X", "B-Y", "I-Y"],
    "iob2": ["O", "B-X", "I-X", "B-Y", "I-Y"],
    "iobes": ["O", "B-X", "I-X", "E-X", "S-X", "S-Y"],
    "bilou": ["O", "B-X", "I-X", "L-X", "U-X", "U-Y"],
    "io": ["O", "I-X", "I-Y"],
    "plain": ["N", "V", "D"],
}
costs = st.floats(-30, 0, allow_nan=False)


def fits(path, labels, scheme) -> bool:
    return all(allowed(a, b, scheme) for a, b in pairwise([None, *(labels[i] for i in path), None]))


@given(st.sampled_from(sorted(LABELS)), st.data())
def test_the_best_path_is_that_of_trying_all(scheme, data):
    labels = LABELS[scheme]
    words = data.draw(st.integers(1, 4))
    scores = np.array(data.draw(st.lists(st.lists(costs, min_size=len(labels), max_size=len(labels)),
                                         min_size=words, max_size=words)))  # fmt: skip
    path = best_path(scores, Grammar(labels, scheme))
    totals = [scores[range(words), p].sum() for p in map(list, product(range(len(labels)), repeat=words))
              if fits(p, labels, scheme)]  # fmt: skip
    assert fits(path, labels, scheme)
    np.testing.assert_allclose(scores[range(words), path].sum(), max(totals), rtol=1e-12)


@pytest.mark.parametrize("scheme", ["iob1", "iob2", "iobes", "bilou"])
def test_a_hundred_labels_and_a_long_text_stay_well_formed(scheme):
    letters = {"iob1": "BI", "iob2": "BI", "iobes": "BIES", "bilou": "BILU"}[scheme]
    labels = ["O", *(f"{letter}-{kind}" for letter in letters for kind in range(100 // len(letters)))]
    scores = np.random.default_rng(0).normal(size=(500, len(labels)))
    path = best_path(scores, Grammar(labels, scheme))
    assert fits(path, labels, scheme)
    assert not fits(scores.argmax(axis=1), labels, scheme)


def test_a_word_known_to_be_outside_parts_its_neighbours():
    labels = LABELS["iobes"]
    scores = np.full((3, len(labels)), -9.0)
    scores[0, labels.index("B-X")] = scores[2, labels.index("E-X")] = 0
    scores[1] = -np.inf
    scores[1, 0] = 0
    path = [labels[i] for i in best_path(scores, Grammar(labels, "iobes"))]
    assert path[1] == "O" and fits([labels.index(tag) for tag in path], labels, "iobes")


def test_labels_that_allow_nothing_give_each_word_its_best():
    scores = np.array([[0.0, -1.0], [-1.0, 0.0]])
    assert best_path(scores, Grammar(["I-X", "I-Y"], "iob2")).tolist() == [0, 1]
    assert best_path(np.zeros((0, 2)), Grammar(["I-X", "I-Y"], "iob2")).tolist() == []


def test_pieces_become_words():
    chances = np.array([[0.6, 0.4], [0.1, 0.9], [0.2, 0.8], [0.5, 0.5], [0.9, 0.1], [0.1, 0.9]])
    words = np.array([0, 0, 0, -1, 2, 2])
    gone = [np.nan, np.nan]
    for mode, expected in {
        "first": [[0.6, 0.4], gone, [0.9, 0.1]],
        "average": [[0.3, 0.7], gone, [0.5, 0.5]],
        "max": [[0.1, 0.9], gone, [0.9, 0.1]],  # of two that are as sure the first
    }.items():
        np.testing.assert_allclose(merge_pieces(chances, words, 3, mode), expected)
