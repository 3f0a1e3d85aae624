"""`bertsmith evaluate --benchmark blimp | masked | perplexity`: objects in a pipe, tables on a terminal, refusals."""

import json

import pytest
from evaluation.test_blimp import SETS, write_sets
from whole import tiny

import bertsmith


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("blimp")
    tiny.make_encoder(place / "model", head="ForMaskedLM", limit=24)
    tiny.make_encoder(place / "plain")
    write_sets(place / "blimp")
    (place / "text.txt").write_text("Ann lives in Oslo.\n\nThe film was good, and Bob sees it.\n")
    return place


@pytest.fixture
def words(folder):
    return ["--model", folder / "model", "--device", "cpu", "--threads", 1]


@pytest.fixture
def terminal(monkeypatch):
    monkeypatch.setattr("bertsmith.cli.unlabelled.wants_json", lambda asked: asked)
    monkeypatch.setenv("COLUMNS", "120")


def test_a_pipe_gets_what_python_gets(real, folder, words, tmp_path):
    ran = real("evaluate", "--benchmark", "blimp", folder / "blimp", *words, "--out", tmp_path / "out")
    assert ran.status == 0, ran.err
    (found,) = ran.records
    expected = bertsmith.evaluate_blimp(folder / "blimp", folder / "model")
    assert {**found, "seconds": 0} == {**expected, "seconds": 0}
    assert json.loads((tmp_path / "out" / "results.json").read_text()) == found
    assert ran.err.startswith("8 pairs in ") and ran.err.count("\n") == 1


@pytest.mark.usefixtures("terminal")
def test_a_terminal_gets_a_table(real, folder, words):
    blimp = ["evaluate", "--benchmark", "blimp", folder / "blimp", *words]
    (found,) = real(*blimp, "--json").records
    ran = real(*blimp)
    lines = ran.out.splitlines()
    assert lines[0] == f"blimp: {folder / 'model'}"
    assert lines[-1].split()[:4] == ["mean", "all", "sets", f"{100 * found['accuracy']['value']:.2f}"]
    assert any(line.startswith("phenomenon argument_structure") for line in lines)
    assert "plain pseudo-log-likelihood" in ran.err and "A subset" in ran.err and "count as wrong" in ran.err
    assert "within-word pseudo-log-likelihood" in real(*blimp, "--way", "within-word").err


def test_some_sets_and_pairs(real, folder, words):
    few = ["--sets", "structure, agreement_2", "--limit", 1]
    (found,) = real("evaluate", "--benchmark", "blimp", folder / "blimp", *words, *few).records
    assert [one["set"] for one in found["sets"]] == ["agreement_2", "structure"] and found["pairs"] == 2
    assert found["subset"] == "2 of 67 sets, 1 of 1,000 pairs each" and len(SETS) == 4


@pytest.mark.usefixtures("terminal")
def test_masked_words(real, folder, words, tmp_path):
    masked = ["evaluate", "--benchmark", "masked", folder / "text.txt", *words]
    (found,) = real(*masked, "--json", "--samples", 5, "--seed", 2, "--counts", folder / "text.txt").records
    assert found["samples"] == 5 and found["seed"] == 2 and found["words"] == 12 and found["documents"] == 2
    ran = real(*masked, "--length", 8, "--out", tmp_path / "out")
    assert ran.status == 0 and ran.out.startswith("masked: ") and "pseudo-perplexity" in ran.out
    assert "At most 8 tokens are read at once" in ran.err and (tmp_path / "out" / "results.md").exists()


@pytest.mark.usefixtures("terminal")
def test_perplexity(real, folder, words, tmp_path):
    asked = ["evaluate", "--benchmark", "perplexity", folder / "text.txt", *words]
    (found,) = real(*asked, "--json", "--samples", 5, "--seed", 2).records
    assert found["unit_samples"] == 5 and not found["is_whole"] and found["perplexity"]["token"]["value"] > 1
    ran = real(*asked, "--way", "within-word", "--out", tmp_path / "out")
    assert ran.status == 0 and ran.out.startswith("perplexity: ") and "a token" in ran.out and "a word" in ran.out
    assert "within-word pseudo-log-likelihood" in ran.err and (tmp_path / "out" / "results.json").exists()
    assert "--counts is for --benchmark masked; leave it out" in real(*asked, "--counts", folder / "text.txt").err
    assert "needs a text or a corpus" in real("evaluate", "--benchmark", "perplexity", *words).err


@pytest.mark.parametrize(
    ("given", "status", "message"),
    [
        (["blimp"], 2, "--benchmark blimp needs the folder with its .jsonl files"),
        (["masked"], 2, "--benchmark masked needs a text"),
        (["blimp", "blimp", "--seeds", "3"], 2, "--seeds has no use with --benchmark blimp"),
        (["blimp", "blimp", "--rate", "0.1"], 2, "--rate has no use with --benchmark blimp"),
        (["blimp", "blimp", "--rate", "0.1"], 2, "nothing is fine-tuned there"),
        (
            ["blimp", "blimp", "--samples", "9"],
            2,
            "--samples is for --benchmark masked or perplexity; of blimp, --limit N",
        ),
        (["masked", "text.txt", "--limit", "9"], 2, "--limit is for --benchmark blimp; of a text, --samples N is how"),
        (["perplexity", "text.txt", "--counts", "c"], 2, "--counts is for --benchmark masked; leave it out."),
        (["masked", "text.txt", "--keep-models"], 2, "--keep-models has no use with --benchmark masked"),
        (["glue", "blimp", "--limit", "9"], 2, "--limit is for --benchmark blimp; leave it out"),
        (["glue", "blimp", "--way", "plain"], 2, "--way is for --benchmark blimp, masked or perplexity; leave it out"),
        (["blimp", "gone"], 1, "gone is not a folder"),
        (["masked", "gone.txt"], 1, "gone.txt"),
        (["blimp", "blimp", "--sets", "structur"], 1, "did you mean structure"),
        (["blimp", "blimp", "--model", "plain"], 1, "no head to fill masks"),
        (["blinp", "blimp"], 2, "; did you mean blimp?"),
        (["perplexit", "text"], 2, "(there is glue, blimp, masked, perplexity); did you mean perplexity?"),
    ],
)
def test_refusals(real, folder, monkeypatch, given, status, message):
    monkeypatch.chdir(folder)
    model = [] if "--model" in given else ["--model", "model"]
    ran = real("evaluate", "--benchmark", *given, *model)
    assert ran.status == status and message in " ".join(ran.err.replace("│", " ").split()), ran.err


def test_without_a_benchmark_they_mean_nothing(real):
    ran = real("evaluate", "--data", "x.csv", "--samples", 3)
    assert ran.status == 2 and "--samples is for --benchmark masked" in " ".join(ran.err.split())


def test_results_that_are_there_stay(real, folder, words, tmp_path):
    blimp = ["evaluate", "--benchmark", "blimp", folder / "blimp", *words, "--limit", 1, "--out", tmp_path]
    assert real(*blimp).status == 0
    again = real(*blimp)
    assert again.status == 1 and "results.json is there already" in again.err
    assert real(*blimp, "--overwrite").status == 0
