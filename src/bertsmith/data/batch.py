"""Rows of ids laid end to end: what an encoder reads.

Nothing is padded. A batch of three rows with 5, 9 and 7 tokens is 21 tokens and the lengths (5, 9, 7), so every
product runs on real tokens only; attention alone looks at the bounds.
"""

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, groupby
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

Array = np.ndarray[Any, Any]


def reach_of(longest: int) -> int:
    """What kernels are told of the longest row: few sizes."""
    return max(16, 1 << (longest - 1).bit_length())


def round_size(number: int, least: int, parts: int = 8) -> int:
    """Up to a multiple of `least`, or of a part of the power of two below the number: few sizes, of which little is
    wasted."""
    step = max(least, (1 << (number.bit_length() - 1)) // parts)
    return -(-number // step) * step


def room_of_rows(lengths: Sequence[int]) -> int:
    """How many rows a recorded pass has room for."""
    return round_size(len(lengths), 8)


@dataclass
class Batch:
    ids: Tensor  # (tokens,)
    segments: Tensor  # (tokens,)
    positions: Tensor  # (tokens,) counted from 0 in each row
    lengths: tuple[int, ...]
    causal: bool = False  # whether a token sees only itself and those before it in its row
    watched: list[Tensor] | None = None  # where each layer puts its queries, keys and values; None: it does not
    wanted: Tensor | None = None  # the places, each once, whose last states are read; None: every place
    shift: Tensor | None = None  # (tokens, width): what is added to each vector behind the embedding, in its lengths
    reach: Tensor | None = None  # (longest, 0), in a batch for compiled passes: a size may change there, a number not

    @classmethod
    def of(
        cls,
        ids: Sequence[Sequence[int]],
        segments: Sequence[Sequence[int]] | None = None,
        device: str | torch.device = "cpu",
    ) -> "Batch":
        lengths = tuple(len(row) for row in ids)
        total = sum(lengths)
        flat = np.fromiter(chain.from_iterable(ids), np.int64, total)
        kinds = np.fromiter(chain.from_iterable(segments), np.int64, total) if segments else np.zeros_like(flat)
        return cls.of_flat(flat, kinds, lengths, device)

    @classmethod
    def of_flat(
        cls, ids: Array, segments: Array, lengths: tuple[int, ...], device: str | torch.device = "cpu"
    ) -> "Batch":
        """From arrays that lie end to end already."""
        starts = np.cumsum(lengths) - lengths
        positions = np.arange(len(ids)) - np.repeat(starts, lengths)
        on_device = [send(values, device) for values in (ids, segments, positions)]
        return cls(on_device[0], on_device[1], on_device[2], lengths)

    def varying(self) -> "Batch":
        """The same rows for passes that are compiled once: how many there are, and the longest, may differ in the next.

        The longest is told by powers of two, for which a kernel is made.
        """
        found = copy(self)
        found.reach = self.ids.new_empty(reach_of(max(self.lengths)), 0)
        for each in (found.reach, found.bounds):
            torch._dynamo.mark_dynamic(each, 0)
        return found

    @property
    def is_short(self) -> bool:
        """Of a varying batch: whether all rows fit into one program of a kernel."""
        return self.reach is not None and len(self.reach) <= 128

    def reading(self, ids: Tensor) -> "Batch":
        """The same rows with other ids in their places; what is known of their bounds is kept."""
        found = copy(self)
        found.ids = ids
        return found

    def reading_onward(self) -> "Batch":
        """The same rows, each token of which sees only what came before it."""
        found = copy(self)
        found.causal = True
        return found

    def wanting(self, places: Tensor | None) -> "Batch":
        """The same rows for a pass of which only the last states at these places are read."""
        found = copy(self)
        found.wanted = places
        return found

    def moved(self, shift: Tensor) -> "Batch":
        """The same rows, each token's vector moved by a share of its own length."""
        found = copy(self)
        found.shift = shift
        return found

    def watching(self, is_on: bool) -> "Batch":
        """The same rows for a pass whose queries, keys and values are wanted, or for one whose are not."""
        found = copy(self)
        found.watched = [] if is_on else None
        return found

    @cached_property
    def groups(self) -> list[tuple[int, int, int]]:
        """Neighbouring rows of one length: (first token, how many rows, length)."""
        found, start = [], 0
        for length, rows in groupby(self.lengths):
            count = sum(1 for _ in rows)
            found.append((start, count, length))
            start += count * length
        return found

    @cached_property
    def buckets(self) -> list["Bucket"]:
        """Neighbouring rows of like lengths, none shorter than three quarters of the first one's."""
        found: list[list[int]] = []
        for length in self.lengths:
            if not found or not 0.75 * found[-1][0] <= length <= found[-1][0]:
                found.append([])
            found[-1].append(length)
        return [Bucket.of(lengths, self.ids.device) for lengths in found]

    @cached_property
    def bounds(self) -> Tensor:
        """Where each row begins and the last one ends, (rows + 1,) int32, as variable-length kernels take it."""
        return send(np.cumsum((0, *self.lengths), dtype=np.int32), self.ids.device)

    @cached_property
    def firsts(self) -> Tensor:
        """The index of each row's first token."""
        return self.bounds[:-1].long()

    @cached_property
    def counts(self) -> Tensor:
        """(rows, 1): how many tokens each row has."""
        return send(np.asarray(self.lengths), self.ids.device)[:, None]

    @cached_property
    def longest(self) -> int:
        return max(self.lengths)

    @cached_property
    def mask(self) -> Tensor:
        """(rows, longest): which places of the padded form hold a token."""
        return torch.arange(self.longest, device=self.ids.device) < self.counts

    @cached_property
    def owners(self) -> Tensor:
        """(tokens,): the number of the row that each token stands in."""
        return send(np.repeat(np.arange(len(self.lengths)), self.lengths), self.ids.device)

    def pad(self, x: Tensor, value: float) -> Tensor:
        """Per-token values (tokens, …) as (rows, longest, …), `value` where a row has no token."""
        room = x.new_full((len(self.lengths), self.longest, *x.shape[1:]), value)
        return room.index_put((self.owners, self.positions), x)

    def reduce(self, x: Tensor, how: Literal["sum", "max"]) -> Tensor:
        """Each row's sum or maximum of (tokens, width) values, (rows, width)."""
        if x.is_cuda and how == "sum" and x.requires_grad:  # a step that is recorded has no lengths on the host
            return x.new_zeros(len(self.lengths), x.shape[1]).index_add(0, self.owners, x)
        if x.is_cuda and x.requires_grad:
            room = x.new_zeros(len(self.lengths), x.shape[1])
            return room.index_reduce(0, self.owners, x, "amax", include_self=False)
        if x.is_cuda:  # one kernel; elsewhere a call a length is faster
            return torch.segment_reduce(x, how, lengths=self.counts[:, 0], axis=0)
        found = []
        for start, rows, length in self.groups:
            some = x[start : start + rows * length].unflatten(0, (rows, length))
            found.append(some.sum(dim=1) if how == "sum" else some.amax(dim=1))
        return torch.cat(found)

    def split(self, x: Tensor) -> list[Tensor]:
        """Per-token values (tokens, …) back into one tensor a row."""
        return list(x.split(list(self.lengths)))


def send(values: Array, device: str | torch.device) -> Tensor:
    """An array on a device; a GPU takes it when it comes to it, while the host goes on."""
    tensor = torch.from_numpy(values)
    if torch.device(device).type != "cuda":
        return tensor.to(device)
    return tensor.pin_memory().to(device, non_blocking=True)


@dataclass
class Bucket:
    """Rows that are padded to the length of the first one, which is the longest."""

    tokens: int
    rows: int
    longest: int
    places: Tensor | None  # (tokens,): where each token stands in the padded form, (rows * longest,); None: as it is
    mask: Tensor | None  # (rows, longest): which places hold a token

    @classmethod
    def of(cls, lengths: Sequence[int], device: torch.device) -> "Bucket":
        rows, longest, tokens = len(lengths), lengths[0], sum(lengths)
        if tokens == rows * longest:
            return cls(tokens, rows, longest, None, None)
        mask = np.arange(longest) < np.asarray(lengths)[:, None]
        places = torch.from_numpy(np.flatnonzero(mask)).to(device)
        return cls(tokens, rows, longest, places, torch.from_numpy(mask).to(device))


def plan_batches(lengths: Sequence[int], budget: int) -> list[list[int]]:
    """Indices of rows in batches of at most `budget` tokens, the longest rows first and like lengths together.

    A row longer than the budget is a batch of its own. Rows of one length share one attention call, and starting with
    the largest batch shows at once whether memory suffices.
    """
    order = sorted(range(len(lengths)), key=lambda i: (-lengths[i], i))
    batches: list[list[int]] = []
    room = 0
    for i in order:
        if not batches or lengths[i] > room:
            batches.append([])
            room = budget
        batches[-1].append(i)
        room -= lengths[i]
    return batches
