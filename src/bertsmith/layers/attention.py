"""Attention over rows laid end to end, and the one place that chooses its kernel."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from bertsmith.data.batch import Batch, Bucket
from bertsmith.layers.config import Config
from bertsmith.layers.dropping import draw_kept
from bertsmith.layers.linear import Linear
from bertsmith.layers.onednn import round_rows, rounds
from bertsmith.layers.position import Turns, pick_turns, turn
from bertsmith.layers.relative import Offsets

# The operator below torch.nn.attention.varlen, which has no dropout and imports the compiler.
_flash = torch.ops.aten._flash_attention_forward


class Attention(nn.Module):
    def __init__(self, config: Config, layer: int) -> None:
        super().__init__()
        self.heads = config.heads
        self.dropout, self.attention_dropout = config.dropout, config.attention_dropout
        self.window = config.window if config.is_local(layer) else 0
        self.qkv = Linear(config.width, 3 * config.width, config.bias)
        self.out = Linear(config.width, config.width, config.bias)

    def forward(
        self, x: Tensor, batch: Batch, places: Turns | Offsets | None, add: Tensor, at: Tensor | None = None
    ) -> Tensor:
        """What each token takes from its row, added to `add`; `at` asks for some tokens only."""
        tokens, filler = len(batch.ids), len(x) - len(batch.ids)  # x may end in rows that are no tokens
        drop = self.attention_dropout if self.training else 0.0
        qkv = self.qkv(x)
        qkv = qkv[:tokens] if filler else qkv  # the gradient of a part would be copied into a whole
        if isinstance(places, Offsets):
            mixed = self._mix_apart(qkv.view(tokens, 3, self.heads, -1), batch, places, drop).reshape(tokens, -1)
        elif _is_packed(qkv, batch, self.heads, drop):
            mixed = _attend_packed(qkv, batch, self.heads, places, self.window, drop)  # (tokens, width)
        else:
            mixed = self._mix(qkv.view(tokens, 3, self.heads, -1), batch, places, drop).reshape(tokens, -1)
        if at is not None:
            mixed, add = pick(mixed, at), pick(add, at)
            is_rounded = self.out.packed is not None or rounds(x)
            filler = round_rows(len(at)) - len(at) if is_rounded else 0
            add = F.pad(add, (0, 0, 0, filler)) if filler else add
        if filler:
            mixed = F.pad(mixed, (0, 0, 0, filler))
        return self.out(mixed, add=add, drop=self.dropout)

    def _mix(self, qkv: Tensor, batch: Batch, turns: Turns | None, drop: float) -> Tensor:
        """qkv (tokens, 3, heads, size) -> (tokens, heads, size)"""
        if batch.watched is not None:
            batch.watched.append(qkv)
        q, k, v = qkv.unbind(1)
        if turns is not None:
            by = turns if batch.reach is None else pick_turns(turns, batch.positions)
            q, k = turn(q, by), turn(k, by)
        return attend(q, k, v, batch, self.window, drop)

    def _mix_apart(self, qkv: Tensor, batch: Batch, offsets: Offsets, drop: float) -> Tensor:
        """The same where distances add to the scores."""
        if batch.watched is not None:
            batch.watched.append(qkv)
        q, k, v = qkv.unbind(1)
        return attend_apart(q, k, v, batch, offsets.of(self.qkv), drop)


class _Pick(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, at: Tensor) -> Tensor:
        ctx.save_for_backward(at)
        ctx.rows = len(x)
        return x.index_select(0, at)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        (at,) = ctx.saved_tensors
        return grad.new_zeros(ctx.rows, *grad.shape[1:]).index_copy_(0, at, grad), None


def pick(x: Tensor, at: Tensor) -> Tensor:
    """Rows at places that are named once each, so that going back nothing has to be summed up."""
    found: Tensor = _Pick.apply(x, at) if x.requires_grad else x.index_select(0, at)
    return found


def _is_packed(qkv: Tensor, batch: Batch, heads: int, drop: float) -> bool:
    """Whether our own kernels take these: in compiled training on a GPU, vectors of a size that they know."""
    if batch.reach is None or batch.watched is not None or not _has_varlen(qkv):
        return False
    if not has_kernels(qkv.shape[1] // 3 // heads, qkv.device):
        return False
    return not drop or batch.is_short  # long rows drop nothing yet


def has_kernels(size: int, device: torch.device) -> bool:
    """Whether heads of this size have kernels of ours.

    Programs with heads of 128 take up to 160 kB of a processor's memory, of which many have 99.
    """
    if size == 128:
        return torch.cuda.get_device_capability(device) in ((8, 0), (9, 0), (10, 0), (10, 3))
    return size in (32, 64)


def _attend_packed(qkv: Tensor, batch: Batch, heads: int, turns: Turns | None, window: int, drop: float) -> Tensor:
    from bertsmith.layers.packed_attention import attend_packed  # imports Triton, which comes with torch for CUDA

    cos, sin = (None, None) if turns is None else turns
    seed = torch.randint(1 << 31, (1,), device=qkv.device) if drop else None
    assert batch.reach is not None
    return attend_packed(qkv, batch.bounds, batch.reach, cos, sin, seed, heads, window, batch.causal, drop)[0]


def attend(q: Tensor, k: Tensor, v: Tensor, batch: Batch, window: int = 0, drop: float = 0.0) -> Tensor:
    """Each token's mix of the values in its own row, q, k, v and the result (tokens, heads, size).

    `window` > 0 lets a token see that many neighbours to each side; `drop` of the weights are left out. In a causal
    batch a token sees none that come after it.
    """
    if _has_varlen(q):
        return _attend_varlen(q, k, v, batch, window, drop)
    if q.is_cuda and len(batch.groups) > 1:
        return _attend_padded(q, k, v, batch, window, drop)
    if len(batch.groups) == 1:
        return _attend_group(q, k, v, len(batch.lengths), window, drop, batch.causal)
    if q.requires_grad:
        return _attend_buckets(q, k, v, batch, window, drop)
    mixed = []
    for start, rows, length in batch.groups:
        here = slice(start, start + rows * length)
        mixed.append(_attend_group(q[here], k[here], v[here], rows, window, drop, batch.causal))
    return torch.cat(mixed)


def _has_varlen(q: Tensor) -> bool:
    """Whether the CUDA kernels for rows of different lengths take these: half precision, heads of a size they know."""
    if not q.is_cuda or q.dtype not in (torch.float16, torch.bfloat16):
        return False
    return q.shape[-1] % 8 == 0 and torch.cuda.get_device_capability(q.device) >= (8, 0)


def _attend_varlen(q: Tensor, k: Tensor, v: Tensor, batch: Batch, window: int, drop: float) -> Tensor:
    before = window or -1
    after = 0 if batch.causal else before
    # Of a compiled pass a size, which may change; the number itself would compile it anew for other rows.
    longest = batch.longest if batch.reach is None else len(batch.reach)
    bounds = batch.bounds
    found = _flash(
        q, k, v, bounds, bounds, longest, longest, drop, batch.causal, False,
        window_size_left=before, window_size_right=after,
    )  # fmt: skip
    mixed: Tensor = found[0]
    return mixed


def _attend_group(q: Tensor, k: Tensor, v: Tensor, rows: int, window: int, drop: float, causal: bool = False) -> Tensor:
    """Rows of one length: no padding, no mask. The CPU's path: a call a length costs less than one padded call."""
    shape = (rows, len(q) // rows, *q.shape[1:])
    q, k, v = q.view(shape).transpose(1, 2), k.view(shape).transpose(1, 2), v.view(shape).transpose(1, 2)
    # (rows, heads, length, size)
    near = _near(q.shape[2], window, q.device, causal) if 0 < window < q.shape[2] else None
    return _mix_rows(q, k, v, near, drop, causal and near is None).transpose(1, 2).flatten(0, 1)


def _mix_rows(q: Tensor, k: Tensor, v: Tensor, seen: Tensor | None, drop: float, causal: bool = False) -> Tensor:
    """q, k, v and the result (rows, heads, length, size)

    To leave weights out torch has no kernel on a CPU, and its plain operations guard against rows that see nothing.
    """
    if not drop or q.device.type != "cpu":
        return F.scaled_dot_product_attention(q, k, v, attn_mask=seen, dropout_p=drop, is_causal=causal)
    seen = _near(q.shape[2], q.shape[2], q.device, causal) if causal else seen
    scores = (q * q.shape[-1] ** -0.5) @ k.transpose(-2, -1)
    weights = (scores if seen is None else scores.masked_fill(~seen, -torch.inf)).softmax(dim=-1)
    return (weights * draw_kept(weights, drop)) @ v


def _attend_buckets(q: Tensor, k: Tensor, v: Tensor, batch: Batch, window: int, drop: float) -> Tensor:
    """Rows of like lengths together, for training on a CPU: there each call costs twice, and `split` gives back its
    gradient in one piece where slices would each fill a whole tensor with zeros."""
    sizes = [bucket.tokens for bucket in batch.buckets]
    parts = zip(batch.buckets, q.split(sizes), k.split(sizes), v.split(sizes), strict=True)
    return torch.cat([_attend_bucket(*part, window, drop, batch.causal) for part in parts])


def _attend_bucket(bucket: Bucket, q: Tensor, k: Tensor, v: Tensor, window: int, drop: float, causal: bool) -> Tensor:
    if bucket.places is None or bucket.mask is None:
        return _attend_group(q, k, v, bucket.rows, window, drop, causal)
    shape = (bucket.rows, bucket.longest, *q.shape[1:])
    q, k, v = (
        x.new_zeros(bucket.rows * bucket.longest, *x.shape[1:])
        .index_copy_(0, bucket.places, x)
        .view(shape)
        .transpose(1, 2)
        for x in (q, k, v)
    )  # (rows, heads, longest, size)
    seen = _seen(bucket.mask, window, causal)
    return pick(_mix_rows(q, k, v, seen, drop).transpose(1, 2).flatten(0, 1), bucket.places)


def attend_apart(q: Tensor, k: Tensor, v: Tensor, batch: Batch, offsets: Offsets, drop: float = 0.0) -> Tensor:
    """As `attend`, with what distances add to the scores; plain operations of torch on every device."""
    parts = part_rows(q, batch)
    sizes = [part.tokens for part in parts]
    split = zip(parts, q.split(sizes), k.split(sizes), v.split(sizes), strict=True)
    mixed = [_attend_part(*each, offsets, drop, batch.causal) for each in split]
    return mixed[0] if len(mixed) == 1 else torch.cat(mixed)


def part_rows(q: Tensor, batch: Batch) -> list[Bucket]:
    """Rows that are attended to in one call: all of them on a GPU, on a CPU those of one length or of like lengths."""
    if q.is_cuda:
        return [pad_rows(batch)]
    if q.requires_grad:
        return batch.buckets
    return [Bucket(rows * length, rows, length, None, None) for _, rows, length in batch.groups]


def pad_rows(batch: Batch) -> Bucket:
    places = batch.mask.flatten().nonzero()[:, 0]
    return Bucket(len(places), len(batch.lengths), batch.longest, places, batch.mask)


def _attend_part(part: Bucket, q: Tensor, k: Tensor, v: Tensor, offsets: Offsets, drop: float, causal: bool) -> Tensor:
    q, k, v = (_lay(x, part) for x in (q, k, v))  # (rows, heads, longest, size)
    added, scale = offsets.add(q, k), offsets.divisor**-0.5
    if causal:
        added = added.masked_fill(~_near(part.longest, part.longest, q.device, causal), -torch.inf)
    if part.mask is not None:
        added = added.masked_fill(~part.mask[:, None, None, :], -torch.inf)
    if drop and q.device.type == "cpu":  # see `_mix_rows`
        weights = (q * scale @ k.transpose(-2, -1) + added).softmax(dim=-1)
        mixed = (weights * draw_kept(weights, drop)) @ v
    else:
        mixed = F.scaled_dot_product_attention(q, k, v, attn_mask=added.to(q.dtype), dropout_p=drop, scale=scale)
    mixed = mixed.transpose(1, 2).flatten(0, 1)
    return mixed if part.places is None else pick(mixed, part.places)


def _lay(x: Tensor, part: Bucket) -> Tensor:
    """(tokens, heads, size) -> (rows, heads, longest, size)"""
    if part.places is not None:
        x = x.new_zeros(part.rows * part.longest, *x.shape[1:]).index_copy_(0, part.places, x)
    return x.unflatten(0, (part.rows, part.longest)).transpose(1, 2)


def _seen(mask: Tensor, window: int, causal: bool) -> Tensor:
    """Which places each place of padded rows looks at, from a mask (rows, longest) of those that hold a token."""
    seen = mask[:, None, None, :]
    if window or causal:
        seen = seen & _near(mask.shape[1], window or mask.shape[1], mask.device, causal)
        seen = seen | ~mask[:, None, :, None]  # a padded query must see something, or its softmax is undefined
    return seen


def _attend_padded(q: Tensor, k: Tensor, v: Tensor, batch: Batch, window: int, drop: float) -> Tensor:
    """Rows of any lengths in one call: for GPUs in full precision, where many small calls cost more than padding."""
    mask = batch.mask  # (rows, longest)
    seen = _seen(mask, window, batch.causal)
    q, k, v = (_pad(x, mask) for x in (q, k, v))
    return F.scaled_dot_product_attention(q, k, v, attn_mask=seen, dropout_p=drop).transpose(1, 2)[mask]


def _pad(x: Tensor, mask: Tensor) -> Tensor:
    """(tokens, heads, size) -> (rows, heads, longest, size)"""
    room = x.new_zeros(*mask.shape, *x.shape[1:])
    room[mask] = x
    return room.transpose(1, 2)


def _near(length: int, window: int, device: torch.device, causal: bool = False) -> Tensor:
    """(length, length): whether two places are at most `window` apart, and where causal, the second no later."""
    place = torch.arange(length, device=device)
    behind = place[:, None] - place  # of each place, how far the others lie before it
    return (behind >= 0) & (behind <= window) if causal else behind.abs() <= window
