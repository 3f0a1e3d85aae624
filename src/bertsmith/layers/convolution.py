"""What neighbours say, beside the first layer (DeBERTa-v2-xlarge): a convolution over the embedding of each row.

In: what the first layer gives, the embedding, the batch. Out: their sum, normed.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from bertsmith.data.batch import Batch
from bertsmith.layers.activation import ACTIVATIONS
from bertsmith.layers.config import Config
from bertsmith.layers.dropping import drop_out


class Convolution(nn.Module):
    def __init__(self, config: Config) -> None:
        super().__init__()
        self.activation, self.dropout = config.kernel_activation, config.dropout
        self.weight = nn.Parameter(torch.empty(config.width, config.width, config.kernel))
        self.bias = nn.Parameter(torch.empty(config.width))
        self.norm = nn.LayerNorm(config.width, eps=config.eps)

    def forward(self, x: Tensor, entry: Tensor, batch: Batch) -> Tensor:
        """x (tokens, width), behind which there may be rows that are no tokens; entry (tokens, width)"""
        near = self.weight.shape[2] // 2
        steps = range(-near, near + 1)
        seen = torch.stack([_step(entry, batch, step) for step in steps], dim=-1)  # (tokens, width, kernel)
        y = F.linear(seen.flatten(1), self.weight.flatten(1), self.bias)
        if self.dropout and self.training:
            y = drop_out(y, self.dropout)
        y = ACTIVATIONS[self.activation](y)
        found: Tensor = self.norm(x + F.pad(y, (0, 0, 0, len(x) - len(y))))
        return found


def _step(x: Tensor, batch: Batch, step: int) -> Tensor:
    """For each token the vector of the one so many places on, 0 where its row has none."""
    places = batch.positions + step
    inside = (places >= 0) & (places < batch.counts[:, 0][batch.owners])
    return x.roll(-step, 0) * inside[:, None].to(x.dtype)
