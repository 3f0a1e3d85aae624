"""SQuAD's scoring on hard cases worked out by hand from the published rules, and thresholds against trying them all."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from bertsmith.data.examples import SpanExample
from bertsmith.errors import BertsmithError
from bertsmith.evaluation.scoring import with_intervals
from bertsmith.tasks.squad_score import find_thresholds, normalise, score_predictions, score_texts

BOTH_VERSIONS = [  # answer, gold answers, exact, f1
    ("The Denver Broncos!", ["Denver Broncos"], 1, 1),
    ("denver  broncos\n", ["Denver Broncos"], 1, 1),
    ("Denver Broncos", ["the Broncos"], 0, 2 / 3),
    ("U.S.A.", ["USA"], 1, 1),
    ("twenty-one", ["twenty one"], 0, 0),  # a hyphen is dropped, not replaced by a space
    ("“Paris”", ["Paris"], 0, 0),  # only ASCII punctuation is punctuation
    ("5–4", ["5-4"], 0, 0),
    ("ÉCLAIR", ["éclair"], 1, 1),
    ("New\u00a0York", ["New York"], 1, 1),
    ("theatre", ["atre"], 0, 0),  # articles are whole words
    ("an apple a day", ["apple day"], 1, 1),
    ("to be or not to be", ["to be"], 0, 0.5),  # words count as often as they occur
    ("cat cat", ["cat"], 0, 2 / 3),
    ("x y", ["x", "x y z", "q"], 0, 0.8),  # the best of several
    ("7", ["seven", "7", "7 of them"], 1, 1),
    ("dog", ["cat"], 0, 0),
    ("", ["cat"], 0, 0),
    (None, ["cat"], 0, 0),
]
FIRST = [  # evaluate-v1.1.py has no rule for what is empty in the end
    ("the", ["A"], 1, 0),
    ("", ["the"], 1, 0),
    ("x", ["the", "x"], 1, 1),
    ("an", ["the", "x"], 1, 0),
]
SECOND = [
    ("", [], 1, 1),
    ("The...", [], 1, 1),
    ("x", [], 0, 0),
    (None, [], 0, 0),
    ("the", ["A"], 1, 1),
    ("an", ["the", "x"], 0, 0),  # beside a fuller one an empty gold does not count
    ("x", ["the", "x"], 1, 1),
]


def example(golds: list[str] | None, id: str = "") -> SpanExample:
    return SpanExample("?", "", None if golds is None else tuple((gold, 0) for gold in golds), id)


@pytest.mark.parametrize(("answer", "golds", "exact", "f1"), [*BOTH_VERSIONS, *FIRST])
def test_first_version(answer, golds, exact, f1):
    scored = score_texts([answer], [example(golds)])
    assert (scored.exact[0], scored.f1[0]) == (exact, pytest.approx(f1))


@pytest.mark.parametrize(("answer", "golds", "exact", "f1"), [*BOTH_VERSIONS, *SECOND])
def test_second_version(answer, golds, exact, f1):
    scored = score_texts([answer, ""], [example(golds), example([])])
    assert (scored.exact[0], scored.f1[0]) == (exact, pytest.approx(f1))


def test_normalising():
    assert normalise(" The  (Big) A.B. an\tOWL's\n") == "big ab owls"


def test_parts():
    answers = {"1": "the cat", "2": "cat", "3": "", "4": "dog", "6": "wrong"}
    golds = {"1": ["cat"], "2": ["cat dog"], "3": [], "4": [], "5": ["unanswered"]}
    examples = [*(example(gold, id) for id, gold in golds.items()), example(None, "6")]
    points = {name: measure.point for name, measure in score_predictions(answers, examples).items()}
    assert points == pytest.approx(
        {"f1": (1 + 2 / 3 + 1) / 5, "exact": 2 / 5, "has_answer_f1": (1 + 2 / 3) / 3, "has_answer_exact": 1 / 3,
         "no_answer_f1": 1 / 2, "no_answer_exact": 1 / 2}
    )  # fmt: skip


def test_the_first_version_has_no_parts():
    found = score_predictions({"1": "cat"}, [example(["cat"], "1")])
    assert list(found) == ["f1", "exact"] and found["f1"].point == 1


def test_samples_that_miss_a_part_say_nothing_of_it():
    """Three questions of a hundred have no answer, and one of twenty samples none of the three: it was a 0."""
    examples = [example([] if i < 3 else ["cat"], str(i)) for i in range(100)]
    found = with_intervals(score_predictions({str(i): "" for i in range(100)}, examples), 100)["no_answer_exact"]
    wilson = stats.binomtest(3, 3).proportion_ci(0.95, method="wilson")
    assert found == pytest.approx({"value": 1, "low": wilson.low, "high": 1, "n": 3})


WORTHS = st.sampled_from(["cat", "cat dog", "wrong", ""])
SCORES = st.integers(-20, 20).map(lambda number: number / 4)


@given(st.lists(st.tuples(WORTHS, st.booleans(), SCORES), min_size=1, max_size=12, unique_by=lambda case: case[2]))
def test_best_threshold_is_the_best_of_all(cases):
    examples = [example([], "none"), *(example(["cat"] if has else [], str(i)) for i, (_, has, _) in enumerate(cases))]
    answers = {"none": "", **{str(i): text for i, (text, _, _) in enumerate(cases)}}
    scores = {"none": 99.0, **{str(i): score for i, (_, _, score) in enumerate(cases)}}

    def at(threshold: float, name: str) -> float:
        said = {id: "" if scores[id] > threshold else text for id, text in answers.items()}
        return score_predictions(said, examples)[name].point

    found = score_predictions(answers, examples, scores)
    best = find_thresholds(score_texts([answers[e.id] for e in examples], examples), examples, scores)
    for name in ("exact", "f1"):
        assert found[f"best_{name}"].point == pytest.approx(max(at(t, name) for t in [-100, *scores.values()]))
        if best[name].given.any():
            assert at(best[name].at, name) == pytest.approx(found[f"best_{name}"].point)
        else:
            assert best[name].at == 0.0


def test_threshold_by_hand():
    golds = {"a": ["cat"], "b": [], "c": ["cat"], "d": [], "e": ["cat"]}
    answers = {"a": "cat", "b": "dog", "c": "cat dog", "d": "dog", "e": "dog"}
    scores = {"a": 0.1, "b": 0.2, "c": 0.3, "d": 0.4, "e": 0.5}
    examples = [example(gold, id) for id, gold in golds.items()]
    best = find_thresholds(score_texts([answers[e.id] for e in examples], examples), examples, scores)
    # From none given, 2 right: + 1, - 1, + 2/3 (exact: 0), - 1, 0.
    assert (best["exact"].at, best["exact"].measure.point) == (0.1, pytest.approx(3 / 5))
    assert (best["f1"].at, best["f1"].measure.point) == (0.1, pytest.approx(3 / 5))
    scores["b"] = 0.35
    best = find_thresholds(score_texts([answers[e.id] for e in examples], examples), examples, scores)
    assert (best["f1"].at, best["f1"].measure.point) == (0.3, pytest.approx((3 + 2 / 3) / 5))


def test_no_answer_scores_must_be_complete():
    with pytest.raises(BertsmithError, match='lack question "b"'):
        score_predictions({}, [example([], "a"), example([], "b")], {"a": 0.5})


def test_each_part_knows_how_many_questions_count_in_it():
    """As in evaluate-v2.0.py, whose HasAns_total and NoAns_total are those of the parts."""
    examples = [SpanExample("q", "In Paris.", (("Paris", 3),) if n < 3 else (), str(n)) for n in range(8)]
    examples.append(SpanExample("q", "In Paris.", None, "unknown"))
    scored = with_intervals(score_predictions({str(n): "Paris" for n in range(8)}, examples), len(examples))
    assert {name: score["n"] for name, score in scored.items()} == {
        "f1": 8, "exact": 8, "has_answer_f1": 3, "has_answer_exact": 3, "no_answer_f1": 5, "no_answer_exact": 5,
    }  # fmt: skip
