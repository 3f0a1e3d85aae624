"""Words as rows: first pieces, windows, what is cut, gold, and the settings that examples give."""

import sys
import tracemalloc
import unicodedata
from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tasks.made import SENTENCES, Both

from bertsmith.data.examples import TagExample
from bertsmith.errors import BertsmithError
from bertsmith.tasks.alignment import Alignment, align, split_text
from bertsmith.tasks.tag import Tag
from bertsmith.tasks.tag_rows import FILLER, Layout, find_homes

LONG = " ".join(SENTENCES) + " 東京, unaffable! " + " ".join(SENTENCES)
IOB2 = {"labels": ["O", "B-X", "I-X"], "scheme": "iob2", "label_scheme": "iob2", "default": "O"}


def sentence(words: str, tags: str | None = None, where: str = "") -> TagExample:
    spans, at = [], 0
    for word in words.split(" "):
        spans.append((at, at + len(word)))
        at += len(word) + 1
    return TagExample(words, tuple(spans), None if tags is None else tuple(tags.split()), where)


def make_task(both: Both, limit: int = 64, truncate: str = "windows", **changes) -> Tag:
    aggregation = changes.pop("aggregation", "first")
    return Tag(both.ours.tokenizer, limit, truncate, IOB2 | changes, aggregation)


