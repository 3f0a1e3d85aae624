"""Records become examples: labels, tags and answers in every shape that people write, and what each broken one gets."""

import csv
import json
import unicodedata

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.preprocessing import MultiLabelBinarizer

from bertsmith.checking import choose_kind
from bertsmith.data.cells import list_cell
from bertsmith.data.columns import find_columns
from bertsmith.data.labels import guess_separator, read_label_names, text_examples
from bertsmith.data.numbers import number_examples
from bertsmith.data.reading import read_table
from bertsmith.data.spans import span_examples
from bertsmith.data.tags import tag_examples
from bertsmith.data.words import split_words
from bertsmith.errors import BertsmithError

NAN = float("nan")


def texts(*labels, **choices):
    table = read_table([{"text": "a", "label": label} for label in labels], name="train")
    examples = text_examples(table, find_columns(table, ("text", "pair", "label")), **choices)
    return [example.labels for example in examples]


def tagged(record, **choices):
    table = read_table([record], name="train")
    return tag_examples(table, find_columns(table, ("words", "tags")), **choices)[0]


def asked(record, **choices):
    table = read_table([record], name="train")
    columns = find_columns(table, ("question", "context", "answers", "id", "impossible"))
    return span_examples(table, columns, **choices)[0]


def test_labels_are_strings():
    given = (1, 1.0, 0.5, True, False, " pos ", "1.0", 10**20)
    expected = ("1", "1", "0.5", "true", "false", "pos", "1.0", "1" + "0" * 20)
    assert texts(*given) == [(label,) for label in expected]


def test_unlabelled():
    table = read_table([{"text": "a"}], name="train")
    (example,) = text_examples(table, {"text": "text"})
    assert (example.text, example.pair, example.labels, example.where) == ("a", None, None, "train, row 1")
    assert texts(None, gold=False) == [None]


def test_pairs():
    table = read_table([{"sentence1": "a", "sentence2": "b", "label": 0}])
    (example,) = text_examples(table, find_columns(table, ("text", "pair", "label")))
    assert (example.text, example.pair, example.labels) == ("a", "b", ("0",))


@pytest.mark.parametrize("cells", [("a;b", "b", ""), ("a|b", "b", " "), ("a, b", "b", None), (["a", "b"], ["b"], [])])
def test_several(cells):
    assert texts(*cells, several=True) == [("a", "b"), ("b",), ()]


def test_lists_need_no_flag():
    assert texts(["a", "b", "a"], []) == [("a", "b"), ()]
    assert texts('["a", "b"]', "[]") == [("a", "b"), ()]  # as a CSV holds them
    assert texts("a,b") == [("a,b",)]


def test_separator():
    table = read_table([{"label": cell} for cell in ("joy, mild;anger", "joy;fear", "fear")])
    assert guess_separator(table, "label") == ";"
    assert guess_separator(read_table([{"label": "joy"}]), "label") is None
    assert texts("a b", "c", several=True, separator=" ") == [("a", "b"), ("c",)]
    assert texts(["a", "b"], "c;d", separator=";") == [("a", "b"), ("c", "d")]  # lists are several without a word


@pytest.mark.parametrize(
    ("yes", "no"),
    [(1, 0), ("1", "0"), ("1.0", "0.0"), (True, False), ("TRUE", "False"), (1.0, NAN), ("yes", ""), ("1", None)],
)
def test_a_column_a_label(yes, no):
    """As Kaggle gives several labels out; scikit-learn's binarizer reads them back."""
    gold = [("toxic", "threat"), (), ("obscene",)]
    names = ("toxic", "obscene", "threat")
    kept = MultiLabelBinarizer(classes=names).fit_transform(gold)
    rows = [dict(zip(names, (yes if flag else no for flag in flags), strict=True)) for flags in kept]
    table = read_table([{"id": 7, "comment": "a", **row} for row in rows], name="train")
    columns = find_columns(table, ("text", "pair", "label"), {"label": "toxic, obscene,5"})
    assert columns["text"] == "comment"
    assert [example.labels for example in text_examples(table, columns)] == gold
    for extra in ({"separator": ";"}, {"label_names": ["a"]}):
        with pytest.raises(BertsmithError, match="for labels in one column, but here each has a column of its own"):
            text_examples(table, columns, several=True, **extra)
    with pytest.raises(BertsmithError, match="are several columns, but a number stands in one"):
        number_examples(table, columns)


