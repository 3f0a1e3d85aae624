"""`bertsmith inspect attention`: what it prints, what it writes, what it refuses."""

import json

import pytest
from whole import tiny

import bertsmith
from bertsmith.cli import inspect_attention

TEXT = "the film was good"
LONG = "the film was very good and the cast was not bad at all"


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    return tiny.make_encoder(tmp_path_factory.mktemp("made") / "model", limit=24)


@pytest.fixture
def terminal(monkeypatch):
    """As if a person read the answers."""
    monkeypatch.setattr(inspect_attention, "wants_json", lambda asked: asked)
    monkeypatch.setenv("COLUMNS", "120")


def test_json_in_a_pipe(real, encoder):
    found = bertsmith.inspect.attention(bertsmith.load(encoder), TEXT)
    (record,) = real("inspect", "attention", TEXT, "--model", encoder).records
    assert record["input"] == TEXT and record["tokens"] == list(found.pieces) and record["truncated"] == 0
    assert record["heads"] == json.loads(json.dumps(found.heads()))
    (record,) = real("inspect", "attention", TEXT, "--layer", -1, "--head", 0, "--model", encoder).records
    assert (record["layer"], record["head"]) == (1, 0)
    assert record["weights"][2] == pytest.approx(found.weights[1, 0, 2].tolist(), abs=1e-6)


def test_tables_on_a_terminal(real, encoder, terminal):
    done = real("inspect", "attention", TEXT, "--model", encoder)
    assert done.status == 0 and TEXT in done.out and "bits" in done.out
    done = real("inspect", "attention", TEXT, "--layer", 0, "--model", encoder)
    assert "layer 0, the mean of 2 heads; in percent" in done.out and "5 [SEP]" in done.out
    done = real("inspect", "attention", LONG, "--layer", 0, "--head", 1, "--model", encoder)
    assert "layer 0, head 1: " in done.out and "looks at" in done.out


@pytest.mark.parametrize("name", ["a.html", "a.svg", "a.json"])
def test_a_file(real, encoder, tmp_path, name):
    words = ("--layer", 1, "--neurons", "--causal", "--model", encoder, "--out", tmp_path / name)
    done = real("inspect", "attention", TEXT, "it was bad", *words)
    assert done.records == [{"file": str(tmp_path / name), "bytes": (tmp_path / name).stat().st_size}]
    if name == "a.json":
        data = json.loads((tmp_path / name).read_text())
        assert data["causal"] and data["queries"]["shape"][:2] == [2, 2] and data["start"]["layer"] == 1


def test_a_text_that_does_not_fit_is_said(real, encoder):
    done = real("inspect", "attention", " ".join([LONG] * 3), "--model", encoder)
    assert "cut: " in done.err and done.records[0]["truncated"] > 0


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--head", 1), "--head needs a --layer"),
        (("--neurons",), "name it with --out"),
        (("--layer", 2), "layer is 2"),
        (("--out", "a.png"), "'a.png' ends in .png"),
        (("--out", "nowhere/a.html"), "the folder nowhere does not exist"),
    ],
)
def test_refusals(real, encoder, words, says):
    done = real("inspect", "attention", TEXT, *words, "--model", encoder)
    assert done.status != 0 and says in done.err and "Traceback" not in done.err
