"""Attention over packed rows as one operation of a compiled pass: in training on a GPU.

In: queries, keys and values as one product gave them, the bounds of the rows. Out: each token's mix of values. General
kernels are made for long rows of a few sizes: on short ones they spend most of their time on memory, keep sums that a
second kernel sorts out, and are handed turned copies. Here a row of up to 128 tokens is one program, whose backward
pass reads everything once and writes the gradients of all three where the product before wants them.

`attend` and `attend_back` are what the operations do, for whoever cannot wait for torch's compiler (warming.py).

Imports Triton: only a GPU's path may import this file.
"""

import math
from typing import Any

import torch
import triton
from torch import Tensor

from bertsmith.layers import packed_kernels as kernels
from bertsmith.layers import packed_long_kernels as long_kernels

SHORT = 128  # tokens of a row that one program holds
LOG2E = math.log2(math.e)
LONG = 128  # tokens of a long row that a program holds; the others come in parts


def attend(
    qkv: Tensor, bounds: Tensor, reach: Tensor, cos: Tensor | None, sin: Tensor | None, seed: Tensor | None, heads: int,
    window: int, causal: bool, drop: float,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """qkv (tokens, 3 * width) of rows -> (tokens, width), and sums for the backward pass.

    `reach` has as many entries as the longest row has tokens, or more, and nothing in them. `cos` and `sin` (positions,
    size / 2) turn queries and keys; `seed`, one number, draws what is dropped.
    """
    longest = len(reach)
    shape = _shape(qkv, heads, cos, causal, window)
    out = qkv.new_empty(len(qkv), qkv.shape[1] // 3)  # rows hold every token
    sums = qkv.new_empty(len(qkv), heads, dtype=torch.float32)
    scale = LOG2E / math.sqrt(shape["SIZE"])
    programs = (len(bounds) - 1) * heads
    if longest <= SHORT:
        block = _block(longest)
        kernels.forward_short[(programs,)](
            qkv, out, sums, bounds, cos, sin, seed, scale, drop, BLOCK=block, DROPS=drop > 0, **shape,
            num_warps=8 if block == SHORT else 4,
        )  # fmt: skip
    else:
        grid = (programs, triton.cdiv(longest, LONG))
        long_kernels.forward_long[grid](qkv, out, sums, bounds, cos, sin, scale, **shape, **_parts(cos is not None))
    return out, sums


attend_packed = torch.library.custom_op("bertsmith::attend_packed", attend, mutates_args=())


@attend_packed.register_fake
def _(qkv, bounds, reach, cos, sin, seed, heads, window, causal, drop):  # type: ignore[no-untyped-def]
    sums = qkv.new_empty(qkv.shape[0], heads, dtype=torch.float32)
    return qkv.new_empty(qkv.shape[0], qkv.shape[1] // 3), sums


def attend_back(
    grad: Tensor, mixed: Tensor, sums: Tensor, qkv: Tensor, bounds: Tensor, reach: Tensor, cos: Tensor | None,
    sin: Tensor | None, seed: Tensor | None, heads: int, window: int, causal: bool, drop: float,
) -> Tensor:  # fmt: skip
    longest = len(reach)
    shape = _shape(qkv, heads, cos, causal, window)
    out, grad = torch.empty_like(qkv), grad.contiguous()
    factor = 1 / math.sqrt(shape["SIZE"])
    scale = LOG2E * factor
    programs = (len(bounds) - 1) * heads
    if longest <= SHORT:
        block = _block(longest)
        kernels.backward_short[(programs,)](
            qkv, mixed, sums, grad, out, bounds, cos, sin, seed, scale, factor, drop, BLOCK=block,
            PART=min(64, block), DROPS=drop > 0, **shape, num_warps=4,
        )  # fmt: skip
        return out
    shares = torch.empty_like(sums)
    grid = (programs, triton.cdiv(longest, LONG))
    long_kernels.backward_queries[grid](
        qkv, mixed, sums, shares, grad, out, bounds, cos, sin, scale, factor, **shape, **_parts(cos is not None)
    )
    long_kernels.backward_keys[grid](
        qkv, sums, shares, grad, out, bounds, cos, sin, scale, factor, **shape, BLOCK=LONG, PART=32, num_warps=4,
        num_stages=3,
    )  # fmt: skip
    return out


attend_packed_back = torch.library.custom_op("bertsmith::attend_packed_back", attend_back, mutates_args=())


@attend_packed_back.register_fake
def _(grad, mixed, sums, qkv, bounds, reach, cos, sin, seed, heads, window, causal, drop):  # type: ignore[no-untyped-def]
    return torch.empty_like(qkv)


def _shape(qkv: Tensor, heads: int, cos: Tensor | None, causal: bool, window: int) -> dict[str, Any]:
    """What every kernel is compiled for."""
    size = qkv.shape[1] // 3 // heads
    return {"HEADS": heads, "SIZE": size, "ROTARY": cos is not None, "CAUSAL": causal, "WINDOW": window}


def _parts(is_rotary: bool) -> dict[str, int]:
    """Chosen on an H200: with more threads, halves of turned vectors would not fit twice into a multiprocessor."""
    return {"BLOCK": LONG, "PART": 64, "num_warps": 4 if is_rotary else 8, "num_stages": 3}


def _block(longest: int) -> int:
    return max(16, int(triton.next_power_of_2(longest)))


def _keep(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    ctx.save_for_backward(*output, *inputs[:6])
    ctx.facts = inputs[6:]


def _differentiate(ctx: Any, grad: Tensor, _: Tensor | None) -> tuple[Tensor | None, ...]:
    return attend_packed_back(grad, *ctx.saved_tensors, *ctx.facts), *(None,) * 9


attend_packed.register_autograd(_differentiate, setup_context=_keep)
