"""SentencePiece files against the SentencePiece library itself: the same pieces, under the ids of the family."""

import struct
from collections.abc import Callable
from typing import Any

import pytest
import sentencepiece
from hypothesis import given, settings
from hypothesis import strategies as st

from bertsmith.text import load_tokenizer
from bertsmith.text.sentencepiece_file import read_sentencepiece

COMMON = st.sampled_from(
    [*"aeioustnr   ,.'!?", "é", "ü", "東", "京", "М", "hello", " the", "ﬁ", "½", "①", "\u3000", "\t", "👨"]
)
# Marks are left out where there is a character map: the engine maps a letter together with its marks and then loses
# them ("ﬁ" with an accent above), where SentencePiece maps the letter alone; transformers does as the engine.
NO_MARKS = st.characters(
    codec="utf-8", exclude_categories=("Mn", "Mc", "Me", "Cn", "Co", "Cs", "Cf"), max_codepoint=0xFEFF
)
ANY = st.characters(codec="utf-8", exclude_characters="▁")  # which SentencePiece takes for a space of its own


def batches(letters: Any) -> Any:
    return st.lists(st.lists(st.one_of(COMMON, letters), max_size=25).map("".join), min_size=20, max_size=20)


def joins(text: str) -> bool:
    """Whether the text has one of the letters that form one character with a neighbour (Hangul, halfwidth kana)."""
    return any("\u1100" <= letter <= "\u11ff" or "\ua960" <= letter <= "\ud7ff" or letter > "\uff60" for letter in text)


@pytest.mark.parametrize("algorithm", ["unigram", "bpe"])
@pytest.mark.parametrize("rule", ["nmt_nfkc", "identity"])
def test_ids_are_those_of_sentencepiece(
    algorithm: str, rule: str, train: Callable[..., bytes], make_folder: Callable[..., Any]
) -> None:
    model = train(model_type=algorithm, normalization_rule_name=rule)
    reference = sentencepiece.SentencePieceProcessor(model_proto=model)
    folder = make_folder({"sentencepiece.bpe.model": model, "config.json": {"model_type": "xlm-roberta"}})
    tokenizer = load_tokenizer(folder)

    @settings(max_examples=80, deadline=None, derandomize=True)
    @given(batches(NO_MARKS if rule == "nmt_nfkc" else ANY))
    def check(texts: list[str]) -> None:
        rows = tokenizer.encode_many(texts, specials=False)
        for text, row, theirs in zip(texts, rows, reference.encode(texts), strict=True):
            if rule == "nmt_nfkc" and joins(text):
                continue
            assert row.ids == [3 if id == 0 else id + 1 for id in theirs], text

    check()


@pytest.mark.parametrize("algorithm", ["unigram", "bpe"])
def test_bytes_stand_in_for_unknown_letters(algorithm: str, train: Any, make_folder: Any) -> None:
    model = train(model_type=algorithm, byte_fallback=True, vocab_size=400)
    reference = sentencepiece.SentencePieceProcessor(model_proto=model)
    files = {"sentencepiece.bpe.model": model, "config.json": {"model_type": "camembert"}}
    tokenizer = load_tokenizer(make_folder(files))
    for text in ("hello 中文 the", "😀 quick", "the\u0e01"):
        row = tokenizer.encode(text, specials=False)
        assert row.pieces == reference.encode(text, out_type=str)
        assert tokenizer.decode(row.ids) == text
        assert row.ids == [tokenizer.id(piece) for piece in row.pieces]


def test_the_file_is_read_as_the_library_reads_it(train: Any, make_folder: Any) -> None:
    data = train(model_type="bpe", user_defined_symbols=["<hello>"], add_dummy_prefix=False)
    model = read_sentencepiece(make_folder({"x.model": data}) / "x.model")
    reference = sentencepiece.SentencePieceProcessor(model_proto=data)
    ids = range(reference.get_piece_size())
    assert [piece for piece, _, _ in model.pieces] == [reference.id_to_piece(id) for id in ids]
    assert [score for _, score, _ in model.pieces] == [reference.get_score(id) for id in ids]
    assert [kind == 3 for _, _, kind in model.pieces] == [reference.is_control(id) for id in ids]
    assert not model.leading_space
    assert model.unknown_id == reference.unk_id()


