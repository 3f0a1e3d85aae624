"""The whole road in Python: data in any form, fine-tuning, a folder that others open, the same scores from it."""

import json
import stat

import pytest
import torch
import transformers
from whole.tiny import comparisons, make_encoder, mixed_news, reviews

import bertsmith
from bertsmith.errors import BertsmithError
from bertsmith.training import advice

pytestmark = pytest.mark.usefixtures("offline")
LEARN = {"epochs": 12, "batch": 8, "rate": 2e-3, "device": "cpu", "threads": 1}


@pytest.fixture(scope="module")
def liked(tmp_path_factory, encoder):
    """A run on a CSV file with a dev and a test file; what it said."""
    place = tmp_path_factory.mktemp("liked")
    for side, start in (("train", "the"), ("dev", "a"), ("test", "this")):
        rows = [f"{row['text']},{row['label']}\n" for row in reviews(start)]
        (place / f"{side}.csv").write_text("text,label\n" + "".join(rows))
    said = []
    run = bertsmith.finetune(
        "classify", place / "train.csv", place / "dev.csv", test=place / "test.csv", out=place / "model", model=encoder,
        calibrate=True, say=said.append, **LEARN,
    )  # fmt: skip
    return run, place, said


def learn(out, encoder, train, dev=None, task="classify", **settings):
    return bertsmith.finetune(task, train, dev, out=out, model=encoder, **{**LEARN, **settings})


def values(metrics):
    return {name: score["value"] for name, score in metrics.items()}


# What only some runs read, and what makes them read it.
READ = {
    "classify": {"optimizer": "muon", "schedule": "trapezoid", "adversarial": 0.5},
    "regress": {"lora": 2},
}
SOME = {
    "classify": {"momentum", "cooldown", "adversarial_reach", "swap", "calibrate", "focal", "class_weights"},
    "regress": {"lora_targets", "swap", "dev_share"},
}
IDLE = {"negatives", "momentum", "cooldown", "adversarial_reach", "lora_targets", "recurrent"}


@pytest.mark.parametrize("task", READ)
def test_the_card_lists_only_settings_that_the_run_read(encoder, tmp_path, task):
    rows = [{**row, "label": len(row["text"]) if task == "regress" else row["label"]} for row in reviews()]
    given = {"max_steps": 1, "epochs": None, "check": False, "dropout": 0.0}
    plain = learn(tmp_path / "plain", encoder, rows, rows, task, **given)
    listed = json.loads((plain.folder / "metrics.json").read_text())["settings"]
    assert not IDLE & set(listed) and "dev_share" not in listed and {"swap", "rate", "optimizer", "lora"} <= set(listed)
    assert ("focal" in listed) == ("calibrate" in listed) == (task == "classify")
    card = (plain.folder / "README.md").read_text()
    assert "| optimizer |" in card and "negatives" not in card and "momentum" not in card
    other = learn(tmp_path / "other", encoder, rows, None, task, **given, **READ[task])
    listed = json.loads((other.folder / "metrics.json").read_text())["settings"]
    assert SOME[task] <= set(listed) and "dev_share" in listed


class Frame:
    """As much of a DataFrame as is asked for."""

    def __init__(self, rows):
        self.rows, self.columns = rows, list(rows[0])

    def to_dict(self, orient):
        assert orient == "records"
        return self.rows


def test_it_learns_a_small_set_by_heart(liked):
    run, place, _ = liked
    for side in ("train", "dev", "test"):
        assert bertsmith.evaluate(run.folder, place / f"{side}.csv")["metrics"]["accuracy"]["value"] == 1


def test_where_bf16_would_be_quicker_it_is_told_once_and_not_to_those_who_chose(encoder, tmp_path, monkeypatch):
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: {"avx512_bf16": True}, raising=False)
    monkeypatch.setattr(advice, "LONG", 0.0)
    for precision, times in (("auto", 1), ("fp32", 0)):
        said = []
        learn(tmp_path / precision, encoder, reviews(), say=said.append, max_steps=2, precision=precision)
        assert sum("--precision bf16" in sentence for sentence in said) == times


def test_a_file_dicts_and_a_frame_are_the_same_data(liked, tmp_path, encoder):
    run, _, _ = liked
    for name, given in {"dicts": list, "frame": Frame, "generator": iter}.items():
        sides = {side: given(reviews(start)) for side, start in (("dev", "a"), ("test", "this"))}
        again = learn(tmp_path / name, encoder, given(reviews()), calibrate=True, **sides)
        assert again.metrics == run.metrics
        weights = [(path / "model.safetensors").read_bytes() for path in (again.folder, run.folder)]
        assert weights[0] == weights[1]


