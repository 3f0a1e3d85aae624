"""Scores of tags: conlleval's numbers, scikit-learn's, and what a sentence adds to each."""

from itertools import chain

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score, f1_score
from tasks.conlleval import conlleval

from bertsmith.data.examples import TagExample
from bertsmith.data.schemes import convert, find_scheme, write_tags
from bertsmith.evaluation.intervals import compare
from bertsmith.evaluation.scoring import with_intervals
from bertsmith.tasks.entities import measure_tags, type_table
from bertsmith.tasks.result import Result
from bertsmith.tasks.tag import Tag

# gold, found; what conlleval prints of it: entities right, found and in the corpus, tags right
HARD = [
    ("B-X I-X O B-Y", "B-X I-X O B-Y", (2, 2, 2, 4)),
    ("B-X I-X O", "B-X O O", (0, 1, 1, 2)),  # cut short
    ("B-X I-X O", "I-X I-X O", (1, 1, 1, 2)),  # the same entity in other letters: right, though a tag is not
    ("B-X I-X", "B-X I-Y", (0, 2, 1, 1)),  # the type switches inside
    ("I-X I-X B-X O", "I-X I-X I-X O", (0, 1, 2, 3)),  # IOB1: two neighbours taken for one
    ("B-X B-X", "B-X B-X", (2, 2, 2, 2)),
    ("O O B-X", "O I-X I-X", (0, 1, 1, 1)),
    ("B-X I-X", "O I-X", (0, 1, 1, 1)),
    ("S-X O B-Y I-Y E-Y", "S-X O B-Y I-Y I-Y", (2, 2, 2, 4)),  # its end is missing, the entity is the same
    ("B-X E-X S-X", "B-X I-X E-X", (0, 1, 2, 1)),
    ("O O", "O O", (0, 0, 0, 2)),
    ("B-X", "B-Y", (0, 1, 1, 0)),
]


@pytest.mark.parametrize(("gold", "found", "counts"), HARD)
def test_hard_cases_are_scored_as_conlleval_scores_them(gold, found, counts):
    gold, found = gold.split(), found.split()
    right, given, known, same = counts
    assert conlleval([gold], [found]) == (right, given, known)
    scored = measure_tags([found], [gold], find_scheme([gold]))
    assert next(iter(scored)) == "f1"
    assert scored["precision"].point == (right / given if given else 0)
    assert scored["recall"].point == (right / known if known else 0)
    assert scored["f1"].point == pytest.approx(2 * right / (given + known) if given + known else 0)
    assert scored["accuracy"].point == same / len(gold)


def test_all_hard_cases_together():
    gold, found = ([case[side].split() for case in HARD] for side in (0, 1))
    scored = measure_tags(found, gold, "iobes")
    right, given, known = conlleval(gold, found)
    assert scored["f1"].counts.shape == (len(HARD), 3)
    assert scored["f1"].counts.sum(axis=0).tolist() == [right, given, known] == [7, 15, 16]
    table = type_table(found, gold, "iobes")
    assert [(row["label"], row["given"], row["support"]) for row in table] == [("X", 11, 14), ("Y", 4, 2)]
    assert scored["macro_f1"].point == pytest.approx(np.mean([row["f1"] for row in table]))


def test_without_an_entity_there_is_a_score_all_the_same():
    """Neither in the gold nor in what was found, as in a small development set; beside a model that finds some, too."""
    gold = [["O", "O"], ["O"]]
    none, some = (measure_tags(found, gold, "iob2") for found in (gold, [["B-X", "O"], ["O"]]))
    told = with_intervals(none, 2)
    assert told["accuracy"]["value"] == 1.0
    assert all(told[name]["value"] == told[name]["low"] == 0.0 for name in ("f1", "macro_f1"))
    for name in none:
        assert compare(none[name], none[name]).p == 1.0
        assert compare(none[name], some[name]).difference == none[name].point - some[name].point


