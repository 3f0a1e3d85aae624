"""Where an objective's random numbers are from: new at each pass, or for ever the same for the same row.

In: a batch. Out: for each of its tokens a number from 0 to below 1, as often as one asks.
"""

from typing import Protocol

import torch
from torch import Tensor

from bertsmith.data.batch import Batch

# Odd constants of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014) as signed numbers: the products wrap around.
_STEP, _ONE, _TWO = -7046029254386353131, -4658895280553007687, -7723592293110705685
_BITS = 24  # as many as a float32 holds


class Chance(Protocol):
    def draw(self) -> Tensor:
        """(tokens,) float32, another one at each call."""


class Fresh:
    """By torch's generator of the batch's device, which whoever makes the passes has seeded."""

    def __init__(self, batch: Batch) -> None:
        self.batch = batch

    def draw(self) -> Tensor:
        return torch.rand(len(self.batch.ids), device=self.batch.ids.device)


class Fixed:
    """From the ids of a token's row, its place in there and a seed alone, whatever else is in the batch."""

    def __init__(self, batch: Batch, seed: int) -> None:
        own = _mix(batch.ids * _STEP + batch.positions + seed)
        rows = own.new_zeros(len(batch.lengths)).index_add(0, batch.owners, own)  # integers: the order has no effect
        self.state = _mix(rows[batch.owners] ^ (batch.positions * _STEP))

    def draw(self) -> Tensor:
        self.state = self.state + _STEP
        return _shift(_mix(self.state), 64 - _BITS).float() / 2**_BITS


def _mix(x: Tensor) -> Tensor:
    """Every bit of the result depends on every bit of `x`, int64."""
    x = (x ^ _shift(x, 30)) * _ONE
    x = (x ^ _shift(x, 27)) * _TWO
    return x ^ _shift(x, 31)


def _shift(x: Tensor, by: int) -> Tensor:
    """To the right, with zeros from the left."""
    return (x >> by) & ((1 << (64 - by)) - 1)
