"""Token vectors become one vector a text: poolings, dense layers and unit length of sentence-transformers folders."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from bertsmith.data.batch import Batch

# The last part of the class names in a Dense module's config.json; never imported by name.
DENSE_ACTIVATIONS = {
    "Identity": nn.Identity,
    "Tanh": nn.Tanh,
    "ReLU": nn.ReLU,
    "GELU": nn.GELU,
    "SiLU": nn.SiLU,
    "Sigmoid": nn.Sigmoid,
}


def _weighted_mean(x: Tensor, batch: Batch) -> Tensor:
    total = batch.reduce(x * (batch.positions + 1)[:, None], "sum")
    return total / (batch.counts * (batch.counts + 1) // 2)


# (tokens, width) -> (rows, width)
POOLINGS: dict[str, Callable[[Tensor, Batch], Tensor]] = {
    "cls": lambda x, batch: x[batch.firsts],
    "mean": lambda x, batch: batch.reduce(x, "sum") / batch.counts,
    "max": lambda x, batch: batch.reduce(x, "max"),
    "mean_sqrt_len_tokens": lambda x, batch: batch.reduce(x, "sum") / batch.counts.sqrt(),
    "weightedmean": _weighted_mean,
    "lasttoken": lambda x, batch: x[batch.bounds[1:].long() - 1],
}


@dataclass
class DenseShape:
    inputs: int
    outputs: int
    bias: bool = True
    activation: str = "Tanh"


class Pooling(nn.Module):
    """Several modes are laid side by side, as sentence-transformers does."""

    def __init__(self, modes: tuple[str, ...] = ("mean",), dense: tuple[DenseShape, ...] = (), normalize: bool = False):
        super().__init__()
        self.modes = modes
        self.normalize = normalize
        self.shapes = dense
        self.dense = nn.ModuleList(nn.Linear(d.inputs, d.outputs, bias=d.bias) for d in dense)

    def forward(self, hidden: Tensor, batch: Batch, normalize: bool | None = None) -> Tensor:
        """hidden (tokens, width) -> (rows, width of a vector), in full precision"""
        hidden = hidden.float()
        vectors = torch.cat([POOLINGS[mode](hidden, batch) for mode in self.modes], dim=-1)
        for shape, layer in zip(self.shapes, self.dense, strict=True):
            vectors = DENSE_ACTIVATIONS[shape.activation]()(layer(vectors))
        return F.normalize(vectors, dim=-1) if (self.normalize if normalize is None else normalize) else vectors
