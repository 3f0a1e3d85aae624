"""Which column is which, by a table of headers; what is not clear is asked for, never guessed."""

import unicodedata

import pytest

from bertsmith.data.columns import find_columns
from bertsmith.data.reading import read_table
from bertsmith.errors import BertsmithError

TEXTS = ("text", "pair", "label")
TAGS = ("words", "tags")
SPANS = ("question", "context", "answers", "id", "impossible")
FOUND = {
    # header: role -> column
    "text label": {"text": "text", "label": "label"},
    "Review Sentiment": {"text": "Review", "label": "Sentiment"},
    "idx sentence label": {"text": "sentence", "label": "label"},
    "text label label_text": {"text": "text", "label": "label"},
    "text title label": {"text": "text", "label": "label"},
    "index question sentence label": {"text": "question", "pair": "sentence", "label": "label"},  # QNLI
    "index sentence1 sentence2 label": {"text": "sentence1", "pair": "sentence2", "label": "label"},
    "id qid1 question1 question2 is_duplicate": {"text": "question1", "pair": "question2", "label": "is_duplicate"},
    "premise hypothesis label1 label2 gold_label": {"text": "premise", "pair": "hypothesis", "label": "gold_label"},
    "Quality #1_ID #2_ID #1_String #2_String": {"text": "#1_String", "pair": "#2_String", "label": "Quality"},
    "text pair label": {"text": "text", "pair": "pair", "label": "label"},
    "index sentence": {"text": "sentence"},  # a test file
    "text source": {"text": "text"},
    "question label": {"text": "question", "label": "label"},
}  # fmt: skip


def table_of(header, *rows):
    names = header.split()
    return read_table([dict(zip(names, row, strict=True)) for row in rows or [names]], name="a.csv")


@pytest.mark.parametrize(("header", "expected"), FOUND.items(), ids=FOUND)
def test_texts(header, expected):
    assert find_columns(table_of(header), TEXTS) == expected


TAGGED = {
    "words tags": {"words": "words", "tags": "tags"},
    "id tokens pos_tags chunk_tags ner_tags": {"words": "tokens", "tags": "ner_tags"},
    "id form lemma upos xpos": {"words": "form", "tags": "upos"},
    "text words tags intent": {"words": "words", "tags": "tags"},
    "tokens": {"words": "tokens"},
    "text": {"text": "text"},
    "text entities": {"text": "text", "entities": "entities"},
    "text tokens spans": {"text": "text", "entities": "spans"},  # Prodigy
}


@pytest.mark.parametrize(("header", "expected"), TAGGED.items(), ids=TAGGED)
def test_tags(header, expected):
    assert find_columns(table_of(header), TAGS) == expected


def test_labels_are_tags_or_entities_by_their_values():
    spans = read_table([{"text": "a", "label": []}, {"text": "Rome", "label": [[0, 4, "LOC"]]}])
    assert find_columns(spans, TAGS) == {"text": "text", "entities": "label"}
    tags = read_table([{"tokens": ["a"], "labels": ["O"], "text": "a"}])
    assert find_columns(tags, TAGS) == {"words": "tokens", "tags": "labels"}


def test_spans():
    header = "id title question context answers is_impossible"
    same = {"id": "id", "question": "question", "context": "context", "answers": "answers"}
    assert find_columns(table_of(header), SPANS) == same | {"impossible": "is_impossible"}
    flat = {"question": "query", "context": "passage", "answers": "answer", "start": "answer_start"}
    assert find_columns(table_of("query passage answer answer_start"), SPANS) == flat


def test_choices():
    table = table_of("review comment stars")
    assert find_columns(table, TEXTS, {"text": "comment", "pair": None}) == {"text": "comment", "label": "stars"}
    assert find_columns(table, TEXTS, {"text": "1", "pair": "2"}) == {
        "text": "review",
        "pair": "comment",
        "label": "stars",
    }
    one = find_columns(table_of("premise hypothesis label"), TEXTS, {"text": "premise"})
    assert one == {"text": "premise", "label": "label"}  # a chosen text has a pair only if that is chosen too


UNNAMED = [("fine film", "pos"), ("a bore", "neg"), ("loved it", "pos")]


@pytest.mark.parametrize("turned", [False, True])
def test_two_unknown_columns(turned):
    rows = [row[::-1] for row in UNNAMED] if turned else UNNAMED
    found = find_columns(table_of("humeur avis" if turned else "avis humeur", *rows), TEXTS)
    assert found == {"text": "avis", "label": "humeur"}
    assert found.notes == [
        'took column "humeur" as label and "avis" as text because it has 2 distinct values against 3'
    ]


def test_a_label_is_taken_from_an_unknown_column_only_where_one_is_needed():
    table = table_of("text humeur", *UNNAMED)
    assert find_columns(table, TEXTS) == {"text": "text"}
    found = find_columns(table, TEXTS, required=("text", "label"))
    assert found == {"text": "text", "label": "humeur"} and "humeur" in found.notes[0]


ERRORS = {
    "two texts": ("review comment label", TEXTS, {}, '2 columns that may be the text: "review", "comment"; .*--text'),
    "two labels": ("text topic intent", TEXTS, {}, '2 columns that may be the label: "topic", "intent"; .*--label'),
    "two pairs": ("premise hypothesis sentence1 sentence2", TEXTS, {}, "several columns that may be the text and its"),
    "a text beside a pair": ("text sentence1 sentence2", TEXTS, {}, "--text COLUMN and, where a pair is wanted"),
    "two tags": ("words ner tags", TAGS, {}, '2 columns that may be the tags: "ner", "tags"; choose one with --tags'),
    "no text": ("a b c label", TEXTS, {}, 'no column known as text .*"a", "b", "c", "label".*--text COLUMN'),
    "no words": ("a b", TAGS, {}, "no column known as words .*--words COLUMN"),
    "no context": ("question answers", SPANS, {}, "no column known as context"),
    "a wrong choice": ("review label", TEXTS, {"text": "reviews"}, 'no column "reviews", .*did you mean "review"'),
    "a wrong number": ("review label", TEXTS, {"text": "3"}, 'no column "3"'),
}  # fmt: skip


@pytest.mark.parametrize(("header", "roles", "chosen", "sentence"), ERRORS.values(), ids=ERRORS)
def test_errors(header, roles, chosen, sentence):
    with pytest.raises(BertsmithError, match=sentence) as caught:
        find_columns(table_of(header), roles, chosen)
    assert str(caught.value).startswith("a.csv ")


@pytest.mark.parametrize("chosen", [{}, {"text": "words"}])
def test_tagged_words_are_no_texts(tmp_path, chosen):
    """Which of two lists "is the text" would be a wrong question."""
    (tmp_path / "a.conll").write_text("EU B-ORG\nrejects O\n\nPeter B-PER\n")
    with pytest.raises(BertsmithError, match=r"a\.conll holds words with their tags, .*--task tag.*--format lines"):
        find_columns(read_table(tmp_path / "a.conll"), TEXTS, chosen)


@pytest.mark.parametrize(("there", "typed"), [("NFD", "NFC"), ("NFC", "NFD")])
def test_accents_may_be_written_in_either_way(there, typed):
    """A name that looks the same is the same: Macs write é as two characters, keyboards as one."""
    name = unicodedata.normalize(there, "Überschrift")
    table = read_table([{name: "a", "Note": "b"}])
    assert find_columns(table, TEXTS, {"text": unicodedata.normalize(typed, "Überschrift")})["text"] == name


def test_a_required_label():
    with pytest.raises(BertsmithError, match="no column known as label"):
        find_columns(table_of("text"), TEXTS, required=("text", "label"))
