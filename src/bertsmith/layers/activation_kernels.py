"""Kernels of activations, with a gate or without: what is read is read once, and its slope comes with it.

In: numbers, or gates and values side by side in each row. Out: what is activated, or the gradient of what was read.
Triton's own style rules here: upper case is known when a kernel is compiled.
"""

import os

import torch
import triton
import triton.language as tl

# Whether single instructions can be named: not of an AMD GPU, nor where kernels are interpreted on a CPU.
NAMED = tl.constexpr(torch.version.hip is None and os.environ.get("TRITON_INTERPRET") != "1")


@triton.jit
def _power(x):
    """Two to the x. What is smaller than any normal number is 0: to keep it would take three instructions more."""
    if not NAMED:
        return tl.exp2(x)
    return tl.inline_asm_elementwise("ex2.approx.ftz.f32 $0, $1;", "=f,f", [x], tl.float32, is_pure=True, pack=1)


@triton.jit
def _invert(x):
    """One over x, right to the last bit but one."""
    if not NAMED:
        return 1.0 / x
    return tl.inline_asm_elementwise("rcp.approx.ftz.f32 $0, $1;", "=f,f", [x], tl.float32, is_pure=True, pack=1)


@triton.jit
def _activate(x, KIND: tl.constexpr):
    """The activation of x and its slope."""
    if KIND == "gelu":
        # The error function by Abramowitz and Stegun 7.1.26, right to 1.5e-7: the slope needs the same power, and the
        # library's takes longer than the memory. By the size of x, as both sides mirror each other: `part` is what a
        # negative one keeps and a positive one loses.
        size = tl.abs(x)
        power = _power(-0.7213475204444817 * x * x)
        t = _invert(1.0 + 0.23164189457 * size)
        tail = t * (0.127414796 + t * (-0.142248368 + t * (0.7107068705 + t * (-0.7265760135 + t * 0.5307027145))))
        part = tail * power
        y = tl.maximum(x, 0.0) - size * part
        bend = 0.3989422804014327 * size * power - part
        slope = tl.where(x < 0, -bend, 1.0 + bend)
    elif KIND == "gelu_tanh":
        inner = 0.7978845608028654 * (x + 0.044715 * x * x * x)
        share = tl.sigmoid(2.0 * inner)
        y = x * share
        slope = share + x * share * (1.0 - share) * 2.0 * 0.7978845608028654 * (1.0 + 3 * 0.044715 * x * x)
    elif KIND == "silu":
        share = tl.sigmoid(x)
        y = x * share
        slope = share + x * share * (1.0 - share)
    else:
        y = tl.maximum(x, 0.0)
        slope = tl.where(x > 0, 1.0, 0.0)
    return y, slope


@triton.jit
def gate(both, out, count, INNER: tl.constexpr, KIND: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = at < count
    place = both + at // INNER * (2 * INNER) + at % INNER
    gate = tl.load(place, mask=inside, other=0.0).to(tl.float32)
    value = tl.load(place + INNER, mask=inside, other=0.0).to(tl.float32)
    y, _ = _activate(gate, KIND)
    tl.store(out + at, (y * value).to(out.dtype.element_ty), mask=inside)


@triton.jit
def gate_back(grad, both, out, count, INNER: tl.constexpr, KIND: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = at < count
    offset = at // INNER * (2 * INNER) + at % INNER
    given = tl.load(grad + at, mask=inside, other=0.0).to(tl.float32)
    gate = tl.load(both + offset, mask=inside, other=0.0).to(tl.float32)
    value = tl.load(both + offset + INNER, mask=inside, other=0.0).to(tl.float32)
    y, slope = _activate(gate, KIND)
    tl.store(out + offset, (given * value * slope).to(out.dtype.element_ty), mask=inside)
    tl.store(out + offset + INNER, (given * y).to(out.dtype.element_ty), mask=inside)


@triton.jit
def apply(
    given, bias, out, tokens, INNER: tl.constexpr, KIND: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """Of a product and its bias, which is added here. By tiles: a number's column is known, not divided out."""
    columns = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    there = columns < INNER
    inside = (rows < tokens)[:, None] & there[None, :]
    at = rows.to(tl.int64)[:, None] * INNER + columns[None, :]
    add = tl.load(bias + columns, mask=there, other=0.0).to(tl.float32)[None, :]
    y, _ = _activate(tl.load(given + at, mask=inside, other=0.0).to(tl.float32) + add, KIND)
    tl.store(out + at, y.to(out.dtype.element_ty), mask=inside)


@triton.jit
def apply_back(
    grad, given, bias, out, parts, tokens, each, INNER: tl.constexpr, KIND: tl.constexpr, ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
):  # fmt: skip
    """Some columns of `each` tokens: what goes back, and its sum over them, which is the bias's share.

    A kernel that sums up later would read everything once more.
    """
    columns = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    there = columns < INNER
    add = tl.load(bias + columns, mask=there, other=0.0).to(tl.float32)[None, :]
    total = tl.zeros((ROWS, COLUMNS), tl.float32)
    first = tl.program_id(1) * each
    for start in range(0, each, ROWS):
        rows = first + start + tl.arange(0, ROWS)
        inside = (rows < tokens)[:, None] & there[None, :]
        at = rows.to(tl.int64)[:, None] * INNER + columns[None, :]
        x = tl.load(given + at, mask=inside, other=0.0).to(tl.float32) + add
        _, slope = _activate(x, KIND)
        back = tl.load(grad + at, mask=inside, other=0.0).to(tl.float32) * slope
        tl.store(out + at, back.to(out.dtype.element_ty), mask=inside)
        total += back
    tl.store(parts + tl.program_id(1) * INNER + columns, tl.sum(total, 0), mask=there)
