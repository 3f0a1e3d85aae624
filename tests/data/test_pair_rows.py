"""Rows of two segments: labels are true, half of them each, and they come as from BERT's and ALBERT's own scripts."""

import random
from collections import Counter
from itertools import chain, pairwise

import numpy as np
import pytest
from data.made_rows import FIRST, corpora, make_corpus, owner, read_segments, split_rows
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.stats import chi2_contingency

from bertsmith.data import pair_rows
from bertsmith.data.pair_rows import PairRows
from bertsmith.data.rows import NO_PAIR, fit
from bertsmith.data.rows_stream import Passes
from bertsmith.errors import BertsmithError

KINDS = st.sampled_from(["next", "order"])
LONES = st.sampled_from(["single", "random"])


def has_pairs(documents):
    return len(documents) > 1 and any(len(document) > 1 for document in documents)


def check_label(corpus, kind, lone, label, segments, is_full):
    if label == NO_PAIR:
        assert len(segments) == 1 and lone == "single"
        return
    (first, second) = segments
    owners = [owner(corpus, place) for segment in segments for place in (segment[0], segment[1] - 1)]
    assert owners[0] == owners[1] and owners[2] == owners[3]  # neither segment crosses a document
    if label == 1 and (kind == "next" or owners[0] != owners[2]):
        assert owners[0] != owners[2] and (kind == "next" or lone == "random")
        return
    before, behind = (first, second) if label == 0 else (second, first)
    assert owners[0] == owners[2] and before[1] <= behind[0]
    between = corpus.sentences[(corpus.sentences >= before[1]) & (corpus.sentences <= behind[0])]
    assert len(between)  # a sentence ends between them, and what is missing there was cut as the row was full
    assert is_full or before[1] == behind[0]


@given(corpora(fewest=2), KINDS, LONES, st.integers(8, 40), st.integers(0, 5), st.integers(0, 4))
def test_every_label_is_true_and_nothing_crosses_a_document(documents, kind, lone, length, seed, number):
    assume(has_pairs(documents))
    corpus = make_corpus(documents)
    stream = PairRows(corpus, length, kind, seed, lone=lone)
    rows = Passes(stream, 3 * length).rows_of(number)
    texts, fillers = split_rows(rows)
    assert len(rows.ids) == sum(rows.lengths) == 3 * length and max(rows.lengths) <= length
    assert rows.pairs.dtype == np.int64 and len(rows.pairs) == len(rows.lengths)
    assert (rows.pairs[len(texts) :] == NO_PAIR).all() and len(texts) + len(fillers) == len(rows.lengths)
    assert rows.ordinary == int((rows.ids >= FIRST).sum())
    ends = np.cumsum(rows.lengths)
    for row, label, end in zip(texts, rows.pairs, ends, strict=False):
        segments = read_segments(row)
        first = 2 + segments[0][1] - segments[0][0]
        kinds = [0] * first + [1] * (len(row) - first)
        assert rows.segments[end - len(row) : end].tolist() == kinds
        is_cut = rows.cut > 0 or len(row) == length
        check_label(corpus, kind, lone, label, segments, is_cut)


@given(st.lists(st.integers(1, 30), min_size=2, max_size=10), KINDS, st.integers(8, 30), st.integers(0, 5))
def test_an_epoch_holds_every_sentence_once_beside_those_from_elsewhere(counts, kind, length, seed):
    assume(max(counts) > 1)
    corpus = make_corpus([[1] * count for count in counts])  # a row of such sentences never has to be cut
    spans = PairRows(corpus, length, kind, seed)._make(0)
    seen = Counter()
    for first, size, second, more, label in zip(*spans, strict=True):
        seen.update(range(first, first + size))
        if not (kind == "next" and label == 1):
            seen.update(range(second, second + more))
    assert seen == Counter(range(len(corpus.tokens)))


