"""Pieces become words again, and weights with them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some
from inspection.subjects import make_subject

from bertsmith.errors import BertsmithError
from bertsmith.inspection.watching import read
from bertsmith.inspection.words import Words, find_word, merge_words


@pytest.fixture(scope="module")
def bert(tmp_path_factory):
    return make_subject(tmp_path_factory.mktemp("bert"), "bert")


@some.composite
def rows(draw):
    """Weights that sum to 1 in each row, and the word of each piece: neighbours share one, or it is a special token."""
    count = draw(some.integers(1, 12))
    rng = np.random.default_rng(draw(some.integers(0, 2**32 - 1)))
    weights = rng.dirichlet(np.full(count, draw(some.sampled_from([0.05, 1.0, 20.0]))), size=(2, count))
    words, number = [], -1
    for kind in draw(some.lists(some.sampled_from(["new", "same", "special"]), min_size=count, max_size=count)):
        if kind == "special":
            words.append(None)
        else:
            number += kind == "new" or not words or words[-1] is None
            words.append(number)
    return weights.astype(np.float32), Words(tuple(words), tuple(f"w{n}" for n in range(number + 1)))


@given(rows())
def test_merged_rows_still_sum_to_1(row):
    weights, words = row
    units = words.units()
    assert sorted(place for places in units for place in places) == list(range(len(words.of)))
    merged = merge_words(weights, units)
    assert merged.shape == (2, len(units), len(units))
    assert np.abs(merged.sum(axis=-1) - 1).max() < 1e-5
    for i, queries in enumerate(units):
        for j, keys in enumerate(units):
            by_hand = np.mean([sum(weights[0, q, k] for k in keys) for q in queries])
            assert abs(merged[0, i, j] - by_hand) < 1e-5


@given(rows())
def test_pieces_that_are_words_stay_as_they_are(row):
    weights, words = row
    assert np.allclose(merge_words(weights, [[place] for place in range(len(words.of))]), weights)
    assert np.allclose(merge_words(weights, [list(range(len(words.of)))]), 1.0, atol=1e-5)


@given(some.lists(some.text("abrivenkst", min_size=1, max_size=5), min_size=1, max_size=5), some.booleans())
def test_words_are_those_of_the_text(bert, names, is_pair):
    reading = read(bert, " ".join(names), " ".join(reversed(names)) if is_pair else None)
    assert list(reading.words.names) == names + (names[::-1] if is_pair else [])
    places = [place for number in range(len(reading.words.names)) for place in reading.words.pieces(number)]
    assert places == [place for place, is_special in enumerate(reading.special) if not is_special]


def test_a_word_is_found_by_name_number_or_token(bert):
    reading = read(bert, "The fishing on the river, the bank.")
    find = lambda wanted: find_word(reading.words, reading.pieces, wanted)  # noqa: E731
    assert find("fishing").places == (2, 3)
    assert find("the").places == (5,) and find("the").others == (6,)  # as it is spelt before any other case
    assert find("THE").places == (1,) and find("THE").others == (3, 6)
    assert find(1).places == find("1").places == find(" fishing ").places
    assert find(-1).places == find(".").places
    assert find("[CLS]").places == (0,) and find("[SEP]").places == (len(reading.pieces) - 1,)
    assert find("##ing").places == (3,)
    for wrong, says in (("zebra", "The, fishing, on, the, river"), (99, "9 words, 0 to 8"), ("-10", "9 words"),
                        ("--3", "does not stand"), (True, "give a word"), (1.5, "give a word")):  # fmt: skip
        with pytest.raises(BertsmithError, match=says):
            find(wrong)


def test_a_number_that_stands_in_the_text_is_a_word(bert):
    reading = read(bert, "sat 1 2")
    assert find_word(reading.words, reading.pieces, "2").places == (3,)


def test_a_mask_in_the_text_is_a_word(bert):
    reading = read(bert, "the [MASK] sat [MASK]")
    assert reading.words.names == ("the", "[MASK]", "sat", "[MASK]")
