"""Single rows and the passes they are read in: nothing crosses a document, nothing is left out, and all of it follows
from a seed and a number."""

import numpy as np
import pytest
from data.made_rows import FIRST, PAD, corpora, make_corpus, owner, read_segments, split_rows
from hypothesis import given
from hypothesis import strategies as st

from bertsmith.data import rows_single
from bertsmith.data.rows_plan import Phase, Plan, open_passes
from bertsmith.data.rows_single import SingleRows, cut_pieces
from bertsmith.data.rows_stream import Passes
from bertsmith.errors import BertsmithError


def cut_plainly(documents, room):
    """The rule of the module's docstring, a document and a piece at a time."""
    found, begin = [], 0
    for document in documents:
        end = begin + sum(document)
        bounds = begin + np.cumsum(document)
        while end - begin > room:
            near = [int(bound) for bound in bounds if begin + room - room // 4 <= bound <= begin + room]
            stop = near[-1] if near else begin + room
            found.append((begin, stop - begin))
            begin = stop
        found.append((begin, end - begin))
        begin = end
    return found


@given(corpora(longest=50), st.integers(1, 40))
def test_pieces_end_with_a_sentence_where_one_ends_near(documents, room):
    starts, sizes = cut_pieces(make_corpus(documents), room)
    assert sorted(zip(starts.tolist(), sizes.tolist(), strict=True)) == cut_plainly(documents, room)


@given(corpora(documents=4, sentences=30, longest=60), st.integers(3, 12), st.integers(13, 64))
def test_a_long_document_is_cut_in_stretches_without_a_loss(documents, room, stretch):
    corpus = make_corpus(documents)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rows_single, "STRETCH", stretch)
        starts, sizes = cut_pieces(corpus, room)
    order = np.argsort(starts)
    starts, sizes = starts[order], sizes[order]
    assert sizes.max() <= room and sizes.min() > 0
    assert (starts == np.cumsum(sizes) - sizes).all() and sizes.sum() == len(corpus.tokens)
    assert set(corpus.documents[:-1].tolist()) <= set(starts.tolist())


def test_documents_without_a_token_do_no_harm():
    corpus = make_corpus([[], [3, 4], [], [5]])
    starts, sizes = cut_pieces(corpus, 6)
    assert sorted(zip(starts.tolist(), sizes.tolist(), strict=True)) == [(0, 6), (6, 1), (7, 5)]


@given(corpora(), st.integers(4, 40), st.integers(0, 60), st.integers(0, 3), st.integers(0, 50))
def test_a_pass_holds_rows_of_one_document_each_and_exactly_its_tokens(documents, length, more, seed, number):
    corpus = make_corpus(documents)
    rows = Passes(SingleRows(corpus, length, seed), length + more).rows_of(number)
    assert len(rows.ids) == len(rows.segments) == sum(rows.lengths) == length + more
    assert rows.ids.dtype == rows.segments.dtype == np.int64 and rows.pairs is None and not rows.segments.any()
    texts, fillers = split_rows(rows)
    assert texts and max(rows.lengths) <= length
    for row in texts:
        ((begin, end),) = read_segments(row)
        assert owner(corpus, begin) == owner(corpus, end - 1)
    assert all((filler == PAD).all() for filler in fillers)
    assert rows.lengths[: len(texts)] == tuple(map(len, texts)) == tuple(sorted(map(len, texts), reverse=True))
    assert rows.ordinary == int((rows.ids >= FIRST).sum())


@given(corpora(documents=5, sentences=4, longest=12), st.integers(5, 16), st.integers(0, 20), st.integers(0, 3))
def test_an_epoch_holds_each_token_once_but_for_the_tails_that_are_cut(documents, length, more, seed):
    corpus = make_corpus(documents)
    stream = SingleRows(corpus, length, seed)
    tokens = length + more
    passes = Passes(stream, tokens)
    counts, used, cut = np.zeros(len(corpus.tokens), int), 0, 0
    for number in range(stream.total):  # so many passes of T tokens are T epochs exactly
        rows = passes.rows_of(number)
        counts += np.bincount(rows.ids[rows.ids >= FIRST] - FIRST, minlength=len(counts))
        used += int((rows.ids != PAD).sum())
        cut += rows.cut
        assert rows.cut <= length
    assert counts.max() <= tokens and used + cut == stream.total * tokens
    assert counts[stream.spans.first].sum() > 0 and counts.sum() >= tokens * len(counts) - cut


@given(corpora(), st.integers(8, 24), st.integers(0, 5), st.integers(0, 9))
def test_the_units_of_a_stream_are_all_pieces_in_an_order_of_their_own(documents, length, seed, epoch):
    stream = SingleRows(make_corpus(documents), length, seed)
    unit = stream.unit(epoch)
    assert sorted(unit.order.tolist()) == list(range(len(stream.spans)))
    sizes = stream.layout.sizes(stream.spans)[unit.order]
    assert (unit.starts == np.cumsum(sizes) - sizes).all()


