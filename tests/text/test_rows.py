"""Cutting, windows, batches, offsets and threads: what holds for rows of any tokenizer."""

from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bertsmith.errors import BertsmithError
from bertsmith.text import Tokenizer, load_tokenizer

KINDS = ["bert", "distilbert", "roberta", "gpt2", "xlm-roberta", "camembert", "albert", "xlnet"]
ODD = ["é", "e\u0301", "ﬁ", "½", "㌀", "中", "👨‍👩‍👧", "\u200b", "\u200d", "\x00", "\x7f", "\n", "ǆ", "Å", "한", "ﾊﾟ"]
COMMON = st.sampled_from([*"abc  ,.", "the ", *ODD])
TEXTS = st.lists(st.one_of(COMMON, st.characters()), max_size=25).map("".join)  # lone surrogates too
QUICK = settings(max_examples=100, deadline=None, derandomize=True)


@pytest.fixture(scope="module")
def tokenizers(family_folders: dict[str, Path]) -> dict[str, Tokenizer]:
    return {kind: load_tokenizer(family_folders[kind]) for kind in KINDS}


@pytest.fixture(scope="module")
def bert(tokenizers: dict[str, Tokenizer]) -> Tokenizer:
    return tokenizers["bert"]


@pytest.mark.parametrize("kind", KINDS)
def test_offsets_point_into_the_text(kind: str, tokenizers: dict[str, Tokenizer]) -> None:
    tokenizer = tokenizers[kind]

    @QUICK
    @given(st.lists(TEXTS, min_size=10, max_size=10))
    def check(texts: list[str]) -> None:
        for text, row in zip(texts, tokenizer.encode_many(texts), strict=True):
            last = 0
            for (start, end), sequence in zip(row.offsets, row.sequences, strict=True):
                if sequence is None:
                    assert (start, end) == (0, 0)
                    continue
                assert last <= start <= end <= len(text)
                last = start
                if end - start > 1:
                    assert text[start:end] == text[start:end].strip(" ")

    check()


@QUICK
@given(st.lists(TEXTS, max_size=12), st.integers(5, 20), st.sampled_from(["head", "tail", "head+tail"]))
def test_a_batch_gives_what_each_text_gives_alone(
    tokenizers: dict[str, Tokenizer], texts: list[str], length: int, policy: str
) -> None:
    for kind in ("bert", "roberta", "xlm-roberta"):
        tokenizer = tokenizers[kind]
        rows = tokenizer.encode_many(texts, texts[::-1], length=length, truncate=policy)
        for row, text, pair in zip(rows, texts, texts[::-1], strict=True):
            alone = tokenizer.encode(text, pair, length=length, truncate=policy)
            assert (row.ids, row.segments, row.dropped) == (alone.ids, alone.segments, alone.dropped)
            assert (row.offsets, row.pieces, row.words) == (alone.offsets, alone.pieces, alone.words)
            assert len(row) == len(row.segments) == len(row.offsets) == len(row.words) == len(row.sequences) <= length


