"""Token vectors become one vector a text: poolings, dense layers and unit length of sentence-transformers folders."""

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


def _mean(x: Tensor) -> Tensor:
    return x.mean(dim=1)


def _weighted_mean(x: Tensor) -> Tensor:
    weights = torch.arange(1, x.shape[1] + 1, device=x.device, dtype=x.dtype)[:, None]
    return (x * weights).sum(dim=1) / weights.sum()


# (rows, length, width) -> (rows, width)
POOLINGS = {
    "cls": lambda x: x[:, 0],
    "mean": _mean,
    "max": lambda x: x.amax(dim=1),
    "mean_sqrt_len_tokens": lambda x: x.sum(dim=1) / x.shape[1] ** 0.5,
    "weightedmean": _weighted_mean,
    "lasttoken": lambda x: x[:, -1],
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
        pooled = []
        for start, rows, length in batch.groups:
            x = hidden[start : start + rows * length].unflatten(0, (rows, length))
            pooled.append(torch.cat([POOLINGS[mode](x) for mode in self.modes], dim=-1))
        vectors = torch.cat(pooled)
        for shape, layer in zip(self.shapes, self.dense, strict=True):
            vectors = DENSE_ACTIVATIONS[shape.activation]()(layer(vectors))
        return F.normalize(vectors, dim=-1) if (self.normalize if normalize is None else normalize) else vectors
