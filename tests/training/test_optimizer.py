"""Which parameters learn, how fast, and what is left out."""

import copy

import pytest
import torch
from training.looping import fit, make_loop
from training.made import make_rows, make_task

from bertsmith.errors import BertsmithError
from bertsmith.models.checkpoint import load_checkpoint
from bertsmith.training.loop import Watcher
from bertsmith.training.optimizer import (
    give_state,
    layer_of,
    make_optimizer,
    named,
    parameter_groups,
    set_rates,
    take_state,
)
from bertsmith.training.pretraining_settings import Pretraining
from bertsmith.training.settings import Training


@pytest.fixture
def start(small_model):
    task = make_task(small_model, "classify")
    return task, fit(load_checkpoint(small_model), task)


def test_each_layer_below_the_head_learns_slower(start):
    _, fitted = start
    settings = Training(layer_decay=0.5, rate=1e-2, weight_decay=0.1)
    names = {parameter: name for name, parameter in fitted.network.named_parameters()}
    groups = parameter_groups(fitted.network, settings)
    optimizer = torch.optim.AdamW(groups, lr=1.0)
    set_rates(optimizer, settings.rate)
    seen = set()
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            name = names[parameter]
            seen.add(name)
            layer = 3 if "embed" in name else 2 if "blocks.0" in name else 1 if "blocks.1" in name else 0
            assert group["lr"] == pytest.approx(1e-2 * 0.5**layer), name
            is_plain = name.endswith(".weight") and "norm" not in name
            assert group["weight_decay"] == (0.1 if is_plain else 0.0), name
    assert seen == set(names.values())


@pytest.mark.parametrize(("given", "groups"), [({}, 2), ({"layer_decay": 0.9}, 8), ({"unfreeze": 1.0}, 8)])
def test_layers_have_groups_of_their_own_only_where_they_differ(start, given, groups):
    """Head, two layers and the embedding: what decays and what does not."""
    _, fitted = start
    assert len(parameter_groups(fitted.network, Training(**given))) == groups


def test_a_shared_block_is_one_layer():
    assert [layer_of(name, 1) for name in ("heads.classify.out.bias", "blocks.0.feed.up.bias", "embed.norm.bias")] == [
        0, 1, 2,
    ]  # fmt: skip


class Snapshots(Watcher):
    def __init__(self):
        self.weights, self.states = [], []

    def attach(self, loop):
        self.loop = loop

    def started(self, step, steps):
        self.stepped(step, None, None)

    def stepped(self, step, record, speed):
        names = {parameter: name for name, parameter in self.loop.network.named_parameters()}
        self.weights.append({name: parameter.detach().clone() for parameter, name in names.items()})
        self.states.append({names[parameter] for parameter in self.loop.optimizer.state})


def test_a_frozen_layer_stays_to_the_bit_and_then_learns(start, tmp_path):
    task, fitted = start
    watcher = Snapshots()
    settings = Training(epochs=2, batch=8, unfreeze=0.5, rate=1e-3)  # four steps an epoch: a layer wakes every other
    loop = make_loop(tmp_path / "run", fitted, task, make_rows("classify", 32), settings, watchers=[watcher])
    watcher.attach(loop)
    loop.run()
    for step in range(8):
        awake = step // 2
        for name in watcher.weights[0]:
            layer = layer_of(name, 2)
            is_same = torch.equal(watcher.weights[step][name], watcher.weights[step + 1][name])
            assert is_same == (layer > awake), (step, name)
            assert (name in watcher.states[step + 1]) == (layer <= awake), (step, name)


@pytest.mark.parametrize("settings", [{}, {"clip": 0.0}])
def test_a_step_whose_gradient_is_not_finite_is_left_out(start, tmp_path, settings):
    task, fitted = start
    loop = make_loop(tmp_path / "run", fitted, task, make_rows("classify", 32), Training(batch=8, **settings))
    loop.network.train()
    loop._step(0)
    before = [parameter.detach().clone() for parameter in loop.network.parameters()]
    moments = [tensor.clone() for state in loop.optimizer.state.values() for tensor in state.values()]
    loop.passes.run(loop.study.works(1, 0, 1, 1000), 1)
    loop.passes.parameters[3].grad[0] = float("nan")
    loop.passes.finish(loop.optimizer)
    assert all(map(torch.equal, before, loop.network.parameters()))
    after = [tensor for state in loop.optimizer.state.values() for tensor in state.values()]
    assert all(map(torch.equal, moments, after))
    assert loop.passes.report()[2] == 1


def test_recomputing_gives_the_same_weights_to_the_bit(small_model, tmp_path):
    ends = []
    for recompute in (False, True):
        task = make_task(small_model, "classify")
        fitted = fit(load_checkpoint(small_model), task, dropout=0.2)
        fitted.network.recompute = recompute
        settings = Training(epochs=1, batch=8, rate=1e-3, recompute=recompute)
        make_loop(tmp_path / str(recompute), fitted, task, make_rows("classify", 32), settings).run()
        ends.append(list(fitted.network.parameters()))
    assert all(map(torch.equal, *ends))


