"""Broken files: each gives one sentence that names the file, never a traceback of the engine's."""

from pathlib import Path
from typing import Any

import pytest

from bertsmith.errors import BertsmithError
from bertsmith.text import load_tokenizer

GOOD = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\n"
BYTES = {"<s>": 0, "<pad>": 1, "</s>": 2, "<unk>": 3, "a": 4, "b": 5, "ab": 6, "<mask>": 7}

CASES: dict[str, tuple[dict[str, Any], str]] = {
    "duplicate piece": ({"vocab.txt": GOOD + "a\n"}, r"vocab.txt holds 'a' twice, on lines 6 and 7"),
    "empty vocabulary": ({"vocab.txt": ""}, r"vocab.txt is empty"),
    "not UTF-8": ({"vocab.txt": b"[PAD]\n\xff\xfe\n"}, r"vocab.txt is not UTF-8 text \(byte 6\)"),
    "no unknown token": ({"vocab.txt": "[PAD]\n[CLS]\n[SEP]\n"}, r"vocab.txt has no line '\[UNK\]'"),
    "no cls token": ({"vocab.txt": "[PAD]\n[UNK]\n[SEP]\n"}, r"special token '\[CLS\]' \(cls_token\)"),
    "broken tokenizer.json": ({"tokenizer.json": '{"model": '}, r"tokenizer.json is not valid JSON"),
    "deep tokenizer.json": ({"tokenizer.json": "[" * 100_000}, r"tokenizer.json is not valid JSON"),
    "list tokenizer.json": ({"tokenizer.json": "[]"}, r"tokenizer.json must hold a JSON object"),
    "foreign tokenizer.json": ({"tokenizer.json": '{"model": {}}'}, r"tokenizer.json cannot be used as a tokenizer"),
    "empty tokenizer.json": ({"tokenizer.json": ""}, r"tokenizer.json is empty"),
    "broken settings": ({"vocab.txt": GOOD, "tokenizer_config.json": "{"}, r"tokenizer_config.json is not valid JSON"),
    "wrong flag": (
        {"vocab.txt": GOOD, "tokenizer_config.json": {"do_lower_case": "yes"}},
        r"tokenizer_config.json: do_lower_case must be true or false",
    ),
    "wrong accents": (
        {"vocab.txt": GOOD, "tokenizer_config.json": {"strip_accents": "yes"}},
        r"tokenizer_config.json: strip_accents must be true or false",
    ),
    "wrong word length": (
        {"vocab.txt": GOOD, "tokenizer_config.json": {"max_input_chars_per_word": "many"}},
        r"tokenizer_config.json: max_input_chars_per_word must be a whole number",
    ),
    "wrong token": (
        {"vocab.txt": GOOD, "tokenizer_config.json": {"mask_token": 3}},
        r"mask_token must be a string or an object",
    ),
    "added elsewhere": ({"vocab.txt": GOOD, "added_tokens.json": {"x": 99}}, r"added_tokens.json gives 'x' the id 99"),
    "added without id": ({"vocab.txt": GOOD, "added_tokens.json": {"x": "y"}}, r"the id of x must be a whole number"),
    "merges are broken": ({"vocab.json": BYTES, "merges.txt": "#version\na b\nabc\n"}, r"merges.txt, line 3"),
    "merges of others": ({"vocab.json": BYTES, "merges.txt": "a c\n"}, r"merges.txt, line 1: 'c' is not in vocab.json"),
    "merges are missing": ({"vocab.json": BYTES}, r"holds no tokenizer \(vocab.json is there"),
    "ids are text": ({"vocab.json": {"a": "b"}, "merges.txt": "a b"}, r"vocab.json: the id of 'a' must be a whole"),
    "one id twice": ({"vocab.json": {"a": 0, "b": 0}, "merges.txt": "a b"}, r"vocab.json gives one id to several"),
    "no tokenizer": ({"config.json": {}}, r"holds no tokenizer: looked for tokenizer.json, spiece.model"),
    "no SentencePiece": ({"spiece.model": b"hello, this is no model"}, r"spiece.model is not a whole SentencePiece"),
    "empty SentencePiece": ({"spiece.model": b""}, r"spiece.model is empty"),
}


@pytest.mark.parametrize("case", CASES)
def test_a_broken_file_is_named_in_one_sentence(case: str, make_folder: Any) -> None:
    files, sentence = CASES[case]
    with pytest.raises(BertsmithError, match=sentence) as caught:
        load_tokenizer(make_folder(files))
    assert "\n" not in str(caught.value)
    assert str(caught.value).endswith(".")


@pytest.mark.parametrize("name", ["tokenizer.json", "vocab.txt", "spiece.model"])
def test_a_folder_in_place_of_the_file(name: str, tmp_path: Path) -> None:
    (tmp_path / name).mkdir()
    with pytest.raises(BertsmithError, match=f"{name} cannot be read: Is a directory"):
        load_tokenizer(tmp_path)


def test_a_file_in_place_of_the_folder(tmp_path: Path) -> None:
    with pytest.raises(BertsmithError, match="is not a folder"):
        load_tokenizer(tmp_path / "nowhere")


def test_a_sentencepiece_file_cut_anywhere_loads_or_is_named(train: Any, tmp_path: Path) -> None:
    model, path = train(), tmp_path / "sentencepiece.bpe.model"
    refused = 0
    for size in range(1, len(model), max(1, len(model) // 60)):
        path.write_bytes(model[:size])
        try:
            load_tokenizer(tmp_path).encode("hello the")
        except BertsmithError as error:
            assert "sentencepiece.bpe.model" in str(error) or "special token" in str(error)
            refused += 1
    assert refused > 50
