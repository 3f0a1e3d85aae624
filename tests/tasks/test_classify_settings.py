"""What training examples and choices settle: labels and their order, several or one, the positive class, mistakes."""

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bertsmith.data.examples import TextExample
from bertsmith.data.table import Table
from bertsmith.errors import BertsmithError
from bertsmith.tasks.classes import gold_matrix, label_number, order_labels, positive_label
from bertsmith.tasks.classify import Classify


def examples(*labels):
    return [TextExample("text", labels=each, where=f"a.csv, row {i}") for i, each in enumerate(labels, 2)]


def test_examples_of_a_table():
    records = [{"review": "good", "mood": "joy;love"}, {"review": "bad", "mood": "anger"}]
    table = Table("a.csv", ("review", "mood"), records, rows=[2, 3])
    columns = {"text": "review", "label": "mood"}
    whole = Classify.examples(table, columns, {})
    assert [(e.text, e.pair, e.labels, e.where) for e in whole] == [
        ("good", None, ("joy;love",), "a.csv, row 2"),
        ("bad", None, ("anger",), "a.csv, row 3"),
    ]
    parted = Classify.examples(table, columns, {"several": True})
    assert [e.labels for e in parted] == [("joy", "love"), ("anger",)]
    assert Classify.examples(table, columns, {}, gold=False)[0].labels is None


def test_one_label():
    settings = Classify.settle(examples(("spam",), ("ham",), ("spam",)), {})
    assert settings == {"labels": ["ham", "spam"], "several": False, "truncate": "head", "length": None,
                        "pairs": False}  # fmt: skip
    assert json.loads(json.dumps(settings)) == settings
    chosen = Classify.settle(examples(("b",), ("a",)), {"truncate": "windows", "length": 128, "positive": "a"})
    assert chosen == {"labels": ["a", "b"], "several": False, "truncate": "windows", "length": 128, "pairs": False,
                      "positive": "a"}  # fmt: skip


@pytest.mark.parametrize(
    ("labels", "why"),
    [
        ([("a",), ("b",), ("c",)], "there are 3 labels here"),
        ([("a",), ("a", "b")], "these texts may have several labels"),
        ([("b",), ("c",)], "positive: the label 'a' is not one"),
    ],
)
def test_a_positive_label_is_one_of_two(labels, why):
    """Elsewhere no F1 of one label is told, and the choice would have no effect."""
    with pytest.raises(BertsmithError, match=why):
        Classify.settle(examples(*labels), {"positive": "a"})


@pytest.mark.parametrize("labels", [[("a",), ("b", "c")], [("a",), (), ("c", "b")]])
def test_several_labels(labels):
    settings = Classify.settle(examples(*labels), {})
    assert (settings["labels"], settings["several"]) == (["a", "b", "c"], True)
    assert Classify.settle(examples(("a",), ("b",)), {"several": True})["several"] is True
    assert Classify.settle(examples(("a",), ()), {})["labels"] == ["a"]
    assert Classify.settle(examples(*labels), {"thresholds": 0.3})["thresholds"] == [0.3] * 3


@pytest.mark.parametrize(
    ("labels", "order"),
    [
        (["10", "9", "-1", "9"], ["-1", "9", "10"]),
        (["10", "9", "x"], ["10", "9", "x"]),
        (["2.5", "1e1"], ["2.5", "1e1"]),
        (["nan", "1", "0", "inf"], ["0", "1", "inf", "nan"]),
    ],
)
def test_order(labels, order):
    assert order_labels(labels) == order


@given(st.lists(st.text(max_size=4)), st.randoms())
def test_order_does_not_depend_on_the_file(labels, random):
    shuffled = random.sample(labels, len(labels))
    assert order_labels(labels) == order_labels(shuffled)


