"""`evaluate`: metrics against scikit-learn, two models side by side, SQuAD predictions, and what is refused."""

import io
import json
import sys

import pytest
from sklearn import metrics as oracle
from whole.tiny import as_conll, mixed_news, questions, reviews, sentences

import bertsmith
from bertsmith.errors import BertsmithError

pytestmark = pytest.mark.usefixtures("offline")
LEARN = {"batch": 8, "rate": 2e-3, "device": "cpu", "threads": 1}


@pytest.fixture(scope="module")
def folders(tmp_path_factory, encoder):
    """A model that is right, one that hardly learned, one for several labels, a tagger, a reader."""
    place = tmp_path_factory.mktemp("evaluated")
    (place / "train.conll").write_text(as_conll(sentences()))
    (place / "squad.json").write_text(json.dumps(questions()))
    asked = {
        "good": ("classify", reviews(), {"epochs": 12}),
        "poor": ("classify", reviews(), {"max_steps": 1, "seed": 4}),
        "several": ("classify", mixed_news(), {"epochs": 20, "label": "topics"}),
        "tag": ("tag", place / "train.conll", {"epochs": 10}),
        "span": ("span", place / "squad.json", {"max_steps": 2}),
    }
    for name, (task, train, settings) in asked.items():
        bertsmith.finetune(task, train, train, out=place / name, model=encoder, check=False, **{**LEARN, **settings})
    return place


def test_the_numbers_are_those_of_scikit_learn(folders):
    rows = [*reviews("a"), *reviews("this")[:10]]
    found = bertsmith.evaluate(folders / "poor", rows)
    gold = [row["label"] for row in rows]
    said = [result[0]["label"] for result in bertsmith.load(folders / "poor").classify([row["text"] for row in rows])]
    expected = {
        "accuracy": oracle.accuracy_score(gold, said),
        "macro_f1": oracle.f1_score(gold, said, average="macro"),
        "weighted_f1": oracle.f1_score(gold, said, average="weighted"),
        "matthews": oracle.matthews_corrcoef(gold, said),
        "f1": oracle.f1_score(gold, said, pos_label="pos", zero_division=0),
    }
    for name, value in expected.items():
        score = found["metrics"][name]
        assert score["value"] == pytest.approx(value) and score["n"] == 58
        assert score["low"] <= score["value"] <= score["high"]
    other = bertsmith.evaluate(folders / "poor", rows, positive="neg")["metrics"]["f1"]["value"]
    assert other == pytest.approx(oracle.f1_score(gold, said, pos_label="neg", zero_division=0))
    assert json.loads(json.dumps(found)) == found
    assert (found["task"], found["data"], found["examples"]) == ("classify", "data", 58)


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"positive": "posi"}, "positive: the label 'posi' is not one of the model's .*did you mean 'pos'"),
        ({"question_length": 8}, "question_length is for span and has no use in classify"),
    ],
)
def test_a_choice_that_would_have_no_effect_is_refused(folders, settings, why):
    with pytest.raises(BertsmithError, match=why):
        bertsmith.evaluate(folders / "poor", reviews("a"), **settings)


def test_two_models_side_by_side(folders):
    rows = reviews("a")
    found = bertsmith.evaluate(folders / "good", rows, compare=folders / "poor")
    alone = [bertsmith.evaluate(folders / name, rows)["metrics"] for name in ("good", "poor")]
    assert found["metrics"] == alone[0] and found["compare"]["metrics"] == alone[1]
    difference = found["compare"]["differences"]["accuracy"]
    assert difference["difference"] == pytest.approx(alone[1]["accuracy"]["value"] - alone[0]["accuracy"]["value"])
    assert difference["low"] <= difference["difference"] <= difference["high"] < 0 and difference["p"] < 0.01
    same = bertsmith.evaluate(folders / "good", rows, compare=folders / "good")["compare"]["differences"]["accuracy"]
    assert same["difference"] == 0 and same["p"] == 1


def test_two_models_are_compared_by_the_f1_of_one_label(folders):
    """Whichever label each was trained to be told by."""
    usual = {"model": folders / "poor", "max_steps": 1, "check": False, **LEARN}
    for name in ("pos", "neg"):
        bertsmith.finetune("classify", reviews(), reviews("a"), out=folders / name, positive=name, **usual)
    rows = [*reviews("a"), *reviews("this")[:10]]
    for one, other in (("pos", "neg"), ("neg", "pos")):
        found = bertsmith.evaluate(folders / one, rows, compare=folders / other)
        assert found["compare"]["differences"]["f1"] == {"difference": 0.0, "low": 0.0, "high": 0.0, "p": 1.0}
        assert found["compare"]["metrics"] == found["metrics"]
    by_neg = bertsmith.evaluate(folders / "neg", rows)["metrics"]["f1"]
    assert by_neg == found["metrics"]["f1"] != bertsmith.evaluate(folders / "pos", rows)["metrics"]["f1"]


