"""Replaced tokens: what the generator puts in, what is called replaced, and where gradients flow."""

import pytest
import torch
from objectives.asking import ORDINARY, SPECIALS, VOCABULARY, ask, count_ordinary, make_rows, run
from oracle import load_saved, make_reference
from sklearn.metrics import roc_auc_score

from bertsmith.errors import BertsmithError
from bertsmith.objectives.masked_tokens import MaskedTokens
from bertsmith.objectives.replaced import ReplacedTokens, share_tables


@pytest.fixture
def networks(tmp_path):
    """A network and a narrower generator with tables of the same shape."""
    large = load_saved(make_reference("electra", "pretraining"), tmp_path / "large").network
    sizes = {"hidden_size": 24, "num_attention_heads": 2, "intermediate_size": 40}
    small = load_saved(make_reference("electra", "mask", 1, **sizes), tmp_path / "small").network
    return large.requires_grad_(True), small.requires_grad_(True)


def make(networks, rate=0.3, **settings):
    return ReplacedTokens(MaskedTokens(VOCABULARY, rate, masked=0.85, random=0.0, **settings), networks[1])


def test_only_hidden_tokens_are_replaced_and_no_mask_is_left(networks):
    rows = make_rows()
    asked = ask(make(networks), rows)
    before = torch.tensor([id for row in rows for id in row])
    changed = asked.batch.ids != before
    assert torch.equal(changed, asked.given["replaced"]) and changed.any()
    hidden = set(asked.given["at"].tolist())
    assert set(changed.nonzero()[:, 0].tolist()) <= hidden
    assert len(hidden) == round(0.3 * count_ordinary(rows))
    assert not changed[torch.isin(before, torch.tensor(SPECIALS))].any()


def test_the_same_seed_makes_the_same(networks):
    objective, rows = make(networks), make_rows()
    one, same, other = (ask(objective, rows, seed).batch.ids for seed in (3, 3, 4))
    assert torch.equal(one, same) and not torch.equal(one, other)


def test_tokens_are_drawn_by_the_generators_own_probabilities(networks):
    """Over many draws each token comes as often as the softmax says."""
    objective = make(networks, chunk=500)
    states = torch.randn(1, 24, generator=torch.Generator().manual_seed(0))
    batch = ask(objective.masking, [[ORDINARY[0]]]).batch
    torch.manual_seed(0)
    drawn = objective._sample(states, batch, torch.zeros(20_000, dtype=torch.long))
    wanted = objective.generator.score(states, batch, "mask")[0].float().softmax(-1)
    found = torch.bincount(drawn, minlength=VOCABULARY.size) / len(drawn)
    assert ((found - wanted).abs() <= 5 * (wanted * (1 - wanted) / len(drawn)).sqrt() + 1e-4).all()


def test_each_learns_from_its_own_loss(networks):
    network, generator = networks
    objective = make(networks)
    asked = ask(objective, make_rows())
    means, _ = run(objective, network, asked)
    means["replaced"].backward(retain_graph=True)
    assert all(parameter.grad is None for parameter in generator.parameters())
    assert network.embed.tokens.weight.grad is not None
    for parameter in network.parameters():
        parameter.grad = None
    means["generator"].backward()
    assert all(parameter.grad is None for parameter in network.parameters())
    assert generator.embed.tokens.weight.grad is not None


def test_shared_tables_learn_from_both_and_are_one(networks):
    network, generator = networks
    assert share_tables(network, generator)
    objective = make(networks)
    assert objective.parts() == {"generator": generator}
    table = network.embed.tokens.weight
    assert generator.embed.tokens.weight is table and generator.embed.norm is network.embed.norm
    assert generator.embed.project is not network.embed.project
    asked = ask(objective, make_rows())
    means, total = run(objective, network, asked)
    both = [torch.autograd.grad(mean, table, retain_graph=True)[0] for mean in means.values()]
    assert all(grad.abs().sum() > 0 for grad in both)
    total.backward()
    assert torch.allclose(table.grad, both[0] + 50 * both[1], rtol=1e-4, atol=1e-5)
    together = torch.nn.ModuleList([network, generator])
    assert sum(p is table for p in together.parameters()) == 1


def test_tables_of_other_shapes_are_not_shared(networks, tmp_path):
    other = load_saved(make_reference("electra-wide", "mask", 1), tmp_path).network
    before = other.embed.tokens.weight
    assert not share_tables(networks[0], other) and other.embed.tokens.weight is before


