"""Pieces become words again: which pieces make a word, what it is called, and how a person names one.

In: a row as a tokenizer made it. Out: for each piece the number of its word, the words' texts, and the place of a word
that was asked for by name or number.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bertsmith.data.findings import counted
from bertsmith.errors import BertsmithError
from bertsmith.text.encoding import Encoding

Array = NDArray[np.float32]
LISTED = 12  # words that an error names


@dataclass(frozen=True)
class Words:
    """The words of a row, counted through both texts; a special token belongs to none."""

    of: tuple[int | None, ...]  # the word of each piece
    names: tuple[str, ...]  # as the text spells them

    @classmethod
    def of_encoding(cls, encoding: Encoding, texts: Sequence[str]) -> "Words":
        found: list[int | None] = []
        spans: list[list[int]] = []  # text, first character, last
        known: dict[tuple[int, int], int] = {}
        rows = zip(encoding.sequences, encoding.words, encoding.offsets, strict=True)
        for place, (text, word, (start, end)) in enumerate(rows):
            if text is None:
                found.append(None)
                continue
            # Where the tokenizer names no word, as for a mask that the text holds, the piece is one.
            number = known.setdefault((text, -place - 1 if word is None else word), len(known))
            if number == len(spans):
                spans.append([text, start, end])
            elif end > start:  # a piece may stand for nothing but the space before a word
                empty = spans[number][1] == spans[number][2]
                spans[number][1:] = [start if empty else min(spans[number][1], start), max(spans[number][2], end)]
            found.append(number)
        return cls(tuple(found), tuple(texts[text][start:end] for text, start, end in spans))

    @classmethod
    def alone(cls, pieces: Sequence[str], special: Sequence[bool]) -> "Words":
        """Each piece is a word: of ids whose text is not known."""
        count = iter(range(len(pieces)))
        of = tuple(None if is_special else next(count) for is_special in special)
        return cls(of, tuple(piece for piece, word in zip(pieces, of, strict=True) if word is not None))

    def pieces(self, word: int) -> list[int]:
        """The places of a word's pieces."""
        return [place for place, one in enumerate(self.of) if one == word]

    def units(self) -> list[list[int]]:
        """The places of each word's pieces and of each special token, in the order of the row."""
        found: list[list[int]] = []
        at: dict[int, int] = {}
        for place, word in enumerate(self.of):
            if word is not None and word in at:
                found[at[word]].append(place)
                continue
            if word is not None:
                at[word] = len(found)
            found.append([place])
        return found


@dataclass(frozen=True)
class Found:
    """Where a word that was asked for stands."""

    places: tuple[int, ...]  # of its pieces
    others: tuple[int, ...] = ()  # numbers of further words of the same name


def find_word(words: Words, pieces: Sequence[str], wanted: str | int) -> Found:
    """A word by its text (else whatever its case), by its number from 0, or a special token by its name."""
    if isinstance(wanted, bool) or not isinstance(wanted, str | int):
        raise BertsmithError(f"word is {wanted!r}; give a word of the text, or its number from 0.")
    if isinstance(wanted, str):
        named = _find_named(words, pieces, wanted.strip())
        if named is not None:
            return named
        if not wanted.strip().removeprefix("-").isdecimal():
            raise BertsmithError(
                f"word is {wanted!r}, which does not stand in the text as the model reads it; give one of: "
                f"{_list(words)}; or its number from 0."
            )
    number, count = int(wanted), len(words.names)
    if not -count <= number < count:
        raise BertsmithError(f"word is {number}, but the text has {counted(count, 'word')}, 0 to {count - 1}.")
    return Found(tuple(words.pieces(number % count)))


def _find_named(words: Words, pieces: Sequence[str], wanted: str) -> Found | None:
    for spell in (str, str.casefold):
        same = [number for number, name in enumerate(words.names) if spell(name) == spell(wanted)]
        if same:
            return Found(tuple(words.pieces(same[0])), tuple(same[1:]))
    place = next((place for place, piece in enumerate(pieces) if piece == wanted), None)
    return None if place is None else Found((place,))


def _list(words: Words) -> str:
    names = list(dict.fromkeys(words.names))
    return ", ".join(names[:LISTED]) + (f" and {len(names) - LISTED:,} more" if len(names) > LISTED else "")


def merge_words(weights: Array, units: Sequence[Sequence[int]]) -> Array:
    """(…, pieces, pieces) -> (…, units, units): what goes to a word is the sum over its pieces, what comes from it
    the mean over them, so that a row that sums to 1 still does."""
    count = weights.shape[-1]
    keys = np.zeros((count, len(units)), weights.dtype)
    for unit, places in enumerate(units):
        keys[list(places), unit] = 1
    queries = (keys / keys.sum(axis=0, keepdims=True)).T
    merged: Array = queries @ (weights @ keys)
    return merged
