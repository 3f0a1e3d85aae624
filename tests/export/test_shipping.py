"""The shipped form: a base with six adapters in one folder gives the answers of the models apart, in fewer bytes."""

import copy
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import transformers
from export.made import ADAPTERS, DEFAULTS, make_adapter, make_all, make_base

import bertsmith
from bertsmith.errors import BertsmithError
from bertsmith.models import hub
from bertsmith.serving.residents import make_card

TEXTS = ["the film was good", "ann lives in oslo and works at the river"]
PAIR = ("the film was good", "it was not a fine film")


@pytest.fixture(scope="module")
def made(tmp_path_factory, one_thread):
    return make_all(tmp_path_factory.mktemp("made"), "modernbert")


@pytest.fixture(scope="module")
def shipped(made, tmp_path_factory):
    base, adapters = made
    folder = tmp_path_factory.mktemp("shipped") / "house"
    defaults = {**DEFAULTS, "follows": "order"}
    return bertsmith.export_model(base, folder, to="compact", adapters=adapters, defaults=defaults)


@pytest.fixture(scope="module")
def model(shipped):
    return bertsmith.load(shipped.folder)


def scores(result):
    return {answer["label"]: answer["score"] for answer in result}


def test_it_is_a_folder_of_our_own_form(shipped, made):
    files = {path.relative_to(shipped.folder).as_posix() for path in shipped.folder.rglob("*") if path.is_file()}
    assert {"model.compact.safetensors", "config.json", "tokenizer.json", "bertsmith.json"} <= files
    for name in ADAPTERS:
        assert {f"adapters/{name}/{file}" for file in
                ("adapter_model.compact.safetensors", "adapter_config.json", "bertsmith.json")} <= files  # fmt: skip
    assert not [file for file in files if file.endswith("model.safetensors")]
    about = json.loads((shipped.folder / "bertsmith.json").read_text())
    assert about["adapters"] == list(ADAPTERS) and about["default_for"]["zero-shot"] == "nli"
    texts = [path.read_text() for path in shipped.folder.rglob("*.json")]
    assert not [text for text in texts if str(made[0].parent) in text]  # no path of whoever made it
    assert shipped.size == sum(path.stat().st_size for path in shipped.folder.rglob("*") if path.is_file())
    assert all(0 < error < 0.01 for error in shipped.errors.values())
    weights = (shipped.folder / "model.compact.safetensors").stat().st_size
    assert weights < 0.4 * (made[0] / "model.safetensors").stat().st_size


def test_its_answers_are_those_of_the_models_apart(model, made):
    base, adapters = made
    apart = {name: bertsmith.load(folder) for name, folder in adapters.items()}
    assert list(model.adapters) == list(ADAPTERS)
    for name, other in apart.items():
        home = model.use(name)
        one, two = (m.hidden(TEXTS[1], layers=[-1]) for m in (home, other))
        assert np.linalg.norm(one - two) < 0.05 * np.linalg.norm(two)
        if ADAPTERS[name][0] == "classify":
            given = PAIR if ADAPTERS[name][2] else PAIR[:1]
            near = scores(other.classify(*given, raw=True))
            assert scores(home.classify(*given, raw=True)) == pytest.approx(near, abs=0.12)
    fills = [m.fill("the [MASK] was good", top_k=3) for m in (model, bertsmith.load(base))]
    assert fills[0][0]["score"] == pytest.approx(fills[1][0]["score"], abs=0.03)
    vectors = [m.embed(TEXTS, normalize=True) for m in (model, bertsmith.load(base))]
    assert (np.sum(np.asarray(vectors[0]) * np.asarray(vectors[1]), axis=1) > 0.998).all()


def test_each_job_finds_its_adapter(model):
    def same(one, other):
        assert one.answers == other.answers

    same(model.classify(TEXTS[0]), model.use("mood").classify(TEXTS[0]))  # the one that learnt from single texts
    same(model.classify(*PAIR), model.use("nli").classify(*PAIR))
    labels = ["sport", "news"]
    same(model.classify(TEXTS[0], labels=labels), model.use("nli").classify(TEXTS[0], labels=labels))
    same(model.follows(*PAIR), model.use("order").classify(*PAIR))
    same(model.use("order").follows(*PAIR), model.follows(*PAIR))
    assert "follows" in make_card("order", model.use("order")).jobs
    with pytest.raises(BertsmithError, match="no head to tell whether one text follows another"):
        model.use("nli").follows(*PAIR)
    same(model.score(*PAIR), model.use("alike").score(*PAIR))
    same(model.tag(TEXTS[1]), model.use("names").tag(TEXTS[1]))
    same(model.answer("who works", TEXTS[1]), model.use("answers").answer("who works", TEXTS[1]))
    same(model.use("mood").use("nli").classify(*PAIR), model.classify(*PAIR))
    assert model.info()["default_for"]["follows"] == "order"
    again = copy.deepcopy(model)
    same(again.classify(*PAIR), model.classify(*PAIR))