def test_models_that_are_loaded_are_scored_as_they_are(folders):
    rows, (good, poor) = reviews("a"), [bertsmith.load(folders / name) for name in ("good", "poor")]
    found = bertsmith.evaluate(good, rows, compare=poor)
    assert found == bertsmith.evaluate(folders / "good", rows, compare=folders / "poor")
    with pytest.raises(bertsmith.BertsmithError, match="loaded already: give dtype and threads to `load`, not here"):
        bertsmith.evaluate(good, rows, dtype="bfloat16", threads=1)


def test_standard_input_serves_both(folders, monkeypatch):
    table = "text,label\n" + "".join(f"{row['text']},{row['label']}\n" for row in reviews("a"))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(table.encode())))
    found = bertsmith.evaluate(folders / "good", "-", compare=folders / "poor")
    assert found["data"] == "standard input" and found["compare"]["metrics"]["accuracy"]["n"] == 48


def test_a_folder_is_scored_by_its_dev_file(folders, tmp_path):
    for side, start in (("train", "the"), ("dev", "a"), ("test", "this")):
        rows = [f"{row['text']}\t{row['label']}\n" for row in reviews(start)]
        (tmp_path / f"{side}.tsv").write_text("text\tlabel\n" + "".join(rows if side == "dev" else rows[:5]))
    found = bertsmith.evaluate(folders / "good", tmp_path)
    assert found["examples"] == 48 and found["data"].endswith("dev.tsv")
    (tmp_path / "dev.tsv").unlink()
    with pytest.raises(BertsmithError, match="holds no file for dev"):
        bertsmith.evaluate(folders / "good", tmp_path)


def test_several_labels_are_remembered(folders):
    """One label in each cell here, but the model gives any number."""
    rows = [{"text": row["text"], "label": ";".join(row["topics"])} for row in mixed_news()]
    found = bertsmith.evaluate(folders / "several", rows)
    assert found["metrics"]["micro_f1"]["value"] > 0.8 and "accuracy" not in found["metrics"]
    alone = [row for row in rows if row["label"] and ";" not in row["label"]]
    assert "subset_accuracy" in bertsmith.evaluate(folders / "several", alone)["metrics"]


def test_predictions_by_the_rules_of_squad(folders, tmp_path):
    """Articles, case and punctuation aside; half of the words are half of the recall; what is missing is wrong."""
    asked = [qa for p in questions()["data"][0]["paragraphs"] for qa in p["qas"]]
    texts = {qa["id"]: qa["answers"][0]["text"] for qa in asked}
    halves = [name for name, text in texts.items() if text == "New York"]
    changed = {**texts, **dict.fromkeys(halves, "the YORK!")}
    lost = next(name for name in texts if name not in halves)
    changed.pop(lost)
    (tmp_path / "predictions.json").write_text(json.dumps(changed))
    found = bertsmith.evaluate(None, folders / "squad.json", predictions=tmp_path / "predictions.json")
    n = len(texts)
    assert found["missing"] == 1 and found["examples"] == n and halves
    assert found["metrics"]["exact"]["value"] == pytest.approx((n - 1 - len(halves)) / n)
    assert found["metrics"]["f1"]["value"] == pytest.approx((n - 1 - len(halves) / 3) / n)  # F1 of 1/1 and 1/2 is 2/3
    assert bertsmith.evaluate(None, folders / "squad.json", predictions=texts)["metrics"]["exact"]["value"] == 1


def test_a_tag_that_the_model_does_not_know_is_missed(folders):
    """As conlleval counts: an entity of a type never seen is one that was not found."""
    known = [{"words": [word for word, _ in s], "tags": [tag for _, tag in s]} for s in sentences("works")]
    strange = [{**row, "tags": [tag.replace("LOC", "ORG") for tag in row["tags"]]} for row in known]
    before, after = (bertsmith.evaluate(folders / "tag", rows)["metrics"] for rows in (known, strange))
    gold = sum(row["tags"].count("I-ORG") for row in strange)
    assert gold and after["recall"]["value"] < before["recall"]["value"]


