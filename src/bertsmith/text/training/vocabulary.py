"""What a training gives: the pieces in the order of their ids, and what the engine needs beside them."""

from dataclasses import dataclass, field

from bertsmith.errors import BertsmithError
from bertsmith.text.training.table import Alphabet


@dataclass
class Vocabulary:
    """`merges` are BPE's, `scores` are unigram's; `covered` is the part of the characters that it can spell."""

    pieces: list[str]
    merges: list[tuple[str, str]] = field(default_factory=list)
    scores: list[float] = field(default_factory=list)
    covered: float = 1.0


def check_room(size: int, specials: int, needed: int, what: str) -> None:
    """Without room for the special tokens and what every text is spelled with there is no vocabulary."""
    if size < specials + needed:
        raise BertsmithError(
            f"--size {size:,} is too small: {specials} special tokens and {what} already take "
            f"{specials + needed:,} pieces; give more than that."
        )


def describe_alphabet(alphabet: Alphabet) -> str:
    """The words for the characters that must fit."""
    return f"the {len(alphabet.codes):,} most frequent characters ({alphabet.covered:.2%} of the text)"
