"""The parts of unigram training against plain enumeration, and their mathematics against Python's."""

import math
from collections import Counter
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bertsmith.text.training.lattice import LONGEST_WORD
from bertsmith.text.training.portable import log, power
from bertsmith.text.training.seeding import find_seeds, link_alternatives, link_words
from bertsmith.text.training.substrings import find_substrings
from bertsmith.text.training.table import make_table
from bertsmith.text.training.unigram import train_unigram

Words = dict[str, int]
words = st.dictionaries(st.text("ab▁", min_size=1, max_size=7), st.integers(1, 9), min_size=1, max_size=8)


def cuts(word: str, pieces: dict[str, float]) -> Iterator[list[str]]:
    if not word:
        yield []
    for stop in range(1, len(word) + 1):
        if word[:stop] in pieces:
            yield from ([word[:stop], *rest] for rest in cuts(word[stop:], pieces))


@given(words, st.integers(1, 3))
def test_substrings_are_those_that_occur_often_enough(words: Words, min_count: int) -> None:
    counts: Counter[str] = Counter()
    for word, count in words.items():
        for start in range(len(word)):
            for stop in range(start + 1, min(start + 4, len(word)) + 1):
                counts[word[start:stop]] += count
    table = make_table(words)
    text = table.codes.tobytes().decode("utf-32-le")
    found: dict[str, int] = {}
    for level in find_substrings(table, 4, min_count):
        texts = [text[first : first + level.length] for first in level.first.tolist()]
        assert texts == sorted(texts)
        found.update(zip(texts, level.counts.tolist(), strict=True))
    assert found == {piece: count for piece, count in counts.items() if count >= min_count or len(piece) == 1}


@given(words)
def test_expected_counts_and_best_ways(words: Words) -> None:
    table = make_table(words)
    seeds = find_seeds(table, 10, 2, frozenset())
    lattice = link_words(seeds, table)
    names = [seeds.text(piece) for piece in range(len(seeds.length))]
    probability = np.arange(1, len(names) + 1) / (len(names) * (len(names) + 1) / 2)
    known = dict(zip(names, probability.tolist(), strict=True))
    expected: Counter[str] = Counter()
    ways = lattice.best(probability)
    products = np.ones(len(words))
    for going, pieces in lattice.walk(ways):
        products[going] *= probability[pieces]
    for number, word in enumerate(sorted(words)):
        found = [(math.prod(known[piece] for piece in cut), cut) for cut in cuts(word, known)]
        total = sum(value for value, _ in found)
        assert products[number] == pytest.approx(max(value for value, _ in found), rel=1e-9)
        for value, cut in found:
            for piece in cut:
                expected[piece] += words[word] * value / total
    got = lattice.expect(probability, table.counts.astype(float))
    assert got == pytest.approx([expected[name] for name in names], rel=1e-9)


@given(words)
def test_alternatives_leave_the_piece_itself_out(words: Words) -> None:
    table = make_table(words)
    seeds = find_seeds(table, 10, 2, frozenset())
    lattice = link_alternatives(seeds)
    names = [seeds.text(piece) for piece in range(len(seeds.length))]
    probability = np.arange(1, len(names) + 1) / (len(names) * (len(names) + 1) / 2)
    known = dict(zip(names, probability.tolist(), strict=True))
    products: dict[int, float] = {}
    for going, pieces in lattice.walk(lattice.best(probability)):
        for piece, other in zip(going.tolist(), pieces.tolist(), strict=True):
            products[piece] = products.get(piece, 1.0) * known[names[other]]
    for piece, name in enumerate(names):
        ways = [math.prod(known[part] for part in cut) for cut in cuts(name, known) if len(cut) > 1]
        assert products.get(piece, 0.0) == pytest.approx(max(ways, default=0.0), rel=1e-9)


def test_words_longer_than_a_lattice_take_part() -> None:
    vocabulary = train_unigram(make_table({"ab" * LONGEST_WORD * 3: 50, "▁cd": 3}), 12, ["<unk>"], 2)
    assert {"a", "b", "c", "d", "▁"} <= set(vocabulary.pieces)
    assert max(map(len, vocabulary.pieces[1:])) > 8


def test_scores_fall_and_are_logarithms_of_probabilities() -> None:
    vocabulary = train_unigram(make_table({"▁low": 5, "▁lower": 2, "▁newest": 6, "▁widest": 3}), 30, ["<unk>"], 1)
    scores = vocabulary.scores[1:]
    assert scores == sorted(scores, reverse=True)
    assert sum(math.exp(score) for score in scores) <= 1 + 1e-5


@given(st.floats(1e-300, 1e300))
def test_logarithm(value: float) -> None:
    assert float(log(np.array([value]))[0]) == pytest.approx(math.log(value), rel=1e-14, abs=1e-15)


@given(st.floats(1, 1e9), st.floats(0.01, 1))
def test_power(base: float, exponent: float) -> None:
    assert power(base, exponent) == pytest.approx(base**exponent, rel=1e-12)
