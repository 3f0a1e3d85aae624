"""What the distance between two tokens adds to the score of one that looks at the other.

In: a batch. Out: `Offsets`, made once a pass for all layers and rows, which each layer's attention asks for its scores.
MPNet (arXiv 2004.09297) learns a number for each kind of distance and each head, as T5 does (arXiv 1910.10683, section
2.1); how DeBERTa compares words with distances is in disentangled.py.
"""

import math
from functools import lru_cache

import torch
from torch import Tensor, nn

from bertsmith.data.batch import Batch
from bertsmith.layers.config import Config
from bertsmith.layers.linear import Linear

BUCKETS, FURTHEST = 32, 128  # of T5, which the reference takes whatever the settings say


class Offsets:
    divisor: int  # products of queries and keys are divided by its root

    def of(self, qkv: Linear) -> "Offsets":
        """Those of a layer, whose queries, keys and values this makes."""
        return self

    def add(self, q: Tensor, k: Tensor) -> Tensor:
        """To the scaled scores of these, (rows, heads, length, size) both: (rows | 1, heads, length, length)."""
        raise NotImplementedError


class Biases(Offsets):
    """`whole[h, i, j]` is what head h adds where token i looks at token j, for rows as long as the longest."""

    def __init__(self, whole: Tensor, size: int) -> None:
        self.whole, self.divisor = whole, size

    def add(self, q: Tensor, k: Tensor) -> Tensor:
        length = q.shape[2]
        return self.whole[None, :, :length, :length]


class Bias(nn.Module):
    def __init__(self, config: Config) -> None:
        super().__init__()
        self.size = config.width // config.heads
        self.weight = nn.Parameter(torch.empty(BUCKETS, config.heads))

    def forward(self, batch: Batch) -> Offsets:
        longest = batch.longest
        line = self.weight.t()[:, bucket_steps(longest).to(self.weight.device)]  # (heads, 2 * longest - 1)
        # The row of a token is the line seen through a window, which moves back by one from token to token.
        return Biases(line.unfold(1, longest, 1).flip(1), self.size)


@lru_cache(64)
@torch.inference_mode(False)  # what is kept may be asked for in training
def bucket_steps(longest: int) -> Tensor:
    """T5's kind of each step from a token to another, from longest - 1 back to longest - 1 ahead.

    Half of the kinds is for each direction, half of those for one step each; further ones share kinds by their
    logarithm. Full precision at each point of the way, as a whole power of two would else fall into the kind below.
    """
    steps = torch.arange(1 - longest, longest)
    half, exact = BUCKETS // 2, BUCKETS // 4
    apart = steps.abs()
    shares = torch.log(apart.clamp(min=1).float() / exact) / math.log(FURTHEST / exact)
    far = (exact + (shares * (half - exact)).long()).clamp(max=half - 1)
    return torch.where(apart < exact, apart, far) + half * (steps > 0)
