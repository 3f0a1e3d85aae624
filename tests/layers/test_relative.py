"""What distances add to scores: the reference's kinds of distances, and the same mix on every way to attend."""

from unittest.mock import patch

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from transformers.models.deberta_v2.modeling_deberta_v2 import build_relative_position
from transformers.models.mpnet.modeling_mpnet import MPNetEncoder

from bertsmith.data.batch import Batch
from bertsmith.layers import attention
from bertsmith.layers.attention import attend_apart
from bertsmith.layers.config import Config
from bertsmith.layers.disentangled import Distances, distance_rows
from bertsmith.layers.linear import Linear
from bertsmith.layers.onednn import can_pack
from bertsmith.layers.relative import Bias, bucket_steps

LENGTHS = st.lists(st.integers(1, 40), min_size=1, max_size=7)
WIDTH, HEADS = 24, 3
KINDS = {
    "bias": Config("mpnet", 97, width=WIDTH, heads=HEADS, relative="bias"),
    "buckets": Config("deberta-v2", 97, width=WIDTH, heads=HEADS, relative="disentangled", buckets=8, positions=32),
    "distances": Config("deberta-v2", 97, width=WIDTH, heads=HEADS, relative="disentangled", positions=20, dropout=0.0),
}


@pytest.mark.parametrize("longest", [1, 2, 9, 130, 600])
def test_kinds_of_distances_are_mpnets(longest):
    place = torch.arange(longest)
    theirs = MPNetEncoder.relative_position_bucket(place - place[:, None])
    ours = bucket_steps(longest)[place - place[:, None] + longest - 1]
    assert torch.equal(ours, theirs)


@pytest.mark.parametrize("longest", [1, 2, 9, 130, 512, 700])
@pytest.mark.parametrize(("buckets", "furthest"), [(256, 512), (16, 64), (8, 32), (64, 1024), (-1, 40)])
def test_rows_of_distances_are_debertas(buckets, furthest, longest):
    row = torch.zeros(1, longest, 1)
    theirs = build_relative_position(row, row, bucket_size=buckets, max_position=furthest)[0]
    span = furthest if buckets < 0 else buckets
    place = torch.arange(longest)
    ours = distance_rows(max(buckets, 0), furthest, longest)[longest - 1 + place - place[:, None]]
    assert torch.equal(ours, (theirs + span).clamp(0, 2 * span - 1))


