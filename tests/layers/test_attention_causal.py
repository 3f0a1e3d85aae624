"""Reading onward only: every way to attend equals the textbook, and nothing later is seen."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from bertsmith.data.batch import Batch
from bertsmith.layers.attention import _attend_padded, attend

LENGTHS = st.lists(st.integers(1, 40), min_size=1, max_size=7)


def make(lengths):
    generator = torch.Generator().manual_seed(0)
    batch = Batch.of([[1] * n for n in lengths]).reading_onward()
    return batch, [torch.randn(sum(lengths), 3, 8, generator=generator) for _ in range(3)]


def textbook(q, k, v, batch, window):
    rows = []
    for q1, k1, v1 in zip(batch.split(q), batch.split(k), batch.split(v), strict=True):
        scores = torch.einsum("qhd,khd->hqk", q1, k1) / q1.shape[-1] ** 0.5
        behind = torch.arange(len(q1))[:, None] - torch.arange(len(q1))
        scores = scores.masked_fill((behind < 0) | (behind > (window or len(q1))), -torch.inf)
        rows.append(torch.einsum("hqk,khd->qhd", scores.softmax(-1), v1))
    return torch.cat(rows)


@given(LENGTHS, st.sampled_from([0, 1, 5, 64]))
def test_grouped_bucketed_and_padded_equal_the_textbook(lengths, window):
    batch, (q, k, v) = make(lengths)
    expected = textbook(q, k, v, batch, window)
    assert torch.allclose(attend(q, k, v, batch, window), expected, atol=1e-5)
    assert torch.allclose(_attend_padded(q, k, v, batch, window, 0.0), expected, atol=1e-5)
    assert torch.allclose(attend(q.clone().requires_grad_(), k, v, batch, window), expected, atol=1e-5)


def test_what_comes_later_changes_nothing():
    batch, (q, k, v) = make([5, 9, 3])
    before = attend(q, k, v, batch)
    k[10:14], v[10:14] = 7.0, -3.0
    after = attend(q, k, v, batch)
    assert torch.equal(before[:10], after[:10]) and torch.equal(before[14:], after[14:])
    assert not torch.allclose(before[10:14], after[10:14])


def test_a_batch_that_reads_other_ids_keeps_its_bounds():
    batch = Batch.of([[1, 2, 3], [4, 5]])
    bounds = batch.bounds
    other = batch.reading(batch.ids + 1)
    assert other.bounds is bounds and other.lengths == batch.lengths and not other.causal
    assert other.ids.tolist() == [2, 3, 4, 5, 6] and batch.ids.tolist() == [1, 2, 3, 4, 5]
    assert other.reading_onward().causal and not other.causal