@QUICK
@given(count=st.integers(0, 40), length=st.integers(2, 30))
def test_each_policy_keeps_its_part(count: int, length: int, bert: Tokenizer) -> None:
    text = " ".join("abcdefghijklmnopqrstuvwxyz"[place % 26] for place in range(count))
    whole = bert.encode(text, specials=False).ids
    room = min(length - 2, count)
    expected = {
        "head": whole[:room],
        "tail": whole[count - room :],
        "head+tail": whole if count == room else whole[: room - room // 2] + whole[count - room // 2 :],
    }
    for policy, ids in expected.items():
        row = bert.encode(text, length=length, truncate=policy)
        assert row.ids == [bert.cls_id, *ids, bert.sep_id]
        assert row.dropped == count - room


def test_an_error_names_the_length_the_limit_and_the_choices(bert: Tokenizer) -> None:
    with pytest.raises(BertsmithError, match=r'has 7 ids but at most length=6 fit.*"head", "tail" or "head\+tail"'):
        bert.encode("a b c d e", length=6, truncate="error")
    assert bert.encode("a b c d e", length=7, truncate="error").dropped == 0
    with pytest.raises(BertsmithError, match="truncate='middle' is not a choice"):
        bert.encode("a", truncate="middle")
    with pytest.raises(BertsmithError, match="length=1 is too short"):
        bert.encode("a", length=1)
    with pytest.raises(BertsmithError, match="2 texts but 1 pairs"):
        bert.encode_many(["a", "b"], ["c"])
    with pytest.raises(BertsmithError, match="not one text"):
        bert.encode_many("text")
    with pytest.raises(BertsmithError, match="must be a string, not int"):
        bert.encode(3)  # type: ignore[arg-type]


@QUICK
@given(count=st.integers(0, 60), length=st.integers(6, 30), overlap=st.integers(0, 25), paired=st.booleans())
def test_windows_hold_every_piece_and_share_what_was_asked(
    count: int, length: int, overlap: int, paired: bool, bert: Tokenizer
) -> None:
    text = " ".join("abcdefghijklmnopqrstuvwxyz"[place % 26] for place in range(count))
    given_texts = ("why", text) if paired else (text, None)
    room = length - (4 if paired else 2)
    if overlap >= room:
        with pytest.raises(BertsmithError, match=f"overlap={overlap} does not fit"):
            bert.windows(*given_texts, length=length, overlap=overlap)
        return
    rows = bert.windows(*given_texts, length=length, overlap=overlap)
    slid = 1 if paired else 0
    parts = [[span for span, s in zip(row.offsets, row.sequences, strict=True) if s == slid] for row in rows]
    whole = bert.encode(text, specials=False).offsets
    joined = parts[0] + [span for part in parts[1:] for span in part[overlap:]]
    assert joined == whole
    assert all(before[len(before) - overlap :] == after[:overlap] for before, after in pairwise(parts))
    assert all(len(row) == length for row in rows[:-1])
    assert all(len(part) > overlap for part in parts[1:])
    assert all(row.dropped == 0 and len(row) <= length for row in rows)
    if paired:
        assert all(row.ids[:3] == [bert.cls_id, bert.id("why"), bert.sep_id] for row in rows)


def test_windows_refuse_a_first_text_that_fills_them(bert: Tokenizer) -> None:
    with pytest.raises(BertsmithError, match="length=6 leaves no room"):
        bert.windows("a b c d", "text", length=6, overlap=0)


def test_a_lone_surrogate_is_replaced_and_offsets_still_hold(tokenizers: dict[str, Tokenizer]) -> None:
    text = "hello \ud800 the"
    for tokenizer in tokenizers.values():
        row = tokenizer.encode(text, specials=False)
        assert row.ids == tokenizer.encode("hello \ufffd the", specials=False).ids
        assert row.offsets[-1][1] == len(text)


def test_threads_share_one_tokenizer(bert: Tokenizer) -> None:
    texts = [f"number {number} of the texts " * (number % 40 + 1) for number in range(320)]
    lengths = [5 + number % 50 for number in range(320)]
    expected = [bert.encode(text, length=length).ids for text, length in zip(texts, lengths, strict=True)]
    with ThreadPoolExecutor(16) as pool:
        got = list(pool.map(lambda pair: bert.encode(pair[0], length=pair[1]).ids, zip(texts, lengths, strict=True)))
    assert got == expected


def test_ids_pieces_and_text_go_both_ways(bert: Tokenizer) -> None:
    row = bert.encode("hello world", "again")
    assert bert.decode(row.ids) == "hello world again"
    assert bert.decode(row.ids, skip_specials=False).startswith("[CLS] hello")
    assert [bert.piece(id) for id in row.ids] == row.pieces
    assert bert.id("hello") == row.ids[1]
    assert bert.id("no such piece") is None
    assert bert.special_ids == {0, 100, 101, 102, 103}
    for id in (-1, 10**6):
        with pytest.raises(BertsmithError, match="is not in this tokenizer's vocabulary"):
            bert.piece(id)


def test_no_texts_and_empty_texts_are_rows_too(tokenizers: dict[str, Tokenizer]) -> None:
    for tokenizer in tokenizers.values():
        assert tokenizer.encode_many([]) == []
        row: Any = tokenizer.encode("", "")
        assert row.dropped == 0
        assert len(row) == tokenizer.template.specials(paired=True)
        assert tokenizer.windows("", length=8, overlap=1)[0].ids == tokenizer.encode("").ids


def test_a_long_line_is_cut_in_linear_time(bert: Tokenizer) -> None:
    row = bert.encode("the quick brown fox " * 50_000, length=512)
    assert len(row) == 512
    assert row.dropped == 200_000 - 510
