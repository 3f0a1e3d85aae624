"""WordPiece against the textbook algorithm (BERT's own Python, as transformers keeps it) and against transformers."""

import unicodedata
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import AutoTokenizer
from transformers.models.bert.tokenization_bert_legacy import BasicTokenizer, WordpieceTokenizer

from bertsmith.text import Tokenizer, load_tokenizer


def is_settled(letter: str) -> bool:
    """Whether Python and the engine take the letter alike.

    Not so for those that are new or of another kind in newer Unicode versions, for those that transformers' textbook
    composes (NFC), which the original did not, and for the Greek capital sigma, whose small form depends on its place
    in a word for Python alone.
    """
    kind = unicodedata.category(letter)
    known = kind == unicodedata.ucd_3_2_0.category(letter) and kind not in ("Cn", "Co", "Cs")
    return known and unicodedata.normalize("NFC", letter) == letter and letter != "Σ"


LETTERS = st.sampled_from([letter for letter in map(chr, range(0x1FFFF)) if is_settled(letter)])
COMMON = st.sampled_from(
    [*"aeioustnrlc ,.'-", "é", "ü", "e\u0301", "中", "\u200d", "ing", "un", "the ", "😀", "\x00", "\t"]
)
TEXTS = st.lists(st.one_of(COMMON, LETTERS), max_size=25).map("".join)
BATCHES = st.lists(TEXTS, min_size=20, max_size=20)


@pytest.fixture(scope="module")
def tokenizers(family_folders: dict[str, Path]) -> dict[str, Tokenizer]:
    return {kind: load_tokenizer(family_folders[kind]) for kind in ("bert", "distilbert", "electra")}


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("bert", {"do_lower_case": True}),
        ("distilbert", {"do_lower_case": False}),
        ("electra", {"do_lower_case": True, "strip_accents": False}),
    ],
)
def test_ids_are_those_of_the_textbook(tokenizers: dict[str, Tokenizer], kind: str, options: dict[str, Any]) -> None:
    tokenizer = tokenizers[kind]
    vocabulary = {tokenizer.piece(id): id for id in range(tokenizer.size)}
    basic, pieces = BasicTokenizer(**options), WordpieceTokenizer(vocabulary, "[UNK]", max_input_chars_per_word=100)

    @settings(max_examples=100, deadline=None, derandomize=True)
    @given(BATCHES)
    def check(texts: list[str]) -> None:
        rows = tokenizer.encode_many(texts, specials=False)
        for text, row in zip(texts, rows, strict=True):
            words = basic.tokenize(text)
            assert row.ids == [vocabulary[piece] for word in words for piece in pieces.tokenize(word)], text

    check()


@settings(max_examples=150, deadline=None, derandomize=True)
@given(texts=BATCHES)
def test_ids_and_offsets_are_those_of_transformers(
    texts: list[str], tokenizers: dict[str, Tokenizer], reference: Any
) -> None:
    theirs = reference(texts, return_offsets_mapping=True)
    for number, row in enumerate(tokenizers["bert"].encode_many(texts)):
        assert row.ids == theirs["input_ids"][number]
        assert row.offsets == theirs["offset_mapping"][number]
        assert row.words == theirs.word_ids(number)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(texts=BATCHES, pairs=BATCHES)
def test_those_of_mpnet_too(texts: list[str], pairs: list[str], family_folders: dict[str, Path], mpnets: Any) -> None:
    """With `<s> A </s></s> B </s>`, and a mask that takes the space before it."""
    ours, theirs = mpnets
    texts = [*texts[:10], *(f"{text} <mask> {text}" for text in texts[10:])]
    for given_ in ((texts,), (texts, pairs)):
        found = theirs(*given_, return_offsets_mapping=True)
        for number, row in enumerate(ours.encode_many(*given_)):
            assert row.ids == found["input_ids"][number]
            spans = [(a, b) for a, b in found["offset_mapping"][number]]
            for (start, end), (s, e), id in zip(row.offsets, spans, row.ids, strict=True):
                assert (start, end) == (s, e) or id == ours.mask_id  # theirs has the space with it


@pytest.fixture(scope="module")
def mpnets(family_folders: dict[str, Path]) -> Any:
    return load_tokenizer(family_folders["mpnet"]), AutoTokenizer.from_pretrained(family_folders["mpnet"])


