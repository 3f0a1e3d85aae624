"""Activations on a GPU in training, with a gate or without: each number is read and written once in either pass.

In: a product that holds gates and values side by side, or one with its bias apart. Out: what the next product reads. A
compiler that sees the two halves of a row apart joins their gradients by computing each of them everywhere, rather
activates a second time in the backward pass than keep what it had, and reads what goes back once more for the bias.

Imports Triton: only a GPU's path may import this file.
"""

from typing import Any

import torch
import triton
from torch import Tensor

from bertsmith.layers import activation_kernels as kernels

BLOCK = 2048
ROWS, COLUMNS, EACH = 16, 256, 256  # of a tile, and the tokens that a program takes in turn


def gate_values(both: Tensor, kind: str) -> Tensor:
    """both (tokens, 2 * inner), gates before values -> (tokens, inner)"""
    inner = both.shape[1] // 2
    out = both.new_empty(len(both), inner)
    kernels.gate[(triton.cdiv(out.numel(), BLOCK),)](both, out, out.numel(), INNER=inner, KIND=kind, BLOCK=BLOCK)
    return out


gate = torch.library.custom_op("bertsmith::gate", gate_values, mutates_args=())


@gate.register_fake
def _(both, kind):  # type: ignore[no-untyped-def]
    return both.new_empty(both.shape[0], both.shape[1] // 2)


def gate_grads(grad: Tensor, both: Tensor, kind: str) -> Tensor:
    out = torch.empty_like(both)
    count, inner = grad.numel(), grad.shape[1]
    given = grad.contiguous()
    kernels.gate_back[(triton.cdiv(count, BLOCK),)](given, both, out, count, INNER=inner, KIND=kind, BLOCK=BLOCK)
    return out


gate_back = torch.library.custom_op("bertsmith::gate_back", gate_grads, mutates_args=())


@gate_back.register_fake
def _(grad, both, kind):  # type: ignore[no-untyped-def]
    return torch.empty_like(both)


def _keep(ctx: Any, inputs: tuple[Tensor, str], output: Tensor) -> None:
    ctx.save_for_backward(inputs[0])
    ctx.kind = inputs[1]


def _differentiate(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
    return gate_back(grad, ctx.saved_tensors[0], ctx.kind), None


gate.register_autograd(_differentiate, setup_context=_keep)


def activate_values(given: Tensor, bias: Tensor, kind: str) -> Tensor:
    """given (tokens, inner), bias (inner,) -> the activation of each sum"""
    out, (tokens, inner) = torch.empty_like(given), given.shape
    kernels.apply[(triton.cdiv(tokens, ROWS), triton.cdiv(inner, COLUMNS))](
        given, bias, out, tokens, INNER=inner, KIND=kind, ROWS=ROWS, COLUMNS=COLUMNS
    )
    return out


activate = torch.library.custom_op("bertsmith::activate", activate_values, mutates_args=())


@activate.register_fake
def _(given, bias, kind):  # type: ignore[no-untyped-def]
    return torch.empty_like(given)


def activate_grads(grad: Tensor, given: Tensor, bias: Tensor, kind: str) -> tuple[Tensor, Tensor]:
    """What goes back to the product, and to its bias."""
    out, (tokens, inner) = torch.empty_like(given), given.shape
    parts = given.new_empty(triton.cdiv(tokens, EACH), inner, dtype=torch.float32)
    kernels.apply_back[(triton.cdiv(inner, COLUMNS), len(parts))](
        grad.contiguous(), given, bias, out, parts, tokens, EACH, INNER=inner, KIND=kind, ROWS=ROWS, COLUMNS=COLUMNS
    )
    return out, parts.sum(dim=0).to(bias.dtype)


activate_back = torch.library.custom_op("bertsmith::activate_back", activate_grads, mutates_args=())


@activate_back.register_fake
def _(grad, given, bias, kind):  # type: ignore[no-untyped-def]
    return torch.empty_like(given), torch.empty_like(bias)


def _keep_both(ctx: Any, inputs: tuple[Tensor, Tensor, str], output: Tensor) -> None:
    ctx.save_for_backward(*inputs[:2])
    ctx.kind = inputs[2]


def _differentiate_plain(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, None]:
    return *activate_back(grad, *ctx.saved_tensors, ctx.kind), None


activate.register_autograd(_differentiate_plain, setup_context=_keep_both)
