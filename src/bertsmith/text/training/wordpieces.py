"""WordPiece as BERT has it: "##" before what goes on inside a word, the longest piece first.

In: words and their counts. Out: a vocabulary of characters and of merged pieces. Merging makes more pieces than asked
for; those stay that the longest-piece-first rule uses most, as many are only steps on the way to a longer piece.
"""

from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray
from tokenizers import models

from bertsmith.text.training.merging import Merger, learn_merges
from bertsmith.text.training.table import Alphabet, WordTable, choose_alphabet, spelled
from bertsmith.text.training.vocabulary import Vocabulary, check_room, describe_alphabet

GOES_ON = "##"
SURPLUS = 4  # one piece in so many more is made than there is room for (measured: 1.1 to 1.4 times do about as well)


def train_wordpieces(
    table: WordTable, size: int, specials: Sequence[str], min_count: int, alphabet_size: int | None = None,
    tell: Callable[[int, int], None] | None = None,
) -> Vocabulary:  # fmt: skip
    """Special tokens, characters, merged pieces; of two equally good pieces the one merged first."""
    room = size - len(specials)
    # A character may take two places, and all of them together half of the room.
    alphabet = choose_alphabet(table, room // 4, alphabet_size)
    table = spelled(table, alphabet)
    names, symbols = _spell(table, alphabet)
    what = f"{describe_alphabet(alphabet)}, at the start of a word and inside one,"
    check_room(size, len(specials), len(names), what)
    room -= len(names)
    merger = Merger(symbols, table.lengths, table.counts, list(names))
    learn_merges(merger, room + room // SURPLUS, _join, min_count, frozenset(specials), tell)
    merged = merger.names[len(names) :]
    if len(merged) > room:
        merged = _most_used(table, merger.names, merged, room)
    return Vocabulary([*specials, *names, *merged], covered=alphabet.covered)


def _spell(table: WordTable, alphabet: Alphabet) -> tuple[list[str], NDArray[np.int32]]:
    """The characters as they stand at the start of a word, then as they stand inside; and the words in these."""
    inside = np.ones(len(table.codes), dtype=bool)
    inside[table.starts] = False
    behind = np.unique(table.codes[inside])
    symbols = np.searchsorted(alphabet.codes, table.codes)
    symbols[inside] = len(alphabet.codes) + np.searchsorted(behind, table.codes[inside])
    names = [chr(code) for code in alphabet.codes.tolist()] + [GOES_ON + chr(code) for code in behind.tolist()]
    return names, symbols.astype(np.int32)


def _most_used(table: WordTable, pieces: list[str], merged: list[str], room: int) -> list[str]:
    """The merged pieces that the engine's rule uses most often for the words, in the order of their merges."""
    unknown = "[UNK]"
    ids = {piece: id for id, piece in enumerate([*pieces, unknown])}
    model = models.WordPiece(ids, unk_token=unknown, max_input_chars_per_word=int(table.lengths.max()))
    used: Counter[str] = Counter()
    for word, count in zip(table.words(), table.counts.tolist(), strict=True):
        for token in model.tokenize(word):
            used[token.value] += count
    ranked = sorted(range(len(merged)), key=lambda place: (-used[merged[place]], place))
    return [merged[place] for place in sorted(ranked[:room])]


def _join(left: str, right: str) -> str:
    return left + right.removeprefix(GOES_ON)
