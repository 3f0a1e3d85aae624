"""The doctor on more than one side: a test set, questions without answers; and on what a model would read."""

import pytest
from data.test_doctor import GOOD_TAGS, good, look, question, sentences, tagged, texts

from bertsmith.data.examples import ChoiceExample, NumberExample, SpanExample, TextExample

PARIS = (("Paris", 23),)


def words(examples):
    """A tokenizer that drops zero-width spaces, with two special tokens a text."""
    rows = [(e.question, e.context) if isinstance(e, SpanExample) else (e.text, getattr(e, "pair", None))
            for e in examples]  # fmt: skip
    return [1 + sum(1 + len(t.replace("\u200b", " ").split()) for t in row if t is not None) for row in rows]


def asked(count, name, answers=PARIS):
    return [question(f"{n} of {name}", answers, f"The Seine runs through Paris. {name} {n}") for n in range(count)]


def test_a_good_test_set_has_no_findings():
    found = look(good(), good(20, "dev.csv"), test=good(10, "test.csv"))
    assert found.findings == []
    assert found.facts["test"] == {"examples": 10, "overlap": 0, "overlap_dev": 0}
    assert "test" not in look(good(), good(20, "dev.csv")).facts


@pytest.mark.parametrize("count, level", [(2, "warning"), (17, "warning"), (18, "error"), (20, "error")])
def test_leakage_from_train_and_dev_into_test(count, level):
    train, dev, own = good(), good(20, "dev.csv"), good(20, "test.csv")
    for side, held in (("train", train), ("dev", dev)):
        found = look(train, dev, test=held[:count] + own[count:])
        (sentence,) = sentences(found, level)
        assert sentence.startswith(f"{'All 20' if count == 20 else f'{count} of 20'} test texts (") and (
            f" stand in {side} too: the score " in sentence
        )
        assert found.facts["test"]["overlap" if side == "train" else "overlap_dev"] == count
    (error,) = look(train[:30], train[30:], test=train).errors
    assert error.sentence.startswith("All 40 test texts (100 %) stand in train or dev too: the score would measure mem")
    assert "test texts that train does not hold" in sentences(look(train, dev, test=train), "error")[0]


@pytest.mark.parametrize("kind, noun, make", [
    ("tag", "sentence", lambda name: list(tagged(*(s.replace("Ann", name) for s in GOOD_TAGS), *GOOD_TAGS))),
    ("span", "question", lambda name: asked(30, name)),
    ("regress", "text", lambda name: [NumberExample(f"{name} {n}", None, n / 7) for n in range(30)]),
    ("choose", "prompt", lambda name: [ChoiceExample(f"{name} {n}", (f"a{n}", f"b{n}"), n % 2) for n in range(30)]),
])  # fmt: skip
def test_leakage_of_other_kinds(kind, noun, make):
    train = make("Bo")
    (error,) = look(train, None, kind, test=train).errors
    assert error.sentence.startswith(f"All 30 test {noun}s (100 %) stand in train too")


def test_what_only_test_asks_for():
    (error,) = look(good(), None, test=list(texts(["yes", "mabye"], "test.csv"))).errors
    assert error.sentence == (
        'Test has the label "mabye", which train never shows, so 1 test answer can never be right (test.csv, row 3).'
    )
    train = list(tagged(*GOOD_TAGS))
    (error,) = look(train, None, "tag", test=list(tagged("Bo/B-ORG", name="test.conll"))).errors
    assert error.sentence.startswith('Test has the type "ORG", which train never shows')
    many = list(tagged("Bo/B-ORG", *[f"Eve{n}/B-PER" for n in range(200)], name="test.conll"))
    assert look(train, None, "tag", test=many).errors == []  # rare, as in dev
    (error,) = look(good(), None, test=[TextExample("new", None, None, "test.csv, row 2")]).errors
    assert error.sentence == "1 test example without a label (test.csv, row 2)."


@pytest.mark.parametrize("kind", ["classify", "tag", "span"])
def test_windows_cut_nothing(kind):
    train = {"classify": good(), "tag": list(tagged(*GOOD_TAGS * 2)), "span": asked(30, "a")}[kind]
    read = look(train, None, kind, lengths=words, limit=5, policy="windows")
    (note,) = [f for f in read.findings if "longer than 5 tokens" in f.sentence]
    assert note.level == "note" and "of all tokens would be read in further windows" in note.sentence
    assert not any("would be cut" in f.sentence for f in read.findings)
    cut = look(train, None, kind, lengths=words, limit=5, policy="head")
    assert any("of all tokens would be cut" in s for s in sentences(cut, "warning"))


def test_questions_without_an_answer_on_one_side_only():
    train, mixed = asked(40, "a"), asked(10, "b") + asked(5, "c", ())
    (warning,) = sentences(look(train, mixed, "span"), "warning")
    assert warning.startswith(
        "5 dev questions (33.3 %) without an answer, but every train question has one: the model will always answer, "
        "so each of these will be wrong"
    )
    (warning,) = sentences(look(train + asked(10, "d", ()), asked(15, "b"), "span"), "warning")
    assert warning.startswith(
        '20.0 % of the train questions have no answer, but every dev question has one: the model learns to say "no '
        'answer", and each time it does so in dev it will be wrong'
    )
    assert look(train + asked(10, "d", ()), mixed, "span").warnings == []
    (warning,) = look(train, None, "span", test=mixed).warnings
    assert warning.sentence.startswith("5 test questions (33.3 %) without an answer")


def test_texts_of_invisible_characters():
    train = good()
    train[3] = TextExample("\u200b\u200b", None, ("no",), "train.csv, row 5")
    train[4] = TextExample(" ", None, ("yes",), "train.csv, row 6")  # told as empty already
    found = look(train, lengths=words, limit=64)
    assert sentences(found, "warning") == [
        "1 text of 40 is empty (train.csv, row 6).",
        "1 text of 40 without a token that the model could read, as in a text of invisible characters only "
        "(train.csv, row 5).",
    ]
    mixed = [TextExample("a", "b", ("yes",)), *good(), TextExample("a", None, ("no",))]
    assert look(mixed, lengths=words, limit=64).findings == []  # one token beside more special ones is a token


def test_names_that_never_occur():
    names = ["yes", "no", "maybe", "never"]
    assert sentences(look(good(), names=names), "note") == [
        '2 of the 4 names given never occur as a label in train: "maybe", "never".'
    ]
    assert look(good(), names=["yes", "no"]).findings == []
    tags = look(list(tagged(*GOOD_TAGS * 2)), None, "tag", names=["O", "B-PER", "B-LOC", "B-ORG"])
    assert '1 of the 4 names given never occurs as a tag in train: "B-ORG".' in sentences(tags, "note")
