"""BM25 equals the formula of the textbook; vectors, fusion and ties equal the slow way."""

import math
import re
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bertsmith.data.bm25 import Bm25, build, split_words
from bertsmith.search import ranking
from bertsmith.search.ranking import fuse, rank_vectors, rank_words, take_best

WORDS = ["the", "The", "river", "naïve", "ÉTÉ", "été", "x_1", "東京", "a.b", "don't", "I", "\ud800"]
TEXTS = st.lists(st.lists(st.sampled_from(WORDS), max_size=12).map(" ".join), min_size=1, max_size=12)


def textbook(query, texts, k1=1.2, b=0.75):
    """Robertson & Zaragoza's formula, word by word, with Lucene's weight."""
    documents = [re.findall(r"\w+", text.lower()) for text in texts]
    average = sum(map(len, documents)) / len(documents)
    scores = []
    for words in documents:
        counts, score = Counter(words), 0.0
        for word in re.findall(r"\w+", query.lower()):
            having = sum(word in other for other in documents)
            weight = math.log(1 + (len(documents) - having + 0.5) / (having + 0.5))
            if counts[word]:
                score += weight * counts[word] * (k1 + 1) / (counts[word] + k1 * (1 - b + b * len(words) / average))
        scores.append(score)
    return scores


@given(TEXTS, st.lists(st.sampled_from([*WORDS, "unknown", "zzz"]), max_size=5).map(" ".join))
def test_bm25_is_the_textbook_s(texts, query):
    scores = Bm25(build(iter(texts)), len(texts)).scores(query)
    assert scores == pytest.approx(textbook(query, texts), rel=1e-5, abs=1e-6)


def test_words_are_unicode_s_in_lower_case():
    assert split_words("Élan VITAL: naïve_x, 東京 3.5!") == ["élan", "vital", "naïve_x", "東京", "3", "5"]


def test_a_passage_without_a_shared_word_is_not_found():
    texts = ["the river", "a town", "the town"]
    numbers, scores = rank_words(Bm25(build(texts), 3).scores("river town"), 10)
    assert numbers.tolist() == [0, 1, 2] and (scores > 0).all()
    assert not len(rank_words(Bm25(build(texts), 3).scores("???"), 10)[0])


@given(st.lists(st.sampled_from([0.0, 0.5, 1.0, -1.0]), max_size=30), st.integers(1, 8))
def test_the_best_are_those_of_a_sort(scores, count):
    numbers, found = take_best(np.arange(len(scores)), np.array(scores, dtype=np.float32), count)
    expected = sorted(range(len(scores)), key=lambda i: (-scores[i], i))[:count]
    assert numbers.tolist() == expected and found.tolist() == [scores[i] for i in expected]


@settings(max_examples=30)
@given(st.integers(1, 60), st.integers(0, 3), st.integers(1, 70), st.integers(0, 9))
def test_blocks_give_what_one_product_gives(passages, queries, count, seed):
    random = np.random.default_rng(seed)
    vectors = random.integers(-2, 3, (passages, 4)).astype(np.float16)  # many ties
    asked = random.integers(-2, 3, (queries, 4)).astype(np.float32)
    before, (ranking.BLOCK, ranking.PANEL) = (ranking.BLOCK, ranking.PANEL), (7, 21)
    try:
        found = rank_vectors(vectors, asked, count)
    finally:
        ranking.BLOCK, ranking.PANEL = before
    for query, (numbers, scores) in zip(asked, found, strict=True):
        products = vectors.astype(np.float32) @ query
        expected = np.lexsort((np.arange(passages), -products))[:count]
        assert numbers.tolist() == expected.tolist() and scores.tolist() == products[expected].tolist()


def test_fusion_adds_the_reciprocals_of_the_ranks():
    one, other = np.array([5, 2, 9]), np.array([2, 7])
    numbers, scores = fuse([(one, one * 0.0), (other, other * 0.0)], 3)
    assert numbers.tolist() == [2, 5, 7]
    assert scores == pytest.approx([1 / 62 + 1 / 61, 1 / 61, 1 / 62])
