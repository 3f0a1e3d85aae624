"""What oneDNN computes for us on a CPU: on which machines, for how many rows, and its product in training.

torch's own products in full precision are MKL's, which on an AMD CPU does without AVX-512: there oneDNN's take less
than half the time, forward and back.
"""

import platform
from collections.abc import Callable
from functools import cache
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable


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
        and (dtype == torch.float32 or packs_halves())
    )


@cache
def packs_halves() -> bool:
    """Whether the CPU has what oneDNN needs for bfloat16 (AVX-512 or newer); plain products need nothing."""
    return hasattr(torch.ops.mkldnn, "_is_mkldnn_bf16_supported") and torch.ops.mkldnn._is_mkldnn_bf16_supported()


@cache
def products() -> tuple[Callable[..., Tensor], Callable[..., Tensor]]:
    """The product alone or with an activation, and with a sum; looked up once, as each look-up costs microseconds."""
    found = torch.ops.mkldnn._linear_pointwise
    return found.default, found.binary


def rounds(x: Tensor) -> bool:
    """Whether products of these rows are oneDNN's, with kernels for rounded numbers of them; in bfloat16 all are."""
    if torch.compiler.is_compiling():
        return False
    return can_multiply(x) or (x.device.type == "cpu" and torch.is_autocast_enabled("cpu") and packs_halves())


def can_multiply(x: Tensor) -> bool:
    """Whether `multiply` takes these rows, once there is a rounded number of them, and is quicker than torch's own."""
    return (
        not torch.compiler.is_compiling()  # which chooses its products itself
        and x.device.type == "cpu"
        and x.dtype == torch.float32
        and x.dim() == 2
        and len(x) > 0  # a pass may ask for no place at all, and oneDNN has no product of no rows
        and not torch.is_autocast_enabled("cpu")
        and is_quicker()
    )


@cache
def is_quicker() -> bool:
    """By what the CPU is, not by a clock: a run that goes on must find the same product again."""
    capabilities: dict[str, Any] = getattr(torch.cpu, "get_capabilities", dict)()
    is_wide = "AMD" in capabilities.get("cpu_name", "") and capabilities.get("avx512_f", False)
    return is_wide and torch.backends.mkl.is_available() and can_pack(torch.device("cpu"), torch.float32)


class _Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        ctx.save_for_backward(x, weight)
        return _multiply(x, weight, bias)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
        x, weight = ctx.saved_tensors
        to_x, to_weight, to_bias = ctx.needs_input_grad
        return (
            _multiply(grad, weight.t()) if to_x else None,
            _multiply(grad.t(), x.t()) if to_weight else None,
            grad.sum(dim=0) if to_bias else None,
        )


def _multiply(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    return products()[0](x, weight, bias, "none", [], "")


def multiply(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """x (rows, inputs), weight (outputs, inputs) -> x W' + b, (rows, outputs); gradients once, not of gradients."""
    found: Tensor = _Product.apply(x, weight, bias)
    return found
