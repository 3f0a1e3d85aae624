"""`swap`: pairs whose order means nothing are learnt both ways round, and scored as they stand."""

import json

import pytest
import transformers
from whole.tiny import DISLIKED, LIKED, comparisons, reviews, sentences

import bertsmith
from bertsmith.errors import BertsmithError
from bertsmith.tasks.catalog import find_task
from bertsmith.training.choices import TaskChoices
from bertsmith.training.loop import Watcher
from bertsmith.training.preparing import prepare, read_data
from bertsmith.training.settings import Training
from bertsmith.training.study import TaskStudy

pytestmark = pytest.mark.usefixtures("offline")
LEARN = {"batch": 8, "rate": 2e-3, "device": "cpu", "threads": 1, "check": False}


def alike(thing="film", numbers=False):
    """13 pairs that are called the same whichever comes first."""
    pairs = [(one, other) for one in LIKED for other in (*LIKED, *DISLIKED) if one < other][:13]
    return [{"sentence1": f"the {thing} was {one}", "sentence2": f"it was {other}",
             "label": float(other in LIKED) if numbers else ["no", "yes"][other in LIKED]}
            for one, other in pairs]  # fmt: skip


def as_reference(tokenizer, first, second):
    given = tokenizer(first, second)
    return tuple(given["input_ids"]), tuple(given["token_type_ids"])


@pytest.mark.parametrize("task", ["classify", "regress"])
def test_an_epoch_reads_exactly_both_orders_of_each_pair_with_its_label(encoder, task):
    data = alike(numbers=task == "regress")
    choices, training = TaskChoices(swap=True), Training(batch=4)
    made = prepare(find_task(task), encoder, read_data(find_task(task), data, alike("song", task == "regress"), None,
                   choices, {}, None, 1), choices, training, print)  # fmt: skip
    study = TaskStudy(made.task, made.lay_out(print), training)
    assert study.steps_an_epoch() == 7  # 26 rows in steps of 4
    for epoch in range(2):
        works = [work for step in range(7) for work in study.works(7 * epoch + step, 0, 1, 64)]
        seen = [row for work in works for row in cut(work)]
        tokenizer = transformers.AutoTokenizer.from_pretrained(encoder)
        golds = {row["label"]: label for row, label in zip(data, made_golds(made, data), strict=True)}
        wanted = [(*as_reference(tokenizer, row[a], row[b]), golds[row["label"]])
                  for row in data for a, b in (("sentence1", "sentence2"), ("sentence2", "sentence1"))]  # fmt: skip
        assert sorted(seen) == sorted(wanted)
    assert len(made.data.dev) == 13 and made.cuts["dev"] == {"inputs": 0, "tokens": 0}


def cut(work):
    """The rows of a pass: ids, segments, gold."""
    found, start = [], 0
    for length, gold in zip(work.lengths, work.given["gold"].values, strict=True):
        part = slice(start, start + length)
        found.append((tuple(work.ids[part].tolist()), tuple(work.segments[part].tolist()), float(gold)))
        start += length
    return found


def made_golds(made, data):
    if made.task.name == "classify":
        return [float(made.task.labels.index(row["label"])) for row in data]
    return [pytest.approx((row["label"] - made.task.mean) / made.task.spread) for row in data]


class Interrupt(Watcher):
    def stepped(self, step, record, speed):
        if step == 3:
            raise KeyboardInterrupt