def test_measures(networks):
    objective, rows = make(networks), make_rows()
    with torch.no_grad():
        asked = ask(objective, rows)
        hidden = networks[0](asked.batch)
        found = objective.measures(networks[0], hidden, asked.batch, asked.given)
        scores = networks[0].score(hidden, asked.batch, "replaced")[:, 0]
    said, judged, replaced = scores > 0, asked.given["judged"], asked.given["replaced"]
    right, count = found["replaced_accuracy"]
    assert right.item() == (said == replaced)[judged].sum() and count.item() == count_ordinary(rows)
    right, count = found["replaced_found"]
    assert right.item() == said[replaced].sum() and count.item() == replaced.sum()
    right, count = found["replaced_auc"]
    assert right.item() / count.item() == pytest.approx(roc_auc_score(replaced[judged], scores[judged]), abs=1e-6)
    assert found["generator_accuracy"][1].item() == len(asked.given["at"])


def test_a_judge_without_insight_ranks_half_of_them_right(networks, monkeypatch):
    objective, rows = make(networks), make_rows()
    with torch.no_grad():
        asked = ask(objective, rows)
        hidden = networks[0](asked.batch)
        for scores, expected in ((torch.zeros(len(hidden)), 0.5), (-asked.given["replaced"].float(), 0.0)):
            monkeypatch.setattr(objective, "_judge", lambda *_, scores=scores: scores)
            right, count = objective.measures(networks[0], hidden, asked.batch, asked.given)["replaced_auc"]
            assert right.item() / count.item() == expected


@pytest.mark.parametrize("share", [0.25, 0.5, 0.8])
def test_places_that_stay_hidden_are_filled_by_the_network_itself(networks, share, tmp_path):
    """Its loss there is that of masked tokens at those places alone; of the others it tells which were replaced."""
    filler = load_saved(make_reference("electra", "mask"), tmp_path / "filler").network
    networks[0].heads["mask"] = filler.heads["mask"]
    masking = MaskedTokens(VOCABULARY, 0.4, masked=1.0, random=0.0)
    objective, rows = ReplacedTokens(masking, networks[1], stay_hidden=share), make_rows()
    assert objective.heads == ("replaced", "mask") and objective.names == ("generator", "replaced", "masked")
    asked = ask(objective, rows)
    before, at, own = torch.tensor([id for row in rows for id in row]), asked.given["at"], asked.given["own"]
    assert len(own) == round(share * len(at)) == len(own.unique()) and torch.isin(own, at).all()
    assert (asked.batch.ids[own] == VOCABULARY.mask).all()
    changed = asked.batch.ids != before
    assert torch.isin(changed.nonzero()[:, 0], at).all()
    assert torch.equal(asked.given["replaced"], changed.index_fill(0, own, False))
    assert not asked.given["judged"][own].any()
    assert objective.expect(count_ordinary(rows), len(rows), 0.0) == {
        "generator": len(at), "replaced": count_ordinary(rows) - len(own), "masked": len(own)
    }  # fmt: skip
    hidden = networks[0](asked.batch)
    cost, count = objective.losses(networks[0], hidden, asked.batch, asked.given)["masked"]
    scores = networks[0].score(hidden, asked.batch, "mask")[own]
    wanted = torch.nn.functional.cross_entropy(scores.float(), before[own], reduction="sum")
    assert cost.item() == pytest.approx(wanted.item(), rel=1e-5) and count.item() == len(own)
    right, of = objective.measures(networks[0], hidden, asked.batch, asked.given)["masked_accuracy"]
    assert right.item() == (scores.argmax(-1) == before[own]).sum().item() and of.item() == len(own)


def test_all_places_cannot_stay_hidden(networks):
    with pytest.raises(BertsmithError, match=r"stay_hidden is 1\.0; it must be from 0 to below 1"):
        ReplacedTokens(MaskedTokens(VOCABULARY), networks[1], stay_hidden=1.0)


def test_chunks_change_nothing_but_rounding(networks):
    rows = make_rows()
    whole, parts = make(networks), make(networks, chunk=4)
    costs = [run(objective, networks[0], ask(objective, rows))[0]["generator"].item() for objective in (whole, parts)]
    assert costs[0] == pytest.approx(costs[1], rel=1e-5)


def test_a_generator_without_a_head_is_refused(networks):
    with pytest.raises(BertsmithError, match="no head for masked tokens"):
        ReplacedTokens(MaskedTokens(VOCABULARY), networks[0])