def test_taggers_that_find_other_types_are_compared():
    """One gives a type that the data does not have, the other does not: the counts were of other widths."""
    gold = [["B-X", "O"], ["B-Y", "O"]] * 10
    ours, theirs = [["B-X", "O"], ["B-Z", "O"]] * 10, [["B-A", "O"], ["B-Y", "O"]] * 10
    for name, measure in measure_tags(ours, gold, "iob2").items():
        other = measure_tags(theirs, gold, "iob2")[name]
        found = compare(measure, other, samples=300)
        assert found.difference == 0 and found.low <= 0 <= found.high and found.p == 1
    # macro F1 of what scikit-learn sees: a type a word
    macro = measure_tags(ours, gold, "iob2")["macro_f1"].point
    assert macro == pytest.approx(f1_score(["X", "Y"], ["X", "Z"], average="macro", zero_division=0))


tags = st.lists(
    st.lists(st.sampled_from(["O", "B-X", "I-X", "B-Y", "I-Y", "B-Z", "I-Z"]), max_size=9), min_size=1, max_size=6
)


@given(tags, st.randoms(use_true_random=False))
def test_any_tags_are_scored_as_conlleval_scores_them(gold, random):
    found = [[random.choice([tag, "O", "B-X", "I-Y"]) for tag in sentence] for sentence in gold]
    counts = measure_tags(found, gold, "iob2")["f1"].counts
    assert counts.shape == (len(gold), 3)
    assert tuple(counts.sum(axis=0)) == conlleval(gold, found)


@given(tags)
def test_gold_in_another_scheme_changes_nothing(gold):
    gold = [convert(sentence, "iob", "iob2") for sentence in gold]
    found = [["B-X" if tag == "I-X" else tag for tag in sentence] for sentence in gold]
    found = [convert(sentence, "iob", "iob2") for sentence in found]
    once = measure_tags(found, gold, "iob2")
    for scheme in ("iob1", "iobes", "bilou"):
        other = measure_tags(found, [convert(sentence, "iob2", scheme) for sentence in gold], "iob2")
        assert other["f1"].point == once["f1"].point
        all_right = other["accuracy"].counts[:, 0].sum() == sum(map(len, gold))
        assert all_right == (found == gold)


plain = st.lists(st.lists(st.tuples(*[st.sampled_from(["NN", "VB", "DT"])] * 2), min_size=1, max_size=6), min_size=1)


@given(plain)
def test_plain_tags_are_scored_as_by_scikit_learn(sentences):
    gold, found = ([[pair[side] for pair in sentence] for sentence in sentences] for side in (0, 1))
    scored = measure_tags(found, gold, "plain")
    flat_gold, flat_found = (list(chain.from_iterable(each)) for each in (gold, found))
    assert list(scored) == ["accuracy", "macro_f1"]
    assert scored["accuracy"].point == pytest.approx(accuracy_score(flat_gold, flat_found))
    assert scored["macro_f1"].point == pytest.approx(f1_score(flat_gold, flat_found, average="macro"))


def test_a_tag_that_training_did_not_have_counts_as_missed():
    settings = Tag.settle([TagExample("a b", ((0, 1), (2, 3)), ("B-X", "O"))], {})
    task = Tag.__new__(Tag)
    task.scheme = settings["scheme"]
    examples = [TagExample("a b", ((0, 1), (2, 3)), ("B-X", "B-NEW")), TagExample("", (), ())]
    answers = [Result([], tags=["B-X", "O"]), Result([], tags=[])]
    scored = task.score(answers, examples)
    assert (scored["precision"].point, scored["recall"].point, scored["accuracy"].point) == (1.0, 0.5, 0.5)
    assert scored["macro_f1"].point == 0.5
    odd = [TagExample("a b", ((0, 1), (2, 3)), ("B-X", "???"))]
    assert task.score(answers[:1], odd)["accuracy"].point == 0.5


def test_nothing_to_score():
    for scheme in ("iob2", "plain"):
        assert {measure.point for measure in measure_tags([], [], scheme).values()} == {0.0}


def test_entities_side_by_side_are_told_apart_or_run_together():
    spans = [(0, 1, "X"), (1, 2, "X")]
    for scheme, known in (("iob1", 2), ("iob2", 2), ("iobes", 2), ("io", 1), ("bare", 1)):
        tags = write_tags(spans, 2, scheme)
        assert measure_tags([tags], [tags], scheme)["f1"].counts.tolist() == [[known] * 3]
