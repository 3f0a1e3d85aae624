"""The doctor on made texts, sentences and questions, each with one thing wrong."""

import json
import random
import time
import unicodedata

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.dummy import DummyClassifier

from bertsmith.data.doctor import diagnose
from bertsmith.data.doctor_labels import find_misspellings, find_variants
from bertsmith.data.doctor_lengths import measure_lengths
from bertsmith.data.examples import SpanExample, TagExample, TextExample
from bertsmith.data.findings import places, share, shorten
from bertsmith.data.schemes import find_scheme
from bertsmith.errors import BertsmithError

WORDS = ["river", "bank", "loan", "money", "water", "stone", "bridge", "paper", "field", "market", "garden", "letter"]


def texts(labels, name="train.csv", first=2, seed=0):
    """Distinct texts with these labels, in rows from `first` on."""
    chance = random.Random(f"{name}{seed}")
    for number, label in enumerate(labels):
        given = label if isinstance(label, tuple) else (label,)
        words = " ".join(chance.choices(WORDS, k=6))
        yield TextExample(f"{words} {name} {number}", None, given, f"{name}, row {first + number:,}")


def good(count=40, name="train.csv"):
    return list(texts(["yes", "no"] * (count // 2), name))


def tagged(*sentences, name="train.conll"):
    """Sentences of "word/TAG word/TAG"."""
    for number, sentence in enumerate(sentences, 1):
        pairs = [pair.rsplit("/", 1) for pair in sentence.split()]
        text, spans = "", []
        for word, _ in pairs:
            start = len(text) + bool(text)
            text = f"{text} {word}" if text else word
            spans.append((start, start + len(word)))
        yield TagExample(text, tuple(spans), tuple(tag for _, tag in pairs), f"{name}, line {number * 5}")


def question(number, answers, context="The Seine runs through Paris.", name="dev.json"):
    return SpanExample(f"Question {number}?", context, answers, f"id{number}", f"{name}, question {number}")


def look(train, dev=None, kind="classify", **options):
    found = diagnose(train, dev, kind, **{"lengths": None, "limit": None, **options})
    json.dumps(found.as_dict(), allow_nan=False)
    return found


def sentences(found, level):
    return [finding.sentence for finding in found.findings if finding.level == level]


def test_good_data_has_no_findings():
    found = look(good(), good(20, "dev.csv"))
    assert found.findings == [] and found.stop() is None
    assert found.facts["train"] | {"lengths": 0} == {
        "examples": 40, "pairs": 0, "labels": {"no": 20, "yes": 20}, "majority": 0.5, "duplicates": 0, "conflicts": 0,
        "lengths": 0,
    }  # fmt: skip


def test_findings_name_rows_and_stop_names_the_errors():
    train = list(texts(["yes"] * 30))
    found = look(train, train)
    assert sentences(found, "error") == [
        "All 30 dev texts (100 %) stand in train too: the score would measure memory, not skill; give dev texts that "
        "train does not hold (train.csv, rows 2, 3, 4 and 27 more).",
        'Every example has the label "yes": with one class there is nothing to learn; is this the right column '
        "(train.csv, row 2)?",
    ]
    with pytest.raises(
        BertsmithError, match=r"^2 things in the data would waste the run: \(1\) All 30.*; \(2\) Ev.*\?$"
    ):
        found.stop()
    with pytest.raises(BertsmithError, match=r"is this the right column \(train\.csv, row 2\)\?$"):
        look(train, None).stop()


# fmt: off
def case_empty():
    train = good()
    train[3] = TextExample(" \n", None, ("yes",), "train.csv, row 5")
    return train, None, "warning", "1 text of 40 is empty (train.csv, row 5)."


def case_duplicates():
    train = good()
    again = [TextExample(train[i].text, None, train[i].labels, f"train.csv, row {90 + i}") for i in (0, 1, 2, 3, 1)]
    return train + again, None, "note", (
        "5 examples (11.1 %) repeat an earlier one word for word (train.csv, rows 90, 91, 91 and 2 more)."
    )


def case_conflict():
    train = good()
    train.append(TextExample(train[0].text, None, ("no",), "train.csv, row 99"))
    return train, None, "warning", (
        "The same text with different labels, 1 time: at most one can be right (train.csv, rows 2 and 99)."
    )


def case_part_overlap():
    train, dev = good(), good(20, "dev.csv")
    return train, dev + train[:2], "warning", (
        "2 of 22 dev texts (9.1 %) stand in train too: the score will be too good by them (train.csv, rows 2 and 3)."
    )


def case_only_in_dev():
    return good(), list(texts(["yes", "no", "mabye", "mabye"], "dev.csv")), "error", (
        'Dev has the label "mabye", which train never shows, so 2 dev answers can never be right '
        "(dev.csv, rows 4 and 5)."
    )


def case_misspelt_in_dev():
    return list(texts(["positive", "negative"] * 20)), list(texts(["positive", "Positve"], "dev.csv")), "error", (
        'Dev has the label "Positve", which train never shows, so 1 dev answer can never be right; '
        '"Positve" may be a misspelt "positive" (dev.csv, row 3).'
    )


def case_only_in_train():
    train = list(texts(["yes", "no", "maybe"] * 20))
    return train, good(20, "dev.csv"), "note", 'Dev never asks for the label "maybe".'


def case_typo():
    return list(texts(["positive"] * 204 + ["negative"] * 200 + ["postive"] * 3)), None, "warning", (
        'The label "postive" (3 times) and "positive" (204) differ by one letter: are they one '
        "(train.csv, rows 406, 407 and 408)?"
    )


def case_case():
    return list(texts(["spam", "ham"] * 20 + ["Spam"] * 9)), None, "warning", (
        'The label "Spam" (9 times) and "spam" (20) differ only by case: are they one '
        "(train.csv, rows 42, 43, 44 and 6 more)?"
    )


def case_space():
    return list(texts(["spam", "ham"] * 20 + ["spam "] * 6)), None, "warning", (
        'The label "spam " (6 times) and "spam" (20) differ only by spaces or hyphens: are they one '
        "(train.csv, rows 42, 43, 44 and 3 more)?"
    )


def case_few():
    return list(texts(["yes", "no"] * 20 + ["maybe"] * 2)), None, "warning", (
        'Fewer than 5 examples of 1 label: "maybe" (2); too few to learn or to measure (train.csv, rows 42 and 43).'
    )


def case_measurements():
    return list(texts([f"{n / 4:.2f}" for n in range(40)])), None, "error", (
        "The labels are 40 different numbers such as 0.00, 0.25, 0.50: predicting a number is regression, not "
        "classify; say --task regress, choose another label column, or group the numbers into classes "
        "(train.csv, row 2)."
    )


def case_ids():
    return list(texts([f"user{n}" for n in range(40)])), None, "error", (
        '40 different labels in 40 examples, such as "user0", "user1": that is an id or a text, not a class; choose '
        "another label column (train.csv, row 2)."
    )


def case_told():
    return [TextExample(e.labels[0], None, e.labels, e.where) for e in good()], None, "error", (
        "The text is the label itself in 40 examples: is one column used for both "
        "(train.csv, rows 2, 3, 4 and 37 more)?"
    )


def case_joined():
    return list(texts(["joy", "fear"] * 20 + ["joy,fear"] * 9)), None, "warning", (
        '1 label such as "joy,fear" is made of other labels and ",": if these are several labels a text, give '
        "--several (train.csv, rows 42, 43, 44 and 6 more)."
    )


def case_control():
    train = [*good(), TextExample("a \x00 b", None, ("yes",), "train.csv, row 77")]
    return train, None, "warning", (
        "1 example (2.4 %) with control characters, which are no text (train.csv, row 77)."
    )


def case_mojibake():
    broken = "It’s naïve".encode().decode("windows-1252")
    return [*good(), TextExample(broken, None, ("yes",), "train.csv, row 77")], None, "warning", (
        "1 example (2.4 %) with characters such as â€™ or \ufffd that come from a wrong encoding (train.csv, row 77)."
    )


def case_html():
    return [*good(), TextExample("so <br /> good &amp; cheap", None, ("yes",), "train.csv, row 77")], None, "note", (
        "1 example (2.4 %) with HTML tags or entities, which the model will read as words (train.csv, row 77)."
    )


def case_half_pair():
    train = [TextExample(e.text, "and more", e.labels, e.where) for e in good()]
    train[0] = TextExample(train[0].text, " ", ("yes",), "train.csv, row 2")
    return train, None, "warning", "One text of the pair is empty in 1 example (train.csv, row 2)."


def case_unlabelled():
    return [*good(), TextExample("new", None, None, "train.csv, row 77")], None, "error", (
        "1 train example without a label (train.csv, row 77)."
    )


def case_nothing():
    return [], None, "error", "Train has no examples."


# fmt: on
CASES = [case for name, case in sorted(globals().items()) if name.startswith("case_")]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__[5:])
def test_texts(case):
    train, dev, level, sentence = case()
    found = look(train, dev)
    assert sentence in sentences(found, level)
    assert all(finding.where for finding in found.findings if "(train" in finding.sentence)


def test_majority_is_that_of_a_dummy_classifier():
    labels = ["a"] * 70 + ["b"] * 20 + ["c"] * 10
    found = look(list(texts(labels)))
    dummy = DummyClassifier(strategy="most_frequent").fit([[0]] * 100, labels)
    assert found.facts["train"]["majority"] == dummy.score([[0]] * 100, labels)
    assert sentences(found, "note") == [
        '"a" has 7 times the examples of the rarest label, and always answering it would be right in 70.0 %: read '
        "macro F1 beside accuracy."
    ]


def test_one_text_that_train_holds_too():
    train = list(texts(["a", "b"] * 15))
    (error,) = look(train, train[:1]).errors
    assert error.sentence.startswith("The only dev text (100 %) stands in train too: the score would measure memory")


@pytest.mark.parametrize(
    "rare", [unicodedata.normalize("NFD", "joué"), "joué\u200b", "\ufeffjoué", "ｊｏｕé"], ids=ascii
)
def test_labels_that_look_alike(rare):
    """The letters are the same to the eye, and two classes to the model."""
    found = look(list(texts(["joué"] * 20 + ["non"] * 20 + [rare] * 5)))
    assert [s for s in sentences(found, "warning") if "differ" in s] == [
        f'The label "{shorten(rare)}" (5 times) and "joué" (20) differ only in how their letters are encoded: are they '
        "one (train.csv, rows 42, 43, 44 and 2 more)?"
    ]


@pytest.mark.parametrize("sentence", ["a/B-PER b/I-PER c/O d/O e/O", "a/NN b/VB c/NN", "a/B-PER b/I-PER c/I-PER"])
def test_majority_of_tags_is_a_share_of_the_words(sentence):
    """O is a tag too, and where every word has a tag, many have the same one in each sentence."""
    found = look(list(tagged(*[sentence] * 25)), kind="tag")
    tags = [word.rsplit("/", 1)[1] for word in sentence.split()] * 25
    dummy = DummyClassifier(strategy="most_frequent").fit([[0]] * len(tags), tags)
    assert found.facts["train"]["majority"] == pytest.approx(dummy.score([[0]] * len(tags), tags), abs=1e-4)


def test_several_labels_may_be_none_but_not_all():
    some = list(texts([("joy",), (), ("joy", "fear"), ("fear",)] * 10))
    found = look(some, several=True)
    assert found.errors == []
    assert found.facts["train"]["labels_each"] == 1.0 and found.facts["train"]["without_labels"] == 10
    always = look(list(texts([("joy",), ("joy", "fear")] * 20)), several=True)
    assert sentences(always, "warning") == ['Every example has "joy": nothing to learn there.']
    assert look(list(texts([()] * 30)), several=True).errors


def test_lengths_and_what_is_cut():
    train = good()
    train[7] = TextExample("word " * 40_000, None, ("no",), "train.csv, row 9")
    found = look(train, limit=128, lengths=lambda examples: [len(e.text.split()) + 2 for e in examples])
    assert sentences(found, "warning") == [
        "1 text of more than 2,560 tokens, the longest of 40,002, where the model reads 128 at a time: is that one "
        "text each (train.csv, row 9)?"
    ]
    (note,) = sentences(found, "note")
    assert note == (
        "1 text of 40 is longer than 128 tokens; 98.7 % of all tokens would be cut; the longest has 40,002 "
        "(train.csv, row 9)."
    )
    assert found.facts["train"]["lengths"]["cut"] == 1
    short = look(good(), limit=5)
    assert any(s.startswith("At least 40 texts of 40 are longer than 5 tokens") for s in sentences(short, "warning"))


@given(st.lists(st.integers(0, 20_000), min_size=1), st.integers(1, 9000))
def test_length_facts_agree_with_numpy(lengths, limit):
    facts = measure_lengths(lengths, limit, "tokens")
    for percent in (50, 90, 95, 99):
        assert facts[f"p{percent}"] == np.percentile(lengths, percent, method="inverted_cdf")
    assert sum(bar["count"] for bar in facts["histogram"]) == len(lengths)
    edges = [bar["from"] for bar in facts["histogram"]] + [10**6]
    assert [bar["count"] for bar in facts["histogram"]] == np.histogram(lengths, edges)[0].tolist()
    assert facts["dropped"] == np.maximum(np.array(lengths) - limit, 0).sum()
    assert facts["cut"] == (np.array(lengths) > limit).sum()


def edits(one, other):
    """Optimal string alignment by its recurrence: the slow, plain oracle."""
    table = np.zeros((len(one) + 1, len(other) + 1), dtype=int)
    table[:, 0], table[0, :] = range(len(one) + 1), range(len(other) + 1)
    for i, a in enumerate(one, 1):
        for j, b in enumerate(other, 1):
            table[i, j] = min(table[i - 1, j] + 1, table[i, j - 1] + 1, table[i - 1, j - 1] + (a != b))
            if i > 1 and j > 1 and a == other[j - 2] and b == one[i - 2]:
                table[i, j] = min(table[i, j], table[i - 2, j - 2] + 1)
    return table[-1, -1]


@given(st.lists(st.text("abc", min_size=5, max_size=7), min_size=2, max_size=8, unique=True))
def test_misspellings_are_one_edit_from_the_most_frequent(labels):
    counts = dict.fromkeys(labels, 1) | {labels[0]: 100}
    wanted = {(label, labels[0]) for label in labels[1:] if edits(label, labels[0]) == 1}
    assert {pair[:2] for pair in find_misspellings(counts)} == wanted


def test_what_is_no_misspelling():
    counts = {"class1": 100, "class2": 1, "NN": 900, "NNS": 3, "negative": 100, "positive": 1, "level 10": 99}
    assert find_misspellings(counts) == [] and find_variants(counts) == []


@pytest.mark.parametrize(
    "scheme, sentences",
    [
        ("iob2", ["a/B-PER b/I-PER c/O d/B-LOC", "a/B-LOC b/B-LOC c/O"]),
        ("iob1", ["a/I-PER b/I-PER c/O d/I-LOC", "a/I-LOC b/B-LOC c/O"]),
        ("iobes", ["a/B-PER b/E-PER c/O d/S-LOC"]),
        ("bilou", ["a/B-PER b/L-PER c/O d/U-LOC"]),
        ("plain", ["a/DET b/NOUN c/VERB"]),
        ("bare", ["a/O b/PER c/O"]),
        ("io", ["a/I-PER b/O c/I-PER"]),
        ("bmes", ["a/B-PER b/M-PER c/E-PER d/S-LOC"]),
    ],
)
def test_schemes(scheme, sentences):
    train = list(tagged(*sentences))
    assert look(train, kind="tag").facts["scheme"] == scheme == find_scheme([e.tags for e in train])


@pytest.mark.parametrize(
    "wrong, many, sentence",
    [
        ("a/0 b/B-PER", 1, '"0" has no prefix: the letter O may be meant'),  # half of the kinds
        ("a/0 b/0 c/B-PER d/I-PER e/B-LOC f/0 g/0", 9, '"0" has no prefix: the letter O may be meant'),  # most tags
        ("a/B-PER b/L-PER c/S-PER", 1, '"S-PER" cannot be in it'),
    ],
)
def test_what_the_doctor_finds_odd_training_refuses(wrong, many, sentence):
    train = list(tagged(*[wrong] * many, "a/O b/B-PER"))
    (error,) = [e for e in look(train, kind="tag").errors if "look like" in e.sentence]
    assert sentence in error.sentence
    with pytest.raises(BertsmithError, match="does not fit the others"):
        find_scheme([e.tags for e in train])


GOOD_TAGS = [f"{name}{n}/B-PER sees/O the/O {place}{n}/B-LOC" for n in range(15) for name, place in [("Ann", "Oslo")]]


@pytest.mark.parametrize(
    "odd, level, sentence",
    [
        ("a/O b/I-PER", "warning",
         "The tags look like iob2 (B- begins every chunk), but I- begins 1 chunk (train.conll, line 5)."),
        ("a/O b/PER", "error",
         'The tags look like iob2, but "PER" has no prefix: is a B- or I- missing (train.conll, line 5)?'),
        ("a/0 b/B-PER", "error",
         'The tags look like iob2, but "0" has no prefix: the letter O may be meant (train.conll, line 5).'),
        ("a/O b/B-per", "warning",
         'The type "per" (1 time) and "PER" (30) differ only by case: are they one (train.conll, line 5)?'),
        ("a/B-PER " + "x" * 200 + "/O", "note",
         "1 sentence with a word of more than 100 characters (train.conll, line 5)."),
        (GOOD_TAGS[0].replace("sees/O", "sees/B-PER"), "warning",
         "The same sentence with different tags, 1 time: at most one can be right (train.conll, lines 5 and 10)."),
    ],
)  # fmt: skip
def test_tags(odd, level, sentence):
    found = look(list(tagged(odd, *GOOD_TAGS, *(s.replace("the/O", "a/O") for s in GOOD_TAGS))), kind="tag")
    assert sentence in sentences(found, level)


def test_tags_that_teach_nothing_are_errors():
    (error,) = look(list(tagged(*["a/O b/O c/O"] * 25)), kind="tag").errors
    assert error.sentence.startswith("Every word has the tag O: there is nothing to learn")
    (error,) = look(list(tagged(" ".join(["a/B-PER", "b/O"] * 600))), kind="tag").errors
    assert error.sentence.startswith("All 1,200 words are one sentence: put a blank line between sentences")


def test_a_type_only_in_dev_is_an_error_unless_it_is_rare():
    train = list(tagged(*GOOD_TAGS))
    (error,) = look(train, list(tagged("Bo/B-ORG", name="dev.conll")), "tag").errors
    assert error.sentence == (
        'Dev has the type "ORG", which train never shows, so 1 dev answer can never be right (dev.conll, line 5).'
    )
    dev = list(tagged("Bo/B-ORG", *[f"Eve{n}/B-PER" for n in range(200)], name="dev.conll"))
    assert look(train, dev, "tag").errors == []
    inside = list(tagged("Bo/B-PER Li/I-PER", name="dev.conll"))  # I-PER is new, but its type is not
    assert look(train, inside, "tag").errors == []


def test_good_tags_and_questions_have_no_errors():
    found = look(list(tagged(*GOOD_TAGS)), kind="tag")
    assert found.facts["scheme"] == "iob2" and found.errors == []
    assert found.facts["train"]["labels"] == {"LOC": 15, "PER": 15} and found.facts["train"]["words"] == 60
    found = look([question(n, (("Paris", 23),)) for n in range(30)], kind="span")
    assert found.findings == [] and found.facts["train"]["contexts"] == 1


@pytest.mark.parametrize(
    "answers, level, sentence",
    [
        ((("Lyon", 3),), "error", '1 answer not in the text, such as "Lyon" (dev.json, question 99).'),
        ((("Paris", 22),), "error",
         '1 answer not at the character given, such as "Paris" at 22, which begins at 23 (dev.json, question 99).'),
        ((("Paris", -6),), "error",
         '1 answer not at the character given, such as "Paris" at -6, which begins at 23 (dev.json, question 99).'),
        ((("", 3),), "error",
         "1 answer without text: a question that has no answer needs an empty list of answers "
         "(dev.json, question 99)."),
        (None, "error", "1 train example without answers (dev.json, question 99)."),
        ((), "warning",
         "1 train question of 201 without an answer (0.5 %): meant so, or are answers missing "
         "(dev.json, question 99)?"),
    ],
)  # fmt: skip
def test_answers(answers, level, sentence):
    train = [question(n, (("Paris", 23),)) for n in range(100, 300)] + [question(99, answers)]
    assert sentence in sentences(look(train, kind="span"), level)


def test_ids_impossible_questions_and_shared_texts():
    train = [question(n, (("Paris", 23),)) for n in range(30)]
    twice = look([*train, question(3, (("Seine", 4),))], kind="span")
    assert sentences(twice, "warning") == [
        '1 id of more than one question, such as "id3": predictions by id will overwrite each other '
        "(dev.json, questions 3 and 3).",
        "The same question with different answers, 1 time: at most one can be right (dev.json, questions 3 and 3).",
    ]
    (error,) = look([question(n, ()) for n in range(30)], kind="span").errors
    assert error.sentence.startswith("No train question has an answer")
    found = look(train, [question(n, (("Paris", 23),)) for n in range(40, 44)], "span")
    assert sentences(found, "warning")[0].startswith("100 % of the dev questions are about a text that train has")


def test_long_texts_of_questions_are_windows():
    train = [question(n, (("Paris", 23),), "The Seine runs through Paris. " * (60 * (n == 4) + 1)) for n in range(30)]
    found = look(train, kind="span", limit=100)
    assert found.facts["train"]["lengths"]["windows_at_least"] == 33
    (note,) = sentences(found, "note")
    assert note.startswith("At least 1 question with its text of 30 is longer than 100 tokens; ")


def test_places_and_shares():
    assert places(["a.csv, row 2"]) == "a.csv, row 2"
    assert places(["a.csv, row 2", "a.csv, row 1,007"]) == "a.csv, rows 2 and 1007"
    assert places(["a, b.csv, row 2", "c.csv, row 4"]) == "a, b.csv, row 2; c.csv, row 4"
    assert places([f"a.csv, row {n}" for n in range(20)]) == "a.csv, rows 0, 1, 2 and 17 more"
    assert places(["", ""]) == ""
    assert [share(0, 9), share(1, 10**6), share(10**6 - 1, 10**6), share(5, 5)] == ["0 %", "0.1 %", "99.9 %", "100 %"]


@given(st.lists(st.builds(TextExample, st.text(), st.none() | st.text(), st.tuples(st.text())), max_size=12))
def test_no_data_breaks_the_doctor(examples):
    look(examples, examples[:3], limit=4)
    tags = [TagExample(e.text, ((0, len(e.text)),), e.labels) for e in examples]
    look(tags, tags[:3], "tag", limit=4)
    spans = [SpanExample(e.text, e.pair or "", ((e.labels[0], len(e.text)),), e.text) for e in examples]
    look(spans, spans[:3], "span", limit=4)


def test_it_is_fast():
    train = list(texts([f"class {n % 150}" for n in range(100_000)]))
    same = [TextExample("the same", None, ("class 1",), "x, row 1")] * 20_000
    start = time.process_time()
    look(train + same, list(texts(["class 1"] * 20_000, "dev.csv")), limit=128)
    assert time.process_time() - start < 60  # takes 2; comparing all with all would take hours