def test_epochs_seeds_and_phases_differ():
    corpus = make_corpus([[5] * 8] * 30)
    orders = [
        tuple(SingleRows(corpus, 16, seed, phase).unit(epoch).order)
        for seed in (0, 1) for phase in (0, 1) for epoch in (0, 1)
    ]  # fmt: skip
    assert len(set(orders)) == len(orders)


@given(st.permutations(range(8)), st.integers(0, 3), st.sampled_from(["single", "next", "order"]))
def test_a_pass_follows_from_its_number_whatever_was_asked_before(numbers, seed, kind):
    corpus = make_corpus([[3, 5, 2, 7], [4, 4, 4], [9, 1, 6, 2, 5]] * 4)
    held = open_passes(corpus, [Phase(16)], 48, kind, seed)[0]
    for number in numbers:
        fresh = open_passes(corpus, [Phase(16)], 48, kind, seed)[0].rows_of(number)
        same = held.rows_of(number)
        assert (fresh.ids == same.ids).all() and (fresh.segments == same.segments).all()
        assert fresh.lengths == same.lengths and fresh.ordinary == same.ordinary and fresh.cut == same.cut
        assert (fresh.pairs is None) == (kind == "single") and np.array_equal(fresh.pairs, same.pairs)


def test_special_ids_within_a_text_are_not_ordinary():
    corpus = make_corpus([[6, 6]])
    corpus.tokens[[2, 7]] = 1  # unknown pieces
    rows = Passes(SingleRows(corpus, 14), 14).rows_of(0)
    assert rows.ordinary == 10 and rows.lengths == (14,)


def test_what_is_lost_by_cutting_is_little():
    draw = np.random.default_rng(0)
    corpus = make_corpus([draw.integers(5, 40, draw.integers(1, 30)).tolist() for _ in range(400)])
    stream = SingleRows(corpus, 128)
    passes = Passes(stream, 8192)
    numbers = range(stream.total // 8192)
    assert sum(passes.rows_of(number).cut for number in numbers) < 0.004 * stream.total


@given(
    st.integers(1, 40), st.lists(st.sampled_from([1, 2, 3, 5]), min_size=1, max_size=4), st.integers(1, 5),
    st.integers(0, 4),
)  # fmt: skip
def test_a_step_holds_the_same_passes_for_any_number_of_processes(steps, shares, ranks, ramp):
    plan = Plan([Phase(8, share) for share in shares], steps, lambda step: 16 * (1 + step * ramp // steps), 16)
    expected = dict.fromkeys(range(len(shares)), 0)
    phases = []
    for step in range(steps):
        alone = plan.passes(step)
        assert sorted(one for rank in range(ranks) for one in plan.passes(step, rank, ranks)) == alone
        phase = plan.phase_at(step)
        phases.append(phase)
        assert [one.number for one in alone] == list(range(expected[phase], expected[phase] + 1 + step * ramp // steps))
        assert {one.phase for one in alone} == {phase}
        expected[phase] += len(alone)
    assert phases == sorted(phases)
    for number, share in enumerate(shares):
        assert abs(phases.count(number) - steps * share / sum(shares)) <= 1


def test_a_ramp_of_lengths_has_rows_of_its_own_for_each():
    corpus = make_corpus([[5] * 40] * 20)
    phases = [Phase(16, 0.9), Phase(64, 0.1)]
    plan = Plan(phases, 20, lambda step: 256, 128)
    passes = open_passes(corpus, phases, 128)
    longest = [max(max(passes[p].rows_of(n).lengths) for p, n in plan.passes(step)) for step in range(20)]
    assert max(longest[:18]) <= 16 and min(longest[18:]) > 32
    assert plan.passes(18)[0] == (1, 0)


@pytest.mark.parametrize(
    "wrong, sentence",
    [
        (lambda: Plan([Phase(8)], 3, lambda step: 24 + step, 12), "step 1 is to hold 25 tokens, which is no multiple"),
        (lambda: Plan([Phase(8)], 3, lambda step: 0, 12), "step 0 is to hold 0 tokens"),
        (lambda: Plan([], 3, lambda step: 12, 12), "need shares"),
        (lambda: Plan([Phase(8, -1), Phase(8, 2)], 3, lambda step: 12, 12), "need shares"),
        (lambda: SingleRows(make_corpus([[4]]), 3), "rows of 3 tokens have no room"),
        (lambda: SingleRows(make_corpus([]), 16), "has no text in its part 'train'"),
        (lambda: Passes(SingleRows(make_corpus([[4]]), 16), 15), "a pass of 15 tokens cannot hold a row of 16"),
    ],
)
def test_what_cannot_be_is_a_sentence(wrong, sentence):
    with pytest.raises(BertsmithError, match=sentence):
        wrong()


def test_a_step_beyond_the_plan_is_refused():
    with pytest.raises(ValueError, match="step 3 is not one of the 3"):
        Plan([Phase(8)], 3, lambda step: 12, 12).passes(3)
