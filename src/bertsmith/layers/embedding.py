"""Ids become vectors: word, position and segment tables, summed, normed, and widened where the tables are narrow."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from bertsmith.data.batch import Batch
from bertsmith.layers.block import norm
from bertsmith.layers.config import Config
from bertsmith.layers.linear import Linear


def table(rows: int, width: int) -> nn.Embedding:
    """A table that is filled later; for random numbers on the meta device torch would load its whole compiler."""
    return nn.Embedding(rows, width, _weight=torch.empty(rows, width))


class Embedding(nn.Module):
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
        found = [self.tokens(batch.ids)]
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
            x = F.dropout(x, self.dropout)
        return x if self.project is None else self.project(x)