def test_it_is_counted_in_steps_resumed_and_scored_as_the_pairs_stand(tmp_path, encoder):
    given = {**LEARN, "model": encoder, "epochs": 1, "swap": True, "log_every": 1}
    said: list[str] = []
    bertsmith.finetune(
        "classify", alike(), alike("song"), out=tmp_path / "plan", dry_run=True, say=said.append, **given
    )
    assert "train, dev, test: 13, 13, 0 examples, those of train both ways round" in said
    assert any("steps: 4 of 8 examples, 4 an epoch" in line for line in said)
    whole = bertsmith.finetune("classify", alike(), alike("song"), out=tmp_path / "whole", **given)
    with pytest.raises(BertsmithError, match=r"^stopped at step 3 of 4"):
        bertsmith.finetune("classify", alike(), alike("song"), out=tmp_path / "parts", watchers=[Interrupt()], **given)
    with pytest.raises(BertsmithError, match="swap was true and is now false"):
        bertsmith.finetune("classify", alike(), alike("song"), out=tmp_path / "parts", **{**given, "swap": False})
    parts = bertsmith.finetune("classify", alike(), alike("song"), out=tmp_path / "parts", **given)
    weights = [(run.folder / "model.safetensors").read_bytes() for run in (whole, parts)]
    assert weights[0] == weights[1] and whole.metrics == parts.metrics
    assert whole.metrics["dev"]["accuracy"]["n"] == 13
    assert bertsmith.evaluate(whole.folder, alike("song"), device="cpu")["metrics"] == whole.metrics["dev"]
    kept = json.loads((whole.folder / "metrics.json").read_text())
    assert kept["data"]["counts"] == {"train": 13, "dev": 13} and kept["settings"]["swap"] is True


def test_pairs_that_stand_there_both_ways_with_other_labels_are_told(tmp_path, encoder):
    said: list[str] = []
    bertsmith.finetune("classify", comparisons(), comparisons("song"), out=tmp_path, model=encoder, dry_run=True,
                       say=said.append, swap=True, **LEARN)  # fmt: skip
    told = "warning: 32 of 32 pairs of train stand there the other way round with another label, so their order means"
    assert any(line.startswith(told) for line in said)
    said.clear()
    both = [*alike(), *({**row, "sentence1": row["sentence2"], "sentence2": row["sentence1"]} for row in alike())]
    bertsmith.finetune("classify", both, alike("song"), out=tmp_path, model=encoder, dry_run=True, say=said.append,
                       swap=True, **LEARN)  # fmt: skip
    assert not any("the other way round" in line for line in said)


def test_pairs_that_are_scored_and_learnt_the_other_way_round_are_told(tmp_path, encoder):
    turned = [{**row, "sentence1": row["sentence2"], "sentence2": row["sentence1"]} for row in alike()[:3]]
    said: list[str] = []
    bertsmith.finetune("classify", alike(), [*alike("song"), *turned], out=tmp_path, model=encoder, dry_run=True,
                       say=said.append, swap=True, **LEARN)  # fmt: skip
    told = "warning: 3 of 16 pairs of dev stand in train the other way round, which swap learns too: the score would "
    assert any(line.startswith(told) for line in said)


def test_a_member_may_swap_its_own_pairs(tmp_path, encoder):
    members = {
        "alike": {"task": "classify", "train": alike(), "dev": alike("song"), "swap": True},
        "mood": {"task": "classify", "train": reviews(), "dev": reviews("a")},
    }
    said: list[str] = []
    bertsmith.finetune_together(members, out=tmp_path / "out", model=encoder, dry_run=True, say=said.append, **LEARN)
    assert any("alike: classify (2 labels), 13, 13, 0 examples, those of train both ways round" in x for x in said)
    assert any("steps: " in line and "10 an epoch" in line for line in said)  # 26 and 48 rows in steps of 8


TAGGED = [{"words": [word for word, _ in one], "tags": [tag for _, tag in one]} for one in sentences()]
REFUSED = [
    ("classify", reviews(), r"^train, row 1: swap is for pairs of texts, and this is none; leave swap out, or name "),
    ("classify", [*alike(), {"sentence1": "the film was good", "sentence2": None, "label": "yes"}], r"row 14"),
    ("tag", TAGGED, r"^swap is for classify and regress and has no use in tag; leave --swap out\.$"),
]  # fmt: skip


@pytest.mark.parametrize("task, data, sentence", REFUSED, ids=["single", "some", "tag"])
def test_where_there_is_nothing_to_swap_it_is_refused(tmp_path, encoder, task, data, sentence):
    with pytest.raises(BertsmithError, match=sentence) as caught:
        bertsmith.finetune(task, data, data, out=tmp_path / "out", model=encoder, swap=True, **LEARN)
    assert "\n" not in str(caught.value) and not (tmp_path / "out").exists()


def test_a_finished_model_is_not_evaluated_with_it(encoder):
    with pytest.raises(BertsmithError, match=r"^swap is settled when a model is fine-tuned; leave it out here\.$"):
        bertsmith.evaluate(encoder, alike(), swap=True)
