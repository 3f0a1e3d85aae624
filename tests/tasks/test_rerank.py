"""Reranking: scores of transformers and CrossEncoder, one output or two, the loss, the measures, bad requests."""

import random
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tasks.made import WORDS, bert_pieces, open_both, wordpiece_files
from torch.nn import functional as F

from bertsmith.data.examples import RankExample
from bertsmith.errors import BertsmithError
from bertsmith.evaluation.scoring import with_intervals
from bertsmith.tasks.losses import Criterion
from bertsmith.tasks.rerank import Rerank
from bertsmith.tasks.result import Result
from bertsmith.tasks.task import Row
from bertsmith.training.settings import Training
from bertsmith.training.study import TaskStudy

WORD_LIST = WORDS.split()
GRADED = st.tuples(st.integers(0, 2), st.floats(0, 1))  # a gain and a score


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    files = wordpiece_files(bert_pieces())
    return open_both(tmp_path_factory.mktemp("rerank"), "bert", "classify", files, num_labels=1)


def make_examples(count, seed=0):
    chance = random.Random(seed)
    found = []
    for i in range(count):
        texts = [" ".join(chance.choices(WORD_LIST, k=chance.randint(1, 8))) + f" {n}" for n in range(2 + i % 3)]
        query = " ".join(chance.choices(WORD_LIST, k=chance.randint(1, 5)))
        found.append(RankExample(query, tuple(texts), (1.0, *[0.0] * (len(texts) - 1)), f"row {i + 1}"))
    return found


def make_task(both, examples, **more):
    made = {**Rerank.settle(examples, {}), **more}
    return Rerank(both.ours.tokenizer, 64, made["truncate"], made)


def bare_task(**known):
    """A task that only scores answers."""
    task = Rerank.__new__(Rerank)
    task.settings, task.least, task.most = known, known.get("least", 0.0), known.get("most", 1.0)
    return task


def reference_logits(both, query, texts):
    with torch.no_grad():
        given = both.tokenizer([query] * len(texts), list(texts), return_tensors="pt", padding=True)
        return both.reference(**given).logits


def test_scores_are_the_references(both):
    for example in make_examples(5):
        wanted = reference_logits(both, example.query, example.texts)[:, 0].sigmoid()
        result = both.ours.rerank(example.query, example.texts)
        assert [a["index"] for a in result] == wanted.argsort(descending=True, stable=True).tolist()
        for answer in result:
            assert answer["score"] == pytest.approx(wanted[answer["index"]].item(), abs=1e-5)
            assert answer["text"] == example.texts[answer["index"]]
    many = make_examples(4)
    found = both.ours.rerank([e.query for e in many], [e.texts for e in many], top_k=1)
    assert [len(result) for result in found] == [1] * 4 and both.ours.rerank([], []) == []


def test_scores_are_those_of_a_cross_encoder(both):
    from sentence_transformers import CrossEncoder

    theirs = CrossEncoder(str(both.ours.folder), device="cpu")
    texts = ["the dog is in paris", "a cat", "london is not a small city"]
    result = both.ours.rerank("the city", texts)
    wanted = theirs.predict([("the city", text) for text in texts])
    assert [a["score"] for a in result] == pytest.approx(sorted(wanted.tolist(), reverse=True), abs=1e-5)
    ranked = theirs.rank("the city", texts)
    assert [a["index"] for a in result] == [one["corpus_id"] for one in ranked]


def test_of_two_outputs_the_one_that_means_yes_counts(tmp_path):
    names = {"id2label": {0: "yes", 1: "no"}, "label2id": {"yes": 0, "no": 1}}
    model = open_both(tmp_path, "bert", "classify", wordpiece_files(bert_pieces()), num_labels=2, **names)
    texts = ["the dog", "a cat in paris"]
    wanted = reference_logits(model, "city", texts).softmax(dim=-1)[:, 0]
    scores = {a["index"]: a["score"] for a in model.ours.rerank("city", texts)}
    assert [scores[0], scores[1]] == pytest.approx(wanted.tolist(), abs=1e-5)


def test_three_classes_do_not_rank(tmp_path):
    model = open_both(tmp_path, "bert", "classify", wordpiece_files(bert_pieces()), num_labels=3)
    with pytest.raises(BertsmithError, match="a head of 3 classes; a cross-encoder that reranks has one output or two"):
        model.ours.rerank("x", ["a"])


