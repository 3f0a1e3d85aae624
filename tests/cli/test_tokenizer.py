"""`bertsmith tokenizer train | extend`: what it writes, what it says, and what it refuses."""

import json
import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest
from text.corpora import make_lines

from bertsmith.text import load_tokenizer


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "text.txt"
    path.write_text("\n".join(make_lines(300)), "utf-8")
    return path


@pytest.mark.parametrize("kind", ["wordpiece", "bpe", "unigram"])
def test_it_trains_and_says_so_in_one_record(real, kind, text, tmp_path):
    ran = real("tokenizer", "train", text, "--kind", kind, "--size", 320, "--out", tmp_path / "out", "--special", "[A]")
    assert (ran.status, len(ran.records)) == (0, 1)
    record = ran.records[0]
    assert (record["kind"], record["pieces"], record["folder"]) == (kind, 320, str(tmp_path / "out"))
    tokenizer = load_tokenizer(tmp_path / "out")
    assert tokenizer.id("[A]") == 5
    content = text.read_text("utf-8")
    assert record["words"] == len(content.split())
    tokens = len(tokenizer.encode(content, specials=False))
    assert record["tokens_per_word"] == pytest.approx(tokens / record["words"], abs=1e-4)


@pytest.mark.parametrize("kind", ["wordpiece", "bpe", "unigram"])
def test_tokens_of_words_over_the_limit_are_counted_or_left_out(real, kind, text, tmp_path):
    """WordPiece makes one unknown token of each; the others know nothing of a limit once they are trained."""
    text.write_text(" ".join(re.sub(r"[^\w\s]", "", text.read_text("utf-8")).split()), "utf-8")
    ran = real("tokenizer", "train", text, "--kind", kind, "--size", 320, "--limit", 4, "--out", tmp_path / "out")
    tokenizer, words = load_tokenizer(tmp_path / "out"), text.read_text("utf-8").split()
    short = words if kind == "wordpiece" else [word for word in words if len(word.encode()) < 4]  # and a space
    tokens = sum(len(tokenizer.encode(f" {word}" if kind == "bpe" else word, specials=False)) for word in short)
    assert "took no part" in ran.err
    assert ran.records[0]["tokens_per_word"] == pytest.approx(tokens / len(short), abs=1e-2)


def test_fewer_pieces_than_asked_for_are_a_note(real, text, tmp_path):
    ran = real("tokenizer", "train", text, "--size", 30000, "--out", tmp_path / "out")
    assert ran.status == 0
    assert ran.err.startswith(f"note: The text gives only {ran.records[0]['pieces']} of the 30,000 pieces asked for")


@pytest.mark.parametrize(
    ("words", "status", "sentence"),
    [
        (["--size", 20], 1, "error: --size 20 is too small"),
        (["--kind", "morphemes"], 2, "'morphemes' is not one of"),
        (["--balance", 0.7], 1, "error: --balance needs several sources"),
        (["--threads", 0], 2, "--threads"),
    ],
)
def test_mistakes(real, words, status, sentence, text, tmp_path):
    ran = real("tokenizer", "train", text, "--out", tmp_path / "out", *words)
    assert (ran.status, ran.out) == (status, "")
    assert sentence in ran.err


def test_languages(real, text, tmp_path):
    other = tmp_path / "other.txt"
    other.write_text("ovaj jezik ima malo teksta " * 5)
    ran = real("tokenizer", "train", text, other, "--balance", 0.5, "--size", 320, "--out", tmp_path / "out")
    assert ran.status == 0
    assert ran.records[0]["factors"][0] == 1 < ran.records[0]["factors"][1]


def test_help_has_an_example_for_each_kind(real):
    ran = real("tokenizer", "train", "--help")
    assert ran.status == 0
    assert "bertsmith tokenizer train texts --kind bpe --size 2000 --out my-bytes" in ran.out
    assert "train" in real("tokenizer", "--help").out


def test_a_terminal_gets_one_line(text, tmp_path):
    leader, follower = pty.openpty()
    words = ["tokenizer", "train", text, "--size", "320", "--out", tmp_path / "out"]
    command = [sys.executable, "-m", "bertsmith", *words]
    process = subprocess.Popen(command, stdout=follower, stderr=subprocess.PIPE, env={**os.environ, "COLUMNS": "200"})
    _, said = process.communicate(timeout=300)
    os.close(follower)
    shown = os.read(leader, 10_000).decode()
    os.close(leader)
    assert process.returncode == 0, said
    assert "320 pieces," in shown and "tokens a word over" in shown and shown.rstrip().endswith(" s")


@pytest.mark.parametrize("kind", ["wordpiece", "bpe", "unigram"])
def test_an_extension_tells_what_it_saves(real, kind, text, tmp_path):
    assert real("tokenizer", "train", text, "--kind", kind, "--size", 320, "--out", tmp_path / "old").status == 0
    (tmp_path / "field.txt").write_text("cardiomyopathy and hepatocytes\n" * 20)
    words = ("tokenizer", "extend", tmp_path / "old", tmp_path / "field.txt", "--add", 6, "--out", tmp_path / "new")
    ran = real(*words)
    assert ran.status == 0, ran.err
    (record,) = ran.records
    assert record["kind"] == kind and record["pieces"] == 320 + len(record["added"]) <= 326
    assert record["words"] == 60 and record["tokens_per_word"] < record["tokens_per_word_before"]
    tokenizer = load_tokenizer(tmp_path / "new")
    content = (tmp_path / "field.txt").read_text().strip()
    assert record["tokens_per_word"] == pytest.approx(len(tokenizer.encode(content, specials=False)) / 60, abs=1e-4)
    again = real(*words)
    assert again.status == 1 and "holds a tokenizer already; --overwrite replaces it" in again.err
    assert real(*words, "--overwrite", "--threads", 1).records[0]["added"] == record["added"]


def test_what_cannot_be_extended(real, text, tmp_path):
    (tmp_path / "words").mkdir()
    content = {"version": "1.0", "model": {"type": "WordLevel", "vocab": {"[UNK]": 0, "a": 1}, "unk_token": "[UNK]"}}
    (tmp_path / "words" / "tokenizer.json").write_text(json.dumps(content))
    ran = real("tokenizer", "extend", tmp_path / "words", text, "--add", 6, "--out", tmp_path / "new")
    assert ran.status == 1 and "a tokenizer of the form WordLevel cannot be extended" in ran.err
    ran = real("tokenizer", "extend", tmp_path / "nowhere", text, "--add", 6, "--out", tmp_path / "new")
    assert ran.status == 1 and "nowhere" in ran.err and not (tmp_path / "new").exists()
    assert real("tokenizer", "extend", tmp_path / "words", text, "--out", tmp_path / "new").status == 2