def test_the_folder_scores_what_the_run_said_to_the_last_digit(liked):
    run, place, _ = liked
    for side in ("dev", "test"):
        found = bertsmith.evaluate(run.folder, place / f"{side}.csv", device="cpu")
        assert found["metrics"] == run.metrics[side]
        assert found["examples"] == 48 and found["truncated"] == {"inputs": 0, "tokens": 0, "policy": "head"}
    kept = json.loads((run.folder / "metrics.json").read_text())
    assert kept["metrics"] == run.metrics


def test_the_reference_opens_the_folder_and_agrees(liked):
    run, _, _ = liked
    tokenizer = transformers.AutoTokenizer.from_pretrained(run.folder)
    reference = transformers.AutoModelForSequenceClassification.from_pretrained(run.folder).eval()
    assert reference.config.id2label == {0: "neg", 1: "pos"}
    assert reference.config.problem_type == "single_label_classification"
    texts = [row["text"] for row in reviews("this")]
    with torch.no_grad():
        logits = reference(**tokenizer(texts, padding=True, return_tensors="pt")).logits
    model = run.model
    theirs = (logits / model.trained["settings"]["temperature"]).softmax(-1)
    for result, chances in zip(model.classify(texts), theirs, strict=True):
        ours = {answer["label"]: answer["score"] for answer in result}
        assert [ours["neg"], ours["pos"]] == pytest.approx(chances.tolist(), abs=1e-5)


def test_the_folder_holds_everything_and_is_readable(liked):
    run, _, said = liked
    names = {path.name for path in run.folder.iterdir()}
    assert {"config.json", "model.safetensors", "tokenizer.json", "bertsmith.json", "metrics.json", "README.md",
            "report.html", "log.jsonl", "run.json"} <= names  # fmt: skip
    assert not any(name.startswith(".") or name == "checkpoints" for name in names)
    (run.folder / "probe").touch()
    usual = stat.S_IMODE((run.folder / "probe").stat().st_mode)
    (run.folder / "probe").unlink()
    assert {stat.S_IMODE((run.folder / name).stat().st_mode) for name in names} == {usual}
    facts = json.loads((run.folder / "metrics.json").read_text())
    assert facts["data"]["files"] == {"train": "train.csv", "dev": "dev.csv", "test": "test.csv"}
    assert facts["data"]["counts"] == {"train": 48, "dev": 48, "test": 48}
    assert any(sentence.startswith("test: accuracy 1.0000") for sentence in said)


def test_what_was_tuned_is_saved_and_used(liked, tmp_path):
    run, _, _ = liked
    model = run.model
    assert model.trained["settings"]["temperature"] != 1
    model.save(tmp_path / "copy")
    copy = bertsmith.load(tmp_path / "copy")
    assert copy.trained == model.trained
    assert copy.classify("a song was sad").answers == model.classify("a song was sad").answers
    assert (tmp_path / "copy/bertsmith.json").read_text() == (run.folder / "bertsmith.json").read_text()


def test_calibration_does_not_make_dev_worse(liked, tmp_path, encoder):
    run, _, _ = liked
    plain = learn(tmp_path / "plain", encoder, reviews(), reviews("a"), test=reviews("this"))
    assert run.metrics["dev"]["ece"]["value"] <= plain.metrics["dev"]["ece"]["value"]
    assert run.metrics["dev"]["accuracy"] == plain.metrics["dev"]["accuracy"]
    assert "temperature" not in plain.model.trained["settings"]


def test_a_part_is_set_apart_where_there_is_no_dev(tmp_path, encoder):
    said = []
    run = learn(tmp_path / "m", encoder, reviews(), say=said.append, max_steps=3, test=reviews("this"))
    assert said[0] == "Set 5 of 48 examples apart for development."
    facts = json.loads((run.folder / "metrics.json").read_text())
    assert facts["data"]["counts"] == {"train": 43, "dev": 5, "test": 48}
    assert facts["data"]["files"] == {"train": "train", "test": "test"}
    assert run.metrics["dev"]["accuracy"]["n"] == 5


def test_pairs_know_which_text_is_the_first(tmp_path, encoder):
    pairs = comparisons()
    run = learn(tmp_path / "m", encoder, pairs, comparisons("song"), epochs=30)
    assert bertsmith.evaluate(run.folder, pairs)["metrics"]["accuracy"]["value"] == 1
    given = [[row[name] for row in pairs] for name in ("premise", "hypothesis")]
    model = run.model
    assert [result[0]["label"] for result in model.classify(*given)] == [row["label"] for row in pairs]
    swapped = [{"first": "second", "second": "first"}[row["label"]] for row in pairs]
    assert [result[0]["label"] for result in model.classify(*reversed(given))] == swapped