@pytest.fixture(scope="module")
def reference(family_folders: dict[str, Path]) -> Any:
    return AutoTokenizer.from_pretrained(family_folders["bert"])


def test_a_word_longer_than_a_hundred_characters_is_unknown(tokenizers: dict[str, Tokenizer]) -> None:
    tokenizer = tokenizers["bert"]
    assert tokenizer.encode("a" * 101, specials=False).pieces == ["[UNK]"]
    assert len(tokenizer.encode("a" * 100, specials=False)) > 1


def test_words_that_are_never_split_keep_their_case(make_folder: Any, minilm: Path) -> None:
    lines = (minilm / "vocab.txt").read_text("utf-8") + "BERT-x\n"
    folder = make_folder({"vocab.txt": lines, "tokenizer_config.json": {"never_split": ["BERT-x", "not-there"]}})
    tokenizer = load_tokenizer(folder)
    assert tokenizer.encode("a BERT-x b", specials=False).pieces == ["a", "BERT-x", "b"]


@pytest.mark.parametrize(
    ("name", "lower"), [("uncased_L-2_H-128_A-2", True), ("cased_L-12_H-768_A-12", False), ("chinese_L-12", True)]
)
def test_the_original_layout_tells_case_by_its_name(tmp_path: Path, minilm: Path, name: str, lower: bool) -> None:
    folder = tmp_path / name
    folder.mkdir()
    (folder / "vocab.txt").write_bytes((minilm / "vocab.txt").read_bytes())
    (folder / "bert_config.json").write_text('{"hidden_size": 128}')
    row = load_tokenizer(folder).encode("Hello")
    assert row.pieces == ["[CLS]", "hello" if lower else "[UNK]", "[SEP]"]


@pytest.mark.parametrize(
    "said",
    [
        {"do_lower_case": False},
        {"do_lower_case": True, "strip_accents": False},
        {"strip_accents": None},
        {"tokenize_chinese_chars": False},
        {"tokenizer_class": "DistilBertTokenizerFast", "do_lower_case": False},
        {"tokenizer_class": "PreTrainedTokenizerFast", "do_lower_case": False},  # which takes its file as it is
    ],
    ids=str,
)
def test_what_the_settings_say_of_cleaning_goes_over_tokenizer_json(
    said: dict[str, Any], make_folder: Any, minilm: Path
) -> None:
    files = {"tokenizer.json": (minilm / "tokenizer.json").read_bytes(), "config.json": {"model_type": "bert"}}
    folder = make_folder({**files, "tokenizer_config.json": {"tokenizer_class": "BertTokenizer", **said}})
    texts = ["Hello the CAFE café", "中文 the a中b"]
    assert [row.ids for row in load_tokenizer(folder).encode_many(texts)] == (
        AutoTokenizer.from_pretrained(folder)(texts)["input_ids"]
    )


@pytest.mark.parametrize("told", [True, False])
def test_segments_are_told_where_the_settings_name_them(told: bool, make_folder: Any, minilm: Path) -> None:
    inputs = ["input_ids", *(["token_type_ids"] if told else []), "attention_mask"]
    folder = make_folder({
        "tokenizer.json": (minilm / "tokenizer.json").read_bytes(), "config.json": {"model_type": "bert"},
        "tokenizer_config.json": {"tokenizer_class": "BertTokenizer", "model_input_names": inputs},
    })  # fmt: skip
    theirs = AutoTokenizer.from_pretrained(folder)("a cat", "the dog")
    tokenizer = load_tokenizer(folder)
    assert tokenizer.encode("a cat", "the dog").segments == theirs.get("token_type_ids", [0] * 7)
    tokenizer.save(folder)
    assert load_tokenizer(folder).encode("a cat", "the dog").segments == tokenizer.encode("a cat", "the dog").segments


def test_offsets_follow_accents_joiners_and_controls(tokenizers: dict[str, Tokenizer]) -> None:
    text = "Ａ\x00héllo re\u0301sume\u0301 a\u200db İstanbul 中文👨‍👩‍👧"
    row = tokenizers["bert"].encode(text)
    spans = {piece: text[start:end] for piece, (start, end) in zip(row.pieces, row.offsets, strict=True)}
    assert spans["istanbul"] == "İstanbul"
    assert spans["ab"] == "a\u200db"
    assert spans["中"] == "中"
    assert spans["resume"] == "re\u0301sume"  # a mark that was stripped belongs to no piece at the end of a word
