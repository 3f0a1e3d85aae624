"""A linear layer that can fold an activation or a residual into its product.

On x86 CPUs `pack` re-orders the matrix once into oneDNN's blocked layout. A 16-token text then streams the weights at
twice the speed of a plain product, 64 tokens run 1.4 times as fast, and GELU or the residual cost next to nothing,
being applied to each tile while it is in cache. Packing moves numbers without changing them: `dense_weight` gives
them back.
"""

import platform
from collections.abc import Callable
from functools import cache

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from bertsmith.layers.activation import ACTIVATIONS
from bertsmith.layers.lowrank import LowRank

# Our activation names that oneDNN can fuse, with its name and variant.
FUSED = {"gelu": ("gelu", "none"), "gelu_tanh": ("gelu", "tanh"), "relu": ("relu", ""), "tanh": ("tanh", "")}
TOKENS_HINT = 256  # oneDNN picks the block layout for about this many rows; measured equal from 16 to 1024


def round_rows(rows: int) -> int:
    """Up to one of few numbers: oneDNN keeps a kernel for each that it meets, and memory would climb for hours.

    There are 68 of them up to 2,048; of more than 500 rows, no more than 6 % are added.
    """
    step = 8 if rows <= 64 else min(64, max(16, 1 << (rows.bit_length() - 5)))
    return rows + -rows % step


def can_pack(device: torch.device, dtype: torch.dtype) -> bool:
    """Whether this machine has the fused product: torch built with oneDNN, an x86 CPU, a type it computes in."""
    return (
        device.type == "cpu"
        and dtype in (torch.float32, torch.bfloat16)
        and platform.machine().lower() in ("x86_64", "amd64")
        and torch.backends.mkldnn.is_available()
        and hasattr(torch.ops.mkldnn, "_linear_pointwise")
        and hasattr(torch.ops.mkldnn, "_reorder_linear_weight")
        and (dtype == torch.float32 or _packs_halves())
    )


@cache
def _packs_halves() -> bool:
    """Whether the CPU has what oneDNN needs for bfloat16 (AVX-512 or newer); plain products need nothing."""
    return hasattr(torch.ops.mkldnn, "_is_mkldnn_bf16_supported") and torch.ops.mkldnn._is_mkldnn_bf16_supported()


@cache
def _products() -> tuple[Callable[..., Tensor], Callable[..., Tensor]]:
    """The product alone or with an activation, and with a sum; looked up once, as each look-up costs microseconds."""
    found = torch.ops.mkldnn._linear_pointwise
    return found.default, found.binary


class Linear(nn.Module):
    def __init__(self, inputs: int, outputs: int, bias: bool = True) -> None:
        super().__init__()
        self.size = (outputs, inputs)
        self.weight: nn.Parameter | None = nn.Parameter(torch.empty(outputs, inputs))
        self.bias = nn.Parameter(torch.empty(outputs)) if bias else None
        self.packed: Tensor | None = None
        self.low: LowRank | None = None  # of an adapter

    def forward(self, x: Tensor, activation: str | None = None, add: Tensor | None = None, drop: float = 0.0) -> Tensor:
        """`activation(x W' + b)`, or `x W' + b + add`; `drop` of the product is left out of the sum in training."""
        if self.packed is not None and self.low is None:
            return self._forward_packed(x, activation, add)
        y = self._product(x)
        if activation:
            y = ACTIVATIONS[activation](y)
        if drop and self.training:
            y = F.dropout(y, drop)
        return y if add is None else y + add

    def _product(self, x: Tensor) -> Tensor:
        """The plain product, with what an adapter adds."""
        if self.packed is not None:
            y = self._forward_packed(x, None, None)
        else:
            assert self.weight is not None
            y = F.linear(x, self.weight, self.bias)
        return y if self.low is None else y + self.low(x)

    def _forward_packed(self, x: Tensor, activation: str | None, add: Tensor | None) -> Tensor:
        product, product_and_add = _products()
        if add is not None:
            return product_and_add(x, add, self.packed, self.bias, "add")
        filler = round_rows(len(x)) - len(x)  # of a head; the encoder's rows come rounded
        if filler and x.dim() == 2:
            return self._forward_packed(F.pad(x, (0, 0, 0, filler)), activation, None)[: len(x)]
        if activation is None:
            return product(x, self.packed, self.bias, "none", [], "")
        if activation in FUSED:
            name, variant = FUSED[activation]
            return product(x, self.packed, self.bias, name, [], variant)
        return ACTIVATIONS[activation](product(x, self.packed, self.bias, "none", [], ""))

    def pack(self) -> None:
        """Keep the weights in oneDNN's layout alone: for inference only, they no longer train or move."""
        assert self.weight is not None
        self.packed = torch.ops.mkldnn._reorder_linear_weight(self.weight.detach().contiguous(), TOKENS_HINT)
        self.weight = None

    def dense_weight(self) -> Tensor:
        """The plain matrix, packed or not, with what an adapter adds."""
        whole = self.weight if self.packed is None else self.packed.to_dense()
        assert whole is not None
        return whole if self.low is None else whole + self.low.dense().to(whole.dtype)
