"""What goes wrong on the way from raw text to an encoder: a sentence, a status, and nothing lost."""

import json
import re
import resource
import shutil

import pytest
from pretraining_made import ROUND, make_corpus, pretrain

SMALL = ("--depth", 2, "--width", 32, "--lengths", 32, "--tokens", 256, "--device", "cpu", "--threads", 1)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("place")
    corpus = make_corpus(folder / "made")
    make_corpus(folder / "bytes", kind="bytes", documents=20)
    pretrain(corpus, folder / "model", "bert", max_steps=1)
    return folder


@pytest.fixture
def full_disk():
    """From `begin` on no file may grow beyond so many bytes."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    yield lambda size: resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


def as_sentence(ran):
    assert ran.status == 1 and ran.out == "" and "Traceback" not in ran.err
    return ran.err.splitlines()[-1]


BROKEN = {
    "empty": (b"", "no text|no words|holds no word"),
    "blank": (b" \n\n\t\n", "no text|no words|holds no word"),
    "binary": (b"\x89PNG\r\n\x1a\n\0\0\0" * 50, "is a picture, not text"),
    "mixed": ("Köln und Wörter\n".encode() * 30 + "Köln\n".encode("latin-1"), "line 31: byte .* is not UTF-8"),
}


@pytest.mark.parametrize("name", BROKEN)
@pytest.mark.parametrize("verb", ["corpus", "train", "extend", "perplexity", "masked"])
def test_text_that_is_none(real, place, tmp_path, name, verb):
    content, sentence = BROKEN[name]
    file, out = tmp_path / "text.txt", tmp_path / "out"
    file.write_bytes(content)
    words = {
        "corpus": ("corpus", "build", file, "--tokenizer", place / "made" / "tokenizer", "--processes", 1),
        "train": ("tokenizer", "train", file, "--size", 300),
        "extend": ("tokenizer", "extend", place / "model", file, "--add", 9),
        "perplexity": ("evaluate", "--benchmark", "perplexity", file, "--model", place / "model"),
        "masked": ("evaluate", "--benchmark", "masked", file, "--model", place / "model"),
    }[verb]
    assert re.search(sentence, as_sentence(real(*words, "--out", out)))
    assert not out.exists() or not list(out.iterdir())


def test_one_giant_line(real, place, tmp_path):
    """Millions of characters without an end of line are a document like others; a word without end is unknown."""
    (tmp_path / "line.txt").write_text(" ".join(ROUND) * 20_000 + " " + "x" * 100_000)
    tokenizer = ("--tokenizer", place / "made" / "tokenizer", "--no-filters", "--processes", 1, "--held-out", 0)
    ran = real("corpus", "build", tmp_path / "line.txt", *tokenizer, "--out", tmp_path / "corpus")
    assert ran.status == 0 and ran.records[0]["splits"]["train"]["documents"] == 1
    assert ran.records[0]["splits"]["train"]["tokens"] > 200_000
    ran = real("pretrain", "--corpus", tmp_path / "corpus", "--out", tmp_path / "m", *SMALL, "--max-steps", 2)
    assert ran.status == 0, ran.err
    ran = real("tokenizer", "extend", place / "model", tmp_path / "line.txt", "--add", 5, "--out", tmp_path / "t")
    assert ran.status in (0, 1) and "Traceback" not in ran.err


def test_more_pieces_than_the_text_has(real, place, tmp_path):
    text = place / "made" / "texts.txt"
    ran = real("tokenizer", "train", text, "--size", 30_000, "--out", tmp_path / "t")
    assert ran.status == 0 and "The text gives only" in ran.err
    (tmp_path / "few.txt").write_text("a zygomorphic zygote\n" * 3)
    ran = real("tokenizer", "extend", place / "model", tmp_path / "few.txt", "--add", 500, "--out", tmp_path / "e")
    assert ran.status == 0 and "of the 500 pieces asked for" in ran.err
    assert set(ran.records[0]["added"]) == {"zygomorphic", "zygote"}


def test_shards_of_another_tokenizer(real, place, tmp_path):
    words = ("pretrain", "--corpus", place / "bytes" / "corpus", "--out", tmp_path / "m", "--device", "cpu")
    told = as_sentence(real(*words, "--model", place / "model"))
    assert "was made with another tokenizer than that of" in told and "bertsmith tokenizer extend" in told
    told = as_sentence(real(*words, *SMALL[:-4], "--asks", "distilled", "--teacher", place / "model"))
    assert "has another tokenizer than" in told and not (tmp_path / "m").exists()


def test_a_checkpoint_of_another_shape(real, place, tmp_path):
    shutil.copytree(place / "model", tmp_path / "model")
    path = tmp_path / "model" / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "hidden_size": 64}))
    words = ("pretrain", "--corpus", place / "made" / "corpus", "--out", tmp_path / "m", "--device", "cpu")
    told = as_sentence(real(*words, "--model", tmp_path / "model", "--lengths", 32, "--tokens", 256))
    assert "has the shape" in told and "config.json asks for" in told and not (tmp_path / "m").exists()


@pytest.mark.parametrize("verb", ["extend", "train", "corpus"])
def test_a_full_disk_leaves_what_was_there(real, place, tmp_path, full_disk, verb):
    text, out = tmp_path / "text.txt", tmp_path / "out"
    text.write_text((place / "made" / "texts.txt").read_text() + "a zygomorphic zygote\n" * 9)
    words = {
        "extend": ("tokenizer", "extend", place / "model", text, "--add", 9),
        "train": ("tokenizer", "train", text, "--size", 90),
        "corpus": ("corpus", "build", text, "--tokenizer", place / "made" / "tokenizer", "--processes", 1,
                   "--no-filters", "--no-near-duplicates"),
    }[verb]  # fmt: skip
    words = (*words, "--out", out)
    assert real(*words).status == 0
    before = {path: path.read_bytes() for path in sorted(out.rglob("*")) if path.is_file()}
    text.write_text(text.read_text() + "one more line\n")
    full_disk(1000)
    told = as_sentence(real(*words, "--overwrite"))
    full_disk(resource.RLIM_INFINITY)
    assert "cannot be written" in told or "is full" in told
    assert {path: path.read_bytes() for path in sorted(out.rglob("*")) if path.is_file()} == before
    assert real(*words, "--overwrite").status == 0
