"""Kernels of attention over short rows laid end to end, a program for each row and head, and what all kernels share.

In: queries, keys and values as one product gave them (tokens, 3 * width), the bounds of the rows. Out: each token's mix
of values, and for the backward pass the logarithm of each softmax's denominator, to the base of 2. Rotary positions
turn queries and keys on the way in and their gradients on the way out, so that no turned copy is ever written.

Triton's own style rules here: upper case is known when a kernel is compiled.
"""

import triton
import triton.language as tl


@triton.jit
def find_turns(cos, sin, at, inside, SIZE: tl.constexpr, ROTARY: tl.constexpr):
    """Cosines and sines of the positions `at`: read once for all that stands there."""
    if ROTARY:
        place = at[:, None] * (SIZE // 2) + tl.arange(0, SIZE // 2)[None, :]
        c = tl.load(cos + place, mask=inside, other=0.0).to(tl.float32)
        s = tl.load(sin + place, mask=inside, other=0.0).to(tl.float32)
    else:
        c = 1.0
        s = 0.0
    return c, s


@triton.jit
def load(place, inside, SIZE: tl.constexpr, ROTARY: tl.constexpr):
    """Vectors of a head: in two halves where they are to be turned, else as they are, twice."""
    if ROTARY:
        HALF: tl.constexpr = SIZE // 2
        half = tl.arange(0, HALF)[None, :]
        one = tl.load(place + half, mask=inside, other=0.0)
        other = tl.load(place + HALF + half, mask=inside, other=0.0)
    else:
        one = tl.load(place + tl.arange(0, SIZE)[None, :], mask=inside, other=0.0)
        other = one
    return one, other


@triton.jit
def turn(one, other, c, s, ROTARY: tl.constexpr):
    if ROTARY:
        left = (one * c - other * s).to(one.dtype)
        other = (other * c + one * s).to(one.dtype)
        one = left
    return one, other


@triton.jit
def read(place, cos, sin, at, inside, SIZE: tl.constexpr, ROTARY: tl.constexpr):
    """Vectors as they are matched, with what turned them. All loads come first: together they wait once."""
    one, other = load(place, inside, SIZE, ROTARY)
    c, s = find_turns(cos, sin, at, inside, SIZE, ROTARY)
    one, other = turn(one, other, c, s, ROTARY)
    return one, other, c, s


@triton.jit
def write(place, one, other, c, s, inside, SIZE: tl.constexpr, ROTARY: tl.constexpr):
    """The gradient of what `turn` gave, turned back."""
    kind = place.dtype.element_ty
    if ROTARY:
        HALF: tl.constexpr = SIZE // 2
        half = tl.arange(0, HALF)[None, :]
        tl.store(place + half, (one * c + other * s).to(kind), mask=inside)
        tl.store(place + HALF + half, (other * c - one * s).to(kind), mask=inside)
    else:
        tl.store(place + tl.arange(0, SIZE)[None, :], one.to(kind), mask=inside)


@triton.jit
def match(q, q_more, k, k_more, ROTARY: tl.constexpr):
    scores = tl.dot(q, tl.trans(k))
    if ROTARY:
        scores = tl.dot(q_more, tl.trans(k_more), scores)
    return scores


@triton.jit
def is_seen(queries, keys, length, CAUSAL: tl.constexpr, WINDOW: tl.constexpr):
    seen = (keys < length)[None, :]  # what a query behind the last token finds, nobody reads
    if CAUSAL:
        seen = seen & (keys[None, :] <= queries[:, None])
    if WINDOW > 0:
        apart = keys[None, :] - queries[:, None]
        seen = seen & (apart <= WINDOW) & (apart >= -WINDOW)
    return seen


@triton.jit
def draw_kept(seed, program, queries, keys, drop, BLOCK: tl.constexpr):
    """What a kept weight is multiplied by, and 0 for one that is dropped: the same in both passes."""
    chance = tl.rand(tl.load(seed), (program * BLOCK + queries[:, None]) * BLOCK + keys[None, :])
    return tl.where(chance >= drop, 1.0 / (1.0 - drop), 0.0)


@triton.jit
def forward_short(
    qkv, out, sums, bounds, cos, sin, seed, scale, drop,
    HEADS: tl.constexpr, SIZE: tl.constexpr, BLOCK: tl.constexpr, ROTARY: tl.constexpr, CAUSAL: tl.constexpr,
    WINDOW: tl.constexpr, DROPS: tl.constexpr,
):  # fmt: skip
    """A whole row, of at most BLOCK tokens."""
    program = tl.program_id(0)
    head = program % HEADS
    first = tl.load(bounds + program // HEADS).to(tl.int64)
    length = (tl.load(bounds + program // HEADS + 1) - first).to(tl.int32)
    if length > 0:
        WIDTH: tl.constexpr = HEADS * SIZE
        rows = tl.arange(0, BLOCK)
        inside = (rows < length)[:, None]
        place = qkv + (first + rows)[:, None] * (3 * WIDTH) + head * SIZE
        columns = tl.arange(0, SIZE)[None, :]
        q, q_more = load(place, inside, SIZE, ROTARY)
        k, k_more = load(place + WIDTH, inside, SIZE, ROTARY)
        c, s = find_turns(cos, sin, rows, inside, SIZE, ROTARY)
        q, q_more = turn(q, q_more, c, s, ROTARY)
        k, k_more = turn(k, k_more, c, s, ROTARY)
        v = tl.load(place + 2 * WIDTH + columns, mask=inside, other=0.0)
        scores = match(q, q_more, k, k_more, ROTARY) * scale
        scores = tl.where(is_seen(rows, rows, length, CAUSAL, WINDOW), scores, float("-inf"))
        highest = tl.max(scores, 1)
        weights = tl.exp2(scores - highest[:, None])
        total = tl.sum(weights, 1)
        if DROPS:
            weights = weights * draw_kept(seed, program, rows, rows, drop, BLOCK)
        mixed = tl.dot(weights.to(v.dtype), v) / total[:, None]
        tl.store(out + (first + rows)[:, None] * WIDTH + head * SIZE + columns, mixed.to(v.dtype), mask=inside)
        tl.store(sums + (first + rows) * HEADS + head, highest + tl.log2(total), mask=rows < length)


@triton.jit
def backward_short(
    qkv, mixed, sums, grad, out, bounds, cos, sin, seed, scale, factor, drop,
    HEADS: tl.constexpr, SIZE: tl.constexpr, BLOCK: tl.constexpr, PART: tl.constexpr, ROTARY: tl.constexpr,
    CAUSAL: tl.constexpr, WINDOW: tl.constexpr, DROPS: tl.constexpr,
):  # fmt: skip
    """A whole row, PART of its keys at a time: with all of them at once there is room for one program, not two."""
    program = tl.program_id(0)
    head = program % HEADS
    first = tl.load(bounds + program // HEADS).to(tl.int64)
    length = (tl.load(bounds + program // HEADS + 1) - first).to(tl.int32)
    if length > 0:
        WIDTH: tl.constexpr = HEADS * SIZE
        PIECE: tl.constexpr = SIZE // 2 if ROTARY else SIZE
        rows = tl.arange(0, BLOCK)
        inside = (rows < length)[:, None]
        offset = (first + rows)[:, None] * (3 * WIDTH) + head * SIZE
        columns = tl.arange(0, SIZE)[None, :]
        near = (first + rows)[:, None] * WIDTH + head * SIZE + columns
        d = tl.load(grad + near, mask=inside, other=0.0)
        found = tl.load(mixed + near, mask=inside, other=0.0)
        shared = tl.sum(d.to(tl.float32) * found.to(tl.float32), 1)
        bottom = tl.load(sums + (first + rows) * HEADS + head, mask=rows < length, other=float("inf"))
        q, q_more, c, s = read(qkv + offset, cos, sin, rows, inside, SIZE, ROTARY)
        dq = tl.zeros((BLOCK, PIECE), tl.float32)
        dq_more = tl.zeros((BLOCK, PIECE), tl.float32)
        for start in tl.range(0, BLOCK, PART, num_stages=2):
            keys = start + tl.arange(0, PART)
            here = (keys < length)[:, None]
            there = (first + keys)[:, None] * (3 * WIDTH) + head * SIZE
            v = tl.load(qkv + there + 2 * WIDTH + columns, mask=here, other=0.0)
            k, k_more, ck, sk = read(qkv + there + WIDTH, cos, sin, keys, here, SIZE, ROTARY)
            weights = tl.exp2(match(q, q_more, k, k_more, ROTARY) * scale - bottom[:, None])
            weights = tl.where(is_seen(rows, keys, length, CAUSAL, WINDOW), weights, 0.0)
            if DROPS:
                kept = draw_kept(seed, program, rows, keys, drop, BLOCK)
                dv = tl.dot(tl.trans((weights * kept).to(v.dtype)), d)
            else:
                dv = tl.dot(tl.trans(weights.to(v.dtype)), d)
            tl.store(out + there + 2 * WIDTH + columns, dv.to(v.dtype), mask=here)
            back = tl.dot(d, tl.trans(v))  # the gradient of each weight
            if DROPS:
                back = back * kept
            back = (weights * (back - shared[:, None]) * factor).to(v.dtype)
            onward = tl.trans(back)
            dq = tl.dot(back, k, dq)
            dk = tl.dot(onward, q)
            dk_more = dk
            if ROTARY:
                dq_more = tl.dot(back, k_more, dq_more)
                dk_more = tl.dot(onward, q_more)
            write(out + there + WIDTH, dk, dk_more, ck, sk, here, SIZE, ROTARY)
        c, s = find_turns(cos, sin, rows, inside, SIZE, ROTARY)
        write(out + offset, dq, dq_more, c, s, inside, SIZE, ROTARY)
