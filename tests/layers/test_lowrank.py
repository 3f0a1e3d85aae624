"""What an adapter adds to a layer, in training and, where it is added in place, in inference."""

import itertools

import pytest
import torch

from bertsmith.layers.linear import Linear
from bertsmith.layers.lowrank import LowRank

PARTS = [(1, (0,)), *((3, chosen) for size in (1, 2, 3) for chosen in itertools.combinations(range(3), size))]


@pytest.mark.parametrize(("parts", "chosen"), PARTS)
@pytest.mark.parametrize("is_packed", [False, True])
def test_added_in_place_it_is_what_the_dense_matrix_adds(parts, chosen, is_packed):
    torch.manual_seed(0)
    linear = Linear(24, 16 * parts).requires_grad_(False)
    for parameter in (linear.weight, linear.bias):
        parameter.normal_()
    low = LowRank(24, 16 * parts, parts, chosen, rank=4, scale=1.5)
    with torch.no_grad():
        low.down.normal_()
        low.up.normal_()
    dense = linear.weight + low.dense()
    x = torch.randn(32, 24)
    expected = torch.nn.functional.linear(x, dense, linear.bias)
    if is_packed and torch.backends.mkldnn.is_available():
        linear.pack()
    linear.low = low
    for context in (torch.enable_grad, torch.no_grad, torch.inference_mode):
        with context():
            torch.testing.assert_close(linear(x), expected, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(linear(x), expected, rtol=1e-4, atol=1e-4)  # nothing was added to what others hold
