"""The activations of released checkpoints, and the names that their configs give them."""

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional as F

from bertsmith.layers.onednn import round_rows


def gelu(x: Tensor) -> Tensor:
    """On a CPU of a rounded number of rows: torch leaves it to oneDNN, which keeps a kernel for each that it meets."""
    is_plain = x.device.type != "cpu" or x.dim() != 2 or not x.is_contiguous() or torch.compiler.is_compiling()
    filler = 0 if is_plain else round_rows(len(x)) - len(x)
    return F.gelu(F.pad(x, (0, 0, 0, filler)))[: len(x)] if filler else F.gelu(x)


ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "gelu": gelu,
    "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"),
    "relu": F.relu,
    "silu": F.silu,
    "tanh": torch.tanh,
}
KERNELS = ("gelu", "gelu_tanh", "silu", "relu")  # that gating.py computes
