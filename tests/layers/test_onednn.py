"""oneDNN's product gives what torch's own gives, and the same gradients, with an encoder around it too."""

import pytest
import torch
from torch.nn import functional as F

from bertsmith.data.batch import Batch
from bertsmith.layers import onednn
from bertsmith.layers.config import Config, HeadShape
from bertsmith.models.network import Network

CPU = torch.device("cpu")
needs_onednn = pytest.mark.skipif(not onednn.can_pack(CPU, torch.float32), reason="no oneDNN on this machine")


def random(*shape):
    return torch.randn(*shape, dtype=torch.float64, requires_grad=True)


def small(tensor):
    """The same numbers in full precision, as a leaf of its own."""
    return None if tensor is None else tensor.detach().float().requires_grad_(tensor.requires_grad)


@needs_onednn
@pytest.mark.parametrize("has_bias", [True, False])
@pytest.mark.parametrize("rows, inputs, outputs", [(8, 48, 80), (96, 384, 1152), (544, 7, 5), (16, 1, 1)])
def test_the_product_and_its_gradients_are_those_of_torch(rows, inputs, outputs, has_bias):
    torch.manual_seed(0)
    given = [random(rows, inputs), random(outputs, inputs), random(outputs) if has_bias else None]
    back = torch.randn(rows, outputs, dtype=torch.float64)
    theirs = F.linear(*given)
    theirs.backward(back)
    mine = [small(each) for each in given]
    found = onednn.multiply(*mine)
    found.backward(back.float())
    pairs = [(found, theirs)] + [(a.grad, b.grad) for a, b in zip(mine, given, strict=True) if b is not None]
    for ours, expected in pairs:
        torch.testing.assert_close(ours.double(), expected, rtol=1e-4, atol=1e-4)


@needs_onednn
def test_a_frozen_matrix_gets_no_gradient():
    x, weight = torch.randn(8, 4, requires_grad=True), torch.randn(6, 4)
    onednn.multiply(x, weight, None).sum().backward()
    assert weight.grad is None
    torch.testing.assert_close(x.grad, weight.sum(dim=0).expand(8, 4))


@needs_onednn
def test_a_pass_that_asks_for_no_place_has_a_gradient_of_nothing(monkeypatch):
    monkeypatch.setattr(onednn, "is_quicker", lambda: True)
    config = Config("bert", vocabulary=60, width=32, depth=2, heads=4, inner=48, positions=32)
    network = Network(config, {"tag": HeadShape("tokens", outputs=3, dense=32)})
    for parameter in network.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    batch, at = Batch.of([[1, 2, 3], [4, 5]]), torch.zeros(0, dtype=torch.long)
    scores = network.score(network(batch.wanting(network.places(batch, "tag", at))), batch, "tag", at)
    assert scores.shape == (0, 3)
    scores.sum().backward()
    assert all(not p.grad.any() for p in network.parameters() if p.grad is not None)


@needs_onednn
@pytest.mark.parametrize("wanted", [None, [0, 3, 4, 9, 21, 30]], ids=["all places", "some places"])
def test_an_encoder_that_fills_up_its_rows_learns_as_in_double_precision(wanted, monkeypatch):
    monkeypatch.setattr(onednn, "is_quicker", lambda: True)
    torch.manual_seed(0)
    network = Network(Config("bert", vocabulary=60, width=32, depth=2, heads=4, inner=48, positions=32, dropout=0.0,
                             attention_dropout=0.0), {})  # fmt: skip
    for parameter in network.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    batch = Batch.of([[1 + (7 * i + row) % 59 for i in range(length)] for row, length in enumerate((13, 9, 9, 4, 2))])
    places = None if wanted is None else torch.tensor(wanted)
    back = torch.randn(37, 32)
    if wanted is not None:  # elsewhere nothing is read
        back *= torch.zeros(37, 1).index_fill_(0, places, 1.0)
    met = []
    plain = onednn._multiply
    monkeypatch.setattr(onednn, "_multiply", lambda x, *rest: met.append(len(x)) or plain(x, *rest))
    grads = []
    for kind in (torch.float32, torch.float64):
        network.to(kind).zero_grad()
        (network(batch.wanting(places)) * back.to(kind)).sum().backward()
        grads.append({name: p.grad.double() for name, p in network.named_parameters() if p.grad is not None})
    assert met and 37 not in met
    assert set(grads[0]) == set(grads[1])
    for name, expected in grads[1].items():
        assert torch.allclose(grads[0][name], expected, rtol=1e-3, atol=1e-4), name
