"""What was dropped and why: counts that parts of a build add up, with a few excerpts for a person to judge by."""

from dataclasses import dataclass, field
from typing import Any

EXCERPTS = 5
_WIDTH = 160

# In the order in which a document meets them.
REASONS = {
    "empty": "no text, or none was left after cleaning",
    "too short": "shorter than --shortest characters",
    "excluded": "paragraphs that share a run of words with an excluded file",
    "poor fit": "more tokens to a character than --tokens-per-character, or a fifth of them unknown: another language, "
    "code, tables or noise",
    "repetition": "says the same again and again",
    "duplicate": "a document that was there before, word for word",
    "near duplicate": "a document that is nearly the same as one before",
    "boilerplate": "short lines that stand in many documents",
    "duplicate paragraph": "long paragraphs that were there before, word for word",
    "nothing left": "all their paragraphs went",
}
OF_PARAGRAPHS = ("excluded", "boilerplate", "duplicate paragraph")


@dataclass
class Dropped:
    count: int = 0  # documents, or paragraphs for the reasons in OF_PARAGRAPHS
    characters: int = 0
    excerpts: list[str] = field(default_factory=list)

    def add(self, text: str, characters: int | None = None) -> None:
        self.count += 1
        self.characters += len(text) if characters is None else characters
        if len(self.excerpts) < EXCERPTS and (shown := excerpt(text)):
            self.excerpts.append(shown)

    def merge(self, other: dict[str, Any]) -> None:
        self.count += other["count"]
        self.characters += other["characters"]
        self.excerpts = (self.excerpts + other["excerpts"])[:EXCERPTS]


def excerpt(text: str) -> str:
    line = " ".join(text[: 4 * _WIDTH].split())
    return line if len(line) <= _WIDTH else line[: _WIDTH - 1] + "…"


class Reasons(dict[str, Dropped]):
    def __missing__(self, reason: str) -> Dropped:
        assert reason in REASONS, reason
        self[reason] = dropped = Dropped()
        return dropped