@pytest.mark.parametrize("thresholds", ["one", "each", 0.3])
def test_several_labels(tmp_path, encoder, thresholds):
    settings = {"label": "topics", "thresholds": thresholds, "epochs": 30, "dropout": 0.0}
    run = learn(tmp_path / "m", encoder, mixed_news(), mixed_news("that"), **settings)
    assert run.metrics["dev"] == bertsmith.evaluate(run.folder, mixed_news("that"), label="topics")["metrics"]
    settings = run.model.trained["settings"]
    assert settings["several"] and len(settings["thresholds"]) == 3
    assert (len(set(settings["thresholds"])) == 1) == (thresholds != "each")
    found = bertsmith.evaluate(run.folder, mixed_news(), label="topics")["metrics"]
    assert found["micro_f1"]["value"] > (0.8 if thresholds == 0.3 else 0.97)
    config = transformers.AutoConfig.from_pretrained(run.folder)
    assert config.problem_type == "multi_label_classification"
    for row, result in zip(mixed_news(), run.model.classify([row["text"] for row in mixed_news()]), strict=True):
        chosen = dict(zip(settings["labels"], settings["thresholds"], strict=True))
        assert all(answer["score"] >= chosen[answer["label"]] for answer in result)
        if thresholds == "one" and found["subset_accuracy"]["value"] == 1:
            assert sorted(answer["label"] for answer in result) == row["topics"]


def test_a_fine_tuned_folder_starts_another_task(liked, tmp_path):
    run, _, _ = liked
    said = []
    more = [{"text": row["text"], "label": row["label"][:1]} for row in reviews()]
    other = learn(tmp_path / "other", run.folder, more, say=said.append, max_steps=2)
    assert any("was trained for other labels (neg, pos);" in sentence for sentence in said)
    assert other.model.checkpoint.labels == ["n", "p"] and "temperature" not in other.model.trained["settings"]
    said.clear()
    words = [{"words": row["text"].split(), "tags": ["O", "O", "O", "B-W"]} for row in reviews()]
    tagger = learn(tmp_path / "tags", run.folder, words, task="tag", say=said.append, max_steps=2)
    assert any("its heads for classify are left out" in sentence for sentence in said)
    assert tagger.model.info()["heads"] == ["tag"]
    said.clear()
    learn(tmp_path / "same", run.folder, reviews(), say=said.append, max_steps=2)
    assert "The model's own head for classify goes on training." in said


def test_the_same_call_again_does_nothing_and_another_is_refused(liked, encoder, monkeypatch):
    run, place, _ = liked
    monkeypatch.setattr("bertsmith.finetuning.carry_out", None)
    said = []
    sides = {"dev": place / "dev.csv", "test": place / "test.csv", "calibrate": True}
    again = learn(run.folder, encoder, place / "train.csv", say=said.append, **sides)
    assert again.metrics == run.metrics and again.outcome is None
    assert any("finished" in sentence for sentence in said)
    with pytest.raises(BertsmithError, match=r"rate was 0\.002 and is now 0\.001"):
        learn(run.folder, encoder, place / "train.csv", rate=1e-3, **sides)


def test_other_weights_in_the_folder_of_the_model_are_another_run(tmp_path):
    """Also below an adapter, and for several tasks at once."""
    base, one = make_encoder(tmp_path / "base"), {**LEARN, "epochs": 1, "check": False}
    learn(tmp_path / "plain", base, reviews(), **one)
    learn(tmp_path / "added", base, reviews(), **one, lora=2)
    members = {"liked": {"task": "classify", "train": reviews()}, "pairs": {"task": "classify", "train": comparisons()}}
    bertsmith.finetune_together(members, out=tmp_path / "mix", model=base, **one)
    learn(tmp_path / "on", tmp_path / "added", reviews("a"), **one, lora=2)
    make_encoder(base, seed=1)
    for name, start, given in (("plain", base, {}), ("added", base, {"lora": 2})):
        with pytest.raises(BertsmithError, match=r"other settings \(the weights of the model are others than"):
            learn(tmp_path / name, start, reviews(), **one, **given)
    with pytest.raises(BertsmithError, match=r"the weights of the model are others than they were"):
        bertsmith.finetune_together(members, out=tmp_path / "mix", model=base, **one)
    with pytest.raises(BertsmithError, match=r"the weights of the model are others than they were"):
        learn(tmp_path / "on", tmp_path / "added", reviews("a"), **one, lora=2)