def test_a_column_whose_name_has_a_comma_is_one():
    table = read_table([{"text": "a", "x,y": "pos", "x": 1, "y": 0}])
    columns = find_columns(table, ("text", "label"), {"label": "x,y"})
    assert text_examples(table, columns)[0].labels == ("pos",)


@pytest.mark.parametrize(
    ("cell", "end"),
    [("0,5", "; write decimals with a point, thousands without a comma."), ("80 %", "; leave the sign out."),
     ("-1,234.5", "; write decimals with a point, thousands without a comma."), ("a, b", "."), ("high", ".")],
)  # fmt: skip
def test_numbers_written_for_people(cell, end):
    table = read_table([{"text": "a", "label": cell}], name="train")
    with pytest.raises(BertsmithError) as caught:
        number_examples(table, {"text": "text", "label": "label"})
    expected = f'train, row 1, column "label": a finite number is needed here, not a text ({cell})'
    assert str(caught.value) == f"{expected}{end}"


@pytest.mark.parametrize(
    ("labels", "kind"),
    [
        ([f"{n / 4:.3f}" for n in range(40)], "regress"),  # as STS-B's
        ([n / 7 for n in range(40)], "regress"),
        (range(1, 41), "classify"),  # whole numbers may be classes
        (["1.0", "2.0", "3.5", "4.5"] * 10, "classify"),  # and so may a few halves: stars
        ([*(n / 7 for n in range(39)), "high"], "classify"),
        ([*(n / 7 for n in range(39)), None], "classify"),
        ([["a"], ["b"]] * 20, "classify"),
    ],
)
def test_numbers_that_are_no_classes_are_for_regression(labels, kind):
    table = read_table([{"sentence1": "a", "sentence2": "b", "how": 1, "value": label} for label in labels])
    assert choose_kind(None, table, {"label": "value"}) == kind
    assert choose_kind("classify", table, {"label": "value"}) == "classify"
    assert choose_kind(None, table, {"label": "nowhere"}) == "classify"  # what is wrong is told by who needs it


@pytest.mark.parametrize("several", [None, True])
@pytest.mark.parametrize("marked", [[0, 3, "PER"], {"start": 0, "end": 3, "label": "PER"}])
def test_entities_marked_in_a_text_are_no_labels(several, marked):
    """As doccano gives them out; each place would be learnt as a class."""
    with pytest.raises(BertsmithError, match=r"row 2, .* a label is needed here, not a.* 'PER'.*say task tag"):
        texts([], [marked], several=several)


@pytest.mark.parametrize("several", [None, False])
def test_a_separator_that_would_part_nothing_is_refused(several):
    with pytest.raises(
        BertsmithError, match=r"^separator is ';', but the texts are taken to have one label each; for "
    ):
        texts("a;b", "c", several=several, separator=";")
    with pytest.raises(BertsmithError, match=r"^separator is empty; give the sign between the labels of a text, or "):
        texts("a;b", "c", several=True, separator="")


def test_numbered_labels(tmp_path):
    (tmp_path / "labels.txt").write_text("joy\nfear\nanger\n")
    names = read_label_names(tmp_path / "labels.txt")
    assert names == ["joy", "fear", "anger"]
    assert texts("2,0", "1", several=True, label_names=names) == [("anger", "joy"), ("fear",)]
    assert texts(1, "anger", label_names=names) == [("fear",), ("anger",)]
    with pytest.raises(BertsmithError, match='row 1, column "label": label "3" is none of the 3 names'):
        texts("3", label_names=names)
    for cell in ("2,0", "anger, joy"):
        with pytest.raises(BertsmithError, match=r'several=True, separator="," \(--several --separator ,\)\.$'):
            texts("1", cell, label_names=names)
    with pytest.raises(BertsmithError, match=r"numbered 0 to 2\.$"):
        texts("1,9", label_names=names)
    (tmp_path / "labels.txt").write_text("joy\n\njoy\n")
    with pytest.raises(BertsmithError, match="line 2: an empty line"):
        read_label_names(tmp_path / "labels.txt")


@pytest.mark.parametrize("label", [None, NAN, "", "  ", "nan", "NaN"])
def test_an_empty_label(label):
    with pytest.raises(BertsmithError, match='train, row 2, column "label": the label is empty'):
        texts("a", label)


