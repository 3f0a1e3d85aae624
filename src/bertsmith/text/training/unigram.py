"""Unigram as SentencePiece has it (Kudo 2018): many candidates, their probabilities by EM, the least useful dropped.

In: words that begin with "▁" where a space stood. Out: a vocabulary with the logarithm of each piece's probability.
"""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from bertsmith.text.training.lattice import LONGEST_WORD, Lattice
from bertsmith.text.training.portable import log
from bertsmith.text.training.seeding import Seeds, find_seeds, link_alternatives, link_words
from bertsmith.text.training.table import WordTable, choose_alphabet, spelled
from bertsmith.text.training.vocabulary import Vocabulary, check_room, describe_alphabet

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

MOST_CHARACTERS = 5_000_000  # of distinct words: the most frequent ones take part, which bounds memory
SURPLUS = 1.6  # so many times the size are left when dropping by likelihood ends and dropping by tokens saved begins
SHRINK, SHRINK_LAST = 0.75, 0.9  # of the pieces stay in a round
ROUNDS = 2  # of EM between two droppings
RARE = 0.5  # a piece expected less often is dropped at once
DIGITS = 6  # of a score in the file


def train_unigram(
    table: WordTable, size: int, specials: Sequence[str], min_count: int, alphabet_size: int | None = None,
    tell: Callable[[int, int], None] | None = None,
) -> Vocabulary:  # fmt: skip
    """Special tokens, then the pieces from the most probable to the least, among them every character."""
    room = size - len(specials)
    alphabet = choose_alphabet(table, room // 2, alphabet_size)
    check_room(size, len(specials), len(alphabet.codes), describe_alphabet(alphabet))
    table = _shorten(spelled(table, alphabet))
    seeds = find_seeds(table, room, max(min_count, 2), frozenset(specials))
    trainer = _Trainer(seeds, table, tell)
    trainer.train(room)
    pieces, scores = trainer.result(room)
    return Vocabulary([*specials, *pieces], scores=[*(0.0 for _ in specials), *scores], covered=alphabet.covered)


def _shorten(table: WordTable) -> WordTable:
    """The most frequent words, as many as there is memory for, in parts that a lattice can hold."""
    order = np.argsort(-table.counts, kind="stable")
    fits = np.zeros(len(order), dtype=bool)
    fits[order[np.cumsum(table.lengths[order]) <= MOST_CHARACTERS]] = True
    table = table.take(fits)
    parts = -(-table.lengths // LONGEST_WORD)
    lengths = np.full(int(parts.sum()), LONGEST_WORD, dtype=np.int64)
    lengths[np.cumsum(parts) - 1] = table.lengths - (parts - 1) * LONGEST_WORD
    return WordTable(table.codes, lengths, np.repeat(table.counts, parts))


class _Trainer:
    """The pieces that are left, their probabilities, and the lattices of the words and of the pieces themselves."""

    def __init__(self, seeds: Seeds, table: WordTable, tell: Callable[[int, int], None] | None) -> None:
        self.seeds, self.tell = seeds, tell
        self.counts = table.counts.astype(np.float64)
        self.words: Lattice = link_words(seeds, table)
        self.others: Lattice = link_alternatives(seeds)
        self.left = np.arange(len(seeds.length))  # the pieces that are left, as numbers of seeds
        value = (seeds.count * seeds.length).astype(np.float64)
        self.probability = value / _total(value)

    def train(self, room: int) -> None:
        """Estimates and drops in turn until there are few enough pieces.

        The last ones go by the tokens that they save: rows become shorter than by likelihood to the end (by 0.5 %).
        """
        begin = len(self.left)
        self._estimate()
        while len(self.left) > room:
            by_tokens = len(self.left) <= SURPLUS * room
            shrunk = int((SHRINK_LAST if by_tokens else SHRINK) * len(self.left))
            self._drop(max(shrunk, room if by_tokens else int(SURPLUS * room)), by_tokens)
            for _ in range(1 if by_tokens else ROUNDS):
                self._estimate()
            if self.tell is not None:
                self.tell(begin - len(self.left), max(begin - room, 1))

    def result(self, room: int) -> tuple[list[str], list[float]]:
        """The most probable pieces, among them all characters, with their scores."""
        ranked = np.lexsort((self.left, -self.probability, ~self.is_character))[:room]
        ranked = ranked[np.lexsort((self.left[ranked], -self.probability[ranked]))]
        scores = log(self.probability[ranked])
        return [self.seeds.text(piece) for piece in self.left[ranked].tolist()], np.round(scores, DIGITS).tolist()

    @property
    def is_character(self) -> Mask:
        return self.seeds.length[self.left] == 1

    def _estimate(self) -> None:
        expected = self.words.expect(self.probability, self.counts)
        stays = (expected >= RARE) | self.is_character
        expected = np.maximum(expected[stays], RARE)
        # e to the digamma of a count, near enough: a prior that takes from the rare (SentencePiece's M step).
        value = expected - 0.5 + 1.0 / (24.0 * expected)
        self._keep(stays, value / _total(value))

    def _drop(self, wanted: int, by_tokens: bool) -> None:
        """Keeps the pieces without which the text would lose most: tokens saved, or its likelihood."""
        used = np.zeros(len(self.left))
        for words, pieces in self.words.walk(self.words.best(self.probability)):
            used += np.bincount(pieces, weights=self.counts[words], minlength=len(used))
        instead, steps = np.zeros(len(used)), np.zeros(len(used))
        for dropped, others in self.others.walk(self.others.best(self.probability)):
            instead[dropped] += log(np.maximum(used[others] + used[dropped], 1.0))
            steps[dropped] += 1.0
        more = np.maximum(steps - 1.0, 0.0)
        total = _total(used)
        alone = log(np.maximum(used, 1.0)) - log(np.array([total]))
        loss = used * (more if by_tokens else alone - instead + steps * log(total + used * more))
        loss = np.where(self.is_character, np.inf, loss)
        stays = self.is_character
        stays[np.lexsort((self.left, -self.probability, -loss))[:wanted]] = True
        self._keep(stays, self.probability[stays])

    def _keep(self, stays: Mask, probability: Floats) -> None:
        number = (np.cumsum(stays) - 1).astype(np.int32)
        self.words.keep(stays, number)
        # A dropped piece needs no others in its place.
        self.others.first, self.others.last = self.others.first[stays], self.others.last[stays]
        self.others.keep(stays, number)
        self.left, self.probability = self.left[stays], probability


def _total(values: Floats) -> float:
    return float(np.cumsum(values)[-1])  # one after the other: `sum` may add in an order that depends on the machine
