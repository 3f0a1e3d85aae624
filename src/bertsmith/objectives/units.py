"""What is hidden together: pieces, whole words, phrases of a list, spans of any of these.

In: a batch and what the vocabulary says of its ids. Out: for each token the index of the first token of its unit. A
unit lies within one row and holds no special token beside another; what it is depends on its row (and chance) alone.
"""

import math
from collections import defaultdict
from collections.abc import Sequence

import torch
from torch import Tensor

from bertsmith.data.batch import Batch
from bertsmith.errors import BertsmithError
from bertsmith.objectives.chance import Chance
from bertsmith.objectives.lookup import Tables

# SpanBERT (arXiv 1907.10529, section 3.1): how many units a span has is geometric, and at most ten.
ENDS, LONGEST = 0.2, 10
_BASE = -7046029254386353131  # of the numbers that phrases are known by; odd, so that the products lose nothing


def find_starts(batch: Batch, tables: Tables, whole_words: bool, phrases: "Phrases | None") -> Tensor:
    """(tokens,): where a piece, a word or a phrase begins."""
    special = tables.special[batch.ids]
    starts = tables.begins[batch.ids] if whole_words else torch.ones_like(special)
    if phrases is not None:
        starts = starts & ~phrases.find_inner(batch)
    return starts | special | special.roll(1) | (batch.positions == 0)


def first_of_units(starts: Tensor) -> Tensor:
    """(tokens,): the index of the first token of each token's unit."""
    place = torch.arange(len(starts), device=starts.device)
    return torch.where(starts, place, 0).cummax(0).values


def join_spans(starts: Tensor, batch: Batch, tables: Tables, chance: Chance) -> Tensor:
    """Where a span of several units begins, given where units do; a special token is none of its units."""
    lengths = draw_lengths(chance.draw())
    ends = lengths.cumsum(0)
    unit = starts.long().cumsum(0)
    first = torch.arange(len(starts), device=starts.device) - batch.positions  # of each token's row
    # A row's n-th length is that of its n-th token. A row has no more units than lengths, so its spans suffice.
    place = unit - unit[first] + (ends - lengths)[first]
    span = torch.searchsorted(ends, place, right=True)
    special = tables.special[batch.ids]
    return (span != span.roll(1)) | special | special.roll(1)


def draw_lengths(chance: Tensor) -> Tensor:
    """Numbers from 0 to below 1 -> lengths by the geometric distribution, cut behind the longest."""
    stays = 1 - ENDS
    lengths = torch.log1p(-chance * (1 - stays**LONGEST)) / math.log(stays)
    return (lengths.long() + 1).clamp(max=LONGEST)


class Phrases:
    """Names, entities, terms: sequences of ids that are hidden as a whole wherever they occur.

    Those that overlap in a text become one.
    """

    def __init__(self, phrases: Sequence[Sequence[int]]) -> None:
        known: dict[int, set[int]] = defaultdict(set)
        for phrase in phrases:
            if not phrase:
                raise BertsmithError("a phrase to hide as a whole has no tokens; leave it out of the list.")
            known[len(phrase)].add(_number(phrase))
        self.longest = max(known, default=0)
        self._known = {length: torch.tensor(sorted(numbers)) for length, numbers in known.items() if length > 1}

    def find_inner(self, batch: Batch) -> Tensor:
        """(tokens,): whether a token goes on with a phrase that began before it."""
        inner = torch.zeros_like(batch.ids, dtype=torch.bool)
        number = batch.ids
        for length in range(2, self.longest + 1):
            number = number * _BASE + batch.ids.roll(1 - length)  # of the `length` ids from each token on
            if length in self._known:
                in_row = batch.positions.roll(1 - length) == batch.positions + length - 1
                begins = _is_in(number, self._on(batch.ids.device, length)) & in_row
                for behind in range(1, length):
                    inner = inner | begins.roll(behind)
        return inner

    def _on(self, device: torch.device, length: int) -> Tensor:
        if self._known[length].device != device:
            self._known[length] = self._known[length].to(device)
        return self._known[length]


def _is_in(numbers: Tensor, table: Tensor) -> Tensor:
    place = torch.searchsorted(table, numbers).clamp(max=len(table) - 1)
    return table[place] == numbers


def _number(phrase: Sequence[int]) -> int:
    """As `find_inner` counts it, in 64 bits with a sign."""
    found = phrase[0]
    for id in phrase[1:]:
        found = found * _BASE + id
    return (found + 2**63) % 2**64 - 2**63