def test_labels_that_do_not_fit():
    with pytest.raises(BertsmithError, match=r"row 1, .* 2 labels where one is needed; .*--several"):
        texts(["a", "b"], several=False)
    with pytest.raises(BertsmithError, match="a label is needed here, not an object"):
        texts({"a": 1})


@pytest.mark.parametrize(("text", "what"), [
    (3, r"a text is needed here, not a number \(3\)"), (None, "the text is missing"), (NAN, "the text is missing"),
    (["a"], "not a list"), ("a\ud83d", r"character 2 is half of a surrogate pair \(\\ud83d\)"),
])  # fmt: skip
def test_texts_that_are_none(text, what):
    table = read_table([{"text": "a", "label": 1}, {"text": text, "label": 1}], name="train")
    with pytest.raises(BertsmithError, match='train, row 2, column "text": .*' + what):
        text_examples(table, {"text": "text", "label": "label"})


ARRAYS = [["a"], ["B-LOC", "O", "O"], ["don't", 'say "x"', "[x]"], [2, 27], [0.5, 1.0], [True, False], ["w"] * 90]


@pytest.mark.parametrize("values", ARRAYS, ids=repr)
def test_arrays_as_pandas_writes_them_into_a_table(values):
    """['a' 'b'] is no list of Python's: read as one, it would be the single text "ab"."""
    assert list_cell(str(numpy.array(values, dtype=object if isinstance(values[0], str) else None))) == values


@pytest.mark.parametrize("text", ["[some words]", "[laughs out loud]", "[a b", "['a' b]", "[1 x]", "[1 ... 9]"])
def test_texts_in_brackets_are_no_arrays(text):
    assert list_cell(text) is None


def test_words_and_tags_after_a_way_through_pandas(tmp_path):
    pandas = pytest.importorskip("pandas")
    words, tags = ["EU", "rejects", "German"], ["B-ORG", "O", "B-MISC"]
    frame = pandas.DataFrame({"tokens": [numpy.array(words)], "tags": [numpy.array(tags)]})
    frame.to_csv(tmp_path / "a.csv", index=False)
    (example,) = tag_examples(read_table(tmp_path / "a.csv"), {"words": "tokens", "tags": "tags"})
    assert example.words == words and list(example.tags) == tags


@pytest.mark.parametrize("write", [str, json.dumps])
def test_answers_in_a_cell_of_a_table(tmp_path, write):
    """As the library `datasets` writes SQuAD into a CSV file, and as JSON."""
    answers = {"text": ["Ann"], "answer_start": [0]}
    with open(tmp_path / "a.csv", "w", newline="") as file:
        csv.writer(file).writerows([["question", "context", "answers"], ["Who?", "Ann and Ann", write(answers)]])
    table = read_table(tmp_path / "a.csv")
    (example,) = span_examples(table, {"question": "question", "context": "context", "answers": "answers"})
    assert example.answers == (("Ann", 0),)
    braces = read_table([{"question": "What?", "context": "a set {1} of", "answers": "{1}"}])
    (example,) = span_examples(braces, {"question": "question", "context": "context", "answers": "answers"})
    assert example.answers == (("{1}", 6),)


HALVES = {
    "a tag": {"words": ["a"], "tags": ["B-\ud83d"]},
    "an entity": {"text": "Ann", "entities": [[0, 3, "\ud83d"]]},
}


@pytest.mark.parametrize("record", HALVES.values(), ids=HALVES)
def test_half_a_character_in_a_tag(record):
    """What cannot be written must not be found out when a trained model is saved."""
    table = read_table([record], name="train")
    columns = {role: role for role in record}
    with pytest.raises(BertsmithError, match=r"train, row 1, .* is half of a surrogate pair \(\\ud83d\)"):
        tag_examples(table, columns)


WORDS = {
    "lists": {"tokens": ["New York", "is", "big"], "tags": ["B-LOC", "O", "O"]},
    "json in cells": {"tokens": '["New York", "is", "big"]', "tags": '["B-LOC", "O", "O"]'},
    "python in cells": {"tokens": "['New York', 'is', 'big']", "tags": "['B-LOC', 'O', 'O']"},
}


@pytest.mark.parametrize("record", WORDS.values(), ids=WORDS)
def test_words_and_tags(record):
    example = tagged(record)
    assert example.text == "New York is big" and example.words == ["New York", "is", "big"]
    assert example.tags == ("B-LOC", "O", "O") and example.where == "train, row 1"


