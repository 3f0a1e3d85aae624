"""Setting examples apart: as many of each label as scikit-learn takes, the same whatever the order of the rows."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.model_selection import train_test_split

from bertsmith.data.examples import PairExample, RankExample, SpanExample, TagExample, TextExample
from bertsmith.data.splits import split_off
from bertsmith.errors import BertsmithError


def make(labels):
    return [TextExample(f"text {i}", None, (label,)) for i, label in enumerate(labels)]


def test_as_many_of_each_label_as_scikit_learn():
    labels = ["a"] * 700 + ["b"] * 230 + ["c"] * 70
    train, dev = split_off(make(labels), 0.1, seed=1)
    _, theirs = train_test_split(labels, test_size=0.1, stratify=labels)
    assert Counter(example.labels[0] for example in dev) == Counter(theirs)
    assert len(train) + len(dev) == 1000


def test_the_seed_decides():
    examples = make("ab" * 100)
    assert split_off(examples, seed=1).dev == split_off(examples, seed=1).dev != split_off(examples, seed=2).dev
    assert [example.text for example in split_off(examples).train] == sorted(
        (example.text for example in split_off(examples).train), key=lambda text: int(text.split()[1])
    )


label = st.sampled_from("abcde")
examples = st.lists(st.tuples(st.integers(0, 30), st.lists(label, unique=True, max_size=3)), min_size=2, max_size=80)


@given(examples, st.floats(0.05, 0.5), st.integers(0, 3), st.randoms())
def test_properties(given, share, seed, random):
    examples = [TextExample(f"text {text}", None, tuple(labels), str(i)) for i, (text, labels) in enumerate(given)]
    try:
        train, dev = split_off(examples, share, seed)
    except BertsmithError:
        return
    assert sorted(train + dev, key=lambda e: int(e.where)) == examples and train and dev
    assert not {e.text for e in train} & {e.text for e in dev}
    assert {name for e in train for name in e.labels} == {name for e in examples for name in e.labels}
    mixed = random.sample(examples, len(examples))
    assert {e.where for e in split_off(mixed, share, seed).dev} == {e.where for e in dev}


def test_texts_that_differ_in_case_and_space_stay_together():
    examples = [TextExample(text, None, ("a",)) for n in range(50) for text in (f"The text {n}", f"the  TEXT {n} ")]
    dev = split_off(examples, 0.2).dev
    assert len(dev) == 20 and len({example.text.lower().split()[2] for example in dev}) == 10


def test_questions_of_a_context_stay_together():
    examples = [SpanExample(f"q{m}", f"context {n}", ()) for n in range(40) for m in range(5)]
    split = split_off(examples, 0.1)
    assert len(split.dev) == 20 and len({example.context for example in split.dev}) == 4
    assert split.note == ("set 20 of 200 examples apart for development, all questions of a context on one side.")
    one = split_off([SpanExample(f"q{m}", "one context", ()) for m in range(50)])
    assert len(one.dev) == 5 and "context" not in one.note


def test_tags():
    examples = [TagExample(f"word {n}", ((0, 4),), ("O",)) for n in range(100)]
    train, dev = split_off(examples, 0.15)
    assert (len(train), len(dev)) == (85, 15)


def test_few():
    split = split_off(make("aabb"))
    assert len(split.dev) == 1 and "says little" in split.note and "--dev FILE" in split.note
    assert {example.labels for example in split.train} == {("a",), ("b",)}


@pytest.mark.parametrize(("examples", "sentence"), [
    ([], "0 examples cannot be split"),
    (make("a"), "1 example cannot be split"),
    (make("abc"), "each label has only one"),
    ([TextExample("a", None, ("x",))] * 30, "30 examples, all of one text, cannot be split"),
])  # fmt: skip
def test_too_few(examples, sentence):
    with pytest.raises(BertsmithError, match=sentence):
        split_off(examples)


def test_a_share_must_be_one():
    with pytest.raises(BertsmithError, match="between 0 and 1, not 1"):
        split_off(make("aabb"), 1)


def test_pairs_and_queries_that_share_a_text_stay_on_one_side():
    pairs = [PairExample(f"question {i}", ["Paragraph", "paragraph "][i % 2] + f" {i // 4}") for i in range(80)]
    train, dev = split_off(pairs, 0.2)
    assert len(train) + len(dev) == 80 and 8 <= len(dev) <= 20
    assert not {e.pair.casefold().split()[1] for e in train} & {e.pair.casefold().split()[1] for e in dev}
    ranks = [RankExample(f"q {i}", (f"t {i // 3}", f"t {(i + 9) % 20}"), (1.0, 0.0)) for i in range(60)]
    train, dev = split_off(ranks, 0.2)
    assert dev and not {e.texts[0] for e in train} & {e.texts[0] for e in dev}
    assert [e.query for e in split_off(ranks[::-1], 0.2).dev] == [e.query for e in dev][::-1]
    yes = [PairExample(f"is it {i // 2}", "yes" if i % 3 else f"no {i}") for i in range(60)]
    train, dev = split_off(yes, 0.2)
    assert dev and not {e.text for e in train} & {e.text for e in dev}
