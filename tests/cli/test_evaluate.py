"""`bertsmith evaluate`: the numbers against scikit-learn, the JSON, the table, comparisons and refusals."""

import csv
import json
import os
import subprocess
import sys

import pytest
from sklearn.metrics import accuracy_score, f1_score, matthews_corrcoef

import bertsmith


@pytest.fixture
def terminal(monkeypatch):
    monkeypatch.setattr("bertsmith.cli.evaluate.wants_json", lambda asked: asked)
    monkeypatch.setenv("COLUMNS", "100")


def test_the_numbers_are_those_of_scikit_learn_on_what_classify_says(real, place):
    with (place / "reviews.csv").open() as file:
        gold = [row["mood"] for row in csv.DictReader(file)]
    words = ["--model", place / "reviews", "--threads", 1]
    said = [record["answers"][0]["label"] for record in real("classify", "--in", place / "reviews.csv", *words).records]
    ran = real("evaluate", "--data", place / "reviews.csv", *words)
    assert ran.status == 0 and ran.err == ""
    (found,) = ran.records
    metrics = {name: one["value"] for name, one in found["metrics"].items()}
    assert metrics["accuracy"] == pytest.approx(accuracy_score(gold, said))
    assert metrics["matthews"] == pytest.approx(matthews_corrcoef(gold, said))
    assert metrics["macro_f1"] == pytest.approx(f1_score(gold, said, average="macro"))
    assert found == bertsmith.evaluate(place / "reviews", place / "reviews.csv")
    for one in found["metrics"].values():
        assert one["low"] <= one["value"] <= one["high"] and one["n"] == 48


def test_the_json_is_one_object_for_other_programs(place):
    line = f"{sys.executable} -m bertsmith evaluate --model train --data train.conll --json --threads 1"
    there = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
    ran = subprocess.run(f"{line} | {sys.executable} -m json.tool", shell=True, cwd=place, env=there,
                         capture_output=True, text=True, check=True)  # fmt: skip
    found = json.loads(ran.stdout)
    assert found["task"] == "tag" and found["examples"] == 30 and "f1" in found["metrics"]


def test_a_model_compared_with_itself_does_not_differ(real, place):
    words = ["evaluate", "--model", place / "reviews", "--compare", place / "reviews", "--data", place / "reviews.csv"]
    compared = real(*words, "--threads", 1).records[0]["compare"]
    assert compared["differences"]["accuracy"] == {"difference": 0.0, "low": 0.0, "high": 0.0, "p": 1.0}


def test_standard_input_can_be_compared_on(real, place):
    words = ["evaluate", "--model", place / "reviews", "--compare", place / "reviews", "--data", "-", "--threads", 1]
    ran = real(*words, stdin=(place / "reviews.csv").read_bytes())
    assert ran.status == 0 and ran.records[0]["examples"] == 48 and ran.records[0]["data"] == "standard input"


def test_predictions_need_no_model(real, place, tmp_path):
    """What `answer` says, given as predictions, scores as the model does."""
    questions = json.loads((place / "squad.json").read_text())["data"][0]["paragraphs"]
    ids = [asked["id"] for paragraph in questions for asked in paragraph["qas"]]
    words = ["--model", place / "squad", "--threads", 1]
    answers = real("answer", "--in", place / "squad.json", *words).records
    said = {id: answer["answers"][0]["answer"] for id, answer in zip(ids, answers, strict=True)}
    (tmp_path / "said.json").write_text(json.dumps(said))
    data = ["--data", place / "squad.json"]
    (scored,) = real("evaluate", *data, "--predictions", tmp_path / "said.json").records
    (measured,) = real("evaluate", *data, *words).records
    assert scored["metrics"] == measured["metrics"] and scored["missing"] == 0


