"""Many rows with a mask each, kept as arrays: a text of n pieces is asked n times, and lists would keep a GPU waiting.

In: texts in pieces, or rows that are made already. Out: a `MaskTable`, which holds each text once and makes the ids of
some rows when they are read; which of its rows are equal; batches of them by length.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import numpy as np

from bertsmith.errors import BertsmithError
from bertsmith.tasks.masks import MaskRow
from bertsmith.text.encoding import Encoding
from bertsmith.text.tokenizer import Tokenizer

Array = np.ndarray[Any, Any]
AT_ONCE = 2**10  # rows whose ids are compared at a time


@dataclass(frozen=True)
class MaskTable:
    """Row n asks for one piece: `wanted[n]`, at `at[n]` in it, where `hidden[n]` masks begin (none: they are there).

    Of a text that does not fit, a row has the special tokens around it and `room` pieces: it leaves out `skipped[n]`
    pieces behind the first `before` places, and `cut[n]` behind the pieces that it keeps.
    """

    ids: Array  # of all texts, end to end
    segments: Array
    starts: Array  # where in them the text of each row begins
    lengths: Array
    at: Array
    wanted: Array
    hidden: Array
    skipped: Array
    cut: Array
    before: int = 0
    room: int = 0
    mask_id: int = 0

    def __len__(self) -> int:
        return len(self.lengths)

    @classmethod
    def of_rows(cls, rows: Sequence[MaskRow]) -> "MaskTable":
        """Rows that are masked already, and want one piece each."""
        lengths = np.array([len(row.ids) for row in rows], dtype=np.int64)
        nothing = np.zeros_like(lengths)
        ids, segments = _flatten([row.ids for row in rows]), _flatten([row.segments for row in rows])
        at, wanted = _flatten([row.at for row in rows]), _flatten([row.wanted for row in rows])
        return cls(ids, segments, np.cumsum(lengths) - lengths, lengths, at, wanted, nothing, nothing, nothing)

    def take(self, rows: Array | slice) -> "MaskTable":
        """Some of the rows, of the same texts."""
        return replace(
            self, starts=self.starts[rows], lengths=self.lengths[rows], at=self.at[rows], wanted=self.wanted[rows],
            hidden=self.hidden[rows], skipped=self.skipped[rows], cut=self.cut[rows],
        )  # fmt: skip

    def fill(self) -> tuple[Array, Array]:
        """Ids and segments of all rows, end to end."""
        begins = np.cumsum(self.lengths) - self.lengths
        places = np.arange(self.lengths.sum()) - np.repeat(begins, self.lengths)
        source = places + np.repeat(self.starts, self.lengths)
        if self.skipped.any() or self.cut.any():
            source += np.where(places >= self.before, np.repeat(self.skipped, self.lengths), 0)
            source += np.where(places >= self.before + self.room, np.repeat(self.cut, self.lengths), 0)
        ids = self.ids[source]
        for nth in range(self.hidden.max(initial=0)):  # nearly always one
            some = self.hidden > nth
            ids[(begins + self.at + nth)[some]] = self.mask_id
        return ids, self.segments[source]

    def share(self) -> Array:
        """For each row the number of the first one that is equal to it, wherever the wanted piece differs.

        Two sentences that differ in one word ask the same there.
        """
        firsts: dict[bytes, int] = {}
        numbers = range(len(self))
        found: list[int] = []
        for start in range(0, len(self), AT_ONCE):
            some = self.take(slice(start, start + AT_ONCE))
            ends = np.cumsum(some.lengths)
            told = np.insert(some.fill()[0], ends - some.lengths, some.at).astype(np.int32).tobytes()
            bounds = (4 * (ends + np.arange(1, len(some) + 1))).tolist()
            pairs = zip([0, *bounds], bounds, numbers[start:], strict=False)
            found += [firsts.setdefault(told[low:high], number) for low, high, number in pairs]
        return np.array(found, dtype=np.int64)

    def batches(self, budget: int) -> Iterator[Array]:
        """Numbers of rows in batches, in the order of `plan_batches`."""
        order = np.argsort(-self.lengths, kind="stable")
        ends = np.cumsum(self.lengths[order])
        start = 0
        while start < len(order):
            done = ends[start - 1] if start else 0
            stop = max(start + 1, int(np.searchsorted(ends, done + budget, side="right")))
            yield order[start:stop]
            start = stop


def hide_each(
    read: Sequence[Encoding], tokenizer: Tokenizer, limit: int, mask_id: int, is_inside: bool
) -> tuple[MaskTable, Array]:
    """A row for each piece that can be asked for, text by text, and how many each text has; as `HiddenText` has them.

    `is_inside` hides the later pieces of its word too.
    """
    slots = tokenizer.template.slots(paired=False, specials=True)
    before = next(place for place, slot in enumerate(slots) if slot.sequence is not None)
    around = tokenizer.template.specials(paired=False)
    room = limit - around
    if read and room < 1:
        raise BertsmithError(f"length={limit} is too short: the special tokens of a row alone take {around} ids.")
    sizes = np.array([len(one) for one in read], dtype=np.int64)
    starts = np.cumsum(sizes) - sizes
    ids = _flatten([one.ids for one in read])
    pieces = np.arange(len(ids)) - np.repeat(starts + before, sizes)  # from 0, without special tokens
    counts = sizes - around
    is_piece = (pieces >= 0) & (pieces < np.repeat(counts, sizes))
    is_asked = is_piece & ~np.isin(ids, sorted(tokenizer.special_ids - {tokenizer.unk_id}))
    asked = np.flatnonzero(is_asked)
    owners = np.repeat(np.arange(len(read)), sizes)[asked]
    mine = counts[owners]
    left = np.maximum(mine - room, 0)  # pieces that do not fit
    skipped = np.clip(pieces[asked] - room // 2, 0, left)
    ends = _find_word_ends(read, is_piece, is_asked, starts, asked) if is_inside else asked + 1
    stops = pieces[asked] + ends - asked
    table = MaskTable(
        ids, _flatten([one.segments for one in read]), starts[owners], sizes[owners] - left,
        at=before + pieces[asked] - skipped, wanted=ids[asked],
        hidden=np.minimum(stops, skipped + np.minimum(mine, room)) - pieces[asked],
        skipped=skipped, cut=left - skipped, before=before, room=room, mask_id=mask_id,
    )  # fmt: skip
    return table, np.bincount(owners, minlength=len(read))


def _find_word_ends(read: Sequence[Encoding], is_piece: Array, is_asked: Array, starts: Array, asked: Array) -> Array:
    """The place behind the last piece of the word that each asked one belongs to, counted over all texts."""
    words = _flatten([[-1 if word is None else word for word in one.words] for one in read])
    goes_on = np.zeros(len(words) + 1, dtype=bool)
    goes_on[1:-1] = (words[1:] == words[:-1]) & is_piece[:-1] & is_asked[1:]
    goes_on[starts] = False
    borders = np.flatnonzero(~goes_on)
    return borders[np.searchsorted(borders, asked, side="right")]


def _flatten(rows: Sequence[Sequence[int]]) -> Array:
    return np.fromiter(chain.from_iterable(rows), np.int64, sum(map(len, rows)))
