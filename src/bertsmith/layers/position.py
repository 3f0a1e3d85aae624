"""Rotary positions (RoFormer, arXiv 2104.09864): queries and keys are turned by an angle that grows with the position.

In: the position of each token. Out: a table of cosines and sines, one for all layers of the same base, and `turn`.
"""

import torch
from torch import Tensor

Turns = tuple[Tensor, Tensor]


def turns(positions: Tensor, theta: float, size: int) -> Turns:
    """Cosines and sines for heads of `size`, each (tokens, 1, size), in full precision."""
    steps = torch.arange(0, size, 2, dtype=torch.float32, device=positions.device) / size
    angles = positions.float()[:, None] * (1.0 / theta**steps)  # (tokens, size / 2)
    angles = torch.cat((angles, angles), dim=-1)[:, None]  # (tokens, 1, size): the same for all heads
    return angles.cos(), angles.sin()


def turn(x: Tensor, by: Turns) -> Tensor:
    """x (tokens, heads, size), its two halves taken as the coordinates of a plane."""
    cos, sin = by
    left, right = x.chunk(2, dim=-1)
    return (x * cos + torch.cat((-right, left), dim=-1) * sin).to(x.dtype)