@pytest.mark.usefixtures("terminal")
def test_a_terminal_gets_percents_and_intervals(real, place):
    words = ["evaluate", "--model", place / "reviews", "--data", place / "reviews.csv", "--threads", 1]
    (found,) = real(*words, "--json").records
    one = found["metrics"]["accuracy"]
    lines = real(*words).out.splitlines()
    assert lines[0] == f"classify: {place / 'reviews.csv'}, 48 examples"
    row = next(line.split() for line in lines if line.startswith("accuracy"))
    assert row == [
        "accuracy",
        *(f"{100 * one[key]:.2f}" for key in ("value", "low")),
        "to",
        f"{100 * one['high']:.2f}",
        "48",
    ]
    compared = real(*words, "--compare", place / "pairs", "--json")
    assert compared.status == 1 and "row 2: the model was trained on pairs of texts" in compared.err
    shown = real(*words, "--compare", place / "reviews").out
    assert f"B is {place / 'reviews'}" in shown.replace("\n", "")
    value = f"{100 * one['value']:.2f}"
    row = next(line.split() for line in shown.splitlines() if line.startswith("accuracy"))
    assert row == ["accuracy", value, value, "+0.00", "+0.00", "to", "+0.00", "1.0000"]


@pytest.mark.usefixtures("terminal")
def test_errors_in_the_units_of_the_data_are_no_percents(real, place, tmp_path):
    rows = "".join(f"the film was good {i},{i * 100}\n" for i in range(9))
    (tmp_path / "worth.csv").write_text(f"text,worth\n{rows}")
    bertsmith.finetune("regress", tmp_path / "worth.csv", tmp_path / "worth.csv", label="worth", max_steps=1,
                       model=place / "encoder", out=tmp_path / "worth", check=False, threads=1)  # fmt: skip
    words = ["evaluate", "--model", tmp_path / "worth", "--data", tmp_path / "worth.csv", "--label", "worth"]
    (found,) = real(*words, "--threads", 1, "--json").records
    one = found["metrics"]["mae"]
    told = [f"{one[key]:.4f}" for key in ("value", "low", "high")]
    lines = real(*words, "--threads", 1).out.splitlines()
    row = next(line.split() for line in lines if line.startswith("mae"))
    assert row == ["mae", told[0], told[1], "to", told[2], "9"]
    assert any(line.split()[:2] == ["metric", "value"] for line in lines)
    shown = real(*words, "--threads", 1, "--compare", tmp_path / "worth").out
    row = next(line.split() for line in shown.splitlines() if line.startswith("mae"))
    assert row == ["mae", told[0], told[0], "+0.0000", "+0.0000", "to", "+0.0000", "1.0000"]


@pytest.mark.usefixtures("terminal")
def test_what_was_cut_is_said(real, place, tmp_path):
    (tmp_path / "long.csv").write_text(f"text,label\n{'good ' * 100},pos\nbad,neg\n")
    ran = real("evaluate", "--model", place / "reviews", "--data", tmp_path / "long.csv", "--threads", 1)
    assert ran.err.startswith("cut: 1 of 2 inputs, 38 tokens (policy head;")


@pytest.mark.parametrize(
    "words, status, sentence",
    [
        ([], 2, "--data"),
        (["--data", "nothing.csv", "--model", "reviews"], 1, "nothing.csv does not exist"),
        (["--data", "reviews.csv", "--model", "encoder"], 1, "has no head for any of"),
        (["--data", "reviews.csv", "--model", "train", "--task", "classify"], 1, "has no head"),
        (["--data", "reviews.csv", "--model", "reviews", "--swap"], 2, "--swap trains, which only --benchmark does"),
        (["--data", "squad.json", "--predictions", "reviews.csv"], 1, "one JSON object is needed"),
        (["--data", "reviews.csv", "--predictions", "squad.json"], 1, "for questions and answers (SQuAD) only"),
        (["--benchmark", "gleu", "."], 2, "did you mean glue?"),
        (["--benchmark", "blimp", ".", "--swap"], 2, "--swap has no use with --benchmark blimp"),
        (["--data", "squad.json", "--predictions", "x", "--compare", "y"], 2, "leave --compare out"),
    ],
)
def test_refusals(real, place, monkeypatch, words, status, sentence):
    monkeypatch.chdir(place)
    ran = real("evaluate", *words)
    assert ran.status == status and sentence in ran.err and ran.out == "" and "Traceback" not in ran.err
