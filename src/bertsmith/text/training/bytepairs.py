"""Byte-level BPE as GPT-2 and RoBERTa have it: 256 bytes, and the merges of the most frequent pairs of pieces.

In: words spelled in the byte alphabet ("Ġthe"). Out: a vocabulary that can spell any text.
"""

from collections.abc import Callable, Sequence

import numpy as np
from tokenizers import pre_tokenizers

from bertsmith.text.training.merging import Merger, learn_merges
from bertsmith.text.training.table import WordTable
from bertsmith.text.training.vocabulary import Vocabulary, check_room

ALPHABET = sorted(pre_tokenizers.ByteLevel.alphabet())


def train_bytepairs(
    table: WordTable, size: int, specials: Sequence[str], min_count: int,
    tell: Callable[[int, int], None] | None = None,
) -> Vocabulary:  # fmt: skip
    """Special tokens, bytes, merged pieces in the order of their merges."""
    check_room(size, len(specials), len(ALPHABET), f"the {len(ALPHABET)} bytes")
    codes = np.array([ord(sign) for sign in ALPHABET], dtype=np.uint32)
    merger = Merger(np.searchsorted(codes, table.codes).astype(np.int32), table.lengths, table.counts, list(ALPHABET))
    most = size - len(specials) - len(ALPHABET)
    merges = learn_merges(merger, most, _join, min_count, frozenset(specials), tell)
    return Vocabulary([*specials, *merger.names], merges)


def _join(left: str, right: str) -> str:
    return left + right