def test_tags_of_which_the_model_knows_none_are_another_column(folders):
    """As where it learnt the parts of speech of a file whose last column has names."""
    rows = [{"words": [word for word, _ in s], "tags": [tag for _, tag in s]} for s in sentences("works")]
    for row in rows:
        row["pos"] = ["NNP" if word[0].isupper() else "VBZ" for word in row["words"]]
    said = r"none of the tags that the model knows: it has \"NNP\", .*, the model \"[BI]-\w+\".* \(--tags COLUMN\)"
    with pytest.raises(BertsmithError, match=said):
        bertsmith.evaluate(folders / "tag", rows, tags="pos")
    outside = [{**row, "tags": ["O" for _ in row["tags"]]} for row in rows]
    assert bertsmith.evaluate(folders / "tag", outside)["metrics"]["recall"]["value"] == 0


REFUSED = {
    "no label column": ("good", [{"text": "a film"}], {}, "data has no column known as label"),
    "an empty label": ("good", [{"text": "a", "label": ""}], {}, 'data, row 1, column "label": the label is empty'),
    "an unknown label": ("good", [{"text": "a", "label": "poss"}], {},
                         "data, row 1: the label 'poss' is not one of the model's ('neg', 'pos'); did you mean"),
    "two labels where one is given": ("good", [{"text": "a", "label": ["pos", "neg"]}], {},
                                      'data, row 1, column "label": 2 labels where one is needed'),
    "no data": ("good", [], {}, "data holds no records."),
    "no file": ("good", "nothing.csv", {}, "nothing.csv does not exist"),
    "words without tags": ("tag", [{"words": ["Ann", "runs"]}], {}, "data, row 1 has no tags; give it one tag a word."),
    "a text without entities": ("tag", [{"text": "Ann runs"}], {}, "data, row 1 has no tags"),
    "questions without answers": ("span", [{"question": "who", "context": "Ann"}], {},
                                  "data has no column known as answers"),
    "another task": ("good", reviews(), {"task": "tag"}, "has no head to be scored for tag (heads there: classify)"),
    "another model's labels": ("good", reviews(), {"compare": "several"}, "the label 'pos' is not one of the model's"),
    "a setting of training": ("good", reviews(), {"epochs": 3.5}, "epochs is settled when a model is fine-tuned"),
    "calibration": ("good", reviews(), {"calibrate": True}, "calibrate is settled when a model is fine-tuned"),
    "no setting": ("good", reviews(), {"lenght": 3}, "lenght is not a setting; did you mean length?"),
    "too long a row": ("good", reviews(), {"length": 65}, "reads at most 64 tokens."),
    "too short a row": ("good", reviews(), {"length": 2}, "length is 2, but 2 special tokens alone fill such a row"),
    "a column that is no name": ("good", reviews(), {"text": 1.5}, "text is 1.5; give the name or the number"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_refused_in_one_sentence(folders, case):
    name, data, settings, sentence = REFUSED[case]
    settings = {**settings, **({"compare": folders / settings["compare"]} if "compare" in settings else {})}
    with pytest.raises(BertsmithError) as error:
        bertsmith.evaluate(folders / name, data, **settings)
    assert sentence in str(error.value) and "\n" not in str(error.value)


def test_a_model_that_cannot_be_scored(folders, encoder):
    with pytest.raises(BertsmithError, match="for any of classify, tag, span, regress, choose, rerank; fine-tune"):
        bertsmith.evaluate(encoder, reviews())
    for given, sentence in (
        ({"x": "y"}, "has an id that the predictions know"),
        ([("q00", "Ann")], "predictions must be a file or a dict, id to text, not list"),
        ({"q00": 5}, "predictions must hold a text for each question's id, but holds none for 'q00'"),
        ("nowhere.json", "nowhere.json cannot be read"),
    ):
        with pytest.raises(BertsmithError, match=sentence):
            bertsmith.evaluate(None, folders / "squad.json", predictions=given)
    beside = ({"model": folders / "span"}, {"compare": folders / "span"}, {"task": "tag"}, {"truncate": "head"})
    for given in beside:
        with pytest.raises(
            BertsmithError, match=f"scored alone, and {next(iter(given))} would have no effect on them;"
        ):
            bertsmith.evaluate(**{"model": None, **given}, data=folders / "squad.json", predictions={"q00": "Ann"})
    with pytest.raises(BertsmithError, match=r"\(SQuAD\) only"):
        bertsmith.evaluate(None, reviews(), predictions={"q00": "Ann"})


def test_columns_by_number(folders):
    rows = [{"how": row["label"], "what": row["text"]} for row in reviews("a")]
    found = [bertsmith.evaluate(folders / "good", rows, text=text, label=label)["metrics"]
             for text, label in (("what", "how"), (2, 1), ("2", "1"))]  # fmt: skip
    assert found[0] == found[1] == found[2]