@pytest.mark.parametrize("aggregation", ["first", "average"])
@pytest.mark.parametrize("length", [8, 13, 32, 512])
def test_each_word_is_asked_for_once_where_it_has_most_context(filler, length, aggregation):
    example = split_text(LONG)
    task = make_task(filler, length, aggregation=aggregation)
    rows = task.rows([example])[0]
    whole = task.tokenizer.encode(LONG)
    lead, specials = task.layout.lead, task.layout.specials
    words = align(LONG, example.spans, whole.offsets[lead : len(whole) - specials + lead])
    firsts = {word: piece for word, piece in enumerate(words.firsts) if piece >= 0}
    asked = [(row.words[i], row.pieces[i], number) for number, row in enumerate(rows) for i in range(len(row.words))]
    begun = [(word, piece) for word, piece, _ in asked if word >= 0 and firsts[word] == piece]
    assert sorted(begun) == sorted(firsts.items())
    count, room = len(whole) - specials, length - specials
    starts = range(0, max(count - room // 4, 1), room - room // 4)
    for number, row in enumerate(rows):
        places = row.at[: len(row.words)]
        assert [row.ids[i] for i in places] == [whole.ids[lead + piece] for piece in row.pieces]
        assert len(row.ids) <= length and row.dropped == 0
        kept = whole.ids[lead : lead + count][starts[number] : starts[number] + room]
        assert row.ids == [*whole.ids[:lead], *kept, *whole.ids[lead + count :]]
    for word, piece, number in asked:
        last = words.lasts[word] if word >= 0 else piece
        first = firsts[word] if word >= 0 else piece

        def context(start, first=first, last=last):
            end = min(start + room, count)
            return min(first - start if start else np.inf, end - 1 - last if end < count else np.inf)

        holding = [start for start in starts if start <= piece < start + room]
        assert context(starts[number]) == max(map(context, holding))


@pytest.mark.parametrize("truncate", ["windows", "head", "tail", "head+tail", "error"])
def test_a_text_that_fits_is_one_row_whatever_the_policy(filler, truncate):
    example = split_text(SENTENCES[0])
    row = make_task(filler, 64, truncate).rows([example])[0]
    assert len(row) == 1 and row[0].ids == filler.ours.tokenizer.encode(SENTENCES[0]).ids
    assert row[0].words == list(range(len(example.spans))) and row[0].dropped == 0


@pytest.mark.parametrize("truncate", ["head", "tail", "head+tail"])
def test_what_is_cut_is_counted_and_outside(bert, truncate):
    example = split_text(LONG)
    task = make_task(bert, 20, truncate)
    (row,) = task.rows([example])[0]
    encoding = bert.ours.tokenizer.encode(LONG, length=20, truncate=truncate)
    assert (row.ids, row.dropped) == (encoding.ids, encoding.dropped)
    scores = torch.tensor([[0.0, 9.0, 0.0]]).repeat(len(row.at), 1)
    result = task.answer(example, [row], [scores])
    assert result.truncated == encoding.dropped
    assert [tag for i, tag in enumerate(result.tags) if i in row.words] == ["B-X"] * len(row.words)
    assert {tag for i, tag in enumerate(result.tags) if i not in row.words} == {"O"}


def test_a_long_text_can_be_refused(bert):
    with pytest.raises(BertsmithError, match=r"news.conll, line 7 has \d+ tokens, but at most 20 fit"):
        make_task(bert, 20, "error").rows([sentence(LONG, where="news.conll, line 7")])
    with pytest.raises(BertsmithError, match="no room"):
        make_task(bert, 2).rows([sentence("paris")])


def test_the_length_of_the_settings_counts_up_to_the_models(bert):
    assert {len(make_task(bert, 64, length=length).rows([split_text(LONG)])[0][0].ids) for length in (512, None)} == {
        64
    }
    assert len(make_task(bert, 64, length=16).rows([split_text(LONG)])[0][0].ids) == 16


def test_gold_stands_on_first_pieces(bert):
    example = sentence("unaffable paris \u200b naïve", "B-X I-X I-X O")
    task = make_task(bert)
    (row,) = task.rows([example])[0]
    pieces = [bert.ours.tokenizer.piece(row.ids[i]) for i in row.at]
    assert pieces == ["u", "paris", "n"]
    assert row.gold.tolist() == [1, 2, 0] and row.gold.dtype == np.int64
    (every,) = make_task(bert, aggregation="max").rows([example])[0]
    assert every.gold.tolist() == [1, *[FILLER] * 8, 2, 0, *[FILLER] * 4]
    assert task.gold([row, row]).tolist() == [1, 2, 0, 1, 2, 0]


def test_an_unknown_tag_is_not_trained_and_no_tags_are_no_gold(bert):
    task = make_task(bert)
    assert task.rows([sentence("paris london", "B-NEW B-X")])[0][0].gold.tolist() == [FILLER, 1]
    assert task.rows([sentence("paris london")])[0][0].gold is None
    (row,) = task.rows([TagExample("", (), ())])[0]
    assert (row.at, row.gold.tolist(), row.words) == ([0], [FILLER], ())
    with pytest.raises(BertsmithError, match="line 3 has 1 tag for 2 words"):
        task.rows([sentence("paris london", "O", "a.conll, line 3")])


def test_gold_is_trained_in_iob2_whatever_comes_in(bert):
    for scheme, tags in {
        "iob1": "I-X B-X I-X O", "io": "I-X O I-X I-X", "bare": "X O X X",
        "iob2": "B-X B-X I-X O", "iobes": "S-X B-X E-X O", "bilou": "U-X B-X L-X O",
    }.items():  # fmt: skip
        task = make_task(bert, scheme=scheme)
        example = sentence("paris london is a", tags)
        (row,) = task.rows([example])[0]
        assert row.gold.tolist() == ([1, 0, 1, 2] if scheme in ("io", "bare") else [1, 1, 2, 0])
        scores = torch.nn.functional.one_hot(torch.tensor(row.gold), 3) * 9.0
        assert task.answer(example, [row], [scores]).tags == tags.split()


@pytest.mark.parametrize(
    ("tags", "choices", "found"),
    [
        (["I-X B-X", "I-Y O"], {}, ("iob1", "iob2", ["O", "B-X", "B-Y"])),
        (["B-X I-X"], {}, ("iob2", "iob2", ["O", "B-X", "I-X"])),
        (["B-X E-X", "S-Y O"], {}, ("iobes", "iob2", ["O", "B-X", "B-Y", "I-X"])),
        (["B-X I-X"], {"label_scheme": "iobes"}, ("iob2", "iobes", ["O", "B-X", "E-X"])),
        (["I-X O"], {}, ("io", "iob2", ["O", "B-X"])),
        (["I-X O"], {"scheme": "iob1"}, ("iob1", "iob2", ["O", "B-X"])),
        (["X O"], {}, ("bare", "iob2", ["O", "B-X"])),
        (["DT NN", "NN VB"], {}, ("plain", "plain", ["DT", "NN", "VB"])),
        (["B-X NN"], {"scheme": "plain"}, ("plain", "plain", ["B-X", "NN"])),
    ],
)
def test_examples_settle_labels_and_schemes(tags, choices, found):
    settled = Tag.settle([sentence("a b", line) for line in tags], choices)
    assert (settled["scheme"], settled["label_scheme"], settled["labels"]) == found
    assert settled["truncate"] == "windows" and settled["length"] is None
    assert settled["default"] == ("O" if settled["scheme"] != "plain" else {"DT": "NN"}.get(found[2][0], "B-X"))


def test_what_cannot_be_settled_is_said():
    with pytest.raises(BertsmithError, match="row 4 has no tags"):
        Tag.settle([sentence("a", where="row 4")], {})
    with pytest.raises(BertsmithError, match="scheme='iob' is not a choice"):
        Tag.settle([sentence("a", "O")], {"scheme": "iob"})
    with pytest.raises(BertsmithError, match="does not go with"):
        Tag.settle([sentence("a", "NN")], {"label_scheme": "iobes"})
    with pytest.raises(BertsmithError, match="no words"):
        Tag.settle([], {"scheme": "plain"})


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Paris, (France).", "Paris|,|(|France|)|."),
        ("  don't  e-mail\n$5+", "don|'|t|e|-|mail|$|5|+"),
        ("東京タワー naïve", "東|京|タワー|naïve"),
        ("a\u00a0b\u3000c", "a|b|c"),
        ("«été» – 3€ 👩‍👩‍👧!", "«|été|»|–|3€|👩‍👩‍👧|!"),
        ("", ""),
    ],
)
def test_a_raw_text_is_split_at_spaces_and_punctuation(text, words):
    assert "|".join(split_text(text).words) == words


