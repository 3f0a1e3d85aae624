"""A text of which pieces are hidden behind masks, a few at a time, to ask the model for them.

In: an `Encoding` that may be longer than the model reads. Out: rows that fit, the hidden pieces in the middle.
"""

from collections.abc import Sequence
from functools import cached_property

from bertsmith.errors import BertsmithError
from bertsmith.tasks.masks import MaskRow
from bertsmith.text.encoding import Encoding
from bertsmith.text.tokenizer import Tokenizer


def need_mask(tokenizer: Tokenizer) -> int:
    """The mask's id; an error where there is none."""
    if tokenizer.mask_id is None:
        raise BertsmithError("this model's tokenizer has no mask token, so no word can be hidden; give another model.")
    return tokenizer.mask_id


class HiddenText:
    """Pieces are counted from 0 without the special tokens around the text."""

    def __init__(self, read: Encoding, tokenizer: Tokenizer, limit: int) -> None:
        around = tokenizer.template.specials(paired=False)
        self.read = read
        self.dropped = read.dropped
        self.count = len(read) - around
        self.first = next((i for i, sequence in enumerate(read.sequences) if sequence is not None), 0)
        self.room = limit - around
        self._unasked = tokenizer.special_ids - {tokenizer.unk_id}
        self._unknown = tokenizer.unk_id
        if self.room < 1:
            raise BertsmithError(f"length={limit} is too short: the special tokens of a row alone take {around} ids.")

    def id(self, piece: int) -> int:
        return self.read.ids[self.first + piece]

    def is_asked(self, piece: int) -> bool:
        """Whether it is a word's; a special token that somebody wrote into a text is not."""
        return self.id(piece) not in self._unasked

    def is_unknown(self, piece: int) -> bool:
        return self.id(piece) == self._unknown

    @cached_property
    def offsets(self) -> Sequence[tuple[int, int]]:
        return self.read.offsets[self.first : self.first + self.count]

    @cached_property
    def words(self) -> Sequence[int | None]:
        """As the tokenizer cuts them before it cuts pieces."""
        return self.read.words[self.first : self.first + self.count]

    def word_end(self, piece: int) -> int:
        """The number behind the last piece of the word that this one belongs to."""
        end = piece + 1
        while end < self.count and self.words[end] == self.words[piece] and self.is_asked(end):
            end += 1
        return end

    def hide(self, hidden: Sequence[int], asked: Sequence[int], mask_id: int) -> MaskRow:
        """The row with these pieces hidden, asking for some of them; what does not fit is left out at both ends."""
        start, stop, before = 0, self.count, self.first
        if self.count <= self.room:
            row, segments = list(self.read.ids), self.read.segments
        else:
            middle = (asked[0] + asked[-1] + 1) // 2
            start = min(max(middle - self.room // 2, 0), self.count - self.room)
            stop = start + self.room
            row, segments = self._cut(self.read.ids, start, stop), self._cut(self.read.segments, start, stop)
        for piece in hidden:
            if start <= piece < stop:
                row[before + piece - start] = mask_id
        places = tuple(before + piece - start for piece in asked)
        return MaskRow(row, segments, at=places, wanted=tuple(self.id(piece) for piece in asked))

    def _cut(self, values: list[int], start: int, stop: int) -> list[int]:
        """Of a row's values those of the special tokens around the text, and of these pieces."""
        before = self.first
        return [*values[:before], *values[before + start : before + stop], *values[before + self.count :]]
