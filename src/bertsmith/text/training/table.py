"""The distinct words of a corpus in one array, and which of their characters the vocabulary will know.

In: words with their counts. Out: a `WordTable`; an `Alphabet` of the most frequent characters that there is room for.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bertsmith.errors import BertsmithError

Ints = NDArray[np.int64]

USUAL = 1000  # characters that a vocabulary knows where it has the room, as in BERT's trainer
COVERED = 0.9995  # of the text: for scripts of more characters than that
NEEDED = 0.99  # of the text: a vocabulary that cannot even spell so much is none


@dataclass(frozen=True)
class WordTable:
    """Words in the order of their texts: their characters end to end, their lengths, their counts."""

    codes: NDArray[np.uint32]
    lengths: Ints
    counts: Ints

    @property
    def starts(self) -> Ints:
        return np.cumsum(self.lengths) - self.lengths

    def take(self, which: NDArray[np.bool_]) -> "WordTable":
        """The words that are marked."""
        return WordTable(self.codes[np.repeat(which, self.lengths)], self.lengths[which], self.counts[which])

    def words(self) -> list[str]:
        text = self.codes.tobytes().decode("utf-32-le")
        return [text[stop - length : stop] for stop, length in zip(np.cumsum(self.lengths), self.lengths, strict=True)]


def make_table(words: Mapping[str, int]) -> WordTable:
    """The table of the words; the order in which they were counted does not matter."""
    texts = sorted(words)
    codes = np.frombuffer("".join(texts).encode("utf-32-le"), dtype="<u4")
    lengths = np.fromiter(map(len, texts), dtype=np.int64, count=len(texts))
    return WordTable(codes, lengths, np.fromiter((words[text] for text in texts), dtype=np.int64, count=len(texts)))


@dataclass(frozen=True)
class Alphabet:
    """The characters that a vocabulary knows, in the order of their codes, and the part of the text that they make."""

    codes: NDArray[np.uint32]
    covered: float


def choose_alphabet(table: WordTable, room: int, most: int | None = None) -> Alphabet:
    """The most frequent characters: `most` of them, else as many as are usual and fit into `room`.

    Where the room is too small for what NEEDED asks for, they are as many as that, and the caller finds them too many.
    """
    codes, place = np.unique(table.codes, return_inverse=True)
    weights = np.repeat(table.counts, table.lengths)
    counts = np.zeros(len(codes), dtype=np.int64)
    np.add.at(counts, place, weights)
    order = np.lexsort((codes, -counts))
    reached = np.cumsum(counts[order])
    total = max(int(counts.sum()), 1)
    if most is None:
        usual = max(USUAL, _reach(reached, COVERED, total))
        most = max(min(usual, room), _reach(reached, NEEDED, total))
    kept = order[:most]
    return Alphabet(np.sort(codes[kept]), int(counts[kept].sum()) / total)


def _reach(reached: Ints, share: float, total: int) -> int:
    return int(np.searchsorted(reached, share * total)) + 1 if len(reached) else 0


def spelled(table: WordTable, alphabet: Alphabet) -> WordTable:
    """The words that the alphabet can spell: of the others no piece could ever be used."""
    known = np.isin(table.codes, alphabet.codes)
    if known.all():
        return table
    unknown = np.zeros(len(table.lengths), dtype=bool)
    unknown[np.repeat(np.arange(len(table.lengths)), table.lengths)[~known]] = True
    if unknown.all():
        raise BertsmithError(
            f"No word of the text can be spelled with its {len(alphabet.codes):,} most frequent characters alone; "
            f"give a larger --alphabet or --size."
        )
    return table.take(~unknown)
