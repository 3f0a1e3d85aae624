"""An encoder that no other library opens, for comparison: ReLU², normed queries and keys, skips along the stream.

    python benchmarks/free_form.py pretrain --recipe free --corpus CORPUS --minutes 8 --out DIR

After `install()` this process reads, trains and writes the family `free` by the package's own loop, loaders and verbs:
ModernBERT's parts, but a feed-forward of four times the width with ReLU² and no gate, queries and keys of length 1
before they are compared (times the root of a head's size), the embedding added again before each layer, and to the
upper half what left the lower half, as in a U-net, each by a learned number that begins at 0. Without a measured lead
it stays out of the package.
"""

import sys
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from bertsmith.data.batch import Batch
from bertsmith.layers.activation import ACTIVATIONS
from bertsmith.layers.config import Config
from bertsmith.layers.embedding import Embedding
from bertsmith.layers.linear import Linear
from bertsmith.models import families, family, modernbert
from bertsmith.models.network import Network, _norm
from bertsmith.training import recipes

NAME = "free"
FREE = replace(
    modernbert.FAMILY,
    name=NAME,
    class_name="Free",
    names={**modernbert.NAMES, "stream": "stream"},
    fixed={**modernbert.FAMILY.fixed, "gated": False, "activation": "relu2"},
    presets={"free-base": {"depth": 8, "width": 640, "heads": 10, "inner": 2560}},
)


class Stream(nn.Module):
    """How much of the embedding and of the mirrored layer is added before each layer."""

    def __init__(self, depth: int) -> None:
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(2 * depth))  # fresh biases begin at 0

    def shares(self, layer: int) -> Tensor:
        return self.bias[2 * layer : 2 * layer + 2]


def add(x: Tensor, first: Tensor, mirrored: Tensor, shares: Tensor) -> Tensor:
    """One graph for all layers, as their number is no part of it."""
    first_share, mirrored_share = shares.to(x.dtype).unbind()
    return x + first_share * first + mirrored_share * mirrored


class NormedQueries(Linear):
    """Queries, keys and values of which the first two have length 1, but for the root of a head's size."""

    def __init__(self, config: Config) -> None:
        super().__init__(config.width, 3 * config.width, config.bias)
        self.heads = config.heads

    def forward(self, x: Tensor, *given: Any, **named: Any) -> Tensor:
        y = super().forward(x, *given, **named)
        parts = y.view(len(y), 3, self.heads, -1)
        turned = F.rms_norm(parts[:, :2], parts.shape[-1:])
        return torch.cat([turned, parts[:, 2:]], dim=1).view_as(y)


def install() -> None:
    """Make the family known to this process; others stay as they are."""
    if NAME in families.BY_TYPE:
        return
    ACTIVATIONS["relu2"] = lambda x: F.relu(x).square()
    family.ACTIVATION_NAMES["relu2"] = "relu2"
    families.FAMILIES.append(FREE)
    families.BY_TYPE[NAME] = FREE
    smith = recipes.RECIPES["smith"]
    sizes = {**smith.sizes, "inner": 2560}
    recipes.RECIPES[NAME] = replace(smith, name=NAME, preset="free-base", sizes=sizes)
    build, walk = Network.__init__, Network.states

    def begin(self: Network, config: Config, *given: Any, **named: Any) -> None:
        build(self, config, *given, **named)
        if config.family == NAME:
            for block in self.blocks:
                block.attention.qkv = NormedQueries(config)
            self.stream = Stream(config.depth)
            self.names = [name for name, _ in self.named_parameters()]
            self.parameter_count = sum(one.numel() for one in self.parameters())

    def states(self: Network, batch: Batch) -> Iterator[Tensor]:
        return walk_free(self, batch) if self.config.family == NAME else walk(self, batch)

    Network.__init__, Network.states = begin, states  # type: ignore[method-assign]


def walk_free(network: Network, batch: Batch) -> Iterator[Tensor]:
    """As `Network.states`, with the skips."""
    x = network.quick(Embedding.join)(network.embed, *network.embed.look_up(batch))
    first, depth, lower = x, network.config.depth, [x]
    _, far = network._turns(batch)
    for layer, block in enumerate(network.order):
        yield x
        mirrored = lower[depth - layer] if layer >= (depth + 1) // 2 else first
        x = network.quick(add)(x, first, mirrored, network.stream.shares(layer))
        run = block if network.compiled is None or batch.watched is not None else partial(network.compiled, block)
        x = run(x, batch, far)
        lower.append(x)
    assert network.final_norm is not None
    yield network.quick(_norm)(network.final_norm, x)


if __name__ == "__main__":
    from bertsmith.cli import main

    install()
    if len(sys.argv) == 1:  # `make bench` calls every script
        print(__doc__)
    else:
        main()
