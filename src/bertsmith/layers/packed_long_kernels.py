"""Kernels of attention over long rows laid end to end: a program for each row, head and part of the row.

In and out as in packed_kernels.py, whose helpers these use. The backward pass takes two: one goes over the keys for the
gradient of queries, one over the queries for those of keys and values, so that nothing is added up in memory.
"""

import triton
import triton.language as tl

from bertsmith.layers.packed_kernels import is_seen, match, read, write


@triton.jit
def _span(start, length, BLOCK: tl.constexpr, PART: tl.constexpr, CAUSAL: tl.constexpr, WINDOW: tl.constexpr):
    """Where the keys begin and end that any of BLOCK queries from `start` on sees; the first is a multiple of PART."""
    low = 0
    high = length
    if WINDOW > 0:
        low = tl.maximum(0, start - WINDOW) // PART * PART
        high = tl.minimum(length, start + BLOCK + WINDOW)
    if CAUSAL:
        high = tl.minimum(high, start + BLOCK)
    return low, high


@triton.jit
def forward_long(
    qkv, out, sums, bounds, cos, sin, scale,
    HEADS: tl.constexpr, SIZE: tl.constexpr, BLOCK: tl.constexpr, PART: tl.constexpr, ROTARY: tl.constexpr,
    CAUSAL: tl.constexpr, WINDOW: tl.constexpr,
):  # fmt: skip
    """BLOCK queries of a row; its keys come PART at a time, and the softmax is corrected as higher scores turn up."""
    head = tl.program_id(0) % HEADS
    row = tl.program_id(0) // HEADS
    start = tl.program_id(1) * BLOCK
    first = tl.load(bounds + row).to(tl.int64)
    length = (tl.load(bounds + row + 1) - first).to(tl.int32)
    if start < length:
        WIDTH: tl.constexpr = HEADS * SIZE
        queries = start + tl.arange(0, BLOCK)
        inside = (queries < length)[:, None]
        columns = tl.arange(0, SIZE)[None, :]
        place = qkv + (first + queries)[:, None] * (3 * WIDTH) + head * SIZE
        q, q_more, c, s = read(place, cos, sin, queries, inside, SIZE, ROTARY)
        highest = tl.full((BLOCK,), -1e30, tl.float32)
        total = tl.zeros((BLOCK,), tl.float32)
        mixed = tl.zeros((BLOCK, SIZE), tl.float32)
        low, high = _span(start, length, BLOCK, PART, CAUSAL, WINDOW)
        for begin in tl.range(low, high, PART):
            keys = begin + tl.arange(0, PART)
            here = (keys < length)[:, None]
            there = qkv + (first + keys)[:, None] * (3 * WIDTH) + head * SIZE
            k, k_more, ck, sk = read(there + WIDTH, cos, sin, keys, here, SIZE, ROTARY)
            v = tl.load(there + 2 * WIDTH + columns, mask=here, other=0.0)
            scores = match(q, q_more, k, k_more, ROTARY) * scale
            scores = tl.where(is_seen(queries, keys, length, CAUSAL, WINDOW), scores, float("-inf"))
            higher = tl.maximum(highest, tl.max(scores, 1))
            weights = tl.exp2(scores - higher[:, None])
            shrink = tl.exp2(highest - higher)
            total = total * shrink + tl.sum(weights, 1)
            mixed = tl.dot(weights.to(v.dtype), v, mixed * shrink[:, None])
            highest = higher
        mixed = mixed / total[:, None]
        kind = out.dtype.element_ty
        tl.store(out + (first + queries)[:, None] * WIDTH + head * SIZE + columns, mixed.to(kind), mask=inside)
        tl.store(sums + (first + queries) * HEADS + head, highest + tl.log2(total), mask=queries < length)


