"""One row of ids, ready for a model, which can still say what each id came from.

In: what the engine made of one text or of two, and which of its pieces are kept. Out: an `Encoding`; ids and segments
are lists at once, pieces, offsets, words and sequences are worked out on first asking, as embedding never asks.
"""

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

from tokenizers import Encoding as Read

from bertsmith.text.templates import Slot

Ranges = Sequence[tuple[int, int]]


class Source:
    """What the engine made of one text; each list is copied out of it once, however many windows it becomes."""

    def __init__(self, read: Read, lead: int = 0) -> None:
        """`lead`: the characters of the text that the engine was not given, before all others."""
        self._read, self._lead = read, lead

    def __len__(self) -> int:
        return len(self._read)

    @cached_property
    def ids(self) -> list[int]:
        return self._read.ids

    @cached_property
    def offsets(self) -> list[tuple[int, int]]:
        offsets: list[tuple[int, int]] = self._read.offsets
        lead = self._lead
        return [(start + lead, end + lead) for start, end in offsets] if lead else offsets

    @cached_property
    def word_ids(self) -> list[int | None]:
        return self._read.word_ids


class Encoding:
    """One row: `ids`, `segments`, `dropped` (pieces cut away), and on asking `pieces, offsets, words, sequences`."""

    def __init__(
        self, texts: Sequence[str], sources: Sequence[Source], slots: Sequence[Slot], kept: Sequence[Ranges],
        spell: Callable[[int], str],
    ) -> None:  # fmt: skip
        """`sources[s]` is what the engine made of `texts[s]`; `kept[s]` are the ranges of its pieces that stay."""
        self._texts, self._sources, self._slots, self._kept = texts, sources, slots, kept
        self._spell = spell
        self.ids: list[int] = []
        self.segments: list[int] = []
        self.dropped = 0
        contents = [source.ids for source in sources]
        for slot in slots:
            if slot.sequence is None:
                self.ids.append(slot.id)
                self.segments.append(slot.segment)
                continue
            for start, stop in kept[slot.sequence]:
                self.ids += contents[slot.sequence][start:stop]
                self.segments += [slot.segment] * (stop - start)

    def __len__(self) -> int:
        return len(self.ids)

    def __repr__(self) -> str:
        return f"Encoding({len(self)} ids: {' '.join(self.pieces[:12])}{' …' if len(self) > 12 else ''})"

    def keep(self, kept: Sequence[Ranges]) -> "Encoding":
        """Another row of the same texts: `kept[s]` are the ranges of text s's pieces that stay."""
        return Encoding(self._texts, self._sources, self._slots, kept, self._spell)

    @cached_property
    def pieces(self) -> list[str]:
        """The vocabulary's spelling of each id; the engine's own would be the text's for what is unknown."""
        return [self._spell(id) for id in self.ids]

    @cached_property
    def offsets(self) -> list[tuple[int, int]]:
        """The span of characters of its own text that each piece came from; (0, 0) for special tokens.

        Spaces around a piece are left out, whether the engine counts them in (ModernBERT) or not (RoBERTa).
        """
        spans = self._gather(lambda source: source.offsets, (0, 0))
        rows = zip(self.pieces, spans, self.sequences, strict=True)
        return [(0, 0) if s is None else _trim(self._texts[s], piece, span) for piece, span, s in rows]

    @cached_property
    def words(self) -> list[int | None]:
        """Which word of its own text a piece belongs to; None for special tokens."""
        return self._gather(lambda source: source.word_ids, None)

    @cached_property
    def sequences(self) -> list[int | None]:
        """0 for pieces of the text, 1 for those of the pair, None for special tokens."""
        marks: list[int | None] = []
        for slot in self._slots:
            count = 1 if slot.sequence is None else sum(stop - start for start, stop in self._kept[slot.sequence])
            marks += [slot.sequence] * count
        return marks

    def _gather(self, of_source: Callable[[Source], list[Any]], of_special: Any) -> list[Any]:
        contents = [of_source(source) for source in self._sources]
        gathered: list[Any] = []
        for slot in self._slots:
            if slot.sequence is None:
                gathered.append(of_special)
            else:
                for start, stop in self._kept[slot.sequence]:
                    gathered += contents[slot.sequence][start:stop]
        return gathered


def _trim(text: str, piece: str, span: tuple[int, int]) -> tuple[int, int]:
    start, end = span
    covered = text[start:end]
    if piece == "▁" and "▁" not in covered:
        return start, start  # stands for the space before, or for the start of the text, not for the next character
    if covered and (covered[0].isspace() or covered[-1].isspace()):
        # A piece of whitespace only keeps what is not a space: a line break is a character of its own.
        edges = None if covered.strip() else " "
        start = end - len(covered.lstrip(edges))
        end = max(start, span[0] + len(covered.rstrip(edges)))
    return start, end
