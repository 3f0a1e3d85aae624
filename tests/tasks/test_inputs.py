"""What may be given as a text, and what is refused in one sentence."""

import numpy as np
import pytest
import torch
from tasks.made import CLOSE

from bertsmith.errors import BertsmithError
from bertsmith.models.network import Network
from bertsmith.tasks.texts import list_texts, pair_up

ODD = ["", "   ", "\n\t", "\x00\x01\x7f", "\ud800 dog \udfff", "\u200b\u00ad", "é" * 50, "🦊 fox", "\r\n", "\ufeffdog"]
JOBS = ["fill", "embed", "hidden"]


@pytest.mark.parametrize("model", ["bert", "roberta", "albert"])
@pytest.mark.parametrize("text", ODD, ids=ascii)
def test_odd_texts_have_finite_answers(request, model, text):
    both = request.getfixturevalue(model)
    assert np.isfinite(both.ours.embed(text)).all()
    assert np.isfinite(both.ours.hidden(text)).all()
    result = both.ours.fill(text + both.mask + text)
    assert all(0 < a["score"] <= 1 for a in result)
    assert np.isfinite(both.ours.embed(text, truncate="windows")).all()


@pytest.mark.parametrize("model", ["bert", "roberta", "albert"])
@pytest.mark.parametrize("text", ODD, ids=ascii)
def test_the_rest_of_an_odd_text_is_kept(request, model, text):
    both = request.getfixturevalue(model)
    for answer in both.ours.fill(f"{text}|{both.mask}|{text}", top_k=20):
        assert answer["sequence"].startswith(f"{text}|")
        assert answer["sequence"].endswith(f"|{text}")


@pytest.mark.parametrize("text", ["", "  ", "Paris is", "\ud800"])
def test_no_mask(bert, text):
    with pytest.raises(BertsmithError, match=r"the text has no mask; write \[MASK\] where"):
        bert.ours.fill(text)


def test_a_megabyte(bert):
    text = "the quick fox is lazy and paris good " * 28_000 + "[MASK]"
    assert len(text) > 1_000_000
    cut = bert.ours.embed(text)
    assert cut.truncated == len(bert.ours.tokenize(text)) - 64
    assert np.isfinite(cut).all()
    result = bert.ours.fill(text)
    assert result.truncated > 200_000  # the model saw one window of it
    assert len(result) == 5


@pytest.mark.parametrize("job", JOBS)
def test_nothing_in_nothing_out(bert, job):
    assert len(getattr(bert.ours, job)([])) == 0


def test_no_texts_have_no_vectors(bert):
    found = bert.ours.embed([])
    assert (found.shape, found.dtype, found.truncated) == ((0, 48), np.float32, [])


@pytest.mark.parametrize("job", JOBS)
@pytest.mark.parametrize("kind", [tuple, iter, lambda texts: (t for t in texts), np.array, dict.fromkeys])
def test_any_iterable_of_texts(bert, job, kind):
    texts = ["it is [MASK]", "[MASK]"]
    given = kind(texts)
    ask = getattr(bert.ours, job)
    if isinstance(given, dict):
        with pytest.raises(BertsmithError, match="give a text or a list of texts, not dict"):
            ask(given)
        return
    for found, expected in zip(ask(given), ask(texts), strict=True):
        if job == "fill":
            assert found.answers == expected.answers
        else:
            assert np.abs(found - expected).max() < CLOSE


@pytest.mark.parametrize("job", JOBS)
@pytest.mark.parametrize(
    ("given", "name"), [(5, "int"), (None, "NoneType"), (b"dog", "bytes"), (2.5, "float"), (np.array("dog"), "ndarray")]
)
def test_not_a_text(bert, job, given, name):
    with pytest.raises(BertsmithError, match=rf"give a text or a list of texts, not {name}\.$"):
        getattr(bert.ours, job)(given)
    with pytest.raises(BertsmithError, match=rf"text 2 must be a string, not {name}\.$"):
        getattr(bert.ours, job)(["[MASK]", given])


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
@pytest.mark.parametrize("job", ["embed", "hidden", "fill", "targets", "follows"])
def test_what_is_not_a_number_is_no_answer(bert_pairs, monkeypatch, job, bad):
    model = bert_pairs.ours
    jobs = {"follows": lambda: model.follows("a", "b"), "targets": lambda: model.fill("[MASK]", targets=["dog"])}
    ask = jobs.get(job) or (lambda: getattr(model, job)("it is [MASK]"))
    ask()
    monkeypatch.setattr(Network, "states", lambda self, batch: iter([torch.full((len(batch.ids), 48), bad)]))
    with pytest.raises(BertsmithError, match="a score that is not a number"):
        ask()


@pytest.mark.parametrize("pair", [("a", "b"), ["a", "b"]])
def test_pairs_in_one_list(pair):
    for given in ([pair], ["c", pair], iter(["c", pair])):
        with pytest.raises(BertsmithError, match=r"is a pair of texts; .* as in classify\(firsts, pair=seconds\)\.$"):
            pair_up("classify", given, None)
    assert pair_up("classify", (text for text in "ab"), None) == ([("a", None), ("b", None)], False)


def test_not_a_pair(bert_pairs):
    with pytest.raises(BertsmithError, match=r"give a text or a list of texts, not int\.$"):
        bert_pairs.ours.follows(5, 6)
    with pytest.raises(BertsmithError, match=r"text 1 must be a string, not NoneType\.$"):
        bert_pairs.ours.follows(["a"], [None])
    with pytest.raises(BertsmithError, match=r"the second text must be a string, not int\.$"):
        bert_pairs.ours.follows("a", 5)
    with pytest.raises(BertsmithError, match="two texts or two lists"):
        bert_pairs.ours.follows("a", ["b"])


def test_pairs_from_iterators(bert_pairs):
    a, b = ["it is", "dog"], ["good", "lazy"]
    found = bert_pairs.ours.follows(iter(a), tuple(b))
    assert [r.answers for r in found] == [r.answers for r in bert_pairs.ours.follows(a, b)]


@pytest.mark.parametrize("given", [5, None, b"dog"])
def test_tokenize_takes_texts(bert, given):
    with pytest.raises(BertsmithError, match=f"give a text or a list of texts, not {type(given).__name__}"):
        bert.ours.tokenize(given)


def test_texts_of_an_array_come_back_as_strings(bert):
    """Not as NumPy's own kind, which prints as np.str_('…') and which json alone of the writers takes."""
    given = np.array(["a dog", "a fox"])
    assert [type(text) for text in list_texts(given)] == [str, str]
    assert repr(list_texts(given)) == repr(["a dog", "a fox"])
    assert {type(answer["text"]) for answer in bert.ours.similar("dog", given)} == {str}
