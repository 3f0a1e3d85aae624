"""`bertsmith export`, the verbs on what it wrote, and the server on it."""

import asyncio
import json
from pathlib import Path

import pytest
from cli.running import run_here
from export.made import ADAPTERS, DEFAULTS, make_all

import bertsmith
from bertsmith.models import hub
from bertsmith.serving.asks import Ask
from bertsmith.serving.local import Local
from bertsmith.serving.residents import Residents

PAIR = ("the film was good", "it was not a fine film")


@pytest.fixture(scope="module")
def made(tmp_path_factory, one_thread):
    return make_all(tmp_path_factory.mktemp("made"), "modernbert")


@pytest.fixture
def run(monkeypatch, capsys):
    monkeypatch.delenv("BERTSMITH_MODEL", raising=False)
    return lambda *words, stdin=b"": run_here(monkeypatch, capsys, words, stdin)


@pytest.fixture(scope="module")
def shipped(made, tmp_path_factory):
    base, adapters = made
    defaults = {**DEFAULTS, "classify": "mood", "follows": "order"}
    out = tmp_path_factory.mktemp("shipped") / "house"
    return bertsmith.export_model(base, out, to="compact", adapters=adapters, defaults=defaults).folder


def test_there_and_back(run, made, tmp_path):
    base, adapters = made
    flags = [word for name in ("mood", "names") for word in ("--adapter", f"{name}={adapters[name]}")]
    ran = run("export", base, tmp_path / "small", "--to", "compact", *flags, "--default", "classify=mood")
    assert ran.status == 0, ran.err
    (told,) = ran.records
    assert told["form"] == "compact" and told["store"] == "int8" and set(told["parts"]) == {"", "mood", "names"}
    assert told["bytes"] == sum(told["parts"].values()) and all(error < 0.01 for error in told["errors"].values())
    ran = run("export", tmp_path / "small", tmp_path / "plain", "--to", "transformers", "--head", "names")
    assert ran.status == 0 and ran.records[0]["opens"] == "ModernBertForTokenClassification"
    assert run("tag", "ann lives in oslo", "--model", tmp_path / "plain").status == 0


def test_on_a_terminal(run, made, tmp_path, monkeypatch):
    monkeypatch.setattr("bertsmith.cli.export.wants_json", lambda asked: asked)
    ran = run("export", made[0], tmp_path / "small", "--to", "compact", "--adapter", f"mood={made[1]['mood']}")
    told = " ".join(ran.out.split())
    assert "MiB in int8, numbers off by 0." in told and "mood: 0.0" in told
    ran = run("export", tmp_path / "small", tmp_path / "plain")
    assert "transformers opens it as ModernBertForMaskedLM" in " ".join(ran.out.split())
    assert "the adapters mood are not in it; --head NAME merges one of them" in " ".join(ran.err.split())


def test_mistakes_are_told_in_a_line(run, made, tmp_path):
    base = made[0]
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "a").touch()
    for words, told in (
        ([base, tmp_path / "x", tmp_path / "y"], "give one model and one folder"),
        ([base, tmp_path / "x", "--to", "compact", "--adapter", "mood"], "must be NAME=FOLDER"),
        ([base, tmp_path / "x", "--to", "compact", *["--adapter", "a=b"] * 2], "gives 'a' twice"),
        ([base, tmp_path / "x", "--to", "compact", "--adapter", "a=b"], "'b' is not the folder of an adapter"),
        ([base, tmp_path / "full"], "is not empty"),
        ([base, tmp_path / "x", "--store", "int8"], "is not a choice for a folder that transformers opens"),
    ):
        ran = run("export", *words)
        assert ran.status != 0 and told in " ".join(ran.err.split()) and "Traceback" not in ran.err
        assert not (tmp_path / "x").exists()


def test_the_verbs_without_a_model_use_the_one_in_the_package(run, shipped, monkeypatch, tmp_path):
    monkeypatch.setattr(hub, "HOUSE", shipped)
    model = bertsmith.load(shipped)

    def answers(*words, stdin=b""):
        ran = run(*words, stdin=stdin)
        assert ran.status == 0, ran.err
        return ran.records[0]["answers"]

    assert answers("classify", PAIR[0]) == model.use("mood").classify(PAIR[0]).answers
    by_pair = model.use("nli").classify(*PAIR).answers
    assert answers("classify", PAIR[0], "--pair", PAIR[1]) == by_pair
    assert answers("classify", "-", stdin="\t".join(PAIR).encode()) == by_pair
    (tmp_path / "pairs.csv").write_text(f"text,pair\n{PAIR[0]},{PAIR[1]}\n")
    assert answers("classify", "--in", tmp_path / "pairs.csv") == by_pair
    assert run("classify", "--in", tmp_path / "pairs.csv", "--out", tmp_path / "out.jsonl").status == 0
    assert json.loads((tmp_path / "out.jsonl").read_text())["answers"] == by_pair
    labels = ["sport", "news"]
    judged = model.use("nli").classify(PAIR[0], labels=labels).answers
    assert answers("classify", PAIR[0], "--labels", ",".join(labels)) == judged
    assert answers("score", PAIR[0], "--pair", PAIR[1]) == model.use("alike").score(*PAIR).answers
    assert answers("follows", *PAIR) == model.use("order").classify(*PAIR).answers
    assert answers("tag", "ann lives in oslo") == model.tag("ann lives in oslo").answers
    assert answers("answer", "who works", "--context", PAIR[0]) == model.answer("who works", PAIR[0]).answers
    assert answers("fill", "the [MASK] was good") == model.fill("the [MASK] was good").answers
    assert answers("classify", PAIR[0], "--pair", PAIR[1], "--use", "order") == model.follows(*PAIR).answers
    ran = run("export", tmp_path / "plain", "--head", "mood")  # the model in the package, too
    assert ran.records[0]["opens"] == "ModernBertForSequenceClassification"


def test_served_each_adapter_has_its_id(shipped, monkeypatch):
    monkeypatch.setattr(hub, "HOUSE", shipped)
    monkeypatch.delenv("BERTSMITH_MODEL", raising=False)
    residents = Residents({Path(hub.name_of(Path(hub.find_default()))).name: bertsmith.load()})
    assert list(residents.models) == ["house", *(f"house:{name}" for name in ADAPTERS)]
    model, local = bertsmith.load(shipped), Local(residents, requests=4)

    def ask(job, given, name=""):
        return asyncio.run(local.ask(Ask(job, given, name))).results[0]["answers"]

    try:
        text = {"text": PAIR[0]}
        for job, given, name, expected in (
            ("classify", text, "", model.use("mood").classify(PAIR[0])),
            ("classify", {**text, "pair": PAIR[1]}, "", model.use("nli").classify(*PAIR)),
            ("classify", {**text, "labels": ["sport", "news"]}, "", model.classify(PAIR[0], labels=["sport", "news"])),
            ("follows", {"a": PAIR[0], "b": PAIR[1]}, "", model.follows(*PAIR)),
            ("classify", {**text, "pair": PAIR[1]}, "house:order", model.follows(*PAIR)),
            ("tag", text, "", model.tag(PAIR[0])),
        ):
            found = ask(job, given, name)
            assert [a | {"score": 0} for a in found] == [a | {"score": 0} for a in expected.answers]
            assert [a["score"] for a in found] == pytest.approx([a["score"] for a in expected], abs=1e-5)
    finally:
        local.close()
