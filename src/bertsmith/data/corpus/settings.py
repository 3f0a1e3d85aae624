"""What a corpus build is asked for. In: what a person gives. Out: checked settings, which also say what has changed."""

from dataclasses import asdict, dataclass, fields
from math import log
from typing import Any

from bertsmith.errors import BertsmithError
from bertsmith.text.sources import UNITS, Unit

FILTERS = ("shortest", "tokens_per_character", "repetition", "boilerplate")


@dataclass(frozen=True)
class CorpusSettings:
    unit: Unit | None = None  # what a document is in text; None: as `read_documents` has it
    field: str = "text"
    held_out: float = 0.01
    duplicates: bool = True  # exact ones, of documents and of paragraphs
    near_duplicates: bool = True
    similarity: float = 0.8  # of two documents that count as one
    filters: bool = True
    shortest: int = 50  # characters of a document
    tokens_per_character: float | None = None  # from which on a document does not fit; None: by the vocabulary
    repetition: float = 0.5  # share of a document's five-token sequences that it has said before
    boilerplate: int = 20  # documents in which a short line may not stand; at least one in a thousand
    gram: int = 13  # words in a row that a paragraph may not share with an excluded file
    codes: bool = False  # rows of integers instead of text
    vocabulary: int | None = None  # of codes; None: the largest plus one

    def __post_init__(self) -> None:
        for name, low, high in (
            ("held_out", 0, 0.5), ("similarity", 0.5, 1), ("tokens_per_character", 0.01, 100), ("repetition", 0, 1),
            ("shortest", 0, 1 << 40), ("boilerplate", 2, 1 << 60), ("gram", 2, 100), ("vocabulary", 1, 1 << 31),
        ):  # fmt: skip
            value = getattr(self, name)
            if value is not None and not low <= value <= high:
                raise BertsmithError(f"{name} must be between {low} and {high}, not {value}.")
        if self.unit is not None and self.unit not in UNITS:
            raise BertsmithError(f"unit {self.unit!r} is not known; use one of {', '.join(UNITS)}.")
        if self.vocabulary is not None and not self.codes:
            raise BertsmithError("vocabulary is for codes; the vocabulary of text is its tokenizer's.")
        self._refuse_unread()

    def _refuse_unread(self) -> None:
        """What was chosen and would have no effect."""
        chosen = {each.name for each in fields(self) if getattr(self, each.name) != each.default}
        for is_idle, names, why in (
            (self.codes, ("unit", *FILTERS), "is for text, and codes are rows of numbers"),
            (not self.filters, FILTERS, "is one of the filters, and those are left out"),
            (not self.near_duplicates, ("similarity",), "is for near duplicates, and those are left in"),
        ):
            idle = [name for name in names if name in chosen]
            if is_idle and idle:
                raise BertsmithError(f"{idle[0]} {why}; leave one of the two away.")

    def most_tokens(self, vocabulary: int) -> float:
        """Tokens a character from which on a document is dropped.

        Cramming (Geiping and Goldstein 2023) drops from 0.3 on with a vocabulary of 32,768; a smaller one cuts all text
        finer, by about the ratio of the logarithms.
        """
        return self.tokens_per_character or 0.3 * log(32_768) / log(min(max(vocabulary, 256), 32_768))


def name_difference(before: dict[str, Any], now: dict[str, Any]) -> str | None:
    """What differs between two descriptions of a build, for a sentence; None: nothing."""
    for field in fields(CorpusSettings):
        old, new = before["settings"].get(field.name), now["settings"].get(field.name)
        if old != new:
            return f"{field.name} was {old} and is now {new}"
    if before["tokenizer"] != now["tokenizer"]:
        return "the tokenizer is another"
    for name, what in (("sources", "the sources"), ("exclude", "the excluded files")):
        if before[name] != now[name]:
            old_files = {file["path"] for file in before[name]}
            changed = [file["path"] for file in now[name] if file not in before[name]]
            changed += sorted(old_files - {file["path"] for file in now[name]})
            return f"{what} are not the same (first: {changed[0] if changed else 'their order'})"
    return None


def describe(settings: CorpusSettings) -> dict[str, Any]:
    return asdict(settings)
