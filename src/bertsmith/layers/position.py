"""Rotary positions (RoFormer, arXiv 2104.09864): queries and keys are turned by an angle that grows with the position.

In: the position of each token. Out: cosines and sines, the same for all layers of one base, and `turn`.
"""

import torch
from torch import Tensor

Turns = tuple[Tensor, Tensor]


def turns(positions: Tensor, theta: float, size: int) -> Turns:
    """Cosines and sines for heads of `size`, each (tokens, 1, size), in full precision."""
    cos, sin = turn_tables(positions, theta, size)
    # Twice, for both halves of a head, and the same for all heads.
    return torch.cat((cos, cos), dim=-1)[:, None], torch.cat((sin, sin), dim=-1)[:, None]


def turn_tables(positions: Tensor, theta: float, size: int) -> Turns:
    """The same for one half of a head, each (positions, size / 2)."""
    steps = torch.arange(0, size, 2, dtype=torch.float32, device=positions.device) / size
    angles = positions.float()[:, None] * (1.0 / theta**steps)
    return angles.cos(), angles.sin()


def pick_turns(tables: Turns, positions: Tensor) -> Turns:
    """Of each token, (tokens, 1, size), from tables that begin with position 0."""
    cos, sin = (table[positions] for table in tables)
    return torch.cat((cos, cos), dim=-1)[:, None], torch.cat((sin, sin), dim=-1)[:, None]


def turn(x: Tensor, by: Turns) -> Tensor:
    """x (tokens, heads, size), its two halves taken as the coordinates of a plane."""
    cos, sin = by
    left, right = x.chunk(2, dim=-1)
    return (x * cos + torch.cat((-right, left), dim=-1) * sin).to(x.dtype)
