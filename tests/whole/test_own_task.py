"""A task that somebody wrote: found by module:Class, trained, scored, saved, asked; docs/own-task.md shows it."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
import transformers
from sklearn.metrics import mean_absolute_error
from whole.tiny import DISLIKED, LIKED, THINGS, reviews

import bertsmith
from bertsmith.data.examples import TextExample
from bertsmith.errors import BertsmithError

pytestmark = pytest.mark.usefixtures("offline")
ROOT = Path(__file__).parents[2]
LEARN = {"batch": 8, "rate": 2e-3, "epochs": 20, "device": "cpu", "threads": 1}


@pytest.fixture
def stars(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "examples")
    yield
    sys.modules.pop("stars", None)


def rated(start):
    words = dict(zip([*DISLIKED, *LIKED], (1, 1.5, 1.5, 1, 4, 4.5, 4, 5), strict=True))
    return [{"text": f"{start} {thing} was {word}", "stars": n} for word, n in words.items() for thing in THINGS]


def test_the_page_shows_the_file_that_runs_here():
    page = (ROOT / "docs/own-task.md").read_text("utf-8")
    assert (ROOT / "examples/stars.py").read_text("utf-8") in page


def test_a_number_for_a_text(stars, tmp_path, encoder):
    said = []
    run = bertsmith.finetune(
        "stars:Stars", rated("the"), rated("a"), out=tmp_path / "m", model=encoder, label="stars", say=said.append,
        **LEARN,
    )  # fmt: skip
    assert run.metrics["dev"]["close"]["value"] > 0.8
    assert any(sentence.startswith("dev: close ") for sentence in said)
    found = bertsmith.evaluate(run.folder, rated("a"), task="stars:Stars", label="stars", device="cpu")
    assert found["metrics"] == run.metrics["dev"] and found["task"] == "stars"

    from stars import Stars

    answers = run.model.predict(Stars, [TextExample(row["text"]) for row in rated("a")])
    numbers = [answer[0]["score"] for answer in answers]
    gold = [row["stars"] for row in rated("a")]
    assert mean_absolute_error(gold, numbers) == pytest.approx(found["metrics"]["error"]["value"])

    kept = json.loads((run.folder / "bertsmith.json").read_text())
    assert kept["task"] == "stars" and kept["settings"]["most"] == 5
    reference = transformers.AutoModelForSequenceClassification.from_pretrained(run.folder).eval()
    assert reference.config.problem_type == "regression" and reference.config.num_labels == 1
    tokenizer = transformers.AutoTokenizer.from_pretrained(run.folder)
    with torch.no_grad():
        theirs = reference(**tokenizer([r["text"] for r in rated("a")], padding=True, return_tensors="pt")).logits
    assert np.allclose(numbers, 1 + 4 * theirs.sigmoid()[:, 0].numpy(), atol=1e-4)
    for name in ("report.html", "README.md"):
        assert "stars" in (run.folder / name).read_text()


def test_its_class_is_never_taken_from_the_folder(stars, tmp_path, encoder):
    run = bertsmith.finetune(
        "stars:Stars", rated("the"), out=tmp_path / "m", model=encoder, label="stars", **{**LEARN, "epochs": 1}
    )
    with pytest.raises(BertsmithError, match=r"task of its own, 'stars'; name the class \(task=module:Class, --task\)"):
        bertsmith.evaluate(run.folder, rated("a"), label="stars")


def test_a_subclass_of_ours(tmp_path, monkeypatch, encoder):
    """Labels the other way round; the doctor keeps to the tasks it knows."""
    (tmp_path / "contrary.py").write_text(
        "from dataclasses import replace\n"
        "from bertsmith.tasks.classify import Classify\n"
        "class Contrary(Classify):\n"
        "    name = 'contrary'\n"
        "    @classmethod\n"
        "    def examples(cls, table, columns, choices, gold=True):\n"
        "        other = {'pos': 'neg', 'neg': 'pos'}\n"
        "        found = super().examples(table, columns, choices, gold)\n"
        "        return [replace(example, labels=(other[example.labels[0]],)) for example in found]\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    run = bertsmith.finetune("contrary:Contrary", reviews(), reviews("a"), out=tmp_path / "m", model=encoder, **LEARN)
    assert run.metrics["dev"]["accuracy"]["value"] == 1
    assert run.model.classify("a film was good")[0]["label"] == "neg"
    usual = bertsmith.evaluate(run.folder, reviews("a"), task="classify")
    assert usual["metrics"]["accuracy"]["value"] == 0
    sys.modules.pop("contrary", None)


@pytest.mark.parametrize(
    "name, sentence",
    [
        (":Stars", "task=':Stars' is not a choice"),
        (None, "task is None; it must be a string."),
        ("clasify", "task='clasify' is not a choice; use one of classify, tag, span, regress, choose, embed, rer"),
        ("nowhere:Task", "the task nowhere:Task cannot be found: No module named 'nowhere'"),
        ("json:Task", "the task json:Task cannot be found: module 'json' has no attribute 'Task'"),
        ("json:loads", "json:loads is not a task: it must be a subclass of bertsmith.tasks.trained.TrainedTask"),
    ],
)
def test_a_name_that_is_no_task(tmp_path, encoder, name, sentence):
    with pytest.raises(BertsmithError) as error:
        bertsmith.finetune(name, reviews(), out=tmp_path / "m", model=encoder)
    assert str(error.value).startswith(sentence)
