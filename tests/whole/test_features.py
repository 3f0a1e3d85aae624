"""Frozen features from a file to a folder that predicts: every kind, the cache, resuming, what others open."""

import json
import shutil

import pytest
import torch
import transformers
from safetensors.torch import load_file
from typer.testing import CliRunner
from whole.soak_resume import differences
from whole.test_resume import Stop
from whole.tiny import THINGS, as_conll, make_encoder, questions, reviews, sentences

import bertsmith
from bertsmith.cli.app import app
from bertsmith.errors import BertsmithError
from bertsmith.models.network import Network
from bertsmith.training import features as module

pytestmark = pytest.mark.usefixtures("offline")
LEARN = {"epochs": 4, "batch": 8, "rate": 1e-2, "device": "cpu", "threads": 1}
KINDS = [("last", 0), ("last", 8), ("sum4", 0), ("concat4", 0), ("concat4", 8), ("mix", 0), ("mix", 8)]
TEXT, QUESTION, CONTEXT = "Ann lives in New York", "where is the town", "Bob lives in Oslo and works at the river ."


@pytest.fixture(scope="module")
def deep(tmp_path_factory):
    """An encoder of four layers."""
    return make_encoder(tmp_path_factory.mktemp("deep") / "encoder", depth=4)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    place = tmp_path_factory.mktemp("data")
    for side, verb, start in (("train", "lives", "the"), ("dev", "works", "a")):
        (place / f"tag-{side}.txt").write_text(as_conll(sentences(verb)))
        (place / f"span-{side}.json").write_text(json.dumps(questions()))
        (place / f"classify-{side}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in reviews(start)))
    return place


def train(task, files, model, out, **settings):
    train, dev = (next(files.glob(f"{task}-{side}.*")) for side in ("train", "dev"))
    return bertsmith.finetune(task, train, dev, out=out, model=model, check=False, **{**LEARN, **settings})


def ask(model, task):
    if task == "tag":
        return model.tag(TEXT, aggregation="none").answers
    return model.answer(QUESTION, CONTEXT).answers if task == "span" else model.classify("the plot was good").answers


@pytest.mark.parametrize("layers, recurrent", KINDS)
@pytest.mark.parametrize("task", ["tag", "classify", "span"])
def test_every_kind_predicts_from_its_folder_as_it_was_scored(deep, files, tmp_path, task, layers, recurrent):
    run = train(task, files, deep, tmp_path / "out", features=layers, recurrent=recurrent, epochs=2)
    model = bertsmith.load(run.folder, device="cpu")
    assert ask(model, task) == ask(run.model, task)
    dev = next(files.glob(f"{task}-dev.*"))
    again = bertsmith.evaluate(run.folder, dev, device="cpu")
    assert again["metrics"] == run.metrics["dev"]
    model.save(tmp_path / "copy")
    assert ask(bertsmith.load(tmp_path / "copy", device="cpu"), task) == ask(model, task)


@pytest.mark.parametrize("layers, recurrent", [("concat4", 0), ("mix", 4)])
def test_numbers_and_choices_too(deep, tmp_path, layers, recurrent):
    rated = [{"text": f"the {thing} was {word}", "target": 100.0 * i} for i, word in enumerate(("bad", "fine", "good"))
             for thing in THINGS]  # fmt: skip
    asked = [{"prompt": f"what was the {thing}", "choices": ["good", "bad"], "answer": "good"} for thing in THINGS]
    more = {**LEARN, "features": layers, "recurrent": recurrent, "model": deep, "check": False}
    run = bertsmith.finetune("regress", rated, rated, out=tmp_path / "rated", **more)
    assert bertsmith.evaluate(run.folder, rated, device="cpu")["metrics"] == run.metrics["dev"]
    run = bertsmith.finetune("choose", asked, asked, out=tmp_path / "chosen", **more)
    assert bertsmith.evaluate(run.folder, asked, device="cpu")["metrics"] == run.metrics["dev"]
    one, other = (run.model.choose("what was the film", some).answers for some in (["good", "bad"], ["bad", "good"]))
    assert {a["choice"]: pytest.approx(a["score"], abs=1e-6) for a in one} == {a["choice"]: a["score"] for a in other}


@pytest.mark.parametrize("layers, recurrent", KINDS)
def test_the_encoder_is_the_bases_to_the_bit_and_others_open_it(deep, files, tmp_path, layers, recurrent):
    run = train("tag", files, deep, tmp_path / "out", features=layers, recurrent=recurrent)
    before, after = load_file(deep / "model.safetensors"), load_file(run.folder / "model.safetensors")
    encoder = [name for name in before if not name.startswith("pooler.")]
    assert all(torch.equal(after[f"bert.{name}"], before[name]) for name in encoder)
    base, theirs = (transformers.AutoModel.from_pretrained(path).eval() for path in (deep, run.folder))
    ids = torch.tensor([[2, 20, 30, 40, 3]])
    with torch.no_grad():
        assert torch.equal(base(ids).last_hidden_state, theirs(ids).last_hidden_state)
    is_plain = layers == "last" and not recurrent
    config = json.loads((run.folder / "config.json").read_text())
    assert config["architectures"] == ["BertForTokenClassification" if is_plain else "BertModel"]
    assert config.get("features") == (None if is_plain else {"layers": layers, "recurrent": recurrent})


def test_the_last_layer_alone_is_a_plain_model_for_others(deep, files, tmp_path):
    run = train("tag", files, deep, tmp_path / "out", features="last")
    model = transformers.AutoModelForTokenClassification.from_pretrained(run.folder).eval()
    given = transformers.AutoTokenizer.from_pretrained(run.folder)(TEXT, return_tensors="pt")
    with torch.no_grad():
        chances = model(**given).logits[0].softmax(dim=-1)
    words = given.word_ids()
    found = run.model.tag(TEXT, aggregation="none").answers
    firsts = {words.index(word) for word in set(words) - {None}}
    wanted = {i: model.config.id2label[int(chances[i].argmax())] for i in firsts}
    named = {i: label for i, label in wanted.items() if label != "O"}
    assert len(found) >= len(named)
    assert {round(float(chances[i].max()), 4) for i in named} <= {round(answer["score"], 4) for answer in found}


def test_features_learn(deep, files, tmp_path):
    run = train("tag", files, deep, tmp_path / "out", features="mix", epochs=20, rate=3e-2)
    assert run.metrics["dev"]["f1"]["value"] > 0.9


def test_no_step_runs_the_encoder_and_a_second_run_not_even_once(deep, files, tmp_path, monkeypatch):
    seen: list[bool] = []
    states, compute = Network.states, module.compute

    def watched(self, batch):
        seen.append(self.training)
        return states(self, batch)

    monkeypatch.setattr(Network, "states", watched)
    made: list[int] = []
    monkeypatch.setattr(module, "compute", lambda *given: made.append(1) or compute(*given))
    cache = tmp_path / "cache"
    first = train("tag", files, deep, tmp_path / "one", features="concat4", cache=str(cache))
    assert len(made) == 2 and len(list(cache.iterdir())) == 2  # train and dev
    once = len(seen)
    second = train("tag", files, deep, tmp_path / "two", features="concat4", cache=str(cache))
    assert len(made) == 2
    assert len(seen) - once < once and not any(seen)  # what is left is the score of the finished model
    assert first.metrics == second.metrics
    assert differences(first.folder, second.folder) == []
    train("tag", files, deep, tmp_path / "three", features="concat4", recurrent=4, cache=str(cache))
    assert len(made) == 2  # a BiLSTM stands on the same features
    train("tag", files, deep, tmp_path / "four", features="sum4", cache=str(cache))
    assert len(made) == 4


@pytest.mark.parametrize("keeps", [True, False])
def test_a_run_that_failed_goes_on_to_the_same_end(deep, files, tmp_path, keeps):
    more = {"features": "mix", "recurrent": 4, "keep_checkpoints": True, "evaluate_every": 4, "epochs": 3}
    whole = train("tag", files, deep, tmp_path / "whole", **more)
    out = tmp_path / "out"
    with pytest.raises(RuntimeError, match="a made mistake"):
        train("tag", files, deep, out, watchers=[Stop(7)], **more)
    kept = out / "checkpoints" / "features"
    assert len(list(kept.glob("*.features"))) == 2
    if not keeps:
        shutil.rmtree(kept)
    train("tag", files, deep, out, **more)
    assert differences(whole.folder, out) == []
    assert not kept.exists()


def test_a_run_may_go_on_from_its_features_with_other_labels_or_in_full(deep, files, tmp_path):
    first = train("tag", files, deep, tmp_path / "one", features="mix", recurrent=4, epochs=1)
    said: list[str] = []
    train("classify", files, first.folder, tmp_path / "two", features="mix", recurrent=4, epochs=1, say=said.append)
    train("tag", files, first.folder, tmp_path / "three", epochs=1, rate=1e-3, say=said.append)
    heads = [sentence for sentence in said if "head for" in sentence]
    assert heads[0].startswith("A fresh head for classify") and heads[1].startswith("A fresh head for tag")
    config = json.loads((tmp_path / "three" / "config.json").read_text())
    assert config["architectures"] == ["BertForTokenClassification"] and "features" not in config


def test_the_command_line_knows_them(deep, files, tmp_path):
    words = ["finetune", "--task", "tag", "--train", files / "tag-train.txt", "--dev", files / "tag-dev.txt",
             "--model", deep, "--out", tmp_path / "out", "--device", "cpu", "--epochs", "1", "--no-check"]  # fmt: skip
    more = ["--features", "mix", "--recurrent", "4", "--cache", tmp_path / "cache"]
    done = CliRunner().invoke(app, [str(word) for word in [*words, *more]])
    assert done.exit_code == 0, done.output
    assert "numbers learn, the encoder does not" in done.output
    tagged = CliRunner().invoke(app, ["tag", TEXT, "--model", str(tmp_path / "out"), "--device", "cpu", "--json"])
    assert tagged.exit_code == 0, tagged.output


@pytest.mark.parametrize(
    "settings, said",
    [({"features": "last", "layer_decay": 0.9}, "layer_decay has no meaning where the encoder does not learn"),
     ({"features": "last", "recompute": True}, "recompute has no meaning"), ({"recurrent": 4}, "give features too"),
     ({"features": "last", "lora": 4}, "leave lora out"), ({"features": "first"}, "use one of none, last, sum4"),
     ({"features": "mix", "recurrent": -1}, "at least 0")],
)  # fmt: skip
def test_what_has_no_meaning_is_refused_before_anything_is_written(deep, files, tmp_path, settings, said):
    with pytest.raises(BertsmithError, match=said):
        train("tag", files, deep, tmp_path / "out", **settings)
    assert not (tmp_path / "out").exists()


def test_an_encoder_with_few_layers_has_no_last_four(encoder, files, tmp_path):
    with pytest.raises(BertsmithError, match="reads the last four layers, but the model has 2"):
        train("tag", files, encoder, tmp_path / "out", features="sum4")
    assert not (tmp_path / "out").exists()


def test_vectors_of_such_a_model_are_its_encoders(deep, files, tmp_path):
    run = train("tag", files, deep, tmp_path / "out", features="concat4", recurrent=4, epochs=1)
    mine, base = run.model, bertsmith.load(deep, device="cpu")
    for layers in (None, [1, 4]):
        found, wanted = (model.hidden("the film was good", layers=layers) for model in (mine, base))
        assert torch.equal(torch.from_numpy(found), torch.from_numpy(wanted))
    assert torch.equal(torch.from_numpy(mine.embed("a film")), torch.from_numpy(base.embed("a film")))
    assert mine.info()["features"] == {"layers": "concat4", "recurrent": 4}