@given(corpora(documents=8, sentences=20, longest=6, fewest=2), KINDS, st.integers(2, 9), st.integers(20, 90))
def test_blocks_and_stretches_part_an_epoch(documents, kind, stretch, block):
    assume(has_pairs(documents))
    corpus = make_corpus(documents)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pair_rows, "STRETCH", stretch)
        stream = PairRows(corpus, 16, kind, block=block)
        for epoch in (0, 2):
            numbers = range(epoch * stream.blocks, (epoch + 1) * stream.blocks)
            members = [stream._members(number).tolist() for number in numbers]
            assert all(members) and sorted(chain(*members)) == list(range(stream._stretches.shape[1]))
        covered = [set(range(*ends)) for ends in stream._stretches[:2].T]
        assert sum(map(len, covered)) == len(corpus.sentences) - 1 == len(set().union(*covered))
        unit = stream.unit(1)
        sizes = stream.layout.sizes(unit.spans.take(unit.order))
        assert stream.block_total <= sizes.sum() < stream.block_total + 16


def draw_documents(count, seed=0, longest=12):
    draw = np.random.default_rng(seed)
    return [draw.integers(1, longest, draw.integers(1, 25)).tolist() for _ in range(count)]


@pytest.mark.parametrize("kind", ["next", "order"])
@pytest.mark.parametrize("length", [16, 64])
def test_half_of_the_pairs_do_not_follow(kind, length):
    stream = PairRows(make_corpus(draw_documents(1500)), length, kind)
    labels = stream.unit(0).spans.labels
    asked = labels[labels != NO_PAIR]
    assert len(asked) > 1500
    assert abs(asked.mean() - 0.5) < 4 * 0.5 / len(asked) ** 0.5


def test_one_document_in_ten_has_shorter_rows():
    documents, room = 4000, 29
    stream = PairRows(make_corpus([[1] * room] * documents), room + 3, "order")
    spans = stream._make(0)
    first = spans.take(np.minimum(spans.first, np.where(spans.second_size > 0, spans.second, spans.first)) % room == 0)
    sizes = first.first_size + first.second_size
    assert len(first) == documents
    share = 0.1 * (room - 2) / (room - 1)  # of the 28 lengths that are drawn from, one is the full one
    assert abs((sizes < room).mean() - share) < 4 * (share * (1 - share) / documents) ** 0.5
    drawn = np.bincount(sizes[sizes < room], minlength=room)[2:]
    assert drawn.min() > 0 and drawn.max() < 3 * drawn.mean()  # from all lengths


def cut_pair(first, second, room, draw):
    """A token at a time, as the scripts do."""
    while len(first) + len(second) > room:
        longer = first if len(first) > len(second) else second
        longer.pop(0 if draw.random() < 0.5 else -1)


def make_plainly(documents, number, room, kind, draw):
    """The rows of one document as (A, B, label), by the steps of create_pretraining_data.py of BERT and of ALBERT."""
    document = documents[number]
    target = draw.randint(2, room) if draw.random() < 0.1 else room
    rows, taken, i = [], [], 0
    while i < len(document):
        taken.append(document[i])
        if i == len(document) - 1 or sum(map(len, taken)) >= target:
            middle = draw.randint(1, len(taken) - 1) if len(taken) > 1 else 1
            first, second, label = [*chain(*taken[:middle])], [*chain(*taken[middle:])], 0
            if len(taken) == 1 or (kind == "next" and draw.random() < 0.5):
                other = draw.choice([n for n in range(len(documents)) if n != number])
                wanted, second, label = target - len(first), [], 1
                for sentence in documents[other][draw.randrange(len(documents[other])) :]:
                    second += sentence
                    if len(second) >= wanted:
                        break
                i -= len(taken) - middle
            elif kind == "order" and draw.random() < 0.5:
                first, second, label = second, first, 1
            cut_pair(first, second, room, draw)
            rows.append((first, second, label))
            taken = []
        i += 1
    return rows


