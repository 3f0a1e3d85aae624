"""What vectors say about cutting stays with their rows, and goes where rows are no longer rows."""

import copy
import pickle

import numpy as np
import pytest

from bertsmith.tasks.result import Vectors

ROWS, WIDTH = 4, 3


@pytest.fixture
def vectors():
    return Vectors(np.arange(ROWS * WIDTH).reshape(ROWS, WIDTH), [10, 11, 12, 13])


@pytest.mark.parametrize(
    "index, truncated",
    [
        (1, 11),
        (-1, 13),
        (np.int64(2), 12),
        (np.array(2), 12),
        ((1,), 11),
        ((1, slice(0, 2)), 11),
        ((1, [0, 2]), 11),
        (slice(1, 3), [11, 12]),
        (slice(None, None, -1), [13, 12, 11, 10]),
        ((slice(1, 3), 0), [11, 12]),
        ((slice(1, 3), [0, 2]), [11, 12]),
        ((slice(1, 3), None), [11, 12]),
        ([3, 0, 0], [13, 10, 10]),
        (np.array([3, 1]), [13, 11]),
        (([3, 1], 0), [13, 11]),
        (([3, 1], [0, 2]), [13, 11]),
        ([True, False, True, False], [10, 12]),
        (np.array([False, True, False, True]), [11, 13]),
        ([], []),
        (Ellipsis, [10, 11, 12, 13]),
        ((), [10, 11, 12, 13]),
        ((Ellipsis, 0), [10, 11, 12, 13]),
        (None, None),
        (True, None),
        (np.array(True), None),
        ((Ellipsis, 0, slice(0, 1)), None),
        ([[0, 1], [2, 3]], None),
        (([0, 1], [[0, 1], [2, 0]]), None),
        (([0], [0, 1, 2]), None),
        (np.ones((ROWS, WIDTH), bool), None),
    ],
    ids=str,
)
def test_picked_rows_keep_theirs(vectors, index, truncated):
    found = vectors[index]
    assert np.array_equal(found, np.asarray(vectors)[index])
    assert isinstance(found, np.ndarray) and found.truncated == truncated


def test_rows_come_with_theirs(vectors):
    assert [(row.shape, row.truncated) for row in vectors] == [((WIDTH,), n) for n in (10, 11, 12, 13)]
    assert vectors[1][:2].truncated == 11 and isinstance(vectors[1, 2], np.float32)


@pytest.mark.parametrize(
    "compute",
    [
        lambda v: v * 2,
        lambda v: v[1] + v[2],
        lambda v: v @ v.T,
        lambda v: -v,
        lambda v: v > 3,
        lambda v: v.sum(axis=0),
        lambda v: v.mean(axis=1),
        lambda v: np.linalg.norm(v, axis=1),
    ],
)
def test_what_is_computed_is_plain(vectors, compute):
    found = compute(vectors)
    assert type(found) is np.ndarray and np.array_equal(found, compute(np.asarray(vectors)))


def test_one_number_is_a_number(vectors):
    for number in (vectors.sum(), vectors.mean(), vectors.max(), vectors[0] @ vectors[1], np.linalg.norm(vectors)):
        assert isinstance(number, np.floating)


@pytest.mark.parametrize("move", [lambda v: v.T, lambda v: v.reshape(3, 4), lambda v: v.take([3, 2, 1, 0], axis=0)])
def test_other_views_claim_nothing(vectors, move):
    assert move(vectors).truncated is None


def test_in_place_they_stay_vectors(vectors):
    vectors += 1
    assert isinstance(vectors, Vectors) and vectors.truncated == [10, 11, 12, 13] and vectors[0, 0] == 1


@pytest.mark.parametrize(
    "again", [pickle.loads, copy.copy, copy.deepcopy, Vectors.copy], ids=["pickle", "copy", "deepcopy", "method"]
)
@pytest.mark.parametrize("rows", [slice(None), 1])
def test_copies_keep_it(vectors, again, rows):
    given = vectors[rows]
    found = again(pickle.dumps(given) if again is pickle.loads else given)
    assert type(found) is Vectors and np.array_equal(found, given) and found.truncated == given.truncated
    found += 1
    assert not np.array_equal(found, given)
