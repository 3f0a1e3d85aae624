"""Scores before any function, and by another one than the model's: those of transformers' logits and pipelines."""

import pytest
import torch
import transformers
from tasks.made import CLOSE, SENTENCES, bert_pieces, open_both, wordpiece_files

from bertsmith.errors import BertsmithError
from bertsmith.tasks.classify import Classify
from bertsmith.tasks.task import Row

TEXTS = ["the capital of france", "a small dog", "the city is not good"]


def make(folder, **settings):
    return open_both(folder, "bert", "classify", wordpiece_files(bert_pieces()), **settings)


@pytest.fixture(scope="module")
def one_of_three(tmp_path_factory):
    return make(tmp_path_factory.mktemp("three"), num_labels=3)


@pytest.fixture(scope="module")
def several(tmp_path_factory):
    return make(tmp_path_factory.mktemp("several"), num_labels=4, problem_type="multi_label_classification")


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    return make(tmp_path_factory.mktemp("alone"), num_labels=1)


@pytest.fixture(scope="module")
def yes_no(tmp_path_factory):
    named = {"id2label": {0: "yes", 1: "no"}, "label2id": {"yes": 0, "no": 1}}
    return make(tmp_path_factory.mktemp("two"), num_labels=2, **named)


def logits(both, firsts, seconds=None):
    with torch.no_grad():
        return both.reference(**both.tokenizer(firsts, seconds, return_tensors="pt", padding=True)).logits


def by_label(result):
    return {answer["label"]: answer["score"] for answer in result}


@pytest.mark.parametrize("kind", ["one_of_three", "several", "alone"])
def test_raw_scores_are_the_logits(kind, request):
    both = request.getfixturevalue(kind)
    wanted = logits(both, SENTENCES)
    names = both.reference.config.id2label
    for found, row in zip(both.ours.classify(SENTENCES, raw=True), wanted, strict=True):
        assert by_label(found) == pytest.approx({names[i]: row[i].item() for i in names}, abs=CLOSE)
        assert [a["score"] for a in found] == sorted((a["score"] for a in found), reverse=True)


@pytest.mark.parametrize("kind", ["one_of_three", "several", "alone"])
@pytest.mark.parametrize("function", ["softmax", "sigmoid", "none"])
def test_functions_are_those_of_the_pipeline(kind, function, request):
    both = request.getfixturevalue(kind)
    pipeline = transformers.pipeline("text-classification", model=both.reference, tokenizer=both.tokenizer)
    asked = {"raw": True} if function == "none" else {"apply": function}
    for text in SENTENCES:
        wanted = pipeline(text, top_k=None, function_to_apply=function)
        assert by_label(both.ours.classify(text, **asked)) == pytest.approx(by_label(wanted), abs=CLOSE)


def test_of_raw_scores_the_best_are_given(one_of_three):
    whole, best = (one_of_three.ours.classify(SENTENCES[0], raw=True, top_k=k) for k in (None, 2))
    assert best.answers == whole.answers[:2]


def test_no_temperature_is_in_raw_scores_but_in_the_functions(one_of_three):
    made = {**one_of_three.ours.task_settings(Classify), "temperature": 4.0}
    rows, given = [Row([1], [0])], [torch.tensor([[3.0, -1.0, 0.5]])]
    for raw, apply, wanted in (
        (True, None, given[0][0]),
        (False, None, (given[0][0] / 4).softmax(-1)),
        (False, "softmax", (given[0][0] / 4).softmax(-1)),
        (False, "sigmoid", (given[0][0] / 4).sigmoid()),
    ):
        task = Classify(one_of_three.ours.tokenizer, 64, "head", made, None, raw, apply)
        found = by_label(task.answer(None, rows, given))
        assert [found[f"LABEL_{i}"] for i in range(3)] == pytest.approx(wanted.tolist())


def test_raw_ranks_are_the_logits(alone):
    wanted = logits(alone, [SENTENCES[0]] * 3, TEXTS)[:, 0]
    result = alone.ours.rerank(SENTENCES[0], TEXTS, raw=True)
    assert [a["index"] for a in result] == wanted.argsort(descending=True).tolist()
    assert [a["score"] for a in result] == pytest.approx([wanted[a["index"]].item() for a in result], abs=CLOSE)


def test_raw_ranks_of_two_outputs_are_by_how_much_yes_leads(yes_no):
    wanted = logits(yes_no, [SENTENCES[0]] * 3, TEXTS)
    raw, usual = (yes_no.ours.rerank(SENTENCES[0], TEXTS, raw=raw) for raw in (True, False))
    assert [a["index"] for a in raw] == [a["index"] for a in usual]
    for answer, chance in zip(raw, usual, strict=True):
        row = wanted[answer["index"]]
        assert answer["score"] == pytest.approx((row[0] - row[1]).item(), abs=CLOSE)
        assert chance["score"] == pytest.approx(row.softmax(-1)[0].item(), abs=CLOSE)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"apply": "tanh"}, "apply='tanh' is not a choice; use one of 'softmax', 'sigmoid'"),
        ({"apply": "softmax", "raw": True}, "before any function"),
        ({"labels": ["a", "b"], "raw": True}, "for a model's own classes"),
        ({"labels": ["a", "b"], "apply": "sigmoid"}, "for a model's own classes"),
    ],
)
def test_what_cannot_be_is_refused(one_of_three, asked, said):
    with pytest.raises(BertsmithError, match=said):
        one_of_three.ours.classify(SENTENCES[0], **asked)