def describe(rows):
    """What two ways of making rows are compared by: counts of facts, a few kinds of facts."""
    facts = {name: Counter() for name in ("labels", "where A is", "where B is", "sizes", "both sizes")}
    for first, size, second, more, label in rows:
        facts["labels"][label] += 1
        facts["where A is"][first // 3, label] += 1
        facts["where B is"][second // 3, label] += 1
        facts["sizes"][size + more, label] += 1
        facts["both sizes"][size // 2, more // 2] += 1
    return facts


@pytest.mark.parametrize("kind", ["next", "order"])
def test_rows_are_distributed_as_from_the_original_scripts(kind):
    sizes = [[3, 5, 2, 4, 6], [7, 2], [4], [2, 2, 3, 9, 1, 5, 4, 3], [30, 3, 3]]
    corpus = make_corpus(sizes)
    bounds = corpus.sentences.astype(int).tolist()
    sentences = [list(range(begin, end)) for begin, end in pairwise(bounds)]
    each = iter(sentences)
    documents = [[next(each) for _ in document] for document in sizes]
    room, epochs, draw = 17, 3000, random.Random(5)
    stream = PairRows(corpus, room + 3, kind, lone="random")
    ours = [tuple(map(int, row)) for epoch in range(epochs) for row in zip(*stream._make(epoch), strict=True)]
    made = [make_plainly(documents, n, room, kind, draw) for _ in range(epochs) for n in range(len(documents))]
    theirs = [(a[0], len(a), b[0], len(b), label) for rows in made for a, b, label in rows]
    assert abs(len(ours) - len(theirs)) < 0.02 * len(theirs)
    for name, counts in describe(ours).items():
        others = describe(theirs)[name]
        keys = [key for key in counts | others if counts[key] + others[key] >= 20]
        table = [[some[key] for key in keys] for some in (counts, others)]
        assert sum(map(sum, table)) > 0.99 * (len(ours) + len(theirs))
        assert chi2_contingency(table).pvalue > 1e-3, name


@given(st.integers(1, 40), st.integers(1, 40), st.integers(2, 30), st.integers(0, 9))
def test_the_longer_segment_is_cut(first, second, room, seed):
    some, more = list(range(first)), list(range(second))
    cut_pair(some, more, room, random.Random(seed))
    assert tuple(map(int, fit(np.array(first), np.array(second), room))) == (len(some), len(more))


def test_cutting_is_at_both_ends_alike():
    corpus = make_corpus([[41, 41]] * 400)
    spans = PairRows(corpus, 23, "order", short=0)._make(0)
    assert (spans.first_size == 10).all() and (spans.second_size == 10).all()
    lost = np.concatenate([spans.first, spans.second]) % 41  # of 31 from the front
    assert abs(lost.mean() - 15.5) < 4 * (31 / 4 / len(lost)) ** 0.5 and abs(lost.var() - 31 / 4) < 1.5


def test_a_lone_sentence_may_be_as_long_as_a_row_of_one_segment():
    spans = PairRows(make_corpus([[50], [1, 1]]), 16, "order")._make(0)
    assert (spans.first_size + spans.second_size).tolist()[0] == 14


@pytest.mark.parametrize(
    "documents, kind, sentence",
    [
        ([[4], [5], [6]], "order", "has no document of two sentences"),
        ([[4, 5, 6]], "next", "is a single document"),
        ([], "next", "has no document of two sentences"),
    ],
)
def test_a_corpus_without_pairs_is_refused(documents, kind, sentence):
    with pytest.raises(BertsmithError, match=sentence):
        PairRows(make_corpus(documents), 16, kind)


def test_a_single_document_has_an_order():
    labels = PairRows(make_corpus([[2] * 60]), 16, "order", short=0).unit(0).spans.labels
    assert set(labels.tolist()) <= {0, 1, NO_PAIR}
