"""Corpora in memory whose every token tells where it stands, and how to read rows of them."""

from itertools import pairwise
from pathlib import Path

import numpy as np
from hypothesis import strategies as st

from bertsmith.data.shards import Corpus

SPECIALS = {"pad": 0, "unk": 1, "cls": 2, "sep": 3, "mask": 4}
CLS, SEP, PAD = 2, 3, 0
FIRST = 5  # the id of the token at place 0; the one at place n is n more


def make_corpus(documents):
    """`documents`: for each its sentences' sizes. The token at place n has the id n + FIRST."""
    sizes = [size for document in documents for size in document]
    bounds = np.cumsum([0, *sizes]).astype("<u8")
    counts = np.cumsum([0, *(len(document) for document in documents)])
    vocabulary = int(bounds[-1]) + FIRST
    header = {"vocabulary": vocabulary, "specials": SPECIALS, "special_ids": list(range(FIRST)), "tokenizer": None}
    tokens = np.arange(FIRST, vocabulary, dtype="<u4")
    return Corpus(Path("made"), "train", header, tokens, bounds[counts], bounds)


def corpora(documents=12, sentences=8, longest=20, fewest=1):
    document = st.lists(st.integers(1, longest), min_size=1, max_size=sentences)
    return st.lists(document, min_size=fewest, max_size=documents)


def split_rows(rows):
    """The ids of each row, filler apart."""
    parts = np.split(rows.ids, np.cumsum(rows.lengths)[:-1])
    return [part for part in parts if part[0] != PAD], [part for part in parts if part[0] == PAD]


def read_segments(row):
    """The places (first, one behind the last) of a row's one or two segments; what stands around them is checked."""
    assert row[0] == CLS and row[-1] == SEP
    marks = np.flatnonzero(row == SEP)
    found = []
    for before, behind in pairwise([0, *marks]):
        places = row[before + 1 : behind] - FIRST
        assert len(places) and (places >= 0).all() and (np.diff(places) == 1).all()  # a run of the corpus
        found.append((int(places[0]), int(places[-1]) + 1))
    return found


def owner(corpus, place):
    return int(np.searchsorted(corpus.documents.astype(np.int64), place, side="right")) - 1
