"""Ids become vectors: word, position and segment tables, summed, normed, and widened where the tables are narrow."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from bertsmith.data.batch import Batch
from bertsmith.layers.block import norm
from bertsmith.layers.config import Config
from bertsmith.layers.dropping import drop_out
from bertsmith.layers.linear import Linear


def table(rows: int, width: int) -> nn.Embedding:
    """A table that is filled later; for random numbers on the meta device torch would load its whole compiler."""
    return nn.Embedding(rows, width, _weight=torch.empty(rows, width))


class _Rows(torch.autograd.Function):
    """Rows of a table whose gradient is there already and takes theirs in place.

    For every pass torch makes a gradient of the whole table anew, for whose pages a CPU waits longer than for a layer.
    """

    @staticmethod
    def forward(ctx: Any, weight: Tensor, ids: Tensor) -> Tensor:
        ctx.weight = weight
        ctx.save_for_backward(ids)
        return F.embedding(ids, weight)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[None, None]:
        ctx.weight.grad.index_add_(0, ctx.saved_tensors[0], grad)
        return None, None


class Embedding(nn.Module):
    keeps_gradient = False  # whoever trains it fills the word table's from step to step

    def __init__(self, config: Config) -> None:
        super().__init__()
        narrow = config.embed_width
        self.first_position = config.first_position
        self.dropout = config.dropout
        self.tokens = table(config.vocabulary, narrow)
        self.positions = table(config.positions, narrow) if config.position == "learned" else None
        self.segments = table(config.segments, narrow) if config.segments else None
        self.norm = norm(config, narrow)
        self.project = Linear(narrow, config.width) if narrow != config.width else None

    def forward(self, batch: Batch) -> Tensor:
        return self.join(*self.look_up(batch))

    def look_up(self, batch: Batch) -> list[Tensor]:
        """What each table says of each token, (tokens, embed_width)."""
        adds_in_place = self.keeps_gradient and self.tokens.weight.grad is not None and torch.is_grad_enabled()
        found = [_Rows.apply(self.tokens.weight, batch.ids) if adds_in_place else self.tokens(batch.ids)]
        if self.segments is not None:
            found.append(self.segments(batch.segments))
        if self.positions is not None:
            found.append(self.positions(batch.positions + self.first_position))
        return found

    def join(self, x: Tensor, *more: Tensor) -> Tensor:
        for each in more:
            x = x + each
        x = self.norm(x)
        if self.dropout and self.training:
            x = drop_out(x, self.dropout)
        return x if self.project is None else self.project(x)
