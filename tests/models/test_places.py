"""A pass that computes the last states only where a head reads them learns the same as one that computes all."""

import pytest
import torch

from bertsmith.data.batch import Batch
from bertsmith.layers.config import Config, HeadShape
from bertsmith.models.network import Network

CONFIG = Config("bert", vocabulary=40, width=16, depth=2, heads=2, inner=24, dropout=0.0, attention_dropout=0.0)
BATCH = Batch.of([[3, 5, 7, 9, 11], [2, 4, 6], [8, 10]])
CASES = {
    "rows": ("first", None, [0, 5, 8]),
    "tokens": ("tokens", [1, 2, 6], [1, 2, 6]),
    "a place twice": ("tokens", [1, 6, 6], None),
    "every token": ("tokens", None, None),
    "means": ("mean", None, None),
}


@pytest.mark.parametrize("reads, at, expected", CASES.values(), ids=CASES)
def test_the_gradients_are_those_of_all_places(reads, at, expected):
    torch.manual_seed(0)
    network = Network(CONFIG, {"answer": HeadShape(reads=reads, outputs=3)}).double()
    for parameter in network.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    at = None if at is None else torch.tensor(at)
    places = network.places(BATCH, "answer", at)
    assert (None if places is None else places.tolist()) == expected
    grads = []
    for wanted in (places, None):
        network.zero_grad()
        network.score(network(BATCH.wanting(wanted)), BATCH, "answer", at).square().sum().backward()
        grads.append([parameter.grad for parameter in network.parameters()])
    for ours, theirs in zip(*grads, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-9)