@triton.jit
def backward_queries(
    qkv, mixed, sums, shares, grad, out, bounds, cos, sin, scale, factor,
    HEADS: tl.constexpr, SIZE: tl.constexpr, BLOCK: tl.constexpr, PART: tl.constexpr, ROTARY: tl.constexpr,
    CAUSAL: tl.constexpr, WINDOW: tl.constexpr,
):  # fmt: skip
    """The gradient of BLOCK queries of a row; what all their weights' gradients share is kept for `backward_keys`."""
    head = tl.program_id(0) % HEADS
    row = tl.program_id(0) // HEADS
    start = tl.program_id(1) * BLOCK
    first = tl.load(bounds + row).to(tl.int64)
    length = (tl.load(bounds + row + 1) - first).to(tl.int32)
    if start < length:
        WIDTH: tl.constexpr = HEADS * SIZE
        PIECE: tl.constexpr = SIZE // 2 if ROTARY else SIZE
        queries = start + tl.arange(0, BLOCK)
        inside = (queries < length)[:, None]
        columns = tl.arange(0, SIZE)[None, :]
        offset = (first + queries)[:, None] * (3 * WIDTH) + head * SIZE
        near = (first + queries)[:, None] * WIDTH + head * SIZE + columns
        d = tl.load(grad + near, mask=inside, other=0.0)
        found = tl.load(mixed + near, mask=inside, other=0.0)
        shared = tl.sum(d.to(tl.float32) * found.to(tl.float32), 1)
        tl.store(shares + (first + queries) * HEADS + head, shared, mask=queries < length)
        bottom = tl.load(sums + (first + queries) * HEADS + head, mask=queries < length, other=float("inf"))
        q, q_more, c, s = read(qkv + offset, cos, sin, queries, inside, SIZE, ROTARY)
        dq = tl.zeros((BLOCK, PIECE), tl.float32)
        dq_more = tl.zeros((BLOCK, PIECE), tl.float32)
        low, high = _span(start, length, BLOCK, PART, CAUSAL, WINDOW)
        for begin in tl.range(low, high, PART):
            keys = begin + tl.arange(0, PART)
            here = (keys < length)[:, None]
            there = qkv + (first + keys)[:, None] * (3 * WIDTH) + head * SIZE
            k, k_more, ck, sk = read(there + WIDTH, cos, sin, keys, here, SIZE, ROTARY)
            v = tl.load(there + 2 * WIDTH + columns, mask=here, other=0.0)
            weights = tl.exp2(match(q, q_more, k, k_more, ROTARY) * scale - bottom[:, None])
            weights = tl.where(is_seen(queries, keys, length, CAUSAL, WINDOW), weights, 0.0)
            back = (weights * (tl.dot(d, tl.trans(v)) - shared[:, None]) * factor).to(v.dtype)
            dq = tl.dot(back, k, dq)
            if ROTARY:
                dq_more = tl.dot(back, k_more, dq_more)
        write(out + offset, dq, dq_more, c, s, inside, SIZE, ROTARY)


@triton.jit
def backward_keys(
    qkv, sums, shares, grad, out, bounds, cos, sin, scale, factor,
    HEADS: tl.constexpr, SIZE: tl.constexpr, BLOCK: tl.constexpr, PART: tl.constexpr, ROTARY: tl.constexpr,
    CAUSAL: tl.constexpr, WINDOW: tl.constexpr,
):  # fmt: skip
    """The gradients of BLOCK keys and values of a row, whose queries come PART at a time.

    Everything lies the other way round, keys across: so weights go from one product into the next without a detour.
    """
    head = tl.program_id(0) % HEADS
    row = tl.program_id(0) // HEADS
    start = tl.program_id(1) * BLOCK
    first = tl.load(bounds + row).to(tl.int64)
    length = (tl.load(bounds + row + 1) - first).to(tl.int32)
    if start < length:
        WIDTH: tl.constexpr = HEADS * SIZE
        PIECE: tl.constexpr = SIZE // 2 if ROTARY else SIZE
        keys = start + tl.arange(0, BLOCK)
        inside = (keys < length)[:, None]
        columns = tl.arange(0, SIZE)[None, :]
        offset = (first + keys)[:, None] * (3 * WIDTH) + head * SIZE
        k, k_more, c, s = read(qkv + offset + WIDTH, cos, sin, keys, inside, SIZE, ROTARY)
        v = tl.load(qkv + offset + 2 * WIDTH + columns, mask=inside, other=0.0)
        dv = tl.zeros((BLOCK, SIZE), tl.float32)
        dk = tl.zeros((BLOCK, PIECE), tl.float32)
        dk_more = tl.zeros((BLOCK, PIECE), tl.float32)
        low = 0
        high = length
        if WINDOW > 0:
            low = tl.maximum(0, start - WINDOW) // PART * PART
            high = tl.minimum(length, start + BLOCK + WINDOW)
        if CAUSAL:
            low = tl.maximum(low, start // PART * PART)
        for begin in tl.range(low, high, PART):
            queries = begin + tl.arange(0, PART)
            here = (queries < length)[:, None]
            there = qkv + (first + queries)[:, None] * (3 * WIDTH) + head * SIZE
            q, q_more, cq, sq = read(there, cos, sin, queries, here, SIZE, ROTARY)
            d = tl.load(grad + (first + queries)[:, None] * WIDTH + head * SIZE + columns, mask=here, other=0.0)
            bottom = tl.load(sums + (first + queries) * HEADS + head, mask=queries < length, other=float("inf"))
            shared = tl.load(shares + (first + queries) * HEADS + head, mask=queries < length, other=0.0)
            weights = tl.exp2(match(k, k_more, q, q_more, ROTARY) * scale - bottom[None, :])
            weights = tl.where(tl.trans(is_seen(queries, keys, length, CAUSAL, WINDOW)), weights, 0.0)
            dv = tl.dot(weights.to(v.dtype), d, dv)
            back = (weights * (tl.dot(v, tl.trans(d)) - shared[None, :]) * factor).to(v.dtype)
            dk = tl.dot(back, q, dk)
            if ROTARY:
                dk_more = tl.dot(back, q_more, dk_more)
        tl.store(out + offset + 2 * WIDTH + columns, dv.to(v.dtype), mask=inside)
        write(out + offset + WIDTH, dk, dk_more, c, s, inside, SIZE, ROTARY)
