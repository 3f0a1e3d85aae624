"""Texts that belong together and queries with texts: columns by their names, negatives, labels, what is mined."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bertsmith
from bertsmith.data.bm25 import Bm25, build
from bertsmith.data.columns import find_columns
from bertsmith.data.examples import RankExample
from bertsmith.data.matches import pair_examples, rank_examples
from bertsmith.data.negatives import mine
from bertsmith.data.records import gather
from bertsmith.errors import BertsmithError
from bertsmith.tasks.embed_training import EmbedPairs
from bertsmith.tasks.rerank import Rerank


def read_pairs(rows, **chosen):
    table = gather(rows, "train")
    return pair_examples(table, find_columns(table, EmbedPairs.roles, chosen, required=EmbedPairs.required))


def read_ranks(rows, negatives=2, **chosen):
    table = gather(rows, "train")
    columns = find_columns(table, Rerank.roles, chosen, required=Rerank.required)
    return rank_examples(table, columns, negatives=negatives), columns


@pytest.mark.parametrize(
    ("first", "second"),
    [("text", "pair"), ("anchor", "positive"), ("query", "positive"), ("question", "answer"), ("query", "passage"),
     ("sentence1", "sentence2"), ("Question", "Context"), ("premise", "hypothesis"), ("query", "text")],
)  # fmt: skip
def test_pairs_by_the_usual_names(first, second):
    (example,) = read_pairs([{first: "a", second: "b"}])
    assert (example.text, example.pair, example.negatives, example.number) == ("a", "b", (), None)


@pytest.mark.parametrize(
    ("more", "found"),
    [
        ({"negative": "c"}, ("c",)),
        ({"negatives": ["c", "d", "c"]}, ("c", "d")),
        ({"hard_negatives": '["c", "d"]'}, ("c", "d")),
        ({"negative_1": "c", "negative_2": "d", "negative_3": None}, ("c", "d")),
        ({"neg": ""}, ()),
    ],
)
def test_negatives_in_a_column_in_several_or_in_a_list(more, found):
    assert read_pairs([{"anchor": "a", "positive": "b", **more}])[0].negatives == found
    assert read_pairs([{"anchor": "a", "positive": "b", "other": "c"}], negative="other")[0].negatives == ("c",)


def test_numbers_and_where_they_have_no_use():
    rows = [{"sentence1": "a", "sentence2": "b", "score": 4.5}, {"sentence1": "c", "sentence2": "d", "score": "0"}]
    assert [e.number for e in read_pairs(rows)] == [4.5, 0.0]
    assert [e.number for e in read_pairs([{"text": "a", "pair": "b", "similarity": True}])] == [1.0]
    (example,) = read_pairs([{"anchor": "a", "positive": "b", "negative": "c", "label": "x"}])
    assert example.number is None and example.negatives == ("c",)


@pytest.mark.parametrize(
    ("row", "why"),
    [
        ({"anchor": "a"}, 'no column known as pair (its columns: "anchor")'),
        ({"anchor": "a", "positive": None}, 'train, row 1, column "positive": the text is missing'),
        ({"anchor": "a", "positive": "b", "negative": " b"}, "the negative is the very text that belongs to the other"),
        ({"anchor": "a", "positive": "b", "negative": 3}, "a text is needed here, not a number (3)"),
        ({"text": "a", "pair": "b", "label": "high"}, "a finite number is needed here, not a text (high)"),
    ],
)
def test_bad_pairs_are_named(row, why):
    with pytest.raises(BertsmithError) as error:
        read_pairs([row])
    assert why in str(error.value)


def test_rows_of_one_query_become_one_example():
    rows = [{"query": "q", "text": "a", "label": 1}, {"query": "r", "text": "b", "label": 0},
            {"query": "q ", "text": "c", "label": 0}]  # fmt: skip
    found, _ = read_ranks(rows)
    assert found == [RankExample("q", ("a", "c"), (1.0, 0.0), "train, row 1"),
                     RankExample("r", ("b",), (0.0,), "train, row 2")]  # fmt: skip
    found, _ = read_ranks([{"question": "q", "positive": "a", "negative": ["b", "c"]}])
    assert found == [RankExample("q", ("a", "b", "c"), (1.0, 0.0, 0.0), "train, row 1")]
    with pytest.raises(BertsmithError, match='the text "a" both as one that answers it and as a negative'):
        read_ranks([{"query": "q", "positive": "a", "negative": "b"}, {"query": "q", "positive": "c", "negative": "a"}])
    with pytest.raises(BertsmithError, match="no column known as passage"):
        read_ranks([{"query": "q"}])


def test_grades_and_mined_negatives_are_told():
    _, columns = read_ranks([{"query": "q", "text": "a", "relevance": 3}, {"query": "q", "text": "b", "relevance": 0}])
    assert any("from 0 (not at all) to 3 (perfectly)" in note for note in columns.notes)
    found, columns = read_ranks([{"query": f"what is {i}", "positive": f"it is {i}"} for i in range(9)])
    assert all(len(e.texts) == 3 and e.gains == (1.0, 0.0, 0.0) for e in found)
    assert any("the 2 texts of other queries that share most words" in note for note in columns.notes)
    with pytest.raises(BertsmithError, match="nothing stands against it"):
        read_ranks([{"query": "q", "positive": "a"}, {"query": "r", "positive": "a"}])


def test_a_copy_of_the_right_text_with_other_spaces_is_no_negative():
    rows = [("river bank", "the river bank "), ("shore", "the  river\nbank"), ("law", "a law"), ("atom", "an atom")]
    found = mine([RankExample(query, (text,), None) for query, text in rows], 3, "train")
    for (_, right), example in zip(rows, found, strict=True):
        others = [" ".join(text.split()) for text in example.texts[1:]]
        assert " ".join(right.split()) not in others and len(others) == len(set(others)) == 2


WORDS = ["river", "bank", "money", "shore", "stream", "law", "party", "atom"]
TEXTS = st.lists(st.sampled_from(WORDS), min_size=1, max_size=5)


@settings(deadline=None, max_examples=60)
@given(st.lists(st.tuples(TEXTS, TEXTS), min_size=2, max_size=12), st.integers(1, 5))
def test_mined_negatives_are_the_best_of_the_others_and_never_ones_own(pairs, count):
    examples: dict[str, list[str]] = {}
    for query, text in pairs:
        examples.setdefault(" ".join(query), []).append(" ".join(text))
    given_examples = [RankExample(q, tuple(dict.fromkeys(texts)), None) for q, texts in examples.items()]
    pool = list(dict.fromkeys(text for e in given_examples for text in e.texts))
    if len(pool) < 2:
        return
    found = mine(given_examples, count, "train")
    assert found == mine(given_examples, count, "train")
    engine = Bm25(build(pool), len(pool))
    for before, after in zip(given_examples, found, strict=True):
        own, others = after.texts[: len(before.texts)], after.texts[len(before.texts) :]
        assert own == before.texts and not set(own) & set(others) and len(set(others)) == len(others)
        assert len(others) == min(count, len(pool) - len(own))
        scores = dict(zip(pool, engine.scores(before.query).tolist(), strict=True))
        best = sorted((scores[text] for text in pool if text not in own), reverse=True)[: len(others)]
        assert [scores[text] for text in others] == pytest.approx(best)


def test_the_doctor_looks_at_both_kinds(tmp_path):
    pairs = [{"anchor": f"a {i}", "positive": f"b {i}"} for i in range(30)] + [{"anchor": "a 1", "positive": "b 1"}]
    pairs += [{"anchor": "x", "positive": " "}, {"anchor": "same", "positive": "same"}]
    found = bertsmith.check(pairs, pairs[:2], task="embed")
    said = " ".join(finding.sentence for finding in found.findings)
    for part in ("1 pair of 33 is empty", "1 text of train with itself as its pair", "repeats an earlier one",
                 "All 2 dev pairs (100 %) stand in train too"):  # fmt: skip
        assert part in said, said
    hard = [{"anchor": f"a {i}", "positive": f"b {i}", "negative": "a long one " * 9} for i in range(30)]
    assert bertsmith.check(hard, task="embed").errors == []
    ranks = [{"query": f"q {i}", "text": f"t {n}", "label": int(n == 0)} for i in range(25) for n in range(3)]
    ranks += [{"query": "q 1", "text": "t 0", "label": 0}, {"query": "q 2", "text": " ", "label": 0}]
    found = bertsmith.check(ranks, [{"query": "new", "text": text, "label": 0} for text in "ab"], task="rerank")
    said = " ".join(finding.sentence for finding in found.findings)
    for part in ("A text with different labels for 1 query of train", "An empty text for 1 query of train",
                 "All 2 labels of dev are 0"):  # fmt: skip
        assert part in said, said
    assert found.facts["train"]["texts"] == 77
    same = [{"sentence1": f"a {i}", "sentence2": "b", "score": 3} for i in range(30)]
    (error,) = bertsmith.check(same, task="embed").errors
    assert error.sentence == "All 30 labels of train are 3: there is nothing to learn."


def test_data_of_other_tasks_is_taken_as_before():
    rows = [{"question": f"who {i}", "answer": f"x {i}", "label": i % 2} for i in range(30)]
    assert bertsmith.check(rows).facts["task"] == "classify"
    assert find_columns(gather(rows, "train"), ("text", "pair", "label")) == {"text": "question", "label": "label"}
    headless = "good film,positive\nbad film,negative\nfine film,positive\n"
    from bertsmith.data.delimited import read_delimited

    assert len(read_delimited(headless, "x.csv", "csv", None).records) == 3