def test_words_in_a_cell():
    example = tagged({"words": "EU rejects  it", "tags": "B-ORG O O"})
    assert example.words == ["EU", "rejects", "it"] and example.tags == ("B-ORG", "O", "O")
    assert tagged({"words": ["EU"], "tags": ["O"]}, gold=False).tags is None
    assert tagged({"words": ["EU"]}).tags is None
    assert tagged({"tokens": ["EU", 1990], "ner_tags": [1, 0]}, label_names=["O", "B-ORG"]).tags == ("B-ORG", "O")


TEXT = "Ada, of London's Fleet Street, left."
ENTITIES = [[0, 3, "PER"], [8, 14, "LOC"], [17, 29, "LOC"]]
MARKED = {
    "lists": ENTITIES,
    "dicts": [{"start": s, "end": e, "label": label, "token_start": 0} for s, e, label in ENTITIES],
    "offsets": [{"id": 1, "start_offset": s, "end_offset": e, "label": label} for s, e, label in ENTITIES],
    "json": json.dumps(ENTITIES),
}


@pytest.mark.parametrize("entities", MARKED.values(), ids=MARKED)
def test_entities(entities):
    example = tagged({"text": TEXT, "entities": entities})
    assert example.text == TEXT
    assert [f"{word}/{tag}" for word, tag in zip(example.words, example.tags, strict=True) if tag != "O"] == [
        "Ada/B-PER", "London/B-LOC", "Fleet/B-LOC", "Street/I-LOC",
    ]  # fmt: skip


TAG_ERRORS = {
    "counts": ({"words": ["a", "b"], "tags": ["O"]}, "train, row 1: 2 words but 1 tag;"),
    "an empty word": ({"words": ["a", " "], "tags": ["O", "O"]}, 'column "words": word 2 of the sentence is empty'),
    "no word": ({"words": ["a", None], "tags": ["O", "O"]}, "word 2 of the sentence is nothing"),
    "an empty tag": ({"words": ["a", "b"], "tags": ["O", ""]}, 'column "tags": the tag of word 2 is empty'),
    "no tags": ({"words": ["a", "b"], "tags": None}, 'column "tags": no tags'),
    "inside a word": ({"text": TEXT, "entities": [[1, 3, "PER"]]}, 'is "da", which does not .* "Ada", 0 to 3'),
    "one too far": ({"text": TEXT, "entities": [[8, 15, "LOC"]]}, None),
    "a space too much": ({"text": TEXT, "entities": [[16, 29, "LOC"]]}, '"Fleet Street", 17 to 29'),
    "outside": ({"text": TEXT, "entities": [[30, 99, "LOC"]]}, "not inside the text, which has 36 characters"),
    "turned round": ({"text": TEXT, "entities": [[3, 0, "LOC"]]}, "not inside the text"),
    "overlap": ({"text": TEXT, "entities": [[0, 3, "A"], [0, 3, "B"]]}, "entity 2 .*overlaps"),
    "no label": ({"text": TEXT, "entities": [[0, 3]]}, r"entity 1 must be \[start, end, label\]"),
    "no list": ({"text": TEXT, "entities": 3}, "a list of entities is needed here"),
}  # fmt: skip


@pytest.mark.parametrize(("record", "sentence"), TAG_ERRORS.values(), ids=TAG_ERRORS)
def test_tag_errors(record, sentence):
    if sentence is None:  # the apostrophe is a word of its own, so this one fits
        assert tagged(record).tags.count("I-LOC") == 1
        return
    with pytest.raises(BertsmithError, match=sentence) as caught:
        tagged(record)
    assert str(caught.value).startswith("train, row 1")


def test_tag_names():
    with pytest.raises(BertsmithError, match='tag "7" of word 1 is none of the 1 names'):
        tagged({"words": ["a"], "tags": [7]}, label_names=["O"])


@given(st.text(st.characters(exclude_categories=["Cs", "Cc", "Cf", "Co", "Cn"]), max_size=30))
def test_words_are_those_of_bert(text):
    from transformers.models.bert.tokenization_bert_legacy import BasicTokenizer

    text = unicodedata.normalize("NFC", text)  # as theirs does by itself
    words = [text[start:end] for start, end in split_words(text)]
    assert words == BasicTokenizer(do_lower_case=False, tokenize_chinese_chars=True).tokenize(text)


