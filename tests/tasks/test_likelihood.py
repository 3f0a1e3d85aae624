"""Pseudo-log-likelihood against a plain loop over the reference's model, token by token; sharing, windows, refusals."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tasks.made import CLOSE, SENTENCES

import bertsmith
from bertsmith.data.batch import plan_batches
from bertsmith.errors import BertsmithError
from bertsmith.tasks import likelihood, mask_table
from bertsmith.tasks.hiding import HiddenText
from bertsmith.tasks.likelihood import Likelihood, ask_all, measure_likelihood
from bertsmith.tasks.mask_table import MaskTable, hide_each

TEXTS = [*SENTENCES, "Paris", "playing walking", "He  walked\nslowly .", "ça zzz 漢字"]
WORDS = st.sampled_from(["paris", "is", "the", "capital", "walking", "slowly", ".", "fox", "quick", "it's", "[MASK]"])


def chances_by_loop(both, text: str, inside: bool = False) -> list[float]:
    """Each token masked in a row of its own; with `inside` the later tokens of its word too."""
    read = both.tokenizer(text)
    ids, words = read["input_ids"], read.word_ids()
    found = []
    for place, word in enumerate(words):
        if word is not None:
            masked = list(ids)
            for other in range(place, len(ids)):
                if other == place or (inside and words[other] == word):
                    masked[other] = both.tokenizer.mask_token_id
            found.append(both.log_chances(masked)[place, ids[place]].item())
    return found


@pytest.mark.parametrize("way", ["plain", "within-word"])
def test_the_sum_is_that_of_a_loop_over_the_reference(filler, way):
    results = bertsmith.pseudo_likelihood(filler.ours, TEXTS, way=way)
    for text, result in zip(TEXTS, results, strict=True):
        chances = chances_by_loop(filler, text, inside=way == "within-word")
        (found,) = result.answers
        assert found["tokens"] == len(chances) and result.truncated == 0
        assert found["score"] == pytest.approx(sum(chances), rel=CLOSE, abs=CLOSE)
        assert found["perplexity"] == pytest.approx(math.exp(-sum(chances) / len(chances)), rel=1e-4)


def test_within_a_word_by_hand(bert):
    """ "walking" is walk ##ing: walk is asked for with both hidden, ##ing with walk in sight."""
    ids = bert.tokenizer.convert_tokens_to_ids(["[CLS]", "he", "walk", "##ing", "[SEP]"])
    _, he, walk, ing, _ = ids
    mask = bert.tokenizer.mask_token_id
    first = bert.log_chances([ids[0], mask, walk, ing, ids[4]])[1, he]
    second = bert.log_chances([ids[0], he, mask, mask, ids[4]])[2, walk]
    third = bert.log_chances([ids[0], he, walk, mask, ids[4]])[3, ing]
    (found,) = bertsmith.pseudo_likelihood(bert.ours, "he walking", way="within-word").answers
    assert found["score"] == pytest.approx((first + second + third).item(), rel=CLOSE)
    (plain,) = bertsmith.pseudo_likelihood(bert.ours, "he walking").answers
    assert plain["score"] != pytest.approx(found["score"], rel=1e-3)


@settings(max_examples=25)
@given(st.lists(st.lists(WORDS, min_size=1, max_size=7).map(" ".join), min_size=1, max_size=6), st.integers(1, 40))
def test_sharing_and_blocks_change_nothing(bert, texts, block):
    texts = [f"{text} dog" for text in texts]  # one of masks alone has nothing to ask for
    task = Likelihood(bert.ours.tokenizer, bert.ours.limit)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(likelihood, "BLOCK", block)
        shared = measure_likelihood(bert.ours.predictor, task, texts)
    alone = bert.ours.predictor.predict(task, texts)
    for one, other in zip(shared, alone, strict=True):
        assert one[0]["tokens"] == other[0]["tokens"]
        assert one[0]["score"] == pytest.approx(other[0]["score"], rel=CLOSE, abs=CLOSE)


