"""Objectives that read some places only: the last layer leaves the others out, and nothing that learns can tell."""

import pytest
import torch
from objectives.asking import VOCABULARY, ask, make_rows
from oracle import load_saved, make_reference

from bertsmith.objectives.combining import Stages, Sum
from bertsmith.objectives.masked_tokens import MaskedTokens
from bertsmith.objectives.next_token import NextToken
from bertsmith.objectives.pairs import SentencePair

PAIRS = torch.tensor([0, 1, 1, 0, 1])
KINDS = {
    "pieces": lambda: MaskedTokens(VOCABULARY),
    "all": lambda: MaskedTokens(VOCABULARY, 1.0),  # fills up with special tokens
    "words": lambda: MaskedTokens(VOCABULARY, 0.3, whole_words=True),
    "static": lambda: MaskedTokens(VOCABULARY, static=True),
    "pairs": lambda: Sum(MaskedTokens(VOCABULARY), SentencePair("next")),
    "static pairs": lambda: Sum(SentencePair("next"), MaskedTokens(VOCABULARY, 0.5, static=True)),
    "stages": lambda: Stages([(MaskedTokens(VOCABULARY), 0.5), (NextToken(VOCABULARY), 0.5)]),
}


def descend(objective, network, asked, hidden):
    """Each loss, what was right, and the gradients of all weights."""
    network.zero_grad()
    summed = objective.losses(network, hidden, asked.batch, asked.given)
    sum(total / count for total, count in summed.values()).backward()
    measured = objective.measures(network, hidden.detach(), asked.batch, asked.given)
    values = {name: (total.item(), count.item()) for name, (total, count) in {**summed, **measured}.items()}
    return values, {name: p.grad.clone() for name, p in network.named_parameters() if p.grad is not None}


CASES = [(family, kind) for family in ("bert", "albert") for kind in KINDS]
LONE = ("modernbert", "mpnet", "deberta-v3")  # which have no head for pairs
CASES += [(family, kind) for family in LONE for kind in KINDS if "pairs" not in kind]


@pytest.mark.parametrize("family, kind", CASES)
@pytest.mark.parametrize("recompute", [False, True])
def test_losses_and_gradients_are_those_of_all_states(kind, family, recompute, tmp_path):
    head = "mask" if family in LONE else "pretraining"
    network = load_saved(make_reference(family, head), tmp_path).network.requires_grad_(True)
    network.recompute = recompute
    objective = KINDS[kind]()
    asked = ask(objective, make_rows(), given={"pairs": PAIRS}, two=True)
    everywhere, wanted = descend(objective, network, asked, network(asked.batch))
    found, grads = descend(objective, network, asked, objective.read(network, asked))
    assert found == {name: pytest.approx(pair, rel=1e-5) for name, pair in everywhere.items()}
    assert grads.keys() == wanted.keys()
    for name, grad in grads.items():
        assert (grad - wanted[name]).abs().max() <= 1e-5 * max(wanted[name].abs().max(), 1e-3), name


def test_the_last_layer_computes_what_is_asked_and_no_more(tmp_path, monkeypatch):
    monkeypatch.setattr("bertsmith.layers.onednn.is_quicker", lambda: False)  # which wants a rounded number of rows
    network = load_saved(make_reference("bert", "pretraining"), tmp_path).network
    objective = Sum(MaskedTokens(VOCABULARY, 0.2), SentencePair("next"))
    asked = ask(objective, make_rows(), given={"pairs": PAIRS}, two=True)
    rows = []
    for block in network.order:
        block.feed.register_forward_hook(lambda _, given, __: rows.append(len(given[0])))
    hidden = objective.read(network, asked)
    places = objective.places(network, asked.batch, asked.given)
    assert len(places) == len(places.unique()) == len(asked.given["at"]) + len(PAIRS)
    assert rows == [len(asked.batch.ids)] * (len(network.order) - 1) + [len(places)]
    whole = network(asked.batch)
    assert torch.allclose(hidden[places], whole[places], atol=1e-5)
    others = torch.ones(len(hidden), dtype=torch.bool).index_fill(0, places, False)
    assert others.any() and not hidden[others].any()


def test_who_reads_onward_reads_everywhere(tmp_path):
    network = load_saved(make_reference("bert", "mask"), tmp_path).network
    objective = NextToken(VOCABULARY)
    asked = ask(objective, make_rows())
    assert objective.places(network, asked.batch, asked.given) is None
    assert torch.equal(objective.read(network, asked), network(asked.batch))