@given(st.text(max_size=40))
def test_the_words_of_a_text_are_all_that_is_not_space(text):
    """But for what is invisible, which begins and ends no word."""
    spans = split_text(text).spans
    inside = {i for start, end in spans for i in range(start, end)}
    seen = {i for i, one in enumerate(text) if not one.isspace() and unicodedata.category(one) not in ("Cc", "Cf")}
    assert seen <= inside and not any(text[i].isspace() for i in inside)
    assert all({start, end - 1} <= seen or set(text[start:end]) & set("\u200c\u200d") for start, end in spans)
    assert list(spans) == sorted(spans) and all(a[1] <= b[0] for a, b in pairwise(spans))


def test_the_words_are_those_of_berts_own_tokenizer(bert):
    for text in [*SENTENCES, "U.S. 3.14% naïve, «été» 東京 $5+x"]:
        read = bert.tokenizer(text, return_offsets_mapping=True)
        starts = {}
        for word, (start, end) in zip(read.word_ids(), read["offset_mapping"], strict=True):
            if word is not None:
                starts[word] = (starts.get(word, (start,))[0], end)
        assert list(split_text(text).spans) == list(starts.values())


@settings(max_examples=200)
@given(st.lists(st.integers(0, 3), max_size=30), st.integers(2, 9))
def test_windows_miss_no_piece(sizes, room):
    """Words of any number of pieces, none too."""
    owners = np.repeat(np.arange(len(sizes)), sizes)
    firsts, lasts = np.full(len(sizes), -1), np.full(len(sizes), -1)
    lasts[owners] = np.arange(len(owners))
    firsts[owners[::-1]] = np.arange(len(owners))[::-1]
    words = Alignment(firsts, lasts, owners)
    cuts = Layout.cut(Bare(room), len(owners), "")
    pieces = np.arange(len(owners))
    homes = find_homes(pieces, owners, words, cuts, len(owners))
    assert all(start <= piece < end for piece, home in enumerate(homes) for start, end in cuts[home])
    whole = [word for word, size in enumerate(sizes) if size and size <= room // 4 + 1]
    assert all(len(set(homes[owners == word])) == 1 for word in whole)


class Bare:
    """As much of a layout as cutting needs."""

    specials, truncate = 0, "windows"

    def __init__(self, room: int) -> None:
        self.length = room


def test_a_text_twice_as_long_needs_no_more_than_twice_the_memory(bert):
    """A server takes books, too: a table of all windows and all words took gigabytes for one of 160 KB."""

    def peak(times: int) -> int:
        task, example = make_task(bert, 16), split_text("paris " * 1000 * times)
        tracemalloc.start()
        task.rows([example])
        found = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return found

    peak(1)  # what is kept for later is made
    assert peak(8) < 1.5 * 2 * peak(4)


def test_words_that_share_a_piece_are_found_at_once():
    """As "..." is one piece of three marks for some tokenizers: one search for each took minutes for 1 MB of them."""

    def align_dots(count: int) -> tuple[Alignment, int]:
        called = 0

        def note(frame: object, event: str, arg: object) -> None:
            nonlocal called
            called += event == "c_call"

        marks = [(4 * at + mark, 4 * at + mark + 1) for at in range(count) for mark in range(3)]
        pieces = [(4 * at, 4 * at + 3) for at in range(count)]
        sys.setprofile(note)
        try:
            return align("... " * count, marks, pieces), called
        finally:
            sys.setprofile(None)

    (few, _), (many, _) = align_dots(10), align_dots(1000)
    for found in (few, many):
        assert found.firsts.tolist() == found.lasts.tolist() == np.repeat(np.arange(len(found.owners)), 3).tolist()
    assert align_dots(1000)[1] == align_dots(10)[1]


@settings(max_examples=200)
@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 4)), max_size=12),
       st.lists(st.tuples(st.integers(0, 2), st.integers(1, 4)), max_size=8))  # fmt: skip
def test_a_word_begins_with_the_first_piece_in_it_or_that_reaches_into_it(pieces, words):
    def lay(gaps_and_lengths):
        spans, at = [], 0
        for gap, length in gaps_and_lengths:
            spans.append((at + gap, at + gap + length))
            at += gap + length
        return spans

    offsets, spans = lay(pieces), lay(words)
    text = "x" * max((end for _, end in [*offsets, *spans]), default=0)
    found = align(text, spans, offsets).firsts.tolist()
    for (start, end), first in zip(spans, found, strict=True):
        begin = [i for i, (a, b) in enumerate(offsets) if start <= a < end and b > a]
        reach = [i for i, (a, b) in enumerate(offsets) if a < end and b > start and b > a]
        assert first == next(iter([*begin, *reach]), -1)