def test_the_loss_is_binary_cross_entropy_over_all_rows(both):
    """Also of grades, on the scale of train, in one pass or in many."""
    examples = [replace(e, gains=tuple(float(i % 4) for i in range(len(e.texts)))) for e in make_examples(6)]
    task = make_task(both, examples)
    rows = task.rows(examples)
    logits = torch.cat([reference_logits(both, e.query, e.texts)[:, 0] for e in examples])
    wanted = torch.tensor([gain / 3 for e in examples for gain in e.gains])
    study = TaskStudy(task, rows, Training(batch=6))
    for budget in (20, 10**6):
        total = count = 0.0
        for work in study.works(0, 0, 1, budget):
            batch, arrays = work.on(torch.device("cpu"))
            with torch.no_grad():
                total += study.losses(both.ours.checkpoint.network, batch, arrays)["loss"].item()
            count += work.counts["loss"]
        expected = F.binary_cross_entropy_with_logits(logits, wanted).item()
        assert count == len(wanted) and total / count == pytest.approx(expected, rel=1e-4)
    gold = torch.tensor([1.0, float("nan")])
    assert task.loss(torch.randn(2, 1), gold, None, Criterion())[1] == 0


@pytest.mark.parametrize(
    ("gains", "ends"), [((0, 1), (0, 1)), ((0.2, 0.7), (0, 1)), ((0, 3), (0, 3)), ((1, 5), (1, 5)), ((-2, 2), (-2, 2))]
)
def test_labels_of_any_scale_become_shares(both, gains, ends):
    task = make_task(both, [RankExample("q", ("a", "b"), gains)])
    assert (task.least, task.most) == ends
    shares = [float(row.gold) for row in task.rows([RankExample("q", ("a", "b"), gains)])[0]]
    assert shares == pytest.approx([(gain - ends[0]) / (ends[1] - ends[0]) for gain in gains])
    assert task.share(99.0) == 1.0 and task.share(-99.0) == 0.0


@settings(deadline=None)
@given(st.lists(st.lists(GRADED, min_size=1, max_size=12), min_size=1, max_size=5))
def test_measures_are_scikit_learns(queries):
    from sklearn.metrics import average_precision_score, ndcg_score

    task = bare_task(least=0.0, most=2.0)
    examples, answers, ap, ndcg = [], [], [], []
    for query in queries:
        gains = np.array([gain for gain, _ in query], dtype=float)
        scores = np.argsort(np.argsort([score for _, score in query], kind="stable")) + 1.0  # no two are equal
        texts = tuple(f"text {i}" for i in range(len(query)))
        examples.append(RankExample("q", texts, tuple(gains)))
        best = np.argsort(-scores)
        answers.append(Result([{"index": int(i), "text": texts[i], "score": scores[i]} for i in best]))
        if gains.any():
            ap.append(average_precision_score(gains > 0, scores))
            ndcg.append(ndcg_score([gains], [scores], k=10) if len(gains) > 1 else 1.0)
    found = task.score(answers, examples)
    assert list(found) == ["mrr@10", "ndcg@10", "map", "recall@1"] and found["map"].among == len(ap)
    assert found["map"].point == pytest.approx(np.mean(ap) if ap else 0)
    assert found["ndcg@10"].point == pytest.approx(np.mean(ndcg) if ndcg else 0)


@pytest.mark.parametrize("known", [{}, {"least": 0.0, "most": 1.0}, {"least": 0.0, "most": 3.0}])
def test_grades_that_training_did_not_show_still_differ(known):
    """A cross-encoder of others, or one that learnt 0 and 1, is measured by the grades that the data has."""
    from sklearn.metrics import ndcg_score

    gains, scores = [1.0, 3.0, 0.0, 2.0], [0.9, 0.8, 0.7, 0.6]
    texts = ("a", "b", "c", "d")
    said = Result([{"index": i, "text": text, "score": scores[i]} for i, text in enumerate(texts)])
    found = bare_task(**known).score([said], [RankExample("q", texts, tuple(gains))])
    assert found["ndcg@10"].point == pytest.approx(ndcg_score([gains], [scores], k=10))
    assert found["recall@1"].point == pytest.approx(1 / 3)


