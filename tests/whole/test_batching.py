"""A text's answer does not depend on its neighbours: alone, or in a batch of any size, it is the same."""

from copy import copy
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tasks.made import CLOSE, bert_pieces, open_both, wordpiece_files

from bertsmith.data.batch import plan_batches

WORDS = ["the", "quick", "fox", "is", "lazy", "paris", "good", "of", "dog", "walking"]
TEXTS = st.lists(st.sampled_from(WORDS), max_size=80).map(" ".join) | st.text(max_size=12)
LISTS = st.lists(TEXTS, max_size=10)
BUDGETS = st.integers(1, 5000) | st.integers(1, 130)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return open_both(tmp_path_factory.mktemp("bert"), "bert", "mask", wordpiece_files(bert_pieces())).ours


def with_budget(model, budget: int):
    other = copy(model)
    other.predictor = replace(model.predictor, budget=budget)
    return other


@given(texts=LISTS, budget=BUDGETS)
def test_embed(model, texts, budget):
    together = with_budget(model, budget).embed(texts)
    assert together.shape == (len(texts), 48)
    for text, vector, cut in zip(texts, together, together.truncated, strict=True):
        alone = model.embed(text)
        assert np.abs(vector - alone).max() < CLOSE
        assert cut == alone.truncated


@given(texts=LISTS, budget=BUDGETS)
def test_hidden(model, texts, budget):
    together = with_budget(model, budget).hidden(texts, layers=[0, -1])
    for text, states in zip(texts, together, strict=True):
        alone = model.hidden(text, layers=[0, -1])
        assert states.shape == alone.shape
        assert np.abs(states - alone).max() < CLOSE


def same_answers(mine: list, other: list) -> None:
    assert [a["token"] for a in mine] == [a["token"] for a in other]
    assert np.abs(np.subtract([a["score"] for a in mine], [a["score"] for a in other])).max() < CLOSE


@given(texts=st.lists(st.tuples(TEXTS, TEXTS), max_size=6), budget=BUDGETS)
@settings(max_examples=50)
def test_fill(model, texts, budget):
    masked = [f"{a} [MASK] {b}" for a, b in texts]
    for text, result in zip(masked, with_budget(model, budget).fill(masked), strict=True):
        same_answers(result.answers, model.fill(text).answers)


@given(texts=st.lists(st.tuples(TEXTS, TEXTS), max_size=4), budget=BUDGETS)
@settings(max_examples=30)
def test_fill_that_asks_again(model, texts, budget):
    """Texts with one, two and three masks, whose searches end at different times."""
    masked = [f"[MASK] {a}" + f" [MASK] {b}" * (n % 3) for n, (a, b) in enumerate(texts)]
    for text, result in zip(masked, with_budget(model, budget).fill(masked), strict=True):
        alone = model.fill(text)
        assert (result.joint is None) == (alone.joint is None) == (text.count("[MASK]") == 1)
        if result.joint:
            assert [a["tokens"] for a in result.joint] == [a["tokens"] for a in alone.joint]
            assert [a["score"] for a in result.joint] == pytest.approx([a["score"] for a in alone.joint], abs=CLOSE)


@given(texts=st.lists(TEXTS, max_size=4), budget=BUDGETS)
@settings(max_examples=30)
def test_targets(model, texts, budget):
    masked = [f"it is [MASK] {text}" for text in texts]
    words = ["playing", "dog", "walked"]
    for text, result in zip(masked, with_budget(model, budget).fill(masked, targets=words), strict=True):
        same_answers(result.answers, model.fill(text, targets=words).answers)


def test_answers_come_in_the_order_of_the_texts(model):
    texts = [" ".join(WORDS[: 1 + (7 * i) % 10]) for i in range(40)]
    lengths = [len(states) for states in with_budget(model, 30).hidden(texts)]
    assert lengths == [len(model.tokenize(text)) for text in texts]


@given(lengths=st.lists(st.integers(1, 600), max_size=60), budget=st.integers(1, 5000))
def test_plan(lengths, budget):
    batches = plan_batches(lengths, budget)
    flat = [i for batch in batches for i in batch]
    assert sorted(flat) == list(range(len(lengths)))
    assert all(batches)
    assert [lengths[i] for i in flat] == sorted(lengths, reverse=True)
    for batch in batches:
        assert len(batch) == 1 or sum(lengths[i] for i in batch) <= budget


@given(lengths=st.lists(st.integers(1, 600), min_size=1, max_size=60), budget=st.integers(1, 5000))
def test_plan_opens_no_batch_too_early(lengths, budget):
    batches = plan_batches(lengths, budget)
    for batch, after in pairwise(batches):
        assert sum(lengths[i] for i in batch) + lengths[after[0]] > budget
