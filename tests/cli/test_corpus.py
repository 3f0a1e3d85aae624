"""`bertsmith corpus` says in one sentence what is wrong, and its help has examples that run."""

import pytest
from corpus_texts import make_documents, make_tokenizer
from typer.testing import CliRunner

from bertsmith.cli.app import app
from bertsmith.errors import BertsmithError


def run(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


@pytest.fixture
def place(tmp_path, monkeypatch):
    """The folders that the examples in the help name."""
    monkeypatch.chdir(tmp_path)
    make_tokenizer(tmp_path / "my-tokenizer")
    make_tokenizer(tmp_path / "my-bert")
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts" / "a.txt").write_text("\n\n".join(make_documents(200)))
    (tmp_path / "codes.jsonl").write_text("[1, 2, 3]\n[4, 5]\n")
    return tmp_path


def test_the_examples_of_the_help_run(place):
    help = run("corpus", "build", "--help").output
    examples = [line.split() for line in help.splitlines() if line.strip().startswith("bertsmith corpus build")]
    assert len(examples) == 3
    for number in (0, 2):
        words = examples[number][1:]
        words[words.index("--out") + 1] = f"corpus-{number}"
        done = run(*words, "--processes", "1")
        assert done.exit_code == 0, (words, done.output, done.exception)
        assert run("corpus", "info", f"corpus-{number}", "--check").exit_code == 0


@pytest.mark.parametrize(
    "words, sentence",
    [
        (["nothing.txt", "--tokenizer", "my-tokenizer"], "nothing.txt is not there"),
        (["texts", "--tokenizer", "texts"], "texts holds no tokenizer"),
        (["texts", "--tokenizer", "my-tokenizer", "--held-out", "0.9"], "held_out must be between"),
        (["texts", "--codes"], "a row of codes has whole numbers"),
        (["texts", "--tokenizer", "my-tokenizer", "--exclude", "glue"], "glue is not there"),
    ],
)
def test_mistakes_are_a_sentence_and_leave_nothing(place, words, sentence):
    before = sorted(path.name for path in place.iterdir())
    done = run("corpus", "build", *words, "--out", "corpus", "--processes", "1")
    assert isinstance(done.exception, BertsmithError) and sentence in str(done.exception)
    assert sorted(path.name for path in place.iterdir()) == before
