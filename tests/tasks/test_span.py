"""Questions and contexts to rows: windows as the reference's tokenizer cuts them, gold that points at its answer."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tasks.made import SENTENCES, Both

from bertsmith.data.columns import find_columns
from bertsmith.data.examples import SpanExample
from bertsmith.data.reading import read_table
from bertsmith.errors import BertsmithError
from bertsmith.tasks.answers import SpanRow
from bertsmith.tasks.span import Span

QUESTION = "Is Paris the capital?"
TEXT = " ".join(SENTENCES)


def make_task(both: Both, truncate: str = "windows", top_k: int = 1, limit: int = 64, **chosen) -> Span:
    return Span(both.ours.tokenizer, limit, truncate, {**Span.settings_from((), None), **chosen}, top_k)


@pytest.mark.parametrize(("length", "overlap"), [(64, 20), (40, 0), (40, 23), (64, 1)])
@pytest.mark.parametrize("context", ["dog", TEXT, TEXT * 4], ids=len)
def test_windows_are_the_references(filler, length, overlap, context):
    task = make_task(filler, length=length, overlap=overlap, question_length=12)
    question = QUESTION[:8]
    rows = task.rows([SpanExample(question, context)])[0]
    theirs = filler.tokenizer(
        question, context, truncation="only_second", max_length=length, stride=overlap,
        return_overflowing_tokens=True, return_token_type_ids=True,
    )  # fmt: skip
    assert [list(row.ids) for row in rows] == theirs["input_ids"]
    assert [list(row.segments) for row in rows] == theirs["token_type_ids"]
    windows = filler.ours.tokenizer.windows(question, context, length=length, overlap=overlap)
    assert [row.ids for row in rows] == [window.ids for window in windows]
    assert sum(row.dropped for row in rows) == 0


@given(count=st.integers(0, 200), asked=st.integers(0, 30), length=st.integers(24, 64), data=st.data())
@settings(max_examples=60)
def test_windows_cover_every_piece(bert, count, asked, length, data):
    question_length = data.draw(st.integers(1, 10))
    overlap = data.draw(st.integers(0, length - 4 - question_length))
    task = make_task(bert, length=length, overlap=overlap, question_length=question_length)
    rows = task.rows([SpanExample("dog " * asked, "fox " * count)])[0]
    assert {piece for row in rows for piece in range(row.begin, row.end)} == set(range(count))
    assert all(a.end - b.begin == overlap for a, b in pairwise(rows))
    assert max(len(row.ids) for row in rows) <= length
    assert sum(row.dropped for row in rows) == max(asked - question_length, 0)


def gold_text(example: SpanExample, row: SpanRow) -> str:
    first, last = (int(place) - row.first + row.begin for place in row.gold[0])
    assert row.begin <= first <= last < row.end
    return example.context[row.context.characters(first, last)]


@given(words=st.lists(st.sampled_from(TEXT.split()), min_size=1, max_size=120), data=st.data())
@settings(max_examples=60)
@pytest.mark.parametrize("name", ["bert", "bert_released", "roberta", "albert"])
def test_gold_points_at_the_answer(request, name, words, data):
    task = make_task(request.getfixturevalue(name), overlap=30, question_length=4)
    space = data.draw(st.sampled_from([" ", "  ", "\n", " \t "]))
    place = data.draw(st.integers(0, len(words) - 1))
    start = len(space.join([*words[:place], ""]))
    example = SpanExample("it", space.join(words), ((words[place], start),))
    rows = task.rows([example])[0]
    marked = [row for row in rows if (row.gold > 0).all()]
    assert marked, "no word is longer than the overlap"
    assert {gold_text(example, row) for row in marked} == {words[place]}
    assert all(row.gold.tolist() == [[0, 0]] for row in rows if row not in marked)


def test_the_first_answer_that_the_window_holds(bert):
    context = "fox " * 60 + "paris " + "dog " * 60
    answers = (("fox", 0), ("paris", context.index("paris")), ("dog", len(context) - 4))
    example = SpanExample("it", context, answers)
    rows = make_task(bert, overlap=10).rows([example])[0]
    assert [gold_text(example, row) for row in rows] == ["fox", "paris", "dog"]


@pytest.mark.parametrize(
    ("answers", "gold"),
    [((), 0), (None, -1), ((("\u200b", 4),), -1), (((TEXT * 4, 0),), -1)],
    ids=["no answer", "unknown", "cleaned away", "longer than any window"],
)
def test_gold_of_what_cannot_be_pointed_at(bert, answers, gold):
    context = "fox \u200b dog" if answers and answers[0][0] == "\u200b" else TEXT * 4
    task = make_task(bert)
    rows = task.rows([SpanExample("it", context, answers)])[0]
    assert task.gold(rows).tolist() == [[gold, gold]] * len(rows)


def test_part_of_a_word_is_the_piece_that_holds_it(bert):
    example = SpanExample("it", "playing fox", (("lay", 1),))
    row = make_task(bert).rows([example])[0][0]
    assert gold_text(example, row) == "play"


def test_gold_is_stacked(bert):
    task = make_task(bert)
    rows = [row for some in task.rows([SpanExample("it", "fox dog", (("dog", 4),))] * 3) for row in some]
    gold = task.gold(rows)
    assert gold.shape == (3, 2) and gold.dtype == np.int64 and (gold == gold[0]).all()
    assert [row.ids[gold[0, 0]] for row in rows] == [bert.ours.tokenizer.id("dog")] * 3


@pytest.mark.parametrize(("truncate", "seen"), [("head", (0, 53)), ("tail", (147, 200))])
def test_one_row_only(bert, truncate, seen):
    rows = make_task(bert, truncate).rows([SpanExample("it " * 8, "fox " * 200)])[0]
    assert [(row.begin, row.end, row.dropped) for row in rows] == [(*seen, 147)]


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"truncate": "head+tail"}, "reach over the hole"),
        ({"truncate": "middle"}, "truncate='middle' is not a choice"),
        ({"overlap": 45}, "overlap=45 does not fit: rows of 64 ids with a question of up to 16 have room for 45"),
        ({"question_length": 64}, "have room for 0 pieces of the context"),
        ({"overlap": -1}, "overlap=-1 does not fit"),
        ({"answer_length": 0}, "answer_length is 0; it must be"),
        ({"length": "long"}, "length is 'long'; it must be"),
        ({"top_k": 0}, "top_k is 0; it must be"),
    ],
)
def test_choices_that_are_none(bert, settings, words):
    with pytest.raises(BertsmithError, match=words.replace("(", "\\(")):
        make_task(bert, **settings)


def test_too_long_for_the_policy_error(bert):
    example = SpanExample("it", "fox " * 100, where="dev.json, question 3")
    with pytest.raises(BertsmithError, match=r"dev.json, question 3: .* the context 100 of at most 60"):
        make_task(bert, "error").rows([example])
    assert len(make_task(bert, "error").rows([SpanExample("it", "fox " * 60)])[0]) == 1


def test_settings_of_the_data():
    answered, impossible = SpanExample("a", "b", (("b", 0),)), SpanExample("a", "b", ())
    plain = Span.settle([answered], {"overlap": None, "seed": 3})
    assert plain == {"labels": ["start", "end"], "truncate": "windows", "impossible": False, "threshold": 0.0}
    chosen = Span.settle([answered, impossible], {"overlap": 7, "answer_length": 9})
    assert chosen == {**plain, "impossible": True, "overlap": 7, "answer_length": 9}
    with pytest.raises(BertsmithError, match="No question of the training data has an answer"):
        Span.settle([impossible, SpanExample("a", "b")], {})


def test_released_sizes(bert):
    task = make_task(bert, limit=512)
    assert (task.length, task.overlap, task.question_length, task.answer_length) == (384, 128, 64, 30)


def test_each_context_is_read_once(bert):
    rows = make_task(bert).rows([SpanExample(question, TEXT) for question in ("it", "we", "it")])
    assert len({id(row.context) for some in rows for row in some}) == 1


def test_examples_of_records():
    golds = [{"text": ["fox"], "answer_start": [2]}, {"text": [], "answer_start": []}]
    asked = zip(("who?", "why?"), golds, ("q1", "q2"), strict=True)
    records = [{"question": q, "context": "a fox", "answers": answers, "id": id} for q, answers, id in asked]
    table = read_table(records)
    found = Span.examples(table, find_columns(table, Span.roles), {})
    assert [(e.question, e.context, e.answers, e.id) for e in found] == [
        ("who?", "a fox", (("fox", 2),), "q1"),
        ("why?", "a fox", (), "q2"),
    ]