def make(kind, lengths, causal=False):
    generator = torch.Generator().manual_seed(0)
    config = KINDS[kind]
    relative = (Bias if kind == "bias" else Distances)(config)
    linear = Linear(WIDTH, 3 * WIDTH)
    with torch.no_grad():
        for parameter in (*relative.parameters(), *linear.parameters()):
            parameter.normal_(0, 0.5, generator=generator)
    batch = Batch.of([[1] * n for n in lengths])
    batch.causal = causal
    given_ = [torch.randn(sum(lengths), HEADS, WIDTH // HEADS, generator=generator) for _ in range(3)]
    return relative.eval(), linear, batch, given_


def textbook(relative, linear, q, k, v, batch, keep=None):
    """Row by row, each pair of tokens with what its distance adds looked up for itself."""
    rows = []
    for q1, k1, v1 in zip(batch.split(q), batch.split(k), batch.split(v), strict=True):
        place = torch.arange(len(q1))
        scores = torch.einsum("qhd,khd->hqk", q1, k1)
        if isinstance(relative, Bias):
            kinds = MPNetEncoder.relative_position_bucket(place - place[:, None])
            scores = scores / q1.shape[-1] ** 0.5 + relative.weight[kinds].permute(2, 0, 1)
        else:
            c = relative.config
            kinds = distance_rows(c.buckets, c.positions, len(q1))[len(q1) - 1 + place - place[:, None]]
            table = linear(relative.norm(relative.weight[kinds].flatten(0, 1))).view(*kinds.shape, 3, HEADS, -1)
            scores = scores + torch.einsum("qhd,qkhd->hqk", q1, table[:, :, 1])
            scores = (scores + torch.einsum("khd,qkhd->hqk", k1, table[:, :, 0])) / (3 * q1.shape[-1]) ** 0.5
        if batch.causal:
            scores = scores.masked_fill(place > place[:, None], -torch.inf)
        weights = scores.softmax(-1) if keep is None else scores.softmax(-1) * keep(scores)
        rows.append(torch.einsum("hqk,khd->qhd", weights, v1))
    return torch.cat(rows)


@pytest.mark.parametrize("kind", KINDS)
@given(LENGTHS, st.booleans())
def test_groups_and_padding_equal_the_textbook(kind, lengths, causal):
    relative, linear, batch, (q, k, v) = make(kind, lengths, causal)
    with torch.no_grad():
        offsets, expected = relative(batch).of(linear), textbook(relative, linear, q, k, v, batch)
        assert torch.allclose(attend_apart(q, k, v, batch, offsets), expected, atol=1e-5)
        with patch.object(attention, "part_rows", lambda q, batch: [attention.pad_rows(batch)]):  # as a GPU has it
            assert torch.allclose(attend_apart(q, k, v, batch, offsets), expected, atol=1e-5)


@pytest.mark.parametrize("drop", [0.0, 0.5])
@pytest.mark.parametrize("kind", KINDS)
@given(LENGTHS, st.booleans())
def test_buckets_equal_the_textbook_and_its_gradients(kind, drop, lengths, in_order):
    """Those of the numbers of distances, too."""
    relative, linear, batch, given_ = make(kind, sorted(lengths, reverse=True) if in_order else lengths)
    ours, theirs = ([x.clone().requires_grad_() for x in given_] for _ in range(2))
    with patch.object(attention, "draw_kept", chequered):
        mixed = attend_apart(*ours, batch, relative(batch).of(linear), drop)
    expected = textbook(relative, linear, *theirs, batch, chequered if drop else None)
    assert torch.allclose(mixed, expected, atol=1e-5)
    weights = torch.arange(mixed.numel()).view_as(mixed) / mixed.numel()  # no two of them alike
    shared = list(relative.parameters()) + ([] if kind == "bias" else list(linear.parameters()))
    found = [torch.autograd.grad((x * weights).sum(), [*leaves, *shared])
             for x, leaves in ((mixed, ours), (expected, theirs))]  # fmt: skip
    for mine, other in zip(*found, strict=True):
        assert torch.allclose(mine, other, atol=5e-4)


def chequered(like, drop=0.5):
    """Every other weight, by its place alone."""
    places = torch.arange(like.shape[-1])
    return 2.0 * ((places[:, None] + places) % 2 == 0).expand(like.shape)


@pytest.mark.skipif(not can_pack(torch.device("cpu"), torch.float32), reason="this machine packs no matrices")
def test_what_a_packed_matrix_makes_of_distances_is_kept():
    relative, linear, batch, (q, k, _) = make("buckets", [9])
    with torch.no_grad():
        before = relative(batch).of(linear).add(*(x.transpose(0, 1)[None] for x in (q, k)))
        linear.pack()
        for lengths in ([2], [9]):  # a longer row comes after a shorter one
            offsets = relative(Batch.of([[1] * n for n in lengths])).of(linear)
        after = offsets.add(*(x.transpose(0, 1)[None] for x in (q, k)))
    assert torch.allclose(after, before, atol=1e-5) and len(relative.kept) == 1


def test_some_of_the_distances_is_left_out_in_training():
    relative, linear, batch, (q, k, _) = make("buckets", [9])
    first, second = (relative.train()(batch).of(linear).add(*(x.transpose(0, 1)[None] for x in (q, k))) for _ in "ab")
    assert not torch.allclose(first, second)
