"""`inspect attribution`, `heads` and `probe` as commands: tables, JSON, files, and mistakes in a sentence."""

import json

import pytest
from whole import tiny

TEXT = "the film was good"


@pytest.fixture(scope="module")
def place(tmp_path_factory, one_thread):
    folder = tmp_path_factory.mktemp("place")
    names = {"id2label": {0: "neg", 1: "pos"}, "label2id": {"neg": 0, "pos": 1}}
    tiny.make_encoder(folder / "classify", "ForSequenceClassification", **names)
    tiny.make_encoder(folder / "choose", "ForMultipleChoice")
    tiny.make_encoder(folder / "mask", "ForMaskedLM")
    rows = [f"{record['text']},{record['label']}" for record in tiny.reviews()]
    (folder / "reviews.csv").write_text("\n".join(["review,mood", *rows]) + "\n")
    (folder / "train.conll").write_text(tiny.as_conll(tiny.sentences()))
    (folder / "dev.conll").write_text(tiny.as_conll(tiny.sentences("works")))
    return folder


@pytest.fixture
def on_terminal(monkeypatch):
    monkeypatch.setattr("bertsmith.cli.pictures.wants_json", lambda asked: asked)


def test_attribution_as_json_and_files(real, place, tmp_path):
    ran = real("inspect", "attribution", "classify", TEXT, "--model", place / "classify", "--target", "pos")
    (record,) = ran.records
    assert ran.status == 0 and record["target"] == "pos" and set(record["methods"]) == {
        "integrated", "gradient", "occlusion"
    }  # fmt: skip
    assert record["parts"][0]["names"] == ["[CLS]", "the", "film", "was", "good", "[SEP]"]
    for name in ("a.html", "a.svg", "a.json"):
        ran = real("inspect", "attribution", "classify", TEXT, "--model", place / "classify", "--out", tmp_path / name)
        assert ran.status == 0 and ran.records[0]["bytes"] == (tmp_path / name).stat().st_size > 500
    assert json.loads((tmp_path / "a.json").read_text())["job"] == "classify"


def test_attribution_on_a_terminal(real, place, on_terminal):
    ran = real("inspect", "attribution", "choose", "the film", "was good", "was bad", "--model", place / "choose")
    assert ran.status == 0 and "integrated" in ran.out and "occlusion" in ran.out and "│" in ran.out
    assert "prompt and choice" in ran.out
    ran = real("inspect", "attribution", "fill", "the [MASK] was good", "--at", "0", "--target", "film", "--method",
               "integrated", "--steps", "1", "--model", place / "mask")  # fmt: skip
    assert ran.status == 0 and "fill: film" in ran.out and "beside the score's difference after 1 step;" in ran.err


def test_heads(real, place, tmp_path, on_terminal):
    ran = real("inspect", "heads", "--data", place / "reviews.csv", "--label", "mood", "--text", "review", "--model",
               place / "classify")  # fmt: skip
    assert ran.status == 0, ran.err
    assert "accuracy on 48 examples" in ran.err and "Change of accuracy without each head" in ran.out
    ran = real("inspect", "heads", "--job", "classify", TEXT, "--heads", "1.0,0.1", "--json", "--model",
               place / "classify")  # fmt: skip
    assert ran.records[0]["cut"] == [[1, 0], [0, 1]] and ran.records[0]["together"]["change"]
    out = tmp_path / "h.svg"
    ran = real("inspect", "heads", "--job", "classify", TEXT, "--model", place / "classify", "--out", out)
    assert ran.status == 0 and out.read_text().startswith("<svg ")


def test_probe(real, place, tmp_path, on_terminal):
    words = ("inspect", "probe", "--train", place / "train.conll", "--dev", place / "dev.conll", "--model",
             place / "classify")  # fmt: skip
    ran = real(*words)
    assert ran.status == 0, ran.err
    assert "selectivity" in ran.out and "majority" in ran.out and "mix" in ran.out
    (record,) = real(*words, "--json").records
    assert [layer["layer"] for layer in record["layers"]] == [0, 1, 2]
    assert real(*words, "--out", tmp_path / "p.html").status == 0
    assert "probe" in (tmp_path / "p.html").read_text()


@pytest.mark.parametrize(
    "words, says",
    [
        (("attribution", "dance", TEXT), "'dance' is not one of"),
        (("attribution", "classify", TEXT, "--target", "joy"), "is no label here"),
        (("attribution", "classify", TEXT, "--out", "a.png"), ".png"),
        (("attribution", "fill", "a [MASK]", "--at", "one"), "the number of a mask"),
        (("attribution", "choose", "the film", "was good"), "no head to choose"),
        (("heads",), "give --data FILE to score on, or --job"),
        (("heads", TEXT, "--data", "reviews.csv"), "leave them out with --data"),
        (("heads", TEXT, "--job", "classify", "--label", "mood"), "are for --data"),
        (("heads", TEXT, "--job", "classify", "--heads", "7.7"), "is not there"),
        (("probe", "--train", "absent.csv", "--dev", "absent.csv"), "does not exist"),
    ],
)
def test_mistakes_end_in_a_sentence(real, place, words, says):
    ran = real("inspect", *words, "--model", place / "classify")
    assert ran.status and says in ran.err and "Traceback" not in ran.err and not ran.out


@pytest.mark.parametrize("verb", ["attribution", "heads", "probe"])
def test_help_has_an_example(real, verb):
    assert f"bertsmith inspect {verb}" in real("inspect", verb, "--help").out