CONTEXT = "Paris is in France. Paris is large."
ANSWERS = {
    "squad": [{"text": "France", "answer_start": 12}],
    "hugging face": {"text": ["France"], "answer_start": [12]},
    "text": "France",
    "texts": ["France"],
    "json": '[{"text": "France", "answer_start": 12}]',
}


@pytest.mark.parametrize("answers", ANSWERS.values(), ids=ANSWERS)
def test_answers(answers):
    example = asked({"question": "Where?", "context": CONTEXT, "answers": answers, "id": "q1"})
    assert example.answers == (("France", 12),) and example.id == "q1" and example.where == "train, row 1 (id q1)"


def test_an_answer_with_its_start():
    record = {"question": "What?", "context": CONTEXT, "answer": "Paris"}
    assert asked(record | {"answer_start": "20"}).answers == (("Paris", 20),)
    assert asked(record | {"answer_start": 0}).answers == (("Paris", 0),)
    assert asked(record | {"answer_start": 20.0}, gold=False).answers is None
    assert asked({"question": "What?", "context": CONTEXT}).answers is None
    assert asked({"question": "What?", "context": CONTEXT}).id == "1"


@pytest.mark.parametrize("answers", [[], "", {"text": [], "answer_start": []}])
def test_no_answer(answers):
    assert asked({"question": "Why?", "context": CONTEXT, "answers": answers}).answers == ()
    assert asked({"question": "Why?", "context": CONTEXT, "answers": answers, "is_impossible": True}).answers == ()


SPAN_ERRORS = {
    "off by one": ([{"text": "France", "answer_start": 13}], 'character 13, where "rance." stands; it stands at 12'),
    "the nearest": ([{"text": "Paris", "answer_start": 19}], '" Pari" stands; it stands at 20'),
    "not there": ([{"text": "Rome", "answer_start": 0}], '"Pari" stands; an answer must be a piece of the context'),
    "beyond": ([{"text": "Rome", "answer_start": 99}], "where nothing stands"),
    "before": ([{"text": "large.", "answer_start": -6}], "where nothing stands; it stands at 29"),
    "text not there": ("Rome", 'answer "Rome" does not stand in the context'),
    "text twice": ("Paris", "stands 2 times in the context; give its first character as answer_start"),
    "empty answer": ([{"text": "", "answer_start": 0}], "an answer is empty"),
    "missing": (None, r'an answer is needed here \("" or \[\] for none\), not nothing'),
    "lengths": ({"text": ["a"], "answer_start": []}, "lists of one length"),
    "a word as start": ([{"text": "Paris", "answer_start": "x"}], "answer_start must be a whole number"),
    "no text": ([{"answer_start": 3}], "an answer must be a text or"),
}


@pytest.mark.parametrize(("answers", "sentence"), SPAN_ERRORS.values(), ids=SPAN_ERRORS)
def test_span_errors(answers, sentence):
    with pytest.raises(BertsmithError, match=sentence) as caught:
        asked({"question": "What?", "context": CONTEXT, "answers": answers, "id": "q7"})
    assert str(caught.value).startswith('train, row 1 (id q7), column "answers": ')


def test_impossible():
    record = {"question": "What?", "context": CONTEXT}
    with pytest.raises(BertsmithError, match="an answer is given, though the question is marked as impossible"):
        asked(record | {"answers": "France", "is_impossible": "true"})
    with pytest.raises(BertsmithError, match="no answer is given, though"):
        asked(record | {"answers": [], "is_impossible": False})
    with pytest.raises(BertsmithError, match="is_impossible must be true or false"):
        asked(record | {"answers": [], "is_impossible": "maybe"})
    assert asked(record | {"answers": None, "is_impossible": 1}).answers == ()


def test_what_nobody_sees_is_no_part_of_a_word():
    """A byte-order mark, a mark of direction, a soft hyphen: who marks a name leaves it out."""
    text = "\ufeffAnn met \u200fBob\u200b, co\u00adop\u00ad \u200b می\u200c"
    assert [text[start:end] for start, end in split_words(text)] == ["Ann", "met", "Bob", ",", "co\u00adop", "می\u200c"]
    entities = [[text.index(name), text.index(name) + 3, "PER"] for name in ("Ann", "Bob")]
    table = read_table([{"text": text, "entities": entities}])
    (example,) = tag_examples(table, find_columns(table, ("words", "tags", "text", "entities")))
    assert example.tags == ("B-PER", "O", "B-PER", "O", "O", "O")
