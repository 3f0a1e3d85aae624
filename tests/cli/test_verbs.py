"""What each verb prints in a pipe and on a terminal."""

import json

import numpy as np
import pytest

import bertsmith
import bertsmith.loading
from bertsmith.cli import output
from bertsmith.models.hub import HOUSE


@pytest.fixture
def terminal(monkeypatch):
    """Lets a verb take standard output for a terminal 100 columns wide."""
    monkeypatch.setattr(output, "wants_json", lambda asked: asked)
    for verb in ("fill", "follows", "embed", "tokenize", "info", "models"):
        monkeypatch.setattr(f"bertsmith.cli.{verb}.wants_json", lambda asked: asked)
    monkeypatch.setenv("COLUMNS", "100")


def test_fill_prints_one_json_line_a_text(run):
    ran = run("fill", "[MASK] is big", "[MASK] is old", "--top-k", "2")
    assert ran.status == 0 and ran.err == ""
    assert [record["input"] for record in ran.records] == ["[MASK] is big", "[MASK] is old"]
    assert ran.records[0] == {
        "input": "[MASK] is big",
        "answers": [
            {"sequence": "paris is big", "score": 0.5, "token": 2001, "token_str": "paris"},
            {"sequence": "lyon is big", "score": 0.25, "token": 2002, "token_str": "lyon"},
        ],
        "truncated": 0,
    }


def test_fill_with_several_masks_has_joint_answers(run):
    (record,) = run("fill", "[MASK] or [MASK]").records
    assert len(record["answers"]) == 2 and len(record["answers"][0]) == 5
    assert record["joint"] == [{"sequence": "paris or paris", "score": 0.25}]


def test_fill_chooses_among_the_targets(run):
    (record,) = run("fill", "[MASK]", "--targets", "rome, oslo").records
    assert [answer["token_str"] for answer in record["answers"]] == ["rome", "oslo"]


def test_follows_prints_the_pair(run):
    (record,) = run("follows", "It rains.", "It is wet.").records
    assert record["input"] == "It rains." and record["pair"] == "It is wet."
    assert [answer["label"] for answer in record["answers"]] == ["follows", "random"]


def test_embed_prints_vectors(run):
    assert run("embed", "a b", "cde").records == [
        {"input": "a b", "vector": [3.0, 1.0, 0.5, 1.0], "truncated": 0},
        {"input": "cde", "vector": [3.0, 0.0, 0.5, 1.0], "truncated": 0},
    ]


def test_embed_puts_the_prompt_in_front(run):
    (record,) = run("embed", "a b", "--prompt", "query: ").records
    assert record["input"] == "a b" and record["vector"][0] == len("query: a b")


def test_embed_writes_a_numpy_file(run, tmp_path):
    lines = [f"{'x' * (number % 7)} y" for number in range(5000)]
    out = tmp_path / "vectors.npy"
    ran = run("embed", "-", "--out", str(out), stdin="\n".join(lines).encode())
    assert ran.status == 0 and ran.out == ""
    assert ran.err == f"wrote 5,000 vectors of width 4 to {out}\n"
    vectors = np.load(out)
    assert vectors.dtype == np.float32 and vectors.shape == (5000, 4)
    assert vectors[:, 0].tolist() == [len(line) for line in lines]
    assert [path.name for path in tmp_path.iterdir()] == ["vectors.npy"]


def test_embed_of_nothing_writes_no_rows_of_the_right_width(run, tmp_path):
    out = tmp_path / "vectors.npy"
    assert run("embed", "-", "--out", str(out)).status == 0
    assert np.load(out).shape == (0, 4)


def test_a_failed_embed_leaves_the_old_file(run, tmp_path):
    out = tmp_path / "vectors.npy"
    out.write_bytes(b"old")
    ran = run("embed", "-", "--out", str(out), "--overwrite", stdin=b"good\n\xff\n")
    assert ran.status == 1 and "line 2" in ran.err
    assert out.read_bytes() == b"old" and len(list(tmp_path.iterdir())) == 1


def test_a_file_that_is_there_is_replaced_only_when_asked(run, tmp_path):
    out = tmp_path / "precious.npy"
    out.write_text("precious")
    ran = run("embed", "a", "--out", str(out))
    assert (ran.status, ran.err) == (1, f"error: {out} is there already; give another file, or --overwrite.\n")
    assert out.read_text() == "precious"
    assert run("embed", "a", "--out", str(out), "--overwrite").status == 0
    assert np.load(out).shape == (1, 4)


@pytest.mark.parametrize("words", [["--overwrite"], ["--on-error", "skip"], ["--out", "v.npy", "--engine", "ray"]])
def test_how_a_file_is_written_wants_a_file(run, tmp_path, monkeypatch, words):
    monkeypatch.chdir(tmp_path)
    ran = run("embed", "a", *words)
    assert ran.status == 2 and "--overwrite with --out FILE" in ran.err and not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "words",
    [["fill", "a [MASK]"], ["classify", "a"], ["tag", "a"], ["embed", "a"], ["score", "a"], ["similar", "a", "b"],
     ["rerank", "a", "b"], ["follows", "a", "b"], ["choose", "a", "b", "c"], ["answer", "a", "--context", "b"]],
)  # fmt: skip
def test_a_format_wants_a_file(run, words):
    ran = run(*words, "--format", "csv")
    assert ran.status == 2 and "--format says what a file holds; give --" in " ".join(ran.err.split())


