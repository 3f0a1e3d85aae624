"""`bertsmith check` from file to report: what it guesses, what lengths it counts, what a terminal shows."""

import json

import pytest
import typer
from transformers import AutoTokenizer
from typer.testing import CliRunner

from bertsmith.checking import check
from bertsmith.cli import check as verb
from bertsmith.cli.check_report import BAR, bar
from bertsmith.cli.options import spread
from bertsmith.data.labels import guess_separator
from bertsmith.data.reading import read_table
from bertsmith.tasks.classify import Classify
from bertsmith.training.choices import TaskChoices
from bertsmith.training.preparing import read_data

TEXTS = [f"a rather unbelievable {noun} number {n}" for n in range(10) for noun in ("film", "Füchslein", "plot")]
RECORDS = [{"text": text, "label": "good" if n % 3 else "bad"} for n, text in enumerate(TEXTS)]


@pytest.fixture
def run():
    app = typer.Typer()
    app.command()(spread(verb.check))
    return lambda *words: CliRunner().invoke(app, [str(word) for word in words])


@pytest.fixture
def reviews(tmp_path):
    path = tmp_path / "reviews.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in RECORDS))
    return path


def test_lengths_are_those_of_the_models_tokenizer(demo_model):
    pairs = [{**record, "pair": "and so it goes"} for record in RECORDS]
    theirs = AutoTokenizer.from_pretrained(demo_model)
    for records in (RECORDS, pairs):
        lengths = [len(theirs(r["text"], r.get("pair"))["input_ids"]) for r in records]
        facts = check(records, model=demo_model).facts["train"]["lengths"]
        assert facts["unit"] == "tokens" and facts["limit"] == 512  # the encoder's; 256 is for its vectors
        assert (facts["total"], facts["least"], facts["most"]) == (sum(lengths), min(lengths), max(lengths))
    facts = check(RECORDS, model=demo_model, limit=9).facts["train"]["lengths"]
    assert facts["cut"] == sum(len(theirs(text)["input_ids"]) > 9 for text in TEXTS)


def test_without_any_model_words_are_counted(monkeypatch, tmp_path):
    monkeypatch.setattr("bertsmith.models.hub.DEMO_PACKAGE", "no_such_package")
    monkeypatch.setattr("bertsmith.models.hub.HOUSE", tmp_path / "nothing")
    found = check(RECORDS)
    assert found.facts["train"]["lengths"]["unit"] == "words"
    assert [f.sentence for f in found.findings] == [
        "No model is at hand, so lengths are in words; name one to see what it would cut."
    ]


@pytest.mark.parametrize(
    "kind, record",
    [
        ("classify", {"text": "It rains.", "label": "weather"}),
        ("classify", {"sentence1": "It rains.", "sentence2": "It is wet.", "label": "yes"}),
        ("classify", {"question": "Why?", "sentence": "So.", "label": "yes"}),
        ("tag", {"tokens": ["Ann", "runs"], "ner_tags": ["B-PER", "O"]}),
        ("tag", {"text": "Ann runs", "entities": [[0, 3, "PER"]]}),
        ("tag", {"tokens": ["Ann", "runs"], "ner": ["B-PER", "O"]}),
        ("tag", {"tokens": ["Ann", "runs"], "bio": ["B-PER", "O"], "text": "Ann runs"}),
        ("tag", {"text": "Ann runs", "spans": [{"start": 0, "end": 3, "label": "PER"}]}),  # Prodigy
        ("tag", {"text": "Ann runs", "ents": [[0, 3, "PER"]]}),  # spaCy
        ("classify", {"text": "Ann runs", "tags": "sport", "label": "a"}),
        ("classify", {"text": "Ann runs", "tokens": 2, "pos": 1, "label": "a"}),
        ("span", {"question": "Who?", "context": "Ann runs", "answers": {"text": ["Ann"], "answer_start": [0]}}),
    ],
)
def test_the_task_is_guessed(kind, record):
    assert check([record]).facts["task"] == kind


def test_dev_has_the_columns_of_train(tmp_path):
    """By itself dev would take the column of fewer distinct values, `what`, as the label."""
    train = [{"what": text, "how": "bad" if n % 2 else "good"} for n, text in enumerate(TEXTS)]
    dev = [{"what": "the same", "how": "good"}, {"what": "the same", "how": "bad"}]
    assert check(train, dev).facts["dev"]["roles"] == {"text": "what", "label": "how"}