def test_a_lone_mark_of_a_word_start_spans_nothing(train: Any, make_folder: Any) -> None:
    tokenizer = load_tokenizer(make_folder({"sentencepiece.bpe.model": train()}))
    text = "the 東京"
    row = tokenizer.encode(text)
    spans = [(piece, text[start:end]) for piece, (start, end) in zip(row.pieces, row.offsets, strict=True)]
    assert ("▁", "") in spans
    assert ("東", "東") in spans


@pytest.mark.parametrize("name", ["sentencepiece.bpe.model", "spiece.model"])
@pytest.mark.parametrize("lead", ["\x07", "\x01\x7f", "\x0b \x0b", "\x8f\x9f\x1f"])
def test_control_characters_at_the_start_move_no_offsets(name: str, lead: str, train: Any, make_folder: Any) -> None:
    """The character map drops them; each piece still stands where it stands without them, only further on."""
    albert = {"control_symbols": ["[CLS]", "[SEP]", "[MASK]"], "pad_id": 0, "unk_id": 1, "bos_id": -1, "eos_id": -1}
    model = train(normalization_rule_name="nmt_nfkc", **(albert if name == "spiece.model" else {}))
    tokenizer = load_tokenizer(make_folder({name: model}))
    text = "hello, the tokens 2024 of brown foxes"
    bare, whole = tokenizer.encode(text, specials=False), tokenizer.encode(lead + text, specials=False)
    assert whole.ids == bare.ids
    placed = [(start, end) for start, end in whole.offsets if start < end]
    assert placed == [(start + len(lead), end + len(lead)) for start, end in bare.offsets if start < end]
    one, other = tokenizer.encode_many([lead + text, text], [text, lead + text])
    assert one.offsets == tokenizer.encode(lead + text, text).offsets and other.ids == one.ids
    window = tokenizer.windows(lead + text, length=12, overlap=2)[0]
    assert window.offsets == tokenizer.encode(lead + text, length=12).offsets


def test_albert_options_reach_the_text(train: Any, make_folder: Any) -> None:
    model = train(control_symbols=["[CLS]", "[SEP]", "[MASK]"], pad_id=0, unk_id=1, bos_id=-1, eos_id=-1)
    plain = load_tokenizer(make_folder({"spiece.model": model}))
    kept = load_tokenizer(
        make_folder({"spiece.model": model, "tokenizer_config.json": {"do_lower_case": False, "keep_accents": True}})
    )
    assert plain.encode("THE Café ``so''").ids == plain.encode('the cafe "so"').ids
    assert kept.encode("Café").ids != kept.encode("cafe").ids


def test_pieces_of_a_number_with_a_comma_are_not_chosen(make_folder: Any) -> None:
    def piece(text: str, score: float, kind: int = 1) -> bytes:
        body = b"\x0a" + bytes([len(text.encode())]) + text.encode() + b"\x15" + struct.pack("<f", score)
        body += b"\x18" + bytes([kind])
        return b"\x0a" + bytes([len(body)]) + body

    names = [("<unk>", 2), ("[CLS]", 3), ("[SEP]", 3), ("[MASK]", 3), ("▁12", 1), (",", 1), ("▁12,", 1)]
    model = b"".join(piece(name, -1.0 * place, kind) for place, (name, kind) in enumerate(names))
    albert = load_tokenizer(make_folder({"spiece.model": model}))
    bigbird = load_tokenizer(make_folder({"spiece.model": model, "config.json": {"model_type": "big_bird"}}))
    assert albert.encode("12,", specials=False).pieces == ["▁12", ","]
    assert bigbird.encode("12,", specials=False).pieces == ["▁12,"]
