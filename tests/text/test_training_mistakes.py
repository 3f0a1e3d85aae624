"""What cannot be trained on is named in one sentence, and nothing that was there is lost."""

from pathlib import Path
from typing import Any

import pytest
import transformers
from text.corpora import make_lines

from bertsmith import BertsmithError, extend_tokenizer, train_tokenizer


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "text.txt"
    path.write_text("\n".join(make_lines(100)), "utf-8")
    return path


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"kind": "morphemes"}, "There is no tokenizer of the kind 'morphemes'; choose wordpiece, bpe, unigram."),
        ({"size": 0}, "--size 0 must be a whole number above zero."),
        ({"size": 20}, r"--size 20 is too small: 5 special tokens and the \d+ most frequent characters \(99.*\)"),
        ({"size": 200, "kind": "bpe"}, "--size 200 is too small: 5 special tokens and the 256 bytes already take 261"),
        ({"size": 20, "kind": "unigram"}, "--size 20 is too small: 5 special tokens and the "),
        ({"alphabet": 1000, "kind": "bpe"}, "--alphabet is for wordpiece and unigram"),
        ({"join_punctuation": True}, "letters and punctuation together are for unigram, not for wordpiece."),
        ({"special": ["[MASK]"]}, r"--special '\[MASK\]' is there already"),
        ({"special": ["a b"]}, "--special 'a b' must be a word without spaces."),
        ({"special": ["x"]}, "--special 'x' is a sign that words are spelled with; name a longer one."),
        (
            {"special": ["|"], "kind": "bpe"},
            r"--special '\|' is a sign that words are spelled with; name a longer one.",
        ),
        ({"special": [""]}, "--special '' must be a word without spaces."),
        ({"balance": 0.7}, "--balance needs several sources"),
        ({"limit": 0}, "--limit 0 must be a whole number above zero."),
        ({"limit": "long"}, "limit is 'long'; it must be a whole number."),
        ({"size": "big"}, "size is 'big'; it must be a whole number."),
        ({"size": None}, "size is None; it must be a whole number."),
        ({"size": 300.5}, "size is 300.5; it must be a whole number."),
        ({"threads": 0}, "--threads 0 must be a whole number above zero."),
        ({"special": [3]}, r"special is \[3\]; it must be a list of names."),
        ({"balance": "much"}, "balance is 'much'; it must be a number."),
        ({"field": "body"}, "field is for JSON and Parquet, and the sources are plain text; leave it out."),
        ({"min_count": 0}, "--min-count 0 must be"),
    ],
)
def test_settings(options: dict[str, Any], sentence: str, text: Path, tmp_path: Path) -> None:
    with pytest.raises(BertsmithError, match=sentence):
        train_tokenizer(text, tmp_path / "out", **options)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("sources", ["", [""], []])
def test_sources_that_name_nothing(sources: Any, tmp_path: Path) -> None:
    with pytest.raises(BertsmithError, match=r"(is no source|no source was given); name files, folders or globs"):
        train_tokenizer(sources, tmp_path / "out")


