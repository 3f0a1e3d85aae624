"""Disentangled attention (DeBERTa, arXiv 2006.03654, section 3.1): what a word is, compared with how far others stand.

Distances have vectors. Each layer makes keys and queries of them by the matrices that make those of words; to the score
of a word's query with a word's key come those of its query with the distance's key, and of the key with the distance's
query. Far distances share a vector by their logarithm (v2). In: a batch. Out: `Offsets`.
"""

from functools import lru_cache

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from bertsmith.data.batch import Batch
from bertsmith.layers.config import Config
from bertsmith.layers.dropping import drop_out
from bertsmith.layers.linear import Linear
from bertsmith.layers.relative import Offsets

PARTS = 3  # scores that are summed up, for which their divisor makes up


class Distances(nn.Module):
    def __init__(self, config: Config) -> None:
        super().__init__()
        self.config = config
        self.weight = nn.Parameter(torch.empty(2 * (config.buckets or config.positions), config.width))
        self.norm = nn.LayerNorm(config.width, eps=config.eps)
        # What matrices that are packed, and learn no more, make of the table; by their number, beside themselves.
        self.kept: dict[int, tuple[Tensor, Tensor]] = {}

    def forward(self, batch: Batch) -> Offsets:
        return Vectors(self, batch.longest)


class Vectors(Offsets):
    """Those of one pass."""

    def __init__(self, distances: Distances, longest: int) -> None:
        config = distances.config
        self.distances, self.longest = distances, longest
        self.heads, self.divisor = config.heads, PARTS * config.width // config.heads
        self.drop = config.dropout if distances.training else 0.0
        self.known: dict[int, tuple[int, int, Tensor, Tensor]] = {}

    def reach(self, length: int) -> tuple[int, int, Tensor, Tensor]:
        """The part of the table that rows of a length have: its first row, the one behind its last, and for each token
        and each other that of their distance, counted from the first, (length, length); the same turned about."""
        if length not in self.known:
            config, weight = self.distances.config, self.distances.weight
            line = distance_rows(config.buckets, config.positions, length)
            last, first = int(line[0]), int(line[-1])
            # The row of a token is the line seen through a window, which moves back by one from token to token.
            square = (line - first).to(weight.device).unfold(0, length, 1).flip(0)
            self.known[length] = first, last + 1, square, square.t().contiguous()
        return self.known[length]

    def of(self, qkv: Linear) -> Offsets:
        if qkv.packed is None or qkv.low is not None:
            first, end, *_ = self.reach(self.longest)
            return Compared(self, self._make(qkv, first, end), first)
        kept, number = self.distances.kept, id(qkv.packed)
        if number not in kept:
            with torch.inference_mode(False), torch.no_grad():
                kept[number] = qkv.packed, self._make(qkv, 0, len(self.distances.weight))
        return Compared(self, kept[number][1], 0)

    def _make(self, qkv: Linear, first: int, end: int) -> Tensor:
        """Queries and keys of a part of the table, (2, heads, distances, size), divided already as scores are."""
        table = self.distances.norm(self.distances.weight[first:end])
        if self.drop:
            table = drop_out(table, self.drop)
        width = table.shape[1]
        if qkv.weight is None or qkv.low is not None:
            made = qkv(table)[:, : 2 * width]
        else:
            made = F.linear(table, qkv.weight[: 2 * width], None if qkv.bias is None else qkv.bias[: 2 * width])
        return (made * self.divisor**-0.5).view(end - first, 2, self.heads, -1).permute(1, 2, 0, 3)


class Compared(Offsets):
    """Those of one layer."""

    def __init__(self, vectors: Vectors, made: Tensor, first: int) -> None:
        self.vectors, self.made, self.first, self.divisor = vectors, made, first, vectors.divisor

    def add(self, q: Tensor, k: Tensor) -> Tensor:
        rows, heads, length, size = q.shape
        first, end, square, turned = self.vectors.reach(length)
        queries, keys = self.made[:, :, first - self.first : end - self.first]  # (heads, distances, size)
        # All rows are one matrix here, as what is made of distances is the same for each of them.
        q, k = (x.transpose(0, 1).reshape(heads, rows * length, size) for x in (q, k))
        forth = torch.bmm(q, keys.transpose(1, 2)).unflatten(1, (rows, length))
        back = torch.bmm(k, queries.transpose(1, 2)).unflatten(1, (rows, length))
        forth = forth.gather(-1, square.expand(heads, rows, length, length))
        back = back.gather(-1, turned.expand(heads, rows, length, length))
        return (forth + back.transpose(2, 3)).transpose(0, 1)


@lru_cache(64)
@torch.inference_mode(False)  # what is kept may be asked for in training
def distance_rows(buckets: int, furthest: int, longest: int) -> Tensor:
    """The row of the table for each distance of a token from another, from longest - 1 behind it to as many before it.

    With buckets, half of them on each side are for one distance each, the others for as many as the logarithm says.
    """
    behind = torch.arange(longest - 1, -longest, -1)
    span = buckets or furthest
    if buckets:
        exact = buckets // 2
        far = behind.abs().clamp(min=exact)
        # In full precision, not more: the reference's buckets are those of its rounding.
        shares = torch.log(far / exact) / torch.log(torch.tensor((furthest - 1) / exact))
        beyond = torch.ceil(shares * (exact - 1)).long() + exact
        behind = torch.where(behind.abs() <= exact, behind, beyond * behind.sign())
    return (behind + span).clamp(0, 2 * span - 1)
