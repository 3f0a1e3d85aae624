"""Packing changes the layout of a matrix, not its numbers."""

import pytest
import torch

from bertsmith.layers import linear
from bertsmith.layers.activation import ACTIVATIONS
from bertsmith.layers.linear import Linear
from bertsmith.layers.onednn import can_pack

pytestmark = pytest.mark.skipif(not can_pack(torch.device("cpu"), torch.float32), reason="no oneDNN on this machine")


def make(inputs, outputs, bias=True):
    torch.manual_seed(0)
    layer = Linear(inputs, outputs, bias).requires_grad_(False)
    layer.weight.normal_()
    if bias:
        layer.bias.normal_()
    return layer


@pytest.mark.parametrize("shape", [(48, 80), (384, 1152), (7, 5), (1, 1)])
def test_the_weights_come_back_bit_for_bit(shape):
    layer = make(*shape)
    before = layer.weight.clone()
    layer.pack()
    assert layer.weight is None
    assert torch.equal(layer.dense_weight(), before)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("rows", [1, 2, 16, 300, 2000])
@pytest.mark.parametrize("activation", [None, *ACTIVATIONS])
def test_packed_gives_the_same(activation, rows, bias):
    layer, x = make(48, 80, bias), torch.randn(rows, 48)
    expected, added = layer(x, activation=activation), layer(x, add=torch.ones(rows, 80))
    layer.pack()
    assert torch.allclose(layer(x, activation=activation), expected, atol=1e-4, rtol=1e-5)
    assert torch.allclose(layer(x, add=torch.ones(rows, 80)), added, atol=1e-4, rtol=1e-5)


def test_kernels_are_made_for_few_numbers_of_rows(monkeypatch):
    """oneDNN keeps one for each number that it meets; a head meets as many as there are rows in a batch."""
    layer, met = make(48, 80), set()
    layer.pack()
    product, product_and_add = linear.products()

    def note(x, *rest):
        met.add(len(x))
        return product(x, *rest)

    monkeypatch.setattr(linear, "products", lambda: (note, product_and_add))
    x = torch.randn(256, 48)
    whole = layer(x, activation="tanh")
    for rows in range(1, 257):
        found = layer(x[:rows], activation="tanh")
        assert found.shape == (rows, 80) and torch.allclose(found, whole[:rows], atol=1e-5)
    assert len(met) == 8 + 12
