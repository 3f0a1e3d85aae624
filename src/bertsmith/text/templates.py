"""Where the special tokens of a row stand, and which segment each part belongs to.

In: an engine whose post-processor is set. Out: a `Template`, read once by looking at what the engine makes of one word
and of a pair of words, so that rows of any cut can be put together afterwards without asking the engine again.
"""

from dataclasses import dataclass, replace

from tokenizers import Tokenizer as Engine


@dataclass(frozen=True)
class Slot:
    """One place of a row: a special token (`sequence` is None) or all that was kept of one sequence."""

    sequence: int | None
    segment: int
    id: int = 0


@dataclass(frozen=True)
class Template:
    """The places of a row of one text, and those of a row of two."""

    single: tuple[Slot, ...]
    pair: tuple[Slot, ...]

    def slots(self, paired: bool, specials: bool) -> tuple[Slot, ...]:
        """The places of a row; without special tokens only those of the sequences are left."""
        places = self.pair if paired else self.single
        return places if specials else tuple(slot for slot in places if slot.sequence is not None)

    def specials(self, paired: bool) -> int:
        """How many places of a row are taken by special tokens."""
        return sum(slot.sequence is None for slot in (self.pair if paired else self.single))

    def in_one_segment(self) -> "Template":
        """The same places for a model that is not told which text a token is of."""
        single, pair = (tuple(replace(slot, segment=0) for slot in slots) for slots in (self.single, self.pair))
        return Template(single, pair)


def read_template(engine: Engine) -> Template:
    """Finds the template by example: encode one word, then a pair of it, and see what stands around."""
    word = _word_with_pieces(engine)
    return Template(single=_slots(engine, word, None), pair=_slots(engine, word, word))


def _word_with_pieces(engine: Engine) -> str:
    # An added token always becomes a piece; "a" alone may be missing from a small vocabulary and vanish.
    for word in ["a", *(token.content for token in engine.get_added_tokens_decoder().values())]:
        if engine.encode(word, add_special_tokens=False).ids:
            return word
    return next((piece for piece in engine.get_vocab() if engine.encode(piece, add_special_tokens=False).ids), "a")


def _slots(engine: Engine, word: str, pair: str | None) -> tuple[Slot, ...]:
    row = engine.encode(word, pair)
    slots: list[Slot] = []
    for id, segment, sequence in zip(row.ids, row.type_ids, row.sequence_ids, strict=True):
        if sequence is None:
            slots.append(Slot(None, segment, id))
        elif not any(slot.sequence == sequence for slot in slots):
            slots.append(Slot(sequence, segment))
    return tuple(slots)