@pytest.mark.parametrize(
    ("labels", "positive"),
    [
        (["0", "1"], "1"),
        (["1", "0"], "1"),
        (["-1", "1"], "1"),
        (["ham", "spam"], "spam"),
        (["POSITIVE", "NEGATIVE"], "POSITIVE"),
        (["no", "yes"], "yes"),
        (["LABEL_0", "LABEL_1"], "LABEL_1"),
        (["duplicate", "not_duplicate"], "duplicate"),
        (["acceptable", "unacceptable"], "acceptable"),
        (["entailment", "not_entailment"], "entailment"),
        (["cat", "dog"], "dog"),
    ],
)
def test_positive(labels, positive):
    assert labels[positive_label(labels)] == positive


def test_placeholder_names():
    """A folder without names for its labels: data says 1 where the model says LABEL_1."""
    assert label_number("1", ["LABEL_0", "LABEL_1"]) == 1
    assert label_number("LABEL_0", ["LABEL_0", "LABEL_1"]) == 0


def test_other_folders():
    assert Classify.settings_from(["a", "b"], None)["several"] is False
    assert Classify.settings_from(["a", "b"], "single_label_classification")["several"] is False
    assert Classify.settings_from(["a", "b"], "multi_label_classification")["several"] is True
    assert Classify.settings_from(["a"], None) | {"length": 1} == {
        "labels": ["a"], "several": True, "truncate": "head", "length": 1, "thresholds": [0.0],
    }  # fmt: skip
    with pytest.raises(BertsmithError, match="gives a number"):
        Classify.settings_from(["a"], "regression")


@pytest.mark.parametrize(
    ("labels", "choices", "sentence"),
    [
        ([("a",), ("a",)], {}, "Of 2 examples all have the label 'a'"),
        ([], {}, "Of 0 examples none has a label"),
        ([(), ()], {}, "Of 2 examples none has a label"),
        ([("a",), None], {}, "a.csv, row 3 has no label; correct or remove it."),
        ([("a",), ("a", "b")], {"several": False}, "a.csv, row 3 has 2 labels where one is asked for"),
        ([("a",), ()], {"several": False}, "a.csv, row 3 has no label"),
        ([("a",), ("b",)], {"positive": "c"}, "positive: the label 'c' is not one of the model's"),
        ([("a",), ("b",)], {"thresholds": "each"}, "thresholds are for texts with several labels"),
        ([("a", "b")], {"thresholds": "all"}, "thresholds='all' is not a choice"),
        ([("a", "b")], {"thresholds": 1.5}, "thresholds=1.5 is not a choice"),
    ],
)
def test_mistakes(labels, choices, sentence):
    with pytest.raises(BertsmithError) as error:
        Classify.settle(examples(*labels), choices)
    assert sentence in str(error.value) and "\n" not in str(error.value)


def test_unknown_among_many():
    names = [f"class {i}" for i in range(30)]
    with pytest.raises(BertsmithError, match=r"a.csv, row 2: the label 'x' is not one .* and 20 more\); correct it"):
        gold_matrix(examples(("x",)), names)
    with pytest.raises(BertsmithError, match=r"a.csv, row 2 has no label, so it cannot be scored"):
        gold_matrix(examples(None), names)


@pytest.mark.parametrize("pairs", [True, False])
def test_what_was_learnt_from_pairs_is_asked_with_pairs(pairs):
    one, two = TextExample("a", None, ("x",), "f.csv, row 2"), TextExample("a", "b", ("y",))
    learnt, other = (two, one) if pairs else (one, two)
    settings = Classify.settle([learnt, replace(learnt, labels=("z",))], {})
    assert settings["pairs"] is pairs
    wanted = r"^f.csv, row 2: the model was trained on pairs .* \(pair=, --pair\)\.$" if pairs else (
        r"^the model was trained on single texts, but this is a pair; leave the second text out\.$")  # fmt: skip
    tokenizer: Any = None  # refused before anything is tokenized
    with pytest.raises(BertsmithError, match=wanted):
        Classify(tokenizer, 64, "head", settings).rows([learnt, other])
    mixed = Classify.settle([one, two], {})
    assert "pairs" not in mixed and "pairs" not in Classify.settings_from(["x", "y"], None)