def test_a_file_of_pairs_is_answered_by_the_adapter_that_is_declared(model, tmp_path):
    (tmp_path / "pairs.jsonl").write_text(json.dumps({"text": PAIR[0], "pair": PAIR[1]}) + "\n")
    bertsmith.predict_file("follows", tmp_path / "pairs.jsonl", tmp_path / "out.jsonl", model)
    found = json.loads((tmp_path / "out.jsonl").read_text())["answers"]
    assert [one["label"] for one in found] == [one["label"] for one in model.follows(*PAIR)]
    with pytest.raises(BertsmithError, match=r"the model was .*adapters/order and is now .*/nli"):
        bertsmith.predict_file("follows", tmp_path / "pairs.jsonl", tmp_path / "out.jsonl", model.use("nli"))


@pytest.mark.parametrize(("job", "name"), [("tag", "mood"), ("score", "mood"), ("classify", "alike"),
                                           ("zero-shot", "mood"), ("answer", "names")])  # fmt: skip
def test_a_default_that_cannot_do_its_job_is_refused(model, tmp_path, job, name):
    with pytest.raises(BertsmithError, match=f"^the adapter '{name}' cannot be the default for {job}, which"):
        bertsmith.export_model(model, tmp_path / "x", to="compact", defaults={job: name})
    assert not (tmp_path / "x").exists()


def test_adapters_come_beside_those_that_were_loaded_with_the_model(made, tmp_path):
    base, folders = made
    loaded = bertsmith.load(base, device="cpu", adapters={"mood": folders["mood"]})
    exported = bertsmith.export_model(loaded, tmp_path / "x", to="compact", adapters={"nli": folders["nli"]})
    assert list(bertsmith.load(exported.folder).adapters) == ["mood", "nli"]


def test_a_declared_default_is_taken(made, tmp_path):
    base, adapters = made
    two = {"first": adapters["mood"], "second": make_adapter(base, tmp_path / "other", "mood", seed=9)}
    bertsmith.export_model(base, tmp_path / "a", to="compact", adapters=two)
    with pytest.raises(BertsmithError, match=r"several adapters .* can classify texts: first, second; say which"):
        bertsmith.load(tmp_path / "a").classify("good")
    bertsmith.export_model(tmp_path / "a", tmp_path / "b", to="compact", defaults={"classify": "second"})
    model = bertsmith.load(tmp_path / "b")
    assert model.classify("good").answers == model.use("second").classify("good").answers


def test_vectors_by_an_adapter_that_is_declared_for_them(made, tmp_path):
    base = made[0]
    adapters = {"vectors": make_adapter(base, tmp_path / "vectors", "vectors")}
    bertsmith.export_model(base, tmp_path / "a", to="compact", adapters=adapters, store="fp32")
    plain = bertsmith.load(tmp_path / "a")
    assert np.allclose(plain.embed(TEXTS), bertsmith.load(base).embed(TEXTS), atol=1e-5)  # nobody asked for another
    bertsmith.export_model(tmp_path / "a", tmp_path / "b", to="compact", store="fp32", defaults={"embed": "vectors"})
    model = bertsmith.load(tmp_path / "b")
    own = model.use("vectors").embed(TEXTS)
    assert np.array_equal(model.embed(TEXTS), own) and not np.allclose(own, plain.embed(TEXTS), atol=1e-2)
    assert model.similar(TEXTS[0], TEXTS).answers == model.use("vectors").similar(TEXTS[0], TEXTS).answers
    merged = bertsmith.export_model(tmp_path / "b", tmp_path / "c", head="embed")
    assert np.allclose(bertsmith.load(merged.folder).embed(TEXTS), own, atol=1e-4)


def test_written_again_it_is_the_same(shipped, tmp_path):
    """Each number has one compact form, so that nothing is lost twice."""
    again = bertsmith.export_model(shipped.folder, tmp_path / "again", to="compact")
    assert set(again.errors.values()) == {0.0}
    for path in shipped.folder.rglob("*"):
        if path.is_file():
            assert (again.folder / path.relative_to(shipped.folder)).read_bytes() == path.read_bytes(), path
    moved = tmp_path / "moved"
    shutil.move(tmp_path / "again", moved)
    alone = bertsmith.load(moved / "adapters" / "mood")  # it finds its base beside it
    assert alone.classify("good").answers == bertsmith.load(moved).classify("good").answers