def rows_of(table):
    """A table's rows, each as (ids, segments, at, wanted)."""
    ids, segments = table.fill()
    ends = np.cumsum(table.lengths)
    bounds = [slice(end - length, end) for end, length in zip(ends, table.lengths, strict=True)]
    asked = zip(bounds, table.at.tolist(), table.wanted.tolist(), strict=True)
    return [(ids[here].tolist(), segments[here].tolist(), at, wanted) for here, at, wanted in asked]


@given(st.lists(st.lists(WORDS, max_size=9).map(" ".join), max_size=6), st.integers(3, 12), st.booleans())
def test_a_table_has_the_rows_that_each_text_alone_has(bert, texts, limit, is_inside):
    """Windows, special tokens in the text and later pieces of a word too."""
    tokenizer = bert.ours.tokenizer
    task = Likelihood(tokenizer, limit, way="within-word" if is_inside else "plain")
    table, counts = hide_each(task.encode(texts), tokenizer, limit, task.mask_id, is_inside)
    rows = task.rows(texts)
    flat = [row for some in rows for row in some]
    assert counts.tolist() == [len(some) for some in rows]
    expected = [(list(row.ids), list(row.segments), row.at[0], row.wanted[0]) for row in flat]
    assert rows_of(table) == expected == rows_of(MaskTable.of_rows(flat))
    assert [chosen.tolist() for chosen in table.batches(40)] == plan_batches([len(row.ids) for row in flat], 40)


@given(st.lists(st.lists(WORDS, min_size=1, max_size=5).map(" ".join), min_size=1, max_size=6), st.integers(1, 9))
def test_each_row_finds_the_first_one_that_is_equal(bert, texts, at_once):
    table = MaskTable.of_rows([row for some in Likelihood(bert.ours.tokenizer, 64).rows(texts) for row in some])
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(mask_table, "AT_ONCE", at_once)
        shared = table.share().tolist()
    keys = [(ids, at) for ids, _, at, _ in rows_of(table)]
    assert shared == [keys.index(key) for key in keys]


def test_two_sentences_that_differ_in_a_word_share_its_row(bert):
    task = Likelihood(bert.ours.tokenizer, 64)
    table, _ = hide_each(task.encode(["the cat is", "the dog is"]), task.tokenizer, 64, task.mask_id, False)
    assert table.share().tolist() == [0, 1, 2, 3, 1, 5] and table.wanted[1] != table.wanted[4]


def test_a_batch_too_large_for_memory_is_read_in_halves(bert):
    class Narrow(Likelihood):
        def read_wanted(self, network, batch, at, owners, wanted):
            if len(batch.ids) > 40:
                raise torch.OutOfMemoryError("made")
            return super().read_wanted(network, batch, at, owners, wanted)

    texts = ["the quick fox is in london .", "the quick dog is in london .", "paris", "we walk slowly"]
    whole, parts = (
        measure_likelihood(bert.ours.predictor, kind(bert.ours.tokenizer, 64), texts) for kind in (Likelihood, Narrow)
    )
    for one, other in zip(whole, parts, strict=True):
        assert one[0]["score"] == pytest.approx(other[0]["score"], rel=CLOSE)
    with pytest.raises(BertsmithError, match=r"not enough memory on cpu for a row of 4[1-9] tokens"):
        measure_likelihood(bert.ours.predictor, Narrow(bert.ours.tokenizer, 64), ["a fox . " * 14])


def test_the_same_text_twice_is_exactly_as_likely(bert):
    one, _, other = bertsmith.pseudo_likelihood(bert.ours, [SENTENCES[0], "fox", SENTENCES[0]])
    assert one.answers == other.answers


