"""The ways to attend give the same mix, whatever the lengths and the window."""

from unittest.mock import patch

import torch
from hypothesis import given
from hypothesis import strategies as st

from bertsmith.data.batch import Batch
from bertsmith.layers import attention
from bertsmith.layers.attention import _attend_padded, attend

LENGTHS = st.lists(st.integers(1, 40), min_size=1, max_size=7)


def make(lengths, seed=0):
    generator = torch.Generator().manual_seed(seed)
    batch = Batch.of([[1] * n for n in lengths])
    return batch, [torch.randn(sum(lengths), 3, 8, generator=generator) for _ in range(3)]


def textbook(q, k, v, batch, window, keep=None):
    """Row by row, head by head, softmax written out; `keep` leaves some of the weights out."""
    rows = []
    for q1, k1, v1 in zip(batch.split(q), batch.split(k), batch.split(v), strict=True):
        scores = torch.einsum("qhd,khd->hqk", q1, k1) / q1.shape[-1] ** 0.5
        if window:
            place = torch.arange(len(q1))
            scores = scores.masked_fill((place[:, None] - place).abs() > window, -torch.inf)
        weights = scores.softmax(-1) if keep is None else scores.softmax(-1) * keep(scores)
        rows.append(torch.einsum("hqk,khd->qhd", weights, v1))
    return torch.cat(rows)


@given(LENGTHS, st.sampled_from([0, 1, 5, 64]))
def test_grouped_and_padded_equal_the_textbook(lengths, window):
    batch, (q, k, v) = make(lengths)
    expected = textbook(q, k, v, batch, window)
    assert torch.allclose(attend(q, k, v, batch, window), expected, atol=1e-5)
    assert torch.allclose(_attend_padded(q, k, v, batch, window, 0.0), expected, atol=1e-5)


@given(LENGTHS, st.sampled_from([0, 1, 5, 64]), st.booleans())
def test_buckets_equal_the_textbook_and_its_gradients(lengths, window, in_order):
    batch, given = make(sorted(lengths, reverse=True) if in_order else lengths)
    ours, theirs = ([x.clone().requires_grad_() for x in given] for _ in range(2))
    mixed, expected = attend(*ours, batch, window), textbook(*theirs, batch, window)
    assert torch.allclose(mixed, expected, atol=1e-5)
    weights = torch.arange(mixed.numel()).view_as(mixed) / mixed.numel()  # no two of them alike
    for mine, other in zip(*(torch.autograd.grad((x * weights).sum(), leaves) for x, leaves in
                             ((mixed, ours), (expected, theirs))), strict=True):  # fmt: skip
        assert torch.allclose(mine, other, atol=1e-4)


def chequered(like, drop=0.5):
    """Every other weight, by its place alone."""
    places = torch.arange(like.shape[-1])
    return 2.0 * ((places[:, None] + places) % 2 == 0).expand(like.shape)


@given(LENGTHS, st.sampled_from([0, 1, 5, 64]))
def test_weights_are_left_out_as_the_textbook_does(lengths, window):
    batch, given = make(sorted(lengths, reverse=True))
    ours, theirs = ([x.clone().requires_grad_() for x in given] for _ in range(2))
    with patch.object(attention, "draw_kept", chequered):
        mixed = attend(*ours, batch, window, drop=0.5)
    expected = textbook(*theirs, batch, window, chequered)
    assert torch.allclose(mixed, expected, atol=1e-5)
    for found in (mixed, expected):
        found.square().sum().backward()
    for mine, other in zip(ours, theirs, strict=True):
        assert torch.allclose(mine.grad, other.grad, atol=1e-4)


def test_a_row_does_not_see_its_neighbours():
    batch, (q, k, v) = make([5, 9, 3])
    before = attend(q, k, v, batch)
    k[5:14], v[5:14] = 7.0, -3.0
    after = attend(q, k, v, batch)
    assert torch.equal(before[:5], after[:5]) and torch.equal(before[14:], after[14:])
    assert not torch.allclose(before[5:14], after[5:14])
