"""What a report shows of a classifier's answers: counted by scikit-learn, and calibration before the temperature."""

import json

import numpy as np
import pytest
import torch
from scipy.special import softmax
from sklearn.metrics import confusion_matrix, precision_recall_fscore_support

from bertsmith.data.examples import TextExample
from bertsmith.evaluation.scoring import score_examples
from bertsmith.tasks.calibration import calibration_error, reliability
from bertsmith.tasks.class_report import report_classes
from bertsmith.tasks.classify import Classify
from bertsmith.tasks.result import Result
from bertsmith.tasks.task import Row

LABELS = ["a", "b", "c"]


def make_result(chances, least=-1.0):
    found = [{"label": label, "score": float(p)} for label, p in zip(LABELS, chances, strict=True) if p >= least]
    return Result(sorted(found, key=lambda answer: -answer["score"]))


@pytest.fixture
def drawn():
    """Scores of 70 texts, and a gold label each that is often the best."""
    random = np.random.default_rng(0)
    scores = random.normal(0, 2, (70, 3))
    gold = np.where(random.random(70) < 0.6, scores.argmax(axis=1), random.integers(3, size=70))
    return scores, gold, [TextExample(f"text {i}", labels=(LABELS[g],), where=f"row {i}") for i, g in enumerate(gold)]


@pytest.mark.parametrize("temperature", [None, 2.5, 0.4])
def test_one_label(drawn, temperature):
    scores, gold, examples = drawn
    after = softmax(scores / (temperature or 1), axis=1)
    settings = {"labels": LABELS, "several": False, "temperature": temperature}
    found = report_classes([make_result(row) for row in after], examples, settings)
    assert json.loads(json.dumps(found)) == found
    best = scores.argmax(axis=1)
    assert found["confusion"] == {"labels": LABELS, "counts": confusion_matrix(gold, best).tolist()}
    rows = [[row[name] for row in found["per_label"]] for name in ("precision", "recall", "f1", "support")]
    assert np.array(rows) == pytest.approx(np.array(precision_recall_fscore_support(gold, best)))
    trust, before = found["reliability"], softmax(scores, axis=1).max(axis=1)
    assert trust["ece_after"] == pytest.approx(calibration_error(after.max(axis=1), gold == best).point)
    if temperature is None:
        assert trust.keys() == {"bins", "ece_after"}
    else:
        assert trust["ece_before"] == pytest.approx(calibration_error(before, gold == best).point)
        expected = [list(b.values()) for b in reliability(before, gold == best)]
        assert np.array([list(b.values()) for b in trust["before"]]) == pytest.approx(np.array(expected))


def test_mistakes(drawn):
    scores, gold, examples = drawn
    chances = softmax(scores, axis=1)
    found = report_classes([make_result(row) for row in chances], examples, {"labels": LABELS, "several": False})
    wrong = np.flatnonzero(scores.argmax(axis=1) != gold)
    assert [e["where"] for e in found["errors"]] == [f"row {i}" for i in wrong[np.argsort(-chances[wrong].max(axis=1))]]
    for error in found["errors"]:
        row = int(error["where"].removeprefix("row "))
        assert (error["gold"], error["text"], error["pair"]) == (LABELS[gold[row]], f"text {row}", None)
        assert (error["predicted"], error["score"]) == (LABELS[chances[row].argmax()], chances[row].max())


def test_several_labels():
    answers = [make_result(row, 0.5) for row in [(0.9, 0.6, 0.1), (0.2, 0.1, 0.1), (0.1, 0.7, 0.8), (0.6, 0.1, 0.1)]]
    golds = [("a",), ("c",), ("c", "b"), ("b",)]
    examples = [TextExample("x", "y", labels, f"row {i}") for i, labels in enumerate(golds)]
    found = report_classes(answers, examples, {"labels": LABELS, "several": True, "thresholds": [0.5, 0.5, 0.5]})
    errors = [(e["where"], e["predicted"], e["gold"], e["score"]) for e in found["errors"]]
    assert {e[0] for e in errors} == {"row 0", "row 1", "row 3"}  # the third has both, in another order
    assert errors[-1] == ("row 1", [], ["c"], None)
    assert ("row 0", ["a", "b"], ["a"], 0.6) in errors and ("row 3", ["a"], ["b"], 0.6) in errors
    assert found["thresholds"] == dict.fromkeys(LABELS, 0.5) and found["pairs"]
    assert "confusion" not in found and "reliability" not in found


@pytest.mark.parametrize(("several", "temperature", "held"), [(False, None, 1), (False, 2.0, 3), (True, None, 3)])
def test_scoring_holds_what_is_looked_at(drawn, several, temperature, held):
    """Of one label the best answer; of several all that are given; for what a temperature changed all of them."""
    scores, _, examples = drawn
    settings = {"labels": LABELS, "several": several, "truncate": "head", "thresholds": [0.0] * 3}
    task = Classify(None, 8, "head", {**settings, "temperature": temperature})
    task.rows = lambda some: [[Row((1, 2), (0, 0))] for _ in some]

    class Known:
        device = torch.device("cpu")

        def run(self, task, rows):
            return [torch.tensor(row)[None] for row in scores]

    found = score_examples(Known(), task, examples, None)
    assert {len(result) for result in found.answers} == {held}
    whole = [task.answer(*each) for each in zip(examples, found.rows, found.scores, strict=True)]
    assert {len(result) for result in whole} == {3}
    points = {name: measure.point for name, measure in found.measures.items()}
    assert points == {name: measure.point for name, measure in task.score(whole, examples).items()}
    assert found.task.report(found.answers, examples) == task.report(whole, examples)