@given(st.integers(1, 90), st.integers(3, 40), st.data())
def test_what_is_hidden_stays_in_a_row_that_fits(bert, count, limit, data):
    """As many neighbours as fit, without a gap, and as even on both sides as the text allows."""
    ours = bert.ours.tokenizer
    letters = data.draw(st.lists(st.sampled_from("abcdef"), min_size=count, max_size=count))
    text = HiddenText(ours.encode(" ".join(letters)), ours, limit)
    first = data.draw(st.integers(0, count - 1))
    last = data.draw(st.integers(first, min(count, first + text.room) - 1))
    hidden = range(first, last + 1)
    row = text.hide(hidden, hidden, ours.mask_id)
    assert len(row.ids) == len(row.segments) == min(limit, count + 2)
    assert row.ids[0] == ours.cls_id and row.ids[-1] == ours.sep_id
    assert [place for place, id in enumerate(row.ids) if id == ours.mask_id] == list(row.at)
    assert [ours.piece(id) for id in row.wanted] == letters[first : last + 1]
    start = first + 1 - row.at[0]
    seen = [ours.piece(id) for id in row.ids[1:-1]]
    whole = letters[start : start + len(seen)]
    assert all(one in (other, "[MASK]") for one, other in zip(seen, whole, strict=True))
    before, behind = first - start, start + len(seen) - 1 - last
    assert abs(before - behind) <= 1 or start == 0 or start + len(seen) == count


def test_each_token_of_a_long_text_is_read_with_what_fits_around_it(bert):
    letters = [*"abcdefghij"] * 10
    ids = bert.tokenizer.convert_tokens_to_ids(letters)
    room, total = bert.ours.limit - 2, 0.0
    for place, id in enumerate(ids):
        start = min(max(place - room // 2, 0), len(ids) - room)
        row = [bert.tokenizer.cls_token_id, *ids[start : start + room], bert.tokenizer.sep_token_id]
        row[1 + place - start] = bert.tokenizer.mask_token_id
        total += bert.log_chances(row)[1 + place - start, id].item()
    found = bertsmith.pseudo_likelihood(bert.ours, " ".join(letters))
    assert len(ids) > room and found[0]["tokens"] == 100 and found.truncated == 0
    assert found[0]["score"] == pytest.approx(total, rel=CLOSE)


def test_a_cut_is_a_choice_and_is_told(bert):
    text = " ".join("abcdefghij" * 10)
    found = bertsmith.pseudo_likelihood(bert.ours, text, truncate="head")
    assert found.truncated == 100 - found[0]["tokens"] == 100 - (bert.ours.limit - 2)
    task = Likelihood(bert.ours.tokenizer, bert.ours.limit, "head")
    assert bert.ours.predictor.predict(task, [text])[0].truncated == found.truncated
    with pytest.raises(BertsmithError, match="at most length="):
        bertsmith.pseudo_likelihood(bert.ours, text, truncate="error")


def test_special_tokens_in_a_text_are_not_asked_for(bert):
    found = bertsmith.pseudo_likelihood(bert.ours, "paris [MASK] london [SEP]")
    assert found[0]["tokens"] == 2
    assert bertsmith.pseudo_likelihood(bert.ours, "漢")[0]["tokens"] == 1  # an unknown one is


def test_rows_may_come_from_anywhere(bert):
    assert ask_all(bert.ours.predictor, Likelihood(bert.ours.tokenizer, 64), []) == []
    assert bertsmith.pseudo_likelihood(bert.ours, []) == []
    assert len(bertsmith.pseudo_likelihood(bert.ours, (text for text in SENTENCES))) == len(SENTENCES)


@pytest.mark.parametrize(
    ("texts", "options", "message"),
    [
        (["fox", " "], {}, "text 2 has no token to ask for"),
        ("", {}, "text 1 has no token"),
        ("[MASK]", {}, "no token to ask for"),
        (["fox", 3], {}, "text 2 must be a string"),
        ("fox", {"way": "words"}, "way='words' is not a choice; use one of 'plain', 'within-word'"),
        ("fox", {"truncate": "middle"}, "truncate='middle' is not a choice"),
    ],
)
def test_mistakes(bert, texts, options, message):
    with pytest.raises(BertsmithError, match=message):
        bertsmith.pseudo_likelihood(bert.ours, texts, **options)


def test_a_model_without_the_head_is_refused(demo_model):
    with pytest.raises(BertsmithError, match=r"no head to fill masks.*give another model"):
        bertsmith.pseudo_likelihood(demo_model, "fox")
