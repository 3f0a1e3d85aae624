"""One transformer block: attention and feed-forward, each with its residual and its norm before or after."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from bertsmith.data.batch import Batch
from bertsmith.layers.activation import ACTIVATIONS, KERNELS
from bertsmith.layers.attention import Attention
from bertsmith.layers.config import Config
from bertsmith.layers.linear import Linear
from bertsmith.layers.position import Turns
from bertsmith.layers.relative import Offsets


class FeedForward(nn.Module):
    def __init__(self, config: Config) -> None:
        super().__init__()
        self.activation = config.activation
        self.gated = config.gated
        self.dropout = config.dropout
        self.up = Linear(config.width, config.inner * (2 if config.gated else 1), config.bias)
        self.down = Linear(config.inner, config.width, config.bias)

    def forward(self, x: Tensor, add: Tensor, is_end: bool = False) -> Tensor:
        """`is_end`: of a compiled encoder the one layer that is not, but takes the same kernels."""
        if x.is_cuda and self.activation in KERNELS and (is_end or torch.compiler.is_compiling()):
            inner = self._activate(x)
        elif self.gated:
            gate, value = self.up(x).chunk(2, dim=-1)  # (tokens, inner) each
            inner = ACTIVATIONS[self.activation](gate) * value
        else:
            inner = self.up(x, activation=self.activation)
        return self.down(inner, add=add, drop=self.dropout)

    def _activate(self, x: Tensor) -> Tensor:
        """By kernels of our own."""
        from bertsmith.layers.gating import activate, gate  # imports Triton, which comes with torch for CUDA

        if self.gated:
            return gate(self.up(x), self.activation)
        if self.up.bias is None or self.up.weight is None or self.up.low is not None:
            return self.up(x, activation=self.activation)
        return activate(F.linear(x, self.up.weight), self.up.bias, self.activation)


class Block(nn.Module):
    def __init__(self, config: Config, layer: int) -> None:
        super().__init__()
        self.pre_norm = config.pre_norm
        # The embedding ends in a norm, so the first pre-norm would only norm it again (ModernBERT, section 2.1).
        self.attention_norm = norm(config) if layer or not config.pre_norm else nn.Identity()
        self.attention = Attention(config, layer)
        self.feed_norm = norm(config)
        self.feed = FeedForward(config)

    def forward(
        self, x: Tensor, batch: Batch, places: Turns | Offsets | None = None, at: Tensor | None = None
    ) -> Tensor:
        """x (tokens, width); `at` asks for some tokens only, which look at all of them."""
        is_end = at is not None and batch.reach is not None
        if self.pre_norm:
            x = self.attention(self.attention_norm(x), batch, places, add=x, at=at)
            return self.feed(self.feed_norm(x), add=x, is_end=is_end)
        x = self.attention_norm(self.attention(x, batch, places, add=x, at=at))
        return self.feed_norm(self.feed(x, add=x, is_end=is_end))


def norm(config: Config, width: int = 0) -> nn.LayerNorm:
    return nn.LayerNorm(width or config.width, eps=config.eps, bias=config.norm_bias)
