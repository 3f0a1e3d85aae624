"""What distances add to scores: the reference's kinds of distances, and the same mix on every way to attend."""

from unittest.mock import patch

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from transformers.models.mpnet.modeling_mpnet import MPNetEncoder

from bertsmith.data.batch import Batch
from bertsmith.layers import attention
from bertsmith.layers.attention import attend_apart
from bertsmith.layers.config import Config
from bertsmith.layers.relative import Relative, bucket_steps

LENGTHS = st.lists(st.integers(1, 40), min_size=1, max_size=7)
BIAS = Config("mpnet", 97, width=24, heads=3, relative="bias")
CONFIGS = {"bias": BIAS}


@pytest.mark.parametrize("longest", [1, 2, 9, 130, 600])
def test_kinds_of_distances_are_the_references(longest):
    place = torch.arange(longest)
    theirs = MPNetEncoder.relative_position_bucket(place - place[:, None])
    ours = bucket_steps(longest)[place - place[:, None] + longest - 1]
    assert torch.equal(ours, theirs)


def make(kind, lengths, causal=False):
    generator = torch.Generator().manual_seed(0)
    relative = Relative(CONFIGS[kind])
    with torch.no_grad():
        for parameter in relative.parameters():
            parameter.normal_(generator=generator)
    batch = Batch.of([[1] * n for n in lengths])
    batch.causal = causal
    return relative, batch, [torch.randn(sum(lengths), 3, 8, generator=generator) for _ in range(3)]


def textbook(kind, relative, q, k, v, batch, keep=None):
    """Row by row, each pair of tokens with what its distance adds looked up for itself."""
    rows = []
    for q1, k1, v1 in zip(batch.split(q), batch.split(k), batch.split(v), strict=True):
        place = torch.arange(len(q1))
        scores = torch.einsum("qhd,khd->hqk", q1, k1) / q1.shape[-1] ** 0.5
        kinds = MPNetEncoder.relative_position_bucket(place - place[:, None])
        scores = scores + relative.weight[kinds].permute(2, 0, 1)
        if batch.causal:
            scores = scores.masked_fill(place > place[:, None], -torch.inf)
        weights = scores.softmax(-1) if keep is None else scores.softmax(-1) * keep(scores)
        rows.append(torch.einsum("hqk,khd->qhd", weights, v1))
    return torch.cat(rows)


@pytest.mark.parametrize("kind", CONFIGS)
@given(LENGTHS, st.booleans())
def test_groups_and_padding_equal_the_textbook(kind, lengths, causal):
    relative, batch, (q, k, v) = make(kind, lengths, causal)
    with torch.no_grad():
        offsets, expected = relative(batch), textbook(kind, relative, q, k, v, batch)
        assert torch.allclose(attend_apart(q, k, v, batch, offsets), expected, atol=1e-5)
        with patch.object(attention, "part_rows", lambda q, batch: [attention.pad_rows(batch)]):  # as a GPU has it
            assert torch.allclose(attend_apart(q, k, v, batch, offsets), expected, atol=1e-5)


@pytest.mark.parametrize("drop", [0.0, 0.5])
@pytest.mark.parametrize("kind", CONFIGS)
@given(LENGTHS, st.booleans())
def test_buckets_equal_the_textbook_and_its_gradients(kind, drop, lengths, in_order):
    """Those of the numbers of distances, too."""
    relative, batch, given_ = make(kind, sorted(lengths, reverse=True) if in_order else lengths)
    ours, theirs = ([x.clone().requires_grad_() for x in given_] for _ in range(2))
    with patch.object(attention, "draw_kept", chequered):
        mixed = attend_apart(*ours, batch, relative(batch), drop)
    expected = textbook(kind, relative, *theirs, batch, chequered if drop else None)
    assert torch.allclose(mixed, expected, atol=1e-5)
    weights = torch.arange(mixed.numel()).view_as(mixed) / mixed.numel()  # no two of them alike
    shared = list(relative.parameters())
    found = [torch.autograd.grad((x * weights).sum(), [*leaves, *shared])
             for x, leaves in ((mixed, ours), (expected, theirs))]  # fmt: skip
    for mine, other in zip(*found, strict=True):
        assert torch.allclose(mine, other, atol=2e-4)


def chequered(like, drop=0.5):
    """Every other weight, by its place alone."""
    places = torch.arange(like.shape[-1])
    return 2.0 * ((places[:, None] + places) % 2 == 0).expand(like.shape)