@pytest.mark.parametrize("optimizer", ["adamw", "lamb", "muon"])
def test_a_fine_tuning_has_the_optimizer_that_it_asks_for(start, tmp_path, optimizer):
    task, fitted = start
    settings = Training(epochs=1, batch=8, rate=1e-3, optimizer=optimizer)
    loop = make_loop(tmp_path / "run", fitted, task, make_rows("classify", 32), settings)
    assert type(loop.optimizer).__name__.lower() == optimizer
    before = [parameter.detach().clone() for parameter in fitted.network.parameters()]
    loop.run()
    assert not any(map(torch.equal, before, fitted.network.parameters()))


@pytest.mark.parametrize("given", [{"lora": 4}, {"features": "last"}])
def test_muon_is_refused_where_no_whole_matrix_learns(given):
    (name,) = given
    told = f"optimizer muon turns whole matrices of the blocks, and with {name} none learns; use adamw, or leave {name}"
    with pytest.raises(BertsmithError, match=told):
        Training(optimizer="muon", **given)


@pytest.mark.parametrize("recorded", [False, True])
@pytest.mark.parametrize("optimizer", ["adamw", "lamb", "muon"])
def test_embedding_and_heads_have_a_share_of_the_rate(start, optimizer, recorded):
    """And with Muon, what it leaves to AdamW has a rate of its own, of which they have their shares."""
    _, fitted = start
    names = {parameter: name for name, parameter in fitted.network.named_parameters()}
    adam_rate = 3e-3 if optimizer == "muon" else None
    chosen = Pretraining(
        rate=1e-2, optimizer=optimizer, adam_rate=adam_rate, embedding_rate=0.5, head_rate=4.0, weight_decay=0.1
    )
    made = make_optimizer(fitted.network, chosen, capturable=recorded)
    set_rates(made, 0.25 * chosen.rate)
    seen = set()
    for group in made.param_groups:
        for parameter in group["params"]:
            name = names[parameter]
            seen.add(name)
            share = 0.5 if name.startswith("embed.") else 4.0 if name.startswith("heads.") else 1.0
            is_matrix = name.startswith("blocks.") and parameter.ndim == 2
            rate = 3e-3 if optimizer == "muon" and not is_matrix else 1e-2
            assert isinstance(group["lr"], torch.Tensor) == recorded
            assert float(group["lr"]) == pytest.approx(0.25 * rate * share), name
            assert group["weight_decay"] == (0.1 if parameter.ndim > 1 else 0.0)
    assert seen == set(names.values())


@pytest.mark.parametrize("optimizer", ["adamw", "lamb", "muon"])
def test_rates_on_a_device_take_the_steps_of_plain_ones(start, optimizer):
    """Of an optimizer that may be recorded, and whose rates change from step to step."""
    _, fitted = start
    chosen = Pretraining(rate=1e-2, optimizer=optimizer, weight_decay=0.1)
    ends = []
    for recorded in (False, True):
        network = copy.deepcopy(fitted.network)
        made = make_optimizer(network, chosen, capturable=recorded)
        chance = torch.Generator().manual_seed(0)
        for step in range(3):
            set_rates(made, chosen.rate / (step + 1))
            for parameter in network.parameters():
                parameter.grad = torch.randn(parameter.shape, generator=chance)
            made.found_inf = torch.zeros(())
            made.step()
        ends.append(list(network.parameters()))
    for plain, ours, before in zip(*ends, fitted.network.parameters(), strict=True):
        torch.testing.assert_close(ours, plain, rtol=1e-5, atol=1e-6)
        assert not torch.equal(ours, before)


def test_rates_that_mean_nothing_are_refused():
    with pytest.raises(BertsmithError, match=r"head_rate is 0\.0; it must be more than 0"):
        Pretraining(head_rate=0.0)


def test_state_goes_where_its_parameter_is(start):
    """Scalars and tensors of what was given are copies: the next step must not change them."""
    _, fitted = start
    names = named(fitted.network)
    optimizer = make_optimizer(fitted.network, Training(rate=1e-3))
    for parameter in names:
        parameter.grad = torch.ones_like(parameter)
    optimizer.step()
    kept = {key: tensor.clone() for key, tensor in give_state(optimizer, names).items()}
    other = make_optimizer(fitted.network, Training(rate=1e-3))
    take_state(other, names, kept)
    before = {key: tensor.clone() for key, tensor in kept.items()}
    other.step()
    assert all(torch.equal(kept[key], before[key]) for key in kept)
    assert all(other.state[parameter]["step"].item() == 2 for parameter in names)