def test_training_goes_on_from_it(shipped, tmp_path):
    """An adapter that is trained on the compact base belongs to it, and comes in beside the others."""
    rows = [{"text": f"{word} {n}", "label": label} for n in range(6) for word, label in (("good", "a"), ("bad", "b"))]
    run = bertsmith.finetune("classify", rows, out=tmp_path / "more", model=shipped.folder, lora=8, max_steps=2,
                             check=False, device="cpu")  # fmt: skip
    bertsmith.export_model(shipped.folder, tmp_path / "grown", to="compact", adapters={"more": run.folder})
    grown = bertsmith.load(tmp_path / "grown")
    assert list(grown.adapters) == [*ADAPTERS, "more"]
    expected = bertsmith.load(run.folder).classify("good 3", raw=True)
    assert scores(grown.use("more").classify("good 3", raw=True)) == pytest.approx(scores(expected), abs=0.05)


def test_others_say_that_there_are_no_weights(shipped):
    with pytest.raises(OSError, match=r"no file named model\.safetensors"):
        transformers.AutoModel.from_pretrained(shipped.folder)


def test_saved_plain_it_keeps_its_adapters(model, tmp_path):
    model.save(tmp_path / "plain")
    again = bertsmith.load(tmp_path / "plain")
    assert list(again.adapters) == list(ADAPTERS)
    assert again.classify(*PAIR).answers == model.classify(*PAIR).answers
    assert not list((tmp_path / "plain").rglob("*.compact.safetensors"))


def change(folder, **about):
    path = folder / "bertsmith.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **about}))


def test_broken_folders(shipped, tmp_path):
    def refused(folder):
        with pytest.raises(BertsmithError) as caught:
            bertsmith.load(folder)
        assert "\n" not in str(caught.value)
        return str(caught.value)

    folder = tmp_path / "broken"
    shutil.copytree(shipped.folder, folder)
    shutil.rmtree(folder / "adapters" / "nli")
    assert "lacks the adapter 'nli' that its bertsmith.json names" in refused(folder)
    change(folder, adapters=["mood"], default_for={"classify": "nli"})
    assert "names 'nli' as the default for classify; its adapters are mood" in refused(folder)
    change(folder, default_for={"sing": "mood"})
    assert "has a default for 'sing'; jobs that can have one are classify," in refused(folder)
    change(folder, default_for=["mood"])
    assert "must give default_for as the name of an adapter for each job" in refused(folder)
    change(folder, adapters="mood", default_for={})
    assert "must name its adapters in a list" in refused(folder)
    change(folder, adapters=["mood"])
    assert list(bertsmith.load(folder).adapters) == ["mood"]  # those that are not named are not loaded
    (folder / "adapters" / "mood" / "adapter_model.compact.safetensors").unlink()
    assert "has no adapter_model.safetensors" in refused(folder)


def test_what_cannot_be_put_together(made, tmp_path):
    base, adapters = made
    other = make_base(tmp_path / "other", "modernbert", seed=5)

    def refused(told, source=base, **settings):
        with pytest.raises(BertsmithError, match=told):
            bertsmith.export_model(source, tmp_path / "out", **{"to": "compact", **settings})
        assert not (tmp_path / "out").exists() and not list(tmp_path.glob(".*"))

    refused("mood is an adapter for another base model", other, adapters={"mood": adapters["mood"]})
    refused("is a whole model and not an adapter", adapters={"x": other})
    refused("nothing' is not the folder of an adapter; name one that is", adapters={"x": tmp_path / "nothing"})
    refused("'a/b' cannot be an adapter's name", adapters={"a/b": adapters["mood"]})
    refused("names 'mood' as the default for classify; its adapters are none", defaults={"classify": "mood"})
    refused("store='int4' is not a choice", store="int4")
    refused("holds all heads and adapters; leave head out", head="tag")
    refused("to='tflite' is not a choice", to="tflite")
    refused("adapters are put together in the compact form alone", to="transformers", adapters=adapters)


@pytest.mark.parametrize("to", ["transformers", "onnx", "compact"])
def test_what_an_adapter_was_declared_for_it_does_alone(model, tmp_path, to):
    """Its head is one of classes, and only the base's folder said that they are those of `follows`."""
    if to == "compact":
        source, options = bertsmith.export_model(model, tmp_path / "plain", head="order").folder, {}
    else:
        source, options = model, {"head": "follows"}
    exported = bertsmith.export_model(source, tmp_path / "out", to=to, **options)
    found = bertsmith.load(exported.folder)
    assert scores(found.follows(*PAIR)) == pytest.approx(scores(model.follows(*PAIR)), abs=0.02)
    assert scores(found.classify(*PAIR)) == pytest.approx(scores(model.follows(*PAIR)), abs=0.02)
    assert "follows" in make_card("order", found).jobs and "order" not in exported.left_out


