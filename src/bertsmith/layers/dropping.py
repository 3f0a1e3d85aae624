"""Dropout: in training a share of numbers is left out, and the others grow by as much."""

import torch
from torch import Tensor
from torch.nn import functional as F

PARTS = 1 << 16


def drop_out(x: Tensor, share: float) -> Tensor:
    """On a CPU `share` is taken to the nearest 65,536th."""
    return x * draw_kept(x, share) if x.device.type == "cpu" else F.dropout(x, share)


def draw_kept(like: Tensor, share: float) -> Tensor:
    """For each number of `like` what it is multiplied by: 0, or what makes up for those that are.

    torch draws 64 bits for each number and makes a float of them, which takes three times as long; 16 are enough.
    """
    count, dropped = like.numel(), round(share * PARTS)
    drawn = torch.empty(-(-count // 4), dtype=torch.int64).random_(-(1 << 63), None)
    kept = drawn.view(torch.int16)[:count].view(like.shape) >= dropped - PARTS // 2
    return kept.to(like.dtype).mul_(PARTS / (PARTS - dropped))