def test_the_least_of_other_grades_means_that_a_text_does_not_answer():
    """As what is said of the column has it: from 1 (not at all) to 5 (perfectly)."""
    said = Result([{"index": i, "text": text, "score": 1.0 - i} for i, text in enumerate("ab")])
    examples = [RankExample("q", ("a", "b"), (1.0, 5.0))]
    assert bare_task().score([said], examples)["mrr@10"].point == 0.5
    assert [error["gold"] for error in bare_task().report([said], examples)["errors"]] == ["b"]
    assert bare_task(least=0.0, most=5.0).score([said], examples)["mrr@10"].point == 1.0  # where training showed a 0


def test_numbers_beyond_what_a_sigmoid_tells_apart_still_rank(both):
    """The head of another library may give prices or percents."""
    example = RankExample("q", ("low", "high", "middle"))
    task = make_task(both, make_examples(2))
    numbers = [torch.tensor([[number]]) for number in (50.0, 90.0, 70.0)]
    result = task.answer(example, [Row([1], [0])] * 3, numbers)
    assert [answer["text"] for answer in result] == ["high", "middle", "low"]


def test_queries_that_nothing_answers_leave_a_score_that_says_nothing():
    said = Result([{"index": 0, "text": "a", "score": 0.5}])
    found = with_intervals(bare_task(least=0.0, most=1.0).score([said], [RankExample("q", ("a",), (0.0,))]), 1)
    assert found["mrr@10"] == {"value": 0.0, "low": 0.0, "high": 1.0, "n": 0}


def test_mistakes_and_what_cannot_be_scored(both):
    examples = make_examples(9)
    task = make_task(both, examples)
    answers = both.ours.predictor.predict(task, examples)
    wrong = sum(result[0]["index"] != 0 for result in answers)
    errors = task.report(answers, examples)["errors"]
    assert len(errors) == wrong and all(error["gold"] != error["predicted"] for error in errors)
    with pytest.raises(BertsmithError, match="An example has no label to score by"):
        task.score(answers[:1], [RankExample("q", ("a",))])


def test_long_texts(both):
    long = RankExample("who", ("the " * 90, "a"), (1.0, 0.0), "train.csv, row 3")
    (rows,) = make_task(both, [long]).rows([long])
    assert len(rows[0].ids) == 64 and rows[0].dropped > 0 and not rows[1].dropped
    with pytest.raises(BertsmithError, match=r"train.csv, row 3: a text with its query has \d+ tokens but at most"):
        make_task(both, [long], truncate="error").rows([long])
    with pytest.raises(BertsmithError, match="rerank has no meaning for truncate='windows'"):
        make_task(both, [long], truncate="windows")


@pytest.mark.parametrize("gains", [(1.0, 1.0), (0.0, 0.0)])
def test_labels_that_are_all_the_same_teach_nothing(gains):
    with pytest.raises(BertsmithError, match=f"all 2 labels of train are {gains[0]:g}, so there is nothing to learn"):
        Rerank.settle([RankExample("q", ("a", "b"), gains)], {})


@pytest.mark.parametrize(
    ("query", "texts", "why"),
    [
        ("x", [], "there are no texts to rank; give at least one."),
        (" ", ["a"], "the query is empty; give some words to rank the texts by."),
        ("x", "ab", "give a list of texts, not a single one."),
        ("x", ["a", 3], "text 2 must be a string, not int."),
        (["x", "y"], [["a"]], "rerank got 2 queries and 1 lists of texts; give one each."),
        (["x"], 3, "give a list of texts for each query, not int."),
        (["x"], None, "give a list of texts for each query, not NoneType."),
        (["x", "y"], ["a", "b", "c"], "give a list of texts for each query, not str."),
    ],
)
def test_bad_requests(both, query, texts, why):
    with pytest.raises(BertsmithError) as error:
        both.ours.rerank(query, texts)
    assert str(error.value) == why


def test_a_model_without_a_head_says_what_to_do(bert):
    with pytest.raises(BertsmithError, match=r"has no head to rerank texts .*\(finetune, task 'rerank'\)"):
        bert.ours.rerank("x", ["a"])
