"""What stands on an encoder: one head for all, whose shape says what it reads and computes.

Masked-token prediction, next-sentence, classification, tagging, spans and choices differ only in a `HeadShape`.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from bertsmith.data.batch import Batch
from bertsmith.layers.config import Config, HeadShape
from bertsmith.layers.dropping import drop_out
from bertsmith.layers.linear import Linear


class Head(nn.Module):
    def __init__(self, config: Config, shape: HeadShape, reads: int = 0) -> None:
        """`reads` is the width of what the head is given; 0: the encoder's."""
        super().__init__()
        reads = reads or config.width
        self.shape = shape
        self.dropout = getattr(config, shape.drops) if shape.drops else 0.0
        width = shape.dense or reads
        self.dense = Linear(reads, width, shape.bias) if shape.dense else None
        self.norm = nn.LayerNorm(width, eps=config.eps, bias=config.norm_bias) if shape.norm else None
        self.out = Output(width, shape) if shape.outputs else None

    def forward(self, hidden: Tensor, batch: Batch, table: Tensor, at: Tensor | None = None) -> Tensor:
        """hidden (tokens, width) -> (tokens | rows, outputs); `at` picks tokens, `table` is the word table."""
        x = read(hidden, batch, self.shape.reads) if at is None else hidden.index_select(0, at)
        if self.dense is not None:
            x = self.dense(x, activation=self.shape.activation)
        if self.norm is not None:
            x = self.norm(x)
        if self.dropout and self.training:
            x = drop_out(x, self.dropout)
        return x if self.out is None else self.out(x, table)


class Output(nn.Module):
    def __init__(self, width: int, shape: HeadShape) -> None:
        super().__init__()
        self.weight = None if shape.tied else nn.Parameter(torch.empty(shape.outputs, width))
        self.bias = nn.Parameter(torch.empty(shape.outputs))

    def forward(self, x: Tensor, table: Tensor) -> Tensor:
        return F.linear(x, table if self.weight is None else self.weight, self.bias)


def read(hidden: Tensor, batch: Batch, reads: str) -> Tensor:
    """(tokens, width) -> what a head reads: every token, each row's first, or each row's mean."""
    if reads == "first":
        return hidden.index_select(0, batch.firsts)
    if reads == "mean":
        return batch.reduce(hidden, "sum") / batch.counts
    return hidden