def test_one_special_token_is_a_word_and_home_is_understood(
    text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    trained = train_tokenizer(text, "~/out", size=300, special="[OWN]")
    assert trained.folder == tmp_path / "out" and (tmp_path / "out/tokenizer.json").exists()
    found = transformers.PreTrainedTokenizerFast(tokenizer_file=str(tmp_path / "out/tokenizer.json"))
    assert found.tokenize("a [OWN] b")[1] == "[OWN]"
    with pytest.raises(BertsmithError, match=r"^out is None; it must be a string or a path"):
        train_tokenizer(text, None)  # type: ignore[arg-type]
    with pytest.raises(BertsmithError, match="--threads 0 must be a whole number above zero"):
        extend_tokenizer(tmp_path / "out", text, "~/more", add=5, threads=0)


def test_balance_out_of_bounds(text: Path, tmp_path: Path) -> None:
    with pytest.raises(BertsmithError, match=r"--balance 2 must lie between 0 .* and 1"):
        train_tokenizer([text, text], tmp_path / "out", balance=2)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "there are no words to train on"),
        (b" \n\n \t", "there are no words to train on"),
        (b"\x7fELF\0\0\0", "is a program, not text"),
        (b"some text \0 and a zero byte", "is a binary file, not text"),
        ("Füchse\n".encode() * 9 + "Füchse".encode("latin-1"), "is not UTF-8"),
    ],
)
def test_files(
    content: bytes, sentence: str, threads: int, text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bertsmith.text.training.parallel.ALONE", 0)
    (tmp_path / "bad.txt").write_bytes(content)
    sources = [tmp_path / "bad.txt", tmp_path / "bad.txt"] if threads == 1 else [tmp_path / "bad.txt", text]
    if threads == 2 and not content.strip():
        return  # there are words in the other one
    with pytest.raises(BertsmithError, match=sentence):
        train_tokenizer(sources, tmp_path / "out", threads=threads)
    assert not (tmp_path / "out").exists()


def test_one_word_without_end(tmp_path: Path) -> None:
    (tmp_path / "line.txt").write_text("a" * 3_000_000)
    with pytest.raises(BertsmithError, match=r"line\.txt: all 3 words are over the --limit of characters"):
        train_tokenizer(tmp_path / "line.txt", tmp_path / "out")


def test_nothing_there(tmp_path: Path) -> None:
    with pytest.raises(BertsmithError, match="is not there"):
        train_tokenizer(tmp_path / "missing.txt", tmp_path / "out")


def test_a_folder_with_other_things_is_left_alone(text: Path, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "letter.doc").write_text("dear")
    for overwrite in (False, True):
        with pytest.raises(BertsmithError, match="holds other files, but no tokenizer"):
            train_tokenizer(text, tmp_path / "out", overwrite=overwrite)
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["letter.doc"]
    with pytest.raises(BertsmithError, match="is a file; name a folder"):
        train_tokenizer(text, text)


def test_a_tokenizer_is_replaced_only_where_asked(text: Path, tmp_path: Path) -> None:
    train_tokenizer(text, tmp_path / "out", kind="bpe", size=300)
    with pytest.raises(BertsmithError, match="holds a tokenizer already; --overwrite replaces it"):
        train_tokenizer(text, tmp_path / "out", size=300)
    assert (tmp_path / "out" / "merges.txt").exists()
    train_tokenizer(text, tmp_path / "out", size=300, overwrite=True)
    assert not (tmp_path / "out" / "merges.txt").exists()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "text.txt"]


@pytest.mark.parametrize("kind", ["wordpiece", "bpe", "unigram"])
def test_more_pieces_than_the_text_has(kind: str, tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("low lower newest widest " * 3)
    trained = train_tokenizer(tmp_path / "text.txt", tmp_path / "out", kind=kind, size=5000)
    assert trained.pieces < 400 and trained.tokenizer.size == trained.pieces
    assert trained.notes[0].startswith(f"The text gives only {trained.pieces} of the 5,000 pieces asked for")


@pytest.mark.parametrize("kind", ["wordpiece", "unigram"])
def test_an_alphabet_that_is_the_cause_is_named(kind: str, tmp_path: Path) -> None:
    """With all characters the same text has the pieces, so more text is no help."""
    (tmp_path / "text.txt").write_text("low lower newest widest " * 3)
    size = train_tokenizer(tmp_path / "text.txt", tmp_path / "all", kind=kind, size=5000).pieces
    trained = train_tokenizer(tmp_path / "text.txt", tmp_path / "out", kind=kind, size=size, alphabet=7)
    assert trained.pieces < size
    assert "can be spelled with the --alphabet" in trained.notes[0] and "more text" not in trained.notes[0]


def test_one_giant_line(tmp_path: Path) -> None:
    (tmp_path / "line.txt").write_text(" ".join(make_lines(20_000)), "utf-8")
    trained = train_tokenizer(tmp_path / "line.txt", tmp_path / "out", kind="bpe", size=400)
    assert trained.words == sum(len(line.split()) for line in make_lines(20_000))


@pytest.mark.parametrize("kind", ["wordpiece", "unigram"])
def test_an_alphabet_that_spells_nothing(kind: str, tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("ab cd ef gh", "utf-8")
    with pytest.raises(BertsmithError, match="No word of the text can be spelled with its 1 most frequent characters"):
        train_tokenizer(tmp_path / "text.txt", tmp_path / "out", kind=kind, size=300, alphabet=1)


def test_what_an_earlier_run_wrote_is_no_text(text: Path, tmp_path: Path) -> None:
    for overwrite in (False, True):
        train_tokenizer(tmp_path, tmp_path / "out", size=300, overwrite=overwrite)
        pieces = (tmp_path / "out" / "vocab.txt").read_bytes()
    train_tokenizer(text, tmp_path / "other", size=300)
    assert (tmp_path / "other" / "vocab.txt").read_bytes() == pieces


def test_a_helper_that_dies_is_named(text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bertsmith.text.training.parallel.ALONE", 0)
    monkeypatch.setattr("bertsmith.text.training.parallel._CODE", "raise SystemExit(3)")
    (tmp_path / "more.txt").write_text("more text")
    with pytest.raises(BertsmithError, match="A process that counted words ended with status 3"):
        train_tokenizer([text, tmp_path / "more.txt"], tmp_path / "out", threads=2)
