"""What would get an answer that means nothing is refused in a sentence, and sentences name what is wrong."""

import shutil

import pytest

import bertsmith
from bertsmith.errors import BertsmithError
from bertsmith.models.hub import HOUSE
from bertsmith.serving.residents import make_card


@pytest.fixture(scope="module")
def model():
    return bertsmith.load()


def test_what_learnt_from_pairs_wants_pairs(model):
    with pytest.raises(BertsmithError, match="trained on pairs of texts, but this is one text; give the second too"):
        model.score("A man plays.")
    assert model.score("A man plays.", "Someone plays.")[0]["score"] > 0


def test_who_ranks_is_who_compares_a_pair(model):
    """No adapter of the shipped model learnt to rank: the one that gives pairs a number does it, and no classifier."""
    texts = ["Bread rises in a warm place.", "A man plays a guitar."]
    ranked = model.rerank("Someone makes music on a guitar.", texts)
    own = [model.score("Someone makes music on a guitar.", text)[0]["score"] for text in texts]
    assert ranked[0]["index"] == 1 and own[1] > own[0]
    with pytest.raises(BertsmithError, match="sentiment was fine-tuned for 'classify' and cannot rerank texts"):
        model.use("sentiment").rerank("who", texts)
    jobs = {name: make_card(name, other).jobs for name, other in {"house": model, **model.adapters}.items()}
    assert {name for name, own in jobs.items() if "rerank" in own} == {"house", "similarity"}


def test_a_card_tells_the_length_that_is_read(model, caplog):
    adapter = model.adapters["sentiment"]
    length = adapter.trained["settings"]["length"]
    assert make_card("sentiment", adapter).limit == length < adapter.limit
    model.classify("good " * (length + 44))
    assert f"classify: 1 of 1 inputs were longer than {length} tokens; 46 tokens were cut" in caplog.text
    assert make_card("house", model).limit == model.limit


@pytest.mark.parametrize(
    "ask, told",
    [
        (lambda m: m.answer("who?", None), "give the text to answer from"),
        (lambda m: m.fill(["a [MASK]", "b"]), r"text 2: the text has no mask; write \[MASK\] where a word"),
        (lambda m: m.follows("a " * 600, "b", truncate="error"), "choose truncate='head', 'tail' or 'head"),
        (lambda m: m.follows("a", "b", truncate="windows"), "follows has no meaning for truncate='windows'"),
        (lambda m: m.tag(["a", "b " * 600], truncate="error"), "text 2: the text has .* tokens, but at most"),
        (lambda m: m.answer(["a", "b"], ["c", "d " * 600], truncate="error"), "question 2: the question has .* pieces"),
        (lambda m: m.rerank(["a", "b"], [["c"], ["d " * 600]], truncate="error"), "query 2: a text with its query has"),
        (lambda m: m.classify("a", labels="x,y"), r"labels must be a list, as in \['sport', 'politics'\], not 'x,y'"),
        (lambda m: m.classify("a", 5), "the second text must be a string, not int"),
        (lambda m: m.follows("a", ["b"]), "follows takes two texts or two lists of texts, not one of each"),
        (lambda m: bertsmith.load(adapters={"x": "nope"}), "'nope' is not the folder of an adapter"),
        (lambda m: bertsmith.evaluate(HOUSE, "x.csv"), r"has the adapters sentiment, nli, .* say which one is meant"),
    ],
)
def test_a_sentence_names_what_is_wrong(model, ask, told):
    with pytest.raises(BertsmithError, match=told):
        ask(model)


def test_follows_takes_iterators_too(model):
    firsts, seconds = ["the man went to the store"] * 2, ["he bought a gallon of milk", "penguins are flightless"]
    found = model.follows(iter(firsts), iter(seconds))
    assert [one.answers for one in found] == [one.answers for one in model.follows(firsts, seconds)]


def test_a_model_is_never_exported_over_itself(tmp_path):
    shutil.copytree(HOUSE, tmp_path / "mine")
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "mine").rglob("*")}
    with pytest.raises(BertsmithError, match="is the model itself, which would be lost; give another folder"):
        bertsmith.export_model(tmp_path / "mine", tmp_path / "mine", overwrite=True)
    assert before == {path: path.stat().st_mtime_ns for path in (tmp_path / "mine").rglob("*")}