@pytest.mark.parametrize("place", ["missing/vectors.npy", "", "circle", "x" * 5000, "file/vectors.npy"])
def test_a_place_that_cannot_be_written_is_said(run, tmp_path, place):
    (tmp_path / "circle").symlink_to("circle")
    (tmp_path / "file").touch()
    ran = run("embed", "a", "--out", str(tmp_path / place))
    assert ran.status == 1 and ran.err.startswith("error: cannot write") and ran.err.count("\n") == 1


def test_an_empty_place_for_vectors_is_refused(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ran = run("embed", "a", "--out", "")
    assert (ran.status, ran.err) == (1, f"error: cannot write {tmp_path}: it is a folder; give a FILE.npy.\n")


def test_tokenize_prints_the_columns(run):
    ran = run("tokenize", "ab cd", "--pair", "e")
    assert ran.records == [
        {
            "input": "ab cd",
            "pair": "e",
            "ids": [101, 2002, 2002, 2001],
            "pieces": ["[CLS]", "ab", "cd", "e"],
            "offsets": [[0, 0], [0, 1], [1, 2], [2, 3]],
            "words": [None, 0, 1, 2],
            "segments": [0, 0, 0, 1],
        }
    ]


def test_every_model_option_reaches_load(run):
    numbers = ["--batch-tokens", "99", "--threads", "3"]
    ran = run("info", "--model", "here", "--device", "cpu", "--dtype", "bfloat16", "--download", *numbers)
    assert ran.records == [
        {
            "family": "bert",
            "parameters": 1234567,
            "heads": ["fill"],
            "source": "here",
            "device": "cpu",
            "dtype": "bfloat16",
            "download": True,
            "threads": 3,
            "batch_tokens": 99,
        }
    ]


def test_models_lists_presets_without_a_model(run, monkeypatch):
    row = {"family": "bert", "preset": "base", "depth": 12, "parameters": 109482240}
    monkeypatch.setattr(bertsmith, "models_table", lambda: [row], raising=False)
    assert run("models").records == [row]


def test_the_model_in_the_package_is_the_default(run, monkeypatch):
    monkeypatch.setattr(bertsmith, "load", bertsmith.loading.load)
    (facts,) = run("info", model="").records
    assert facts["folder"] == str(HOUSE)


def test_an_empty_name_is_no_model(run, monkeypatch):
    monkeypatch.setattr(bertsmith, "load", bertsmith.loading.load)
    for words in (["info", "--model", ""], ["info", ""], ["embed", "a", "--model", ""]):
        ran = run(*words, model="")
        assert ran.status == 1 and ran.out == "" and ran.err.startswith("error: the model's name is empty")


def test_info_takes_a_folder(run):
    (facts,) = run("info", "here", model="").records
    assert facts["source"] == "here"


def test_no_model_at_all_is_one_sentence(run, monkeypatch, tmp_path):
    monkeypatch.setattr(bertsmith, "load", bertsmith.loading.load)
    monkeypatch.setattr("bertsmith.models.hub.DEMO_PACKAGE", "no_such_package")
    monkeypatch.setattr("bertsmith.models.hub.HOUSE", tmp_path / "nothing")
    ran = run("info", model="")
    assert ran.status == 1 and ran.err.startswith("error: no model was named: give a folder (--model PATH)")


@pytest.mark.usefixtures("terminal")
def test_a_terminal_gets_tables(run, monkeypatch):
    row = {"family": "bert", "preset": "base", "parameters": 109482240}
    monkeypatch.setattr(bertsmith, "models_table", lambda: [row], raising=False)
    filled = run("fill", "[MASK] or [MASK]").out
    assert "[MASK] or [MASK]  (mask 2)" in filled and "(all masks together)" in filled and "0.5000" in filled
    assert "It rains.  →  Wet." in run("follows", "It rains.", "Wet.").out
    assert "+0.5000" in run("embed", "a b").out
    assert "2002" in run("tokenize", "ab").out
    assert "1,234,567" in run("info").out
    assert "109.5M" in run("models").out


@pytest.mark.usefixtures("terminal")
def test_models_fit_into_80_columns(run, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    header, *lines = run("models").out.splitlines()
    rows = bertsmith.models_table()
    assert header.split() == [key for key in rows[0] if key != "family"]
    assert [line.split()[0] for line in lines] == [row["preset"] for row in rows]
    assert lines[0].split()[1:] == ["2", "128", "2", "512", "30,522", "512", "4.4M"]


@pytest.mark.usefixtures("terminal")
@pytest.mark.parametrize("words", [["tokenize"], ["embed"], ["follows", "b"], ["fill"]])
def test_control_characters_do_not_reach_a_terminal(run, words):
    verb, *others = words
    out = run(verb, "[MASK]\x1b[31mred\x07\x9b\r\x7f \x1b]0;title\x07", *others).out
    assert r"\x1b[31mred\x07\x9b\r\x7f" in out
    assert not set(out) & {chr(code) for code in (*range(0x20), *range(0x7F, 0xA0)) if chr(code) != "\n"}


@pytest.mark.usefixtures("terminal")
def test_json_is_there_on_a_terminal_too(run):
    assert json.loads(run("embed", "a b", "--json").out)["input"] == "a b"