def test_an_adapter_alone_is_written_whole(made, tmp_path):
    folder = made[1]["mood"]
    bertsmith.export_model(folder, tmp_path / "mood", to="compact", store="fp32")
    one, other = bertsmith.load(tmp_path / "mood"), bertsmith.load(folder)
    assert not one.adapters
    assert scores(one.classify("good")) == pytest.approx(scores(other.classify("good")), abs=1e-5)


def test_a_folder_is_replaced_only_when_asked(made, tmp_path):
    base, _ = made
    bertsmith.export_model(base, tmp_path / "out", to="compact")
    with pytest.raises(BertsmithError, match=r"out is not empty; give another folder, or overwrite it"):
        bertsmith.export_model(base, tmp_path / "out")
    bertsmith.export_model(base, tmp_path / "out", overwrite=True)
    assert not (tmp_path / "out" / "model.compact.safetensors").exists() and not list(tmp_path.glob(".*"))
    (tmp_path / "letters").mkdir()
    (tmp_path / "letters" / "a.txt").write_text("dear")
    with pytest.raises(BertsmithError, match="holds no model, so it is not overwritten"):
        bertsmith.export_model(base, tmp_path / "letters", overwrite=True)
    (tmp_path / "out" / "notes.txt").write_text("mine")
    with pytest.raises(BertsmithError, match=r"out holds notes.txt beside a model, which would be lost; give another"):
        bertsmith.export_model(base, tmp_path / "out", overwrite=True)
    assert (tmp_path / "out" / "notes.txt").read_text() == "mine" and bertsmith.load(tmp_path / "out")


KILLED = """
import os, signal, sys
import bertsmith, bertsmith.export.shipping as shipping
pack = shipping._pack
def kill(plain, *more):
    if "adapters" in plain.parts:
        os.kill(os.getpid(), int(sys.argv[4]))
    return pack(plain, *more)
shipping._pack = kill
bertsmith.export_model(sys.argv[1], sys.argv[2], to="compact", adapters={"mood": sys.argv[3]})
"""


@pytest.mark.skipif(os.name == "nt", reason="there is no such signal")
def test_killed_while_writing_nothing_is_there(made, tmp_path):
    base, adapters = made
    given = [str(base), str(tmp_path / "out"), str(adapters["mood"])]
    for number in (signal.SIGTERM, signal.SIGKILL):
        command = [sys.executable, "-c", KILLED, *given, str(int(number))]
        done = subprocess.run(command, env={**os.environ, "OMP_NUM_THREADS": "1"}, stderr=subprocess.DEVNULL)
        assert done.returncode == (-number if number == signal.SIGKILL else 1)
        assert not (tmp_path / "out").exists()
        assert number == signal.SIGKILL or not list(tmp_path.iterdir())  # what can be tidied up is
    bertsmith.export_model(*given[:2], to="compact", adapters={"mood": given[2]})
    assert bertsmith.load(tmp_path / "out").classify("good").answers


def test_the_default_model(shipped, demo_model, monkeypatch, tmp_path):
    """What the environment names, then the one in the package, then the demo package's."""
    monkeypatch.delenv("BERTSMITH_MODEL", raising=False)
    monkeypatch.setattr(hub, "HOUSE", tmp_path / "nothing")
    assert hub.find_default() == demo_model
    monkeypatch.setattr(hub, "HOUSE", shipped.folder)
    assert hub.find_default() == shipped.folder
    assert hub.name_of(shipped.folder) == "bertsmith/house"
    assert bertsmith.load().classify(*PAIR)[0]["label"] in ADAPTERS["nli"][1]
    monkeypatch.setenv("BERTSMITH_MODEL", "elsewhere")
    assert hub.find_default() == "elsewhere"
    monkeypatch.delenv("BERTSMITH_MODEL")
    monkeypatch.setattr(hub, "HOUSE", tmp_path / "nothing")
    monkeypatch.setattr(hub, "DEMO_PACKAGE", "no_such_package")
    with pytest.raises(BertsmithError, match="no model was named: give a folder"):
        hub.find_default()


def test_an_adapter_of_the_model_in_the_package_finds_it(shipped, monkeypatch, tmp_path):
    monkeypatch.setattr(hub, "HOUSE", shipped.folder)
    rows = [{"text": f"{word} {n}", "label": label} for n in range(6) for word, label in (("good", "a"), ("bad", "b"))]
    run = bertsmith.finetune("classify", rows, out=tmp_path / "mine", lora=2, max_steps=1, check=False, device="cpu")
    config = json.loads((tmp_path / "mine" / "adapter_config.json").read_text())
    assert config["base_model_name_or_path"] == "bertsmith/house"
    assert bertsmith.load(run.folder).classify("good").answers
    assert Path(bertsmith.load(run.folder).folder) == run.folder
