"""DeBERTa's spm.model against the SentencePiece library, and its tokenizer.json, old and new, against transformers."""

import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import sentencepiece
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import AutoTokenizer, DebertaV2Tokenizer, PreTrainedTokenizerFast
from transformers.convert_slow_tokenizer import DebertaV2Converter

from bertsmith.text import load_tokenizer

ROLES = {"pad_id": 0, "pad_piece": "[PAD]", "bos_id": 1, "bos_piece": "[CLS]", "eos_id": 2, "eos_piece": "[SEP]",
         "unk_id": 3, "unk_piece": "[UNK]"}  # fmt: skip
COMMON = st.sampled_from(
    [*"aeioustnr   ,.'!?", "é", "ü", "東", "京", "М", "hello", " the", "ﬁ", "½", "\u3000", "\t", "👨"]
)
# As in test_sentencepiece.py: what the engine maps together with its neighbours it maps otherwise than the library.
NO_MARKS = st.characters(
    codec="utf-8", exclude_categories=("Mn", "Mc", "Me", "Cn", "Co", "Cs", "Cf"), max_codepoint=0x10FF
)
ANY = st.characters(codec="utf-8", exclude_characters="▁")
CONTROLS = {*range(1, 9), 11, *range(14, 32), 0x7F, 0x8F, 0x9F}  # SentencePiece's own map makes nothing of them


def batches(letters: Any, common: Any = COMMON) -> Any:
    return st.lists(st.lists(st.one_of(common, letters), max_size=25).map("".join), min_size=20, max_size=20)


def make(train: Callable[..., bytes], make_folder: Callable[..., Path], rule: str, **options: Any) -> tuple[Path, Any]:
    """A folder as Microsoft released them, and what the library makes of its file."""
    model = train(normalization_rule_name=rule, **ROLES)
    told = {"do_lower_case": False, "vocab_type": "spm", **options}
    files = {"spm.model": model, "config.json": {"model_type": "deberta-v2"}, "tokenizer_config.json": told}
    return make_folder(files), sentencepiece.SentencePieceProcessor(model_proto=model)


@pytest.mark.parametrize(("rule", "letters"), [("nmt_nfkc", NO_MARKS), ("identity", ANY)])
def test_ids_are_those_of_sentencepiece(rule: str, letters: Any, train: Any, make_folder: Any) -> None:
    folder, reference = make(train, make_folder, rule)
    tokenizer = load_tokenizer(folder)

    @settings(max_examples=80, deadline=None, derandomize=True)
    @given(batches(letters))
    def check(texts: list[str]) -> None:
        rows = tokenizer.encode_many(texts, specials=False)
        for text, row, theirs in zip(texts, rows, reference.encode(texts), strict=True):
            assert row.ids == theirs, text

    check()


def test_the_mask_stands_behind_the_file_and_rows_are_those_of_transformers(train: Any, make_folder: Any) -> None:
    folder, library = make(train, make_folder, "identity")
    ours, theirs = load_tokenizer(folder), AutoTokenizer.from_pretrained(folder)
    assert isinstance(theirs, DebertaV2Tokenizer)
    assert ours.mask_id == theirs.mask_token_id == library.get_piece_size() and ours.size == len(theirs)
    assert ours.specials == {role: getattr(theirs, f"{role}_token") for role in ours.specials}
    words = ["hello", " the", " quick", " fox", ",", "é", "東京", " [MASK]", "[MASK] ", "[SEP]", " 1999"]

    @settings(max_examples=60, deadline=None, derandomize=True)
    @given(batches(st.sampled_from(words), st.sampled_from(words)))
    def check(texts: list[str]) -> None:
        for given_ in ((texts,), (texts, texts[::-1])):
            found = theirs(*given_)
            for number, row in enumerate(ours.encode_many(*given_)):
                assert row.ids == found["input_ids"][number]
                assert row.segments == found["token_type_ids"][number]

    check()


@pytest.mark.parametrize("options", [{}, {"do_lower_case": True}, {"split_by_punct": True}], ids=str)
@pytest.mark.parametrize("form", ["old", "new"])
def test_tokenizer_json_is_read_as_transformers_reads_it(
    form: str, options: dict[str, bool], train: Any, make_folder: Any
) -> None:
    """As transformers 4 wrote it beside fine-tuned models, and as 5 writes it: ids and spans."""
    folder, _ = make(train, make_folder, "nmt_nfkc", **options)
    theirs = convert(folder, options) if form == "old" else AutoTokenizer.from_pretrained(folder)
    place = make_folder({"config.json": {"model_type": "deberta-v2"}})
    theirs.save_pretrained(place)
    (place / "spm.model").write_bytes((folder / "spm.model").read_bytes())  # tokenizer.json goes before it
    ours = load_tokenizer(place)

    @settings(max_examples=60, deadline=None, derandomize=True)
    @given(batches(st.one_of(ANY, st.just(" [MASK] "))))
    def check(texts: list[str]) -> None:
        found = theirs(texts, return_offsets_mapping=True)
        for number, (text, row) in enumerate(zip(texts, ours.encode_many(texts), strict=True)):
            assert row.ids == found["input_ids"][number]
            for piece, (start, end), (s, e) in zip(
                row.pieces, row.offsets, found["offset_mapping"][number], strict=True
            ):
                if text[:1] and ord(text[0]) in CONTROLS:  # dropped, and theirs counts from the wrong place behind them
                    continue
                # Ours leave spaces out, and a lone mark of a word's start spans nothing.
                assert text[start:end].strip() == text[s:e].strip() or (piece == "▁" and start == end)

    check()


def convert(folder: Path, options: dict[str, bool]) -> PreTrainedTokenizerFast:
    """What transformers 4 made of Microsoft's file."""
    ids = {"[PAD]": 0, "[CLS]": 1, "[SEP]": 2, "[UNK]": 3}
    told = {"do_lower_case": False, "split_by_punct": False, **options}
    slow = types.SimpleNamespace(vocab_file=str(folder / "spm.model"), convert_tokens_to_ids=ids.get, legacy=False,
                                 add_prefix_space=True, **told)  # fmt: skip
    names = {f"{role}_token": f"[{role.upper()}]" for role in ("pad", "unk", "cls", "sep", "mask")}
    return PreTrainedTokenizerFast(tokenizer_object=DebertaV2Converter(slow).converted(), **names)


def test_case_goes_where_the_settings_say_so(train: Any, make_folder: Any) -> None:
    lower = load_tokenizer(make(train, make_folder, "nmt_nfkc", do_lower_case=True)[0])
    kept = load_tokenizer(make(train, make_folder, "nmt_nfkc")[0])
    assert lower.encode("THE Fox").ids == kept.encode("the fox").ids != kept.encode("THE Fox").ids


def test_words_and_signs_are_apart_where_the_settings_say_so(train: Any, make_folder: Any) -> None:
    folder, reference = make(train, make_folder, "nmt_nfkc", split_by_punct=True)
    row = load_tokenizer(folder).encode("hello, the fox.", specials=False)
    assert row.ids == [id for part in ("hello", ",", "the fox", ".") for id in reference.encode(part)]
