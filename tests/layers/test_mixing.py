"""What a head reads of a frozen encoder, against numpy by hand; a BiLSTM over packed rows, against torch's by row."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from bertsmith.data.batch import Batch
from bertsmith.errors import BertsmithError
from bertsmith.layers.config import Config
from bertsmith.layers.heads import Head, HeadShape
from bertsmith.layers.mixing import LAYERS, FeatureShape, LayerMix
from bertsmith.layers.recurrent import Recurrent

WIDTH, DEPTH, TOKENS = 8, 5, 7
CONFIG = Config("bert", 20, width=WIDTH, depth=DEPTH, heads=2, inner=16, head_dropout=0.5)


def make_batch(*lengths: int) -> Batch:
    return Batch.of([[1] * length for length in lengths])


@pytest.fixture
def states():
    return torch.randn(DEPTH + 1, TOKENS, WIDTH, generator=torch.Generator().manual_seed(0))


def test_layers_are_put_together_as_by_hand(states):
    batch, known = make_batch(3, 4), states.numpy()
    expected = {
        "last": known[-1],
        "sum4": known[2] + known[3] + known[4] + known[5],
        "concat4": np.concatenate([known[2], known[3], known[4], known[5]], axis=1),
    }
    for layers, wanted in expected.items():
        mix = LayerMix(CONFIG, FeatureShape(layers))
        assert list(mix.parameters()) == []
        found = mix(mix.collect(iter(states)), batch)
        np.testing.assert_allclose(found.numpy(), wanted, atol=1e-6)
        assert found.shape[1] == mix.width


def test_a_learned_mix_is_elmos(states):
    mix = LayerMix(CONFIG, FeatureShape("mix"))
    with torch.no_grad():
        mix.weights.copy_(torch.linspace(-1, 2, DEPTH + 1))
        mix.scale.fill_(1.7)
        found = mix(mix.collect(iter(states)), make_batch(3, 4))
    shares = np.exp(np.linspace(-1, 2, DEPTH + 1))
    wanted = 1.7 * np.tensordot(shares / shares.sum(), states.numpy(), axes=1)
    np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-5, atol=1e-6)


def test_a_fresh_mix_is_the_mean_of_all_layers(states):
    mix = LayerMix(CONFIG, FeatureShape("mix"))
    assert torch.allclose(mix(mix.collect(iter(states)), make_batch(7)), states.mean(dim=0), atol=1e-6)


@pytest.mark.parametrize("layers", LAYERS)
def test_what_is_collected_has_the_width_that_is_told(states, layers):
    mix = LayerMix(CONFIG, FeatureShape(layers, recurrent=3))
    collected = mix.collect(iter(states))
    assert collected.shape == (TOKENS, mix.collected)
    assert mix(collected, make_batch(2, 5)).shape == (TOKENS, mix.width) == (TOKENS, 6)


@pytest.mark.parametrize("layers", ["sum4", "concat4"])
def test_fewer_than_four_layers_are_refused(layers):
    shallow = Config("bert", 20, width=WIDTH, depth=3, heads=2, inner=16)
    with pytest.raises(BertsmithError, match=f"{layers} reads the last four layers, but the model has 3"):
        LayerMix(shallow, FeatureShape(layers))


def make_recurrent(dropout: float = 0.0) -> Recurrent:
    torch.manual_seed(1)
    return Recurrent(WIDTH, 3, dropout)


def by_row(recurrent: Recurrent, x: torch.Tensor, lengths: list[int]) -> torch.Tensor:
    """The rows one by one through a two-layer LSTM of torch with the same weights."""
    whole = torch.nn.LSTM(WIDTH, 3, num_layers=2, bidirectional=True, batch_first=True)
    for number, layer in enumerate(recurrent.layers):
        for name, weight in layer.named_parameters():
            getattr(whole, name.replace("_l0", f"_l{number}")).data.copy_(weight)
    return torch.cat([whole(row[None])[0][0] for row in x.split(lengths)])


@settings(max_examples=40)
@given(st.lists(st.integers(1, 9), min_size=1, max_size=8))
def test_rows_of_any_lengths_in_any_order_are_those_of_torch(lengths):
    recurrent = make_recurrent()
    x = torch.randn(sum(lengths), WIDTH, generator=torch.Generator().manual_seed(len(lengths)))
    with torch.no_grad():
        found = recurrent(x, make_batch(*lengths))
        assert torch.allclose(found, by_row(recurrent, x, lengths), atol=1e-6)


def test_gradients_are_those_of_torch():
    recurrent, lengths = make_recurrent(), [2, 5, 1]
    x = torch.randn(8, WIDTH, requires_grad=True)
    mine = torch.autograd.grad(recurrent(x, make_batch(*lengths)).square().sum(), x)[0]
    theirs = torch.autograd.grad(by_row(recurrent, x, lengths).square().sum(), x)[0]
    assert torch.allclose(mine, theirs, atol=1e-5)


def test_dropout_is_for_training_and_follows_the_seed():
    recurrent, x, batch = make_recurrent(0.5), torch.randn(6, WIDTH), make_batch(4, 2)
    torch.manual_seed(3)
    first = recurrent(x, batch)
    assert not torch.equal(first, recurrent(x, batch))
    torch.manual_seed(3)
    assert torch.equal(first, recurrent(x, batch))
    recurrent.eval()
    assert torch.equal(recurrent(x, batch), recurrent(x, batch))


def test_a_head_reads_another_width_than_the_encoders():
    head = Head(CONFIG, HeadShape("first", outputs=2, dense=WIDTH), reads=4 * WIDTH)
    assert head.dense is not None and head.dense.weight is not None and head.out is not None
    assert head.dense.weight.shape == (WIDTH, 4 * WIDTH)
    assert head.out.weight is not None and head.out.weight.shape == (2, WIDTH)