def test_what_would_end_a_run_late_ends_it_before(tmp_path, encoder):
    """A test label that train never shows; a long text where none may be cut; a metric that there is not."""
    wrong = [*reviews("this"), {"text": "this was so so", "label": "mixed"}]
    long = [*reviews("a"), {"text": "very " * 100, "label": "pos"}]
    sides = {"dev": reviews("a"), "test": reviews("this")}
    cases = {
        r'Test has the label "mixed", which train never shows, .* \(test, row 49\)': {**sides, "test": wrong},
        "test, row 49: the label 'mixed' is not one of the model's": {**sides, "test": wrong, "check": False},
        "dev, row 49: the input has 102 tokens but at most 64 fit": {**sides, "dev": long, "truncate": "error"},
        "metric='bleu' is not a choice for classify": {**sides, "metric": "bleu"},
    }
    for sentence, given in cases.items():
        with pytest.raises(BertsmithError, match=sentence):
            learn(tmp_path / "m", encoder, reviews(), **given)
        assert not (tmp_path / "m").exists()
    assert learn(tmp_path / "m", encoder, reviews(), **sides, max_steps=1)  # the corrected call is not another run's


def test_where_it_is_written(tmp_path, encoder, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    assert learn("~/m", encoder, reviews(), max_steps=1).folder == tmp_path / "m"
    for nothing in ("", " ", None):
        with pytest.raises(BertsmithError, match="give the name of a folder"):
            learn(nothing, encoder, reviews(), max_steps=1)


def test_a_dry_run_writes_nothing_and_tells_the_plan(tmp_path, encoder):
    said = []
    assert learn(tmp_path / "m", encoder, reviews(), dry_run=True, say=said.append) is None
    assert not (tmp_path / "m").exists()
    plan = "\n".join(said)
    assert "43, 5, 0 examples" in plan and "head at 64 tokens" in plan and "72 of 8 examples" in plan


def test_a_sentence_encoder_predicts_at_the_length_it_was_trained_at(tmp_path):
    """Its own shorter limit is for vectors; the tasks read what the encoder reads, then and later."""
    folder = make_encoder(tmp_path / "sentence")
    kinds = "sentence_transformers.models."
    modules = [{"idx": 0, "name": "0", "path": "", "type": kinds + "Transformer"},
               {"idx": 1, "name": "1", "path": "1_Pooling", "type": kinds + "Pooling"}]  # fmt: skip
    (folder / "modules.json").write_text(json.dumps(modules))
    (folder / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": 16, "do_lower_case": False}))
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling/config.json").write_text(json.dumps({"pooling_mode_mean_tokens": True}))
    assert bertsmith.load(folder).limit == 16
    long = [{**row, "text": "very " * 40 + row["text"]} for row in reviews()]
    run = learn(tmp_path / "m", folder, long, max_steps=2)
    assert run.model.limit == 64 and run.model.classify(long[0]["text"]).truncated == 0
    assert json.loads((run.folder / "metrics.json").read_text())["lengths"]["train"]["limit"] == 64


def test_a_model_that_learned_nothing_is_called_so(tmp_path, encoder):
    """A network whose answer depends on nothing says one label to all texts: at best the majority's share is right."""
    said = []
    rows = [row for row in reviews() if row["label"] == "pos" or "film" in row["text"]]
    other = [row for row in reviews("a") if row["label"] == "pos" or "film" in row["text"]]
    learn(tmp_path / "m", encoder, rows, other, max_steps=1, epochs=1, rate=1e-9, check=False, say=said.append)
    told = next(sentence for sentence in said if sentence.startswith("warning: On dev, the accuracy of "))
    assert told.endswith(f"is no better than saying “pos” to everything, which would give {24 / 28:.4f}.")
    assert told.removeprefix("warning: ") in (tmp_path / "m" / "README.md").read_text("utf-8")
    assert "no better than saying" in (tmp_path / "m" / "report.html").read_text("utf-8")


def test_scores_that_are_no_numbers_are_blamed_on_the_rate(tmp_path, encoder):
    with pytest.raises(BertsmithError, match=r"scores that are not numbers: the rate 100000 may be too high"):
        learn(tmp_path / "m", encoder, reviews(), reviews("a"), rate=1e5, epochs=1, batch=24)


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"cooldown": 0.5}, "cooldown is for schedule trapezoid, and schedule is 'linear'; leave it out"),
        ({"dev_share": 0.3}, "dev_share says how much of train is set apart, but there are dev examples; leave one"),
    ],
)
def test_settings_without_effect_are_refused(given, why, tmp_path, encoder):
    with pytest.raises(BertsmithError) as error:
        learn(tmp_path / "m", encoder, reviews(), reviews("a"), **given)
    assert why in str(error.value) and not (tmp_path / "m").exists()


def test_the_only_number_is_told_in_the_singular(tmp_path, encoder):
    rows = [{"text": f"good {i}", "label": i / 7} for i in range(20)]
    said = []
    learn(tmp_path / "m", encoder, rows, [{"text": "bad", "label": 1.5}], "regress", epochs=1, say=said.append)
    assert any("The only number of dev is 1.5: no correlation can be measured" in line for line in said)
