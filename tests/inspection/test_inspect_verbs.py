"""`bertsmith inspect step`, `input` and `positions`: what they print in a pipe and on a terminal, and their errors."""

import json

import numpy as np
import pytest
from cli.running import run_here
from whole.tiny import make_encoder

import bertsmith
from bertsmith import inspect

TEXT = "The river runs through Oslo."


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return make_encoder(tmp_path_factory.mktemp("tiny") / "encoder")


@pytest.fixture
def run(monkeypatch, capsys, folder):
    monkeypatch.setenv("BERTSMITH_MODEL", str(folder))
    return lambda *words: run_here(monkeypatch, capsys, ("inspect", *words, "--device", "cpu"))


@pytest.fixture
def terminal(monkeypatch):
    for verb in ("inspect_input", "pictures"):
        monkeypatch.setattr(f"bertsmith.cli.{verb}.wants_json", lambda asked: asked)
    monkeypatch.setenv("COLUMNS", "110")


def test_step_prints_the_numbers_of_python(run, folder):
    ran = run("step", TEXT, "--layer", "1", "--head", "1", "--word", "river")
    assert ran.status == 0 and ran.err == ""
    (record,) = ran.records
    found = inspect.step(bertsmith.load(folder, device="cpu"), TEXT, layer=1, head=1, word="river")
    assert record.pop("input") == TEXT and record == json.loads(json.dumps(found.data()))


def test_step_on_a_terminal_tells_every_number(run, terminal, folder):
    ran = run("step", TEXT, "--word", "Oslo", "--causal")
    found = inspect.step(bertsmith.load(folder, device="cpu"), TEXT, layer=0, head=0, word="Oslo", causal=True)
    assert ran.status == 0 and "What “Oslo” takes" in ran.out and "comes later" in ran.out
    flat = " ".join(ran.out.replace("│", " ").split())
    for value in (*found.dots, *found.scaled[~found.masked], *found.query, *found.keys.flat, *found.values.flat,
                  *found.contributions.flat, *found.result, *found.x[:8], np.linalg.norm(found.x)):  # fmt: skip
        assert f"{value:.4f}" in flat or f"{value:.1e}" in flat, value


def test_a_pair_and_a_word_in_pieces(run, terminal):
    ran = run("step", TEXT, "Ann sees a zebra.", "--word", "zebra", "--piece", "-1")
    assert ran.status == 0 and "is 5 pieces" in ran.out.replace("\n", " ")


def test_input_prints_a_row_a_piece(run, terminal):
    ran = run("input", TEXT, "Ann sees it.", "--pad-to", "16")
    assert ran.status == 0
    lines = ran.out.splitlines()
    assert "|sum, normed|" in lines[1] and [line.split()[0] for line in lines[2:5]] == ["[CLS]", "the", "river"]
    assert sum(line.startswith("[PAD]") for line in lines) == 3
    assert run("input", TEXT, "--json").records[0]["pieces"][1]["piece"] == "the"


def test_positions_of_the_model_and_of_the_paper(run, terminal):
    assert "Learned positions of bert" in run("positions").out
    ran = run("positions", "--kind", "sinusoid")
    assert ran.status == 0 and "0.841" in ran.out
    (record,) = run("positions", "--kind", "sinusoid", "--json").records
    assert np.shape(record["maps"][0]["values"]) == (128, 64)


@pytest.mark.parametrize("ending", ["html", "svg", "json"])
@pytest.mark.parametrize("words", [("step", TEXT, "--word", "runs"), ("input", TEXT), ("positions",)])
def test_pictures_are_written_and_said(run, terminal, tmp_path, words, ending):
    out = tmp_path / f"picture.{ending}"
    ran = run(*words, "--out", str(out))
    assert ran.status == 0 and str(out) in ran.out.replace("\n", "")
    content = out.read_text(encoding="utf-8")
    assert content.startswith({"html": "<!doctype html>", "svg": "<svg", "json": "{"}[ending])
    assert ending != "json" or json.loads(content)["title"]
    assert "http://" not in content.replace("http://www.w3.org/2000/svg", "") and "https://" not in content


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("step", TEXT, "--word", "zebra"), "word is 'zebra', which does not stand in the text"),
        (("step", TEXT, "--word", "river", "--layer", "2"), "layer is 2, but there are 2 layers in this model, 0 to 1"),
        (("step", TEXT, "--word", "river", "--head", "-3"), "head is -3, but there are 2 heads in each layer"),
        (("step", "", "--word", "river"), "the text is empty"),
        (("step", TEXT, " ", "--word", "river"), "the pair is empty"),
        (("input", " "), "the text is empty"),
        (("input", TEXT, "--pad-to", "2"), "pad_to is 2, but the row has"),
        (("positions", "--kind", "rotary", "--model", "."), "config.json"),
        (("step", TEXT, "--word", "river", "--out", "x.png"), "ends in .png"),
    ],
)
def test_a_mistake_is_one_sentence(run, tmp_path, monkeypatch, words, says):
    monkeypatch.chdir(tmp_path)
    ran = run(*words)
    assert ran.status == 1 and ran.out == ""
    assert ran.err.startswith("error: ") and says in ran.err and "Traceback" not in ran.err
    assert ran.err.count("\n") == 1 and list(tmp_path.iterdir()) == []


def test_what_was_cut_is_said(run):
    ran = run("input", "river " * 80)
    assert ran.status == 0 and "cut: 18 tokens" in ran.err and ran.records[0]["truncated"] == 18
    ran = run("step", "river " * 80, "--word", "0")
    assert ran.records[0]["truncated"] == 18


@pytest.mark.parametrize("verb", ["step", "input", "positions"])
def test_help_has_an_example(run, monkeypatch, capsys, verb):
    ran = run_here(monkeypatch, capsys, ("inspect", verb, "--help"))
    assert ran.status == 0 and f"bertsmith inspect {verb}" in ran.out.partition("Examples:")[2]