def test_several_labels_are_seen_in_lists():
    records = [{"text": text, "label": [["joy"], ["joy", "fear"], []][n % 3]} for n, text in enumerate(TEXTS)]
    facts = check(records).facts["train"]
    assert facts["labels"] == {"joy": 20, "fear": 10} and facts["without_labels"] == 10


def test_what_parts_labels_in_train_parts_them_in_dev():
    """In dev alone no cell has the bar, and the commas of a name would part it."""
    labels = ["Arts, Crafts|Sport", "Sport|Music", "Sport"]
    train = [{"text": text, "label": labels[n % 3]} for n, text in enumerate(TEXTS)]
    dev = [{"text": "one more", "label": "Arts, Crafts"}, {"text": "and one", "label": "Sport"}]
    found = check(train, dev, several=True)
    assert found.errors == [] and found.facts["dev"]["labels"] == {"Arts, Crafts": 1, "Sport": 1}
    data = read_data(Classify, train, dev, dev, TaskChoices(several=True), {}, None, 0)
    assert [example.labels for example in data.dev] == [("Arts, Crafts",), ("Sport",)]
    assert [example.labels for example in data.test] == [("Arts, Crafts",), ("Sport",)]


@pytest.mark.parametrize("sign", ["/", "+", " ", "&", ","])
def test_labels_that_no_known_sign_parts(sign):
    """Read as one label each, though any number is allowed: x/y would be learnt as a class of its own."""
    labels = ["joy", "fear", f"joy{sign}fear", "joy;fear", "fear;joy"]
    found = check([{"text": text, "label": labels[n % 5]} for n, text in enumerate(TEXTS)], several=True)
    (told,) = [f for f in found.warnings if "made of other labels" in f.sentence]
    assert told.sentence == (
        f'1 label such as "joy{sign}fear" is made of other labels and "{sign}": if these are several labels a text, '
        "name the sign with --separator (train, rows 3, 8, 13 and 3 more)."
    )
    records = [{"text": text, "label": labels[n % 3]} for n, text in enumerate(TEXTS)]
    found = check(records, several=True, separator=sign)
    assert not any("made of other labels" in f.sentence for f in found.findings)
    assert set(found.facts["train"]["labels"]) == {"joy", "fear"}


def test_a_sign_in_a_known_label_parts_no_labels():
    table = read_table([{"label": "Arts, Crafts"}, {"label": "Sport"}])
    assert guess_separator(table, "label") == ","
    assert guess_separator(table, "label", ["Arts, Crafts", "Sport"]) != ","
    table = read_table([{"label": "Arts, Crafts|Sport"}])
    assert guess_separator(table, "label", ["Arts, Crafts", "Sport"]) == "|"
    assert guess_separator(table, "label", ["a,", "b;", "c|"]) is None


def test_a_pipe_gets_one_object(run, reviews):
    ran = run(reviews, "--label", "label", "--limit", 9)
    assert ran.exit_code == 0
    found = json.loads(ran.stdout)
    assert found["errors"] == 0 and found["facts"]["train"]["labels"] == {"good": 20, "bad": 10}
    assert found["facts"]["train"]["roles"] == {"text": "text", "label": "label"}
    assert run(reviews, "--dev", reviews).exit_code == 1


def test_a_terminal_gets_a_report(run, reviews, monkeypatch):
    monkeypatch.setattr(verb, "wants_json", lambda asked: asked)
    ran = run(reviews, "--dev", reviews)
    assert ran.exit_code == 1
    assert f"train  {reviews}  30 examples" in ran.stdout
    assert f"good  {'█' * BAR}         20   66.7 %" in ran.stdout
    assert "tokens  median" in ran.stdout
    assert "error: All 30 dev texts (100 %) stand in train too" in ran.stdout
    assert ran.stdout.rstrip().endswith("1 error, 0 warnings, 0 notes")
    assert "nothing wrong was found" in run(reviews).stdout
    assert json.loads(run(reviews, "--json").stdout)["errors"] == 0


def test_bars():
    assert [bar(0, 10), bar(10, 10), bar(1, 10**6), bar(5, 10)] == ["", "█" * BAR, "▏", "█" * (BAR // 2)]
