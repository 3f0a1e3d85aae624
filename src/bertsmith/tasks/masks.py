"""Where the masks of a text are: in the text, and in the rows that the encoder reads.

A text that is too long becomes overlapping windows; each mask is asked for in the window in which it lies most central.
"""

from collections import defaultdict
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor

from bertsmith.errors import BertsmithError
from bertsmith.tasks.spelling import Span
from bertsmith.tasks.task import Row, too_long
from bertsmith.text.encoding import Encoding
from bertsmith.text.tokenizer import Tokenizer

Talk = Generator[list[Row], list[Tensor], Any]  # yields rows, is sent what is wanted of them


@dataclass
class MaskRow(Row):
    """A row that asks for one mask, and what is kept of the answer: the `best` likeliest pieces, or the `wanted`."""

    best: int = 0
    wanted: Sequence[int] = ()


@dataclass
class SharedRow(Row):
    """A row that is read once for several with the same ids; all want as many pieces, or each names its own."""

    asks: Sequence[MaskRow] = ()

    @classmethod
    def of(cls, asks: Sequence[MaskRow]) -> "SharedRow":
        return cls(asks[0].ids, asks[0].segments, at=[ask.at[0] for ask in asks], asks=asks)


def ask_rows(rows: Sequence[MaskRow]) -> Talk:
    """What is wanted of each of these rows; those with the same ids are read once."""
    numbers: dict[tuple[int, ...], list[int]] = defaultdict(list)
    for number, row in enumerate(rows):
        numbers[tuple(row.ids)].append(number)
    scores = yield [SharedRow.of([rows[number] for number in some]) for some in numbers.values()]
    found: dict[int, Tensor] = {}
    for some, score in zip(numbers.values(), scores, strict=True):
        sizes = [len(rows[number].wanted) or score.shape[1] // len(some) for number in some]
        found.update(zip(some, score.split(sizes, dim=1), strict=True))
    return [found[number] for number in range(len(rows))]


@dataclass
class Mask:
    span: Span
    places: dict[int, int] = field(default_factory=dict)  # window -> position in its row
    window: int = 0  # the one to ask


@dataclass
class MaskedText:
    text: str
    windows: list[Encoding]
    masks: list[Mask]
    dropped: int

    def row(self, mask: Mask, filled: Mapping[int, int], best: int = 0) -> MaskRow:
        """The row that asks for `mask`, with the masks of these numbers filled by these ids."""
        window = self.windows[mask.window]
        ids = list(window.ids)
        for number, id in filled.items():
            place = self.masks[number].places.get(mask.window)
            if place is not None:
                ids[place] = id
        return MaskRow(ids, window.segments, at=[mask.places[mask.window]], best=best)

    def row_of_pieces(
        self, mask: Mask, size: int, before: Sequence[int], wanted: Sequence[int], mask_id: int
    ) -> MaskRow:
        """The row that asks for the next piece of words of `size` pieces in the mask's place, those `before` given."""
        window = self.windows[mask.window]
        place = mask.places[mask.window]
        word = [*before, *[mask_id] * (size - len(before))]
        ids = [*window.ids[:place], *word, *window.ids[place + 1 :]]
        segments = [*window.segments[:place], *[window.segments[place]] * len(word), *window.segments[place + 1 :]]
        return MaskRow(ids, segments, at=[place + len(before)], wanted=wanted)


def find_spans(tokenizer: Tokenizer, whole: Encoding) -> list[Span]:
    """Where the masks stand in the text of a row that was not cut."""
    if tokenizer.mask_id is None:
        raise BertsmithError("this model's tokenizer has no mask token, so there is nothing to fill.")
    if tokenizer.mask_id not in whole.ids:
        raise BertsmithError(f"the text has no mask; write {tokenizer.mask_token} where a word is wanted.")
    return [span for id, span in zip(whole.ids, whole.offsets, strict=True) if id == tokenizer.mask_id]


def find_masks(
    tokenizer: Tokenizer, text: str, whole: Encoding, spans: list[Span], length: int, truncate: str
) -> MaskedText:
    """The rows of at most `length` tokens that the text becomes, and the place of each mask in them."""
    room = length - tokenizer.template.specials(paired=False)
    slides = len(whole) > length and truncate == "windows"
    if len(whole) <= length:
        windows = [whole]
    elif slides:
        windows = tokenizer.windows(text, length=length, overlap=room // 2)
    elif truncate == "error":
        raise too_long(len(whole), length, windows=True)
    else:
        windows = [tokenizer.encode(text, length=length, truncate=truncate)]
    masks = [Mask(span) for span in spans]
    _place(masks, windows, tokenizer.mask_id)
    lost = [number for number, mask in enumerate(masks, 1) if not mask.places]
    if lost:
        raise BertsmithError(
            f"mask {lost[0]} of {len(masks)} lies in the part of the text that truncate={truncate!r} cuts away; "
            f"use truncate='windows' or a shorter text."
        )
    count = len(whole) - tokenizer.template.specials(paired=False)
    unseen = _unseen(count, {mask.window for mask in masks}, room) if slides else windows[0].dropped
    return MaskedText(text, windows, masks, unseen)


def _unseen(count: int, asked: set[int], room: int) -> int:
    """How many of the text's tokens are in none of the windows that are asked; neighbours share half their room."""
    seen = reach = 0
    for number in sorted(asked):
        start = number * (room - room // 2)
        stop = min(start + room, count)
        seen += stop - max(start, reach)
        reach = stop
    return count - seen


def _place(masks: list[Mask], windows: list[Encoding], mask_id: int | None) -> None:
    by_span = {mask.span: mask for mask in masks}
    farthest = dict.fromkeys(by_span, -1)  # from the nearer edge of a window
    for number, window in enumerate(windows):
        if mask_id not in window.ids:
            continue  # offsets cost time, and most windows of a long text need none
        for place, (id, span) in enumerate(zip(window.ids, window.offsets, strict=True)):
            if id != mask_id:
                continue
            by_span[span].places[number] = place
            edge = min(place, len(window) - 1 - place)
            if edge > farthest[span]:
                farthest[span] = edge
                by_span[span].window = number
