"""Merges against the textbook example, and against a trainer that counts all pairs anew before each merge."""

from collections import Counter
from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from bertsmith.text.training.merging import Merger, learn_merges
from bertsmith.text.training.table import make_table

Words = dict[str, int]


def learn(words: Words, most: int, min_count: int = 1) -> list[tuple[str, str]]:
    table = make_table(words)
    codes, symbols = np.unique(table.codes, return_inverse=True)
    merger = Merger(symbols.astype(np.int32), table.lengths, table.counts, [chr(code) for code in codes.tolist()])
    return learn_merges(merger, most, lambda left, right: left + right, min_count)


def learn_plainly(words: Words, most: int, min_count: int) -> list[tuple[str, str]]:
    """What the paper says (Sennrich et al. 2016, algorithm 1), ties by text."""
    cut = {word: list(word) for word in words}
    merges: list[tuple[str, str]] = []
    while len(merges) < most:
        counts: Counter[tuple[str, str]] = Counter()
        for word, parts in cut.items():
            for pair in pairwise(parts):
                counts[pair] += words[word]
        counts = Counter({pair: count for pair, count in counts.items() if count >= min_count})
        if not counts:
            return merges
        best = min(counts, key=lambda pair: (-counts[pair], pair))
        merges.append(best)
        cut = {word: join(parts, best) for word, parts in cut.items()}
    return merges


def join(parts: list[str], pair: tuple[str, str]) -> list[str]:
    joined: list[str] = []
    place = 0
    while place < len(parts):
        if tuple(parts[place : place + 2]) == pair:
            joined.append(parts[place] + parts[place + 1])
            place += 2
        else:
            joined.append(parts[place])
            place += 1
    return joined


def test_the_textbook_example() -> None:
    merges = learn({"low": 5, "lower": 2, "newest": 6, "widest": 3}, 14)
    # 9 es, est; 7 lo, low; 6 of e+w, n+e, w+est the first in the order of texts; 3 likewise; 2.
    assert [left + right for left, right in merges] == [
        "es", "est", "lo", "low", "ew", "ewest", "newest", "dest", "idest", "widest", "er", "lower",
    ]  # fmt: skip


words = st.dictionaries(st.text("ab", min_size=1, max_size=9), st.integers(1, 9), min_size=1, max_size=12)
more = st.dictionaries(st.text("abcé東", min_size=1, max_size=6), st.integers(1, 500), min_size=1, max_size=30)


@given(st.one_of(words, more), st.integers(1, 30), st.integers(1, 4))
def test_it_is_what_counting_anew_gives(words: Words, most: int, min_count: int) -> None:
    assert learn(words, most, min_count) == learn_plainly(words, most, min_count)


def test_the_floor_is_lowered_when_frequent_pairs_are_used_up() -> None:
    words = {"aaaaaa": 100_000, "bc": 3, "bcd": 2, "xyz": 1}
    assert learn(words, 12) == learn_plainly(words, 12, 1)


def test_a_text_that_is_taken_is_never_made() -> None:
    table = make_table({"abc": 5, "ab": 5})
    codes, symbols = np.unique(table.codes, return_inverse=True)
    merger = Merger(symbols.astype(np.int32), table.lengths, table.counts, [chr(code) for code in codes.tolist()])
    merges = learn_merges(merger, 9, lambda left, right: left + right, 1, frozenset({"ab"}))
    assert merges == [("b", "c"), ("a", "bc")]
