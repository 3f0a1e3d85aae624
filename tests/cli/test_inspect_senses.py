"""`bertsmith inspect senses` and `inspect lens`: what they print, what they write, what they refuse."""

import json

import pytest
from whole import tiny


@pytest.fixture(scope="module")
def masked(tmp_path_factory):
    return tiny.make_encoder(tmp_path_factory.mktemp("masked") / "model", "ForMaskedLM")


@pytest.fixture
def terminal(monkeypatch):
    """As if a person read the answers."""
    monkeypatch.setattr("bertsmith.cli.pictures.wants_json", lambda asked: asked)
    monkeypatch.setenv("COLUMNS", "120")


def test_json_in_a_pipe(real, masked):
    done = real("inspect", "senses", "film", "the film was good", "a film and a film", "--model", masked)
    (record,) = done.records
    assert done.status == 0
    assert (record["word"], record["given"], record["layers"]) == ("film", 3, [0, 1, 2])
    assert [use["sentence"] for use in record["uses"]] == [1, 2, 2]
    assert record["cosines"][2][0][0] == 1


def test_tables_on_a_terminal(real, masked, terminal, tmp_path):
    path = tmp_path / "in.tsv"
    path.write_text("good\tthe film was good\nbad\tthe film was bad\nbad\tthe sad film\n")
    texts = tmp_path / "texts.txt"
    texts.write_text("a film in oslo. a film in rome.\n\nno match\nthe film of ann\n")
    words = ("--in", path, "--nearest", texts, "--top-k", 2, "--layer", 1, "--model", masked)
    done = real("inspect", "senses", "film", *words)
    assert done.status == 0, done.err
    for part in ("Uses of “film”: 3 in 3 sentences", "At layer 1", "other labels", "the sad film", "of 3 uses"):
        assert part in done.out
    assert done.out.count("texts.txt, byte") == 6


@pytest.mark.parametrize("name", ["s.html", "s.svg", "s.json"])
def test_a_file(real, tmp_path, masked, name):
    done = real("inspect", "senses", "film", "the film", "a film", "--out", tmp_path / name, "--model", masked)
    assert done.status == 0, done.err
    assert done.records == [{"file": str(tmp_path / name), "bytes": (tmp_path / name).stat().st_size}]


def test_an_example_that_help_shows(real):
    done = real("inspect", "senses", "--example", "apple", "--layer", "8", "--threads", 1)
    (record,) = done.records
    assert record["labels"] == ["fruit", "firm"]
    assert record["likeness"][0]["all"] > 0.95 > record["likeness"][8]["other"]


@pytest.mark.parametrize(
    ("words", "status", "message"),
    [
        (["film", "the films"], 1, "sentence 1 ('the films') does not hold 'film' as a word of its own"),
        (["film", "the film"], 1, "there is one use of 'film'"),
        (["film"], 2, "give sentences behind the WORD, or --in FILE"),
        ([], 2, "name a WORD"),
        (["film", "a film", "--in", "x"], 2, "give sentences behind the WORD, or --in FILE"),
        (["film", "--example", "bank"], 2, "--example brings its word"),
        (["--benchmark", "x", "--example", "bank"], 2, "--benchmark stands alone"),
        (["film", "a film", "--most", "3"], 2, "--most goes with --benchmark"),
        (["film", "--in", "none.txt"], 1, "none.txt cannot be read"),
        (["film", "a film", "the film", "--layer", "7"], 1, "this model has 0 to 2"),
        (["film", "a film", "the film", "--out", "x.png"], 1, "a picture is saved as"),
        (["--benchmark", "x", "--out", "x.html"], 1, "save them as .svg or .json"),
        (["--benchmark", "nowhere"], 1, "nowhere has no folder of a word"),
    ],
)
def test_mistakes(real, masked, words, status, message):
    done = real("inspect", "senses", *words, "--model", masked)
    assert done.status == status
    assert message in " ".join(done.err.split())
    assert not done.out and "Traceback" not in done.err


def test_benchmark(real, masked, terminal, tmp_path):
    place = tmp_path / "bench" / "film"
    place.mkdir(parents=True)
    (place / "classes_map.txt").write_text('{"0": "film_a", "1": "film_b"}')
    for split in ("train", "test"):
        (place / f"{split}.data.txt").write_text("1\tthe film was good\n2\tthis sad film was not fine\n1\ta film\n")
        (place / f"{split}.gold.txt").write_text("0\n1\n0\n")
    done = real("inspect", "senses", "--benchmark", tmp_path / "bench", "--model", masked)
    assert done.status == 0, done.err
    assert "most frequent sense" in done.out and "0.6667" in done.out and "1.0000" in done.out
    out = tmp_path / "scores.json"
    done = real("inspect", "senses", "--benchmark", tmp_path / "bench", "--most", 3, "--out", out, "--model", masked)
    assert done.status == 0, done.err
    assert json.loads(out.read_text())["micro"][-1] == 1


def test_lens(real, masked, tmp_path):
    text = "the [MASK] was good"
    (record,) = real("inspect", "lens", text, "--model", masked, "--top-k", 2).records
    (filled,) = real("fill", text, "--model", masked, "--top-k", 2).records
    said = [record["words"][number] for number in record["top"][-1][2]]
    assert said == [one["token_str"] for one in filled["answers"]]
    (record,) = real("inspect", "lens", text, "the [MASK] was bad", "--model", masked).records
    assert [one["text"] for one in record["variants"]] == [text, "the [MASK] was bad"]
    done = real("inspect", "lens", text, "--model", masked, "--out", tmp_path / "lens.svg")
    assert done.status == 0 and (tmp_path / "lens.svg").read_text().startswith("<svg")


def test_lens_on_a_terminal(real, masked, terminal):
    assert "rank of the answer" in real("inspect", "lens", "the [MASK] was good", "--model", masked).out
    assert "3 was" in real("inspect", "lens", "the film was good", "--model", masked).out
    out = real("inspect", "lens", "the [MASK] was good", "the [MASK] was bad", "--model", masked).out
    assert "% moved" in out and "2  the [MASK] was bad" in out


def test_lens_needs_a_head(real, demo_model):
    done = real("inspect", "lens", "the [MASK]", "--threads", 1, "--model", demo_model)
    assert done.status == 1
    assert "give a model with its pretraining head" in done.err
