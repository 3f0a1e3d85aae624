"""Vectors of token ids: those of the text that the ids are of, whatever the policy; and what is no list of ids."""

import json
import shutil

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tasks.made import SENTENCES

import bertsmith
from bertsmith.errors import BertsmithError

LONG = " ".join(SENTENCES * 8)


@pytest.fixture(params=["bert", "roberta", "albert"])
def model(request):
    return request.getfixturevalue(request.param).ours


def bare(model, text):
    return model.tokenizer.encode(text, specials=False).ids


def same(one, other):
    assert np.allclose(one, other, atol=1e-6) and one.truncated == other.truncated


def test_ids_have_the_vector_of_their_text(model):
    for text in SENTENCES:
        wanted = model.embed(text)
        same(model.embed(bare(model, text)), wanted)
        same(model.embed(model.tokenize(text).ids), wanted)
        same(model.embed(np.array(model.tokenize(text).ids)), wanted)
    assert wanted.ndim == 1


def test_lists_of_ids_and_texts_mixed(model):
    mixed = [SENTENCES[0], bare(model, SENTENCES[1]), SENTENCES[2], tuple(model.tokenize(SENTENCES[3]).ids)]
    same(model.embed(mixed), model.embed(SENTENCES))
    same(model.embed([bare(model, SENTENCES[0])]), model.embed(SENTENCES[:1]))


@pytest.mark.parametrize("truncate", ["head", "tail", "head+tail", "windows"])
def test_long_ids_are_cut_as_the_text_is(model, truncate):
    for ids in (bare(model, LONG), model.tokenize(LONG).ids):
        same(model.embed(ids, truncate=truncate), model.embed(LONG, truncate=truncate))


def test_too_long_ids_are_refused_where_asked(model):
    with pytest.raises(BertsmithError, match=r"the input has .* tokens but at most 64 fit"):
        model.embed(bare(model, LONG), truncate="error")


def test_prompts_go_before_ids(bert, tmp_path):
    folder = tmp_path / "prompted"
    shutil.copytree(bert.ours.folder, folder)
    settings = {"prompts": {"query": "the city: "}, "default_prompt_name": "query"}
    (folder / "config_sentence_transformers.json").write_text(json.dumps(settings))
    model = bertsmith.load(folder, device="cpu")
    same(model.embed(bare(model, "a small dog")), model.embed("a small dog"))
    found = model.embed([bare(model, "a small dog"), "a fox"], prompt="not ")
    same(found, model.embed(["not a small dog", "not a fox"], prompt=""))


@settings(deadline=None, max_examples=30)
@given(st.data())
def test_any_ids_of_the_vocabulary_do(bert, data):
    size = bert.ours.tokenizer.size
    lists = data.draw(st.lists(st.lists(st.integers(0, size - 1), min_size=1, max_size=80), min_size=1, max_size=4))
    found = bert.ours.embed(lists)
    assert found.shape == (len(lists), bert.ours.vector_width) and np.isfinite(found).all()
    assert all(cut >= 0 for cut in found.truncated)


@pytest.mark.parametrize(
    ("ids", "said"),
    [
        ([3, -1], "the text has the token id -1, but the vocabulary of this model has 0 to"),
        ([[3], [99_999]], "text 2 has the token id 99999, but the vocabulary"),
        ([[3], []], "text 2 has no token ids"),
        ([3, 4.5], "'4.5' is not a whole number"),
        ([3, True], "'True' is not a whole number"),
        ([["a", "b"]], "'a' is not a whole number"),
        (["a", 3], "text 2 must be a string, not int"),
        (["a", None], "text 2 must be a string, not NoneType"),
    ],
)
def test_what_is_no_list_of_ids_is_named(bert, ids, said):
    with pytest.raises(BertsmithError, match=said):
        bert.ours.embed(ids)
