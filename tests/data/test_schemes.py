"""Tag schemes: the rules of conlleval, conversions, transitions, and which scheme some tags are in."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tasks.conlleval import conlleval

from bertsmith.data.schemes import SCHEMES, allowed, convert, find_scheme, guess_scheme, read_spans, write_tags
from bertsmith.errors import BertsmithError

PREFIXED = [scheme for scheme in SCHEMES if scheme not in ("bare", "plain")]
SHARP = [scheme for scheme in PREFIXED if scheme != "io"]  # they part neighbours of one type


def count(gold: list[list[str]], found: list[list[str]], scheme: str = "iob") -> tuple[int, int, int]:
    pairs = [(set(read_spans(g, scheme)), set(read_spans(f, scheme))) for g, f in zip(gold, found, strict=True)]
    return sum(len(g & f) for g, f in pairs), sum(len(f) for _, f in pairs), sum(len(g) for g, _ in pairs)


@pytest.mark.parametrize(
    ("tags", "spans"),
    [
        ("O B-X I-X O", [(1, 3, "X")]),
        ("I-X I-X B-X O", [(0, 2, "X"), (2, 3, "X")]),  # IOB1
        ("B-X I-Y I-Y", [(0, 1, "X"), (1, 3, "Y")]),  # an I of another type begins one
        ("I-X I-Y", [(0, 1, "X"), (1, 2, "Y")]),
        ("O I-X", [(1, 2, "X")]),  # an I behind an O too
        ("B-X B-X B-X", [(0, 1, "X"), (1, 2, "X"), (2, 3, "X")]),
        ("B-X I-X", [(0, 2, "X")]),  # unfinished at the end of the sentence
        ("S-X S-X", [(0, 1, "X"), (1, 2, "X")]),
        ("B-X I-X E-X S-X", [(0, 3, "X"), (3, 4, "X")]),
        ("B-X I-X O", [(0, 2, "X")]),  # IOBES without its end
        ("B-X S-X", [(0, 1, "X"), (1, 2, "X")]),
        ("E-X E-X", [(0, 1, "X"), (1, 2, "X")]),  # an end without its beginning
        ("O E-X I-X O", [(1, 2, "X"), (2, 3, "X")]),
        ("S-X I-X E-X", [(0, 1, "X"), (1, 3, "X")]),
        ("B-X E-Y", [(0, 1, "X"), (1, 2, "Y")]),
        ("B-X L-X U-X", [(0, 2, "X"), (2, 3, "X")]),  # BILOU
        ("B-X M-X E-X", [(0, 3, "X")]),
        ("B-a-b I-a-b", [(0, 2, "a-b")]),  # a hyphen in the type
        ("B I O I", [(0, 2, ""), (3, 4, "")]),  # no types at all
        ("", []),
    ],
)
def test_entities_are_read_as_conlleval_reads_them(tags, spans):
    assert read_spans(tags.split(), "iob") == spans


def test_every_short_sentence_counts_as_in_the_tables_of_conlleval():
    tags = ["O", *(f"{letter}-{kind}" for letter in "BIES" for kind in "XY")]
    sentences = [list(tags) for tags in product(tags, repeat=3)]
    for step in (1, 100, 361):  # each sentence against others
        found = sentences[step:] + sentences[:step]
        assert count(sentences, found) == conlleval(sentences, found)
        for gold, guess in zip(sentences, found, strict=True):
            assert count([gold], [guess]) == conlleval([gold], [guess])


tags_of_any_kind = st.lists(
    st.sampled_from(["O", *(f"{p}-{t}" for p in "BIES" for t in ("X", "Y", "Z-1"))]), max_size=12
)


@given(st.data())
def test_any_tags_count_as_in_the_tables_of_conlleval(data):
    gold = data.draw(st.lists(tags_of_any_kind, max_size=4))
    every = st.sampled_from(["O", "B-X", "I-X", "E-X", "S-X", "B-Y", "I-Y"])
    found = [[data.draw(st.just(tag) | every) for tag in tags] for tags in gold]
    assert count(gold, found) == conlleval(gold, found)


@st.composite
def sentences_with_spans(draw):
    """Entities that may touch each other, and the number of words."""
    spans, at = [], 0
    for gap, size, kind in draw(st.lists(st.tuples(st.integers(0, 2), st.integers(1, 4), st.sampled_from("XY")))):
        spans.append((at + gap, at + gap + size, kind))
        at += gap + size
    return spans, at + draw(st.integers(0, 2))


@given(sentences_with_spans(), st.sampled_from(SHARP))
def test_written_tags_are_read_again(sentence, scheme):
    spans, length = sentence
    assert read_spans(write_tags(spans, length, scheme), scheme) == spans


@given(sentences_with_spans(), st.sampled_from(SHARP), st.sampled_from(SHARP))
def test_conversions_lose_nothing(sentence, one, other):
    tags = write_tags(*sentence, one)
    assert convert(convert(tags, one, other), other, one) == tags


@given(tags_of_any_kind, st.sampled_from(SHARP))
def test_ill_formed_tags_keep_their_meaning_and_become_well_formed(tags, scheme):
    mended = convert(tags, "iob", scheme)
    assert read_spans(mended, scheme) == read_spans(tags, "iob")
    steps = zip([None, *mended], [*mended, None], strict=True)
    assert all(allowed(before, after, scheme) for before, after in steps)


@given(sentences_with_spans(), st.sampled_from(["io", "bare"]))
def test_without_beginnings_only_neighbours_of_one_type_run_together(sentence, scheme):
    spans, length = sentence
    words = {(word, kind) for start, end, kind in read_spans(write_tags(spans, length, scheme), scheme)
             for word in range(start, end)}  # fmt: skip
    assert words == {(word, kind) for start, end, kind in spans for word in range(start, end)}
    once = write_tags(spans, length, scheme)
    assert convert(once, scheme, scheme) == once


@pytest.mark.parametrize("scheme", SHARP)
def test_a_transition_is_allowed_if_some_entities_are_written_so(scheme):
    """All ways to lay entities over four words give the pairs that occur: exactly these are allowed."""
    seen, labels = set(), set()
    for kinds in product(["O", "X", "Y"], repeat=4):
        for cuts in product([False, True], repeat=3):
            spans, start = [], 0
            for end in range(1, 5):
                if end == 4 or cuts[end - 1] or kinds[end] != kinds[start]:
                    spans += [] if kinds[start] == "O" else [(start, end, kinds[start])]
                    start = end
            tags = write_tags(spans, 4, scheme)
            labels |= set(tags)
            seen |= set(zip([None, *tags], [*tags, None], strict=True))
    pairs = [*product([None, *labels], labels), *((label, None) for label in labels)]
    assert {pair for pair in pairs if allowed(*pair, scheme)} == seen


@pytest.mark.parametrize(
    ("sentences", "scheme"),
    [
        (["I-X I-X O", "O I-Y B-Y"], "iob1"),
        (["B-X I-X O", "O B-Y B-Y"], "iob2"),
        (["B-X I-X O", "O B-Y B-Y", "I-X O"], "iob2"),  # a slip does not make it iob1
        (["B-X O"], "iob2"),
        (["I-X I-X O"], "io"),
        (["B-X E-X O S-Y"], "iobes"),
        (["S-X O"], "iobes"),
        (["B-X L-X O U-Y"], "bilou"),
        (["B-X M-X E-X S-X"], "bmes"),
        (["X X O Y"], "bare"),
        (["DT NN VB", "PRP$ -LRB- ."], "plain"),
        (["N V I P"], "plain"),  # single letters
        (["B I O"], "iob2"),
        (["O O"], "iob2"),
    ],
)
def test_the_scheme_is_found(sentences, scheme):
    assert find_scheme([sentence.split() for sentence in sentences]) == scheme


@pytest.mark.parametrize("tags", ["B-X I-X Y", "B-X L-X E-X", "B-X B_Y I-X"])
def test_a_tag_that_does_not_fit_is_named(tags):
    with pytest.raises(BertsmithError, match="does not fit the others"):
        find_scheme([tags.split()])


def test_labels_alone_do_not_tell_iob1_from_iob2():
    assert guess_scheme(["O", "B-X", "I-X"]) == "iob"
    assert guess_scheme(["LABEL_0", "LABEL_1"]) == "plain"
    assert guess_scheme(["O", "PER", "LOC"]) == "bare"
    assert guess_scheme(["O", "B-X", "I-X", "[CLS]"]) == "iob"
    assert guess_scheme(["O", "S-X", "B-X", "E-X", "I-X"]) == "iobes"


def test_plain_tags_are_not_entities():
    with pytest.raises(BertsmithError, match="plain"):
        convert(["NN"], "plain", "iob2")
    assert convert(["NN", "O"], "plain", "plain") == ["NN", "O"]
