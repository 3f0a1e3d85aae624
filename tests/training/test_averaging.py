"""A mean of the weights: the reference's numbers, what sees it, what is kept of it, and runs that stop."""

import functools
import json
from contextlib import nullcontext

import pytest
import safetensors.torch
import torch
from pretraining_made import SHORT, STEPS, Stop, assert_same, pretrain
from training.poisoned import poison, run_killed, run_ranks
from training.test_guard import LONG, PASSES, pretrain_around
from training.test_guard import assert_same as assert_all_same

from bertsmith.errors import BertsmithError
from bertsmith.models.checkpoint import load_checkpoint
from bertsmith.training import loop as loop_module
from bertsmith.training.averaging import Averages
from bertsmith.training.compiled import TwinPasses
from bertsmith.training.pretraining import HeldOut
from bertsmith.training.pretraining_settings import Pretraining

LAST = f"checkpoints/last-{STEPS:06d}"


pytestmark = pytest.mark.usefixtures("one_thread")


def train(decay, steps, watch):
    """A small network with AdamW; `watch` sees it after each step."""
    torch.manual_seed(0)
    network = torch.nn.Sequential(torch.nn.Linear(5, 7), torch.nn.Tanh(), torch.nn.Linear(7, 2))
    optimizer = torch.optim.AdamW(network.parameters(), lr=0.05)
    averages = Averages(optimizer, decay)
    for step in range(steps):
        optimizer.zero_grad()
        network(torch.randn(9, 5)).square().mean().backward()
        optimizer.step()
        averages.move(step)
        watch(step, network)
    return network, averages


def test_it_is_the_reference_s(monkeypatch):
    """Of a decay so small that it needs no run-up."""
    theirs = []

    def watch(step, network):
        if not theirs:
            averaging = torch.optim.swa_utils.get_ema_multi_avg_fn(0.1)
            theirs.append(torch.optim.swa_utils.AveragedModel(network, multi_avg_fn=averaging))
        theirs[0].update_parameters(network)

    network, averages = train(0.1, 12, watch)
    with averages.in_place():
        for ours, other in zip(network.parameters(), theirs[0].module.parameters(), strict=True):
            torch.testing.assert_close(ours, other)


def test_early_weights_are_forgotten():
    """The first steps of a long mean keep less of it: (1 + t) / (10 + t)."""
    plain = []
    network, averages = train(0.999, 30, lambda step, n: plain.append([p.detach().clone() for p in n.parameters()]))
    wanted = plain[0]
    for step in range(1, 30):
        keeps = min(0.999, (1 + step) / (10 + step))
        wanted = [keeps * mean + (1 - keeps) * p for mean, p in zip(wanted, plain[step], strict=True)]
    averages.swap()
    for ours, other in zip(network.parameters(), wanted, strict=True):
        torch.testing.assert_close(ours, other)
    averages.swap()
    assert all(map(torch.equal, network.parameters(), plain[-1]))


def test_without_a_decay_there_is_none():
    network, averages = train(0.0, 3, lambda *_: None)
    before = [p.detach().clone() for p in network.parameters()]
    averages.swap()
    assert all(map(torch.equal, network.parameters(), before))
    assert not any("average" in state for state in averages.optimizer.state.values())


def load(folder, name):
    return safetensors.torch.load_file(folder / name)


@pytest.mark.parametrize("recipe", ["bert", "smith", "electra"])
def test_evaluations_and_the_model_have_the_mean_and_training_has_not(corpus, tmp_path, monkeypatch, recipe):
    seen, judge = [], HeldOut.__call__

    def look(self):
        seen.append({name: p.detach().clone() for name, p in self.network.named_parameters()})
        return judge(self)

    monkeypatch.setattr(HeldOut, "__call__", look)
    pretrain(corpus, tmp_path / "plain", recipe, **SHORT)
    seen.clear()
    run = pretrain(corpus, tmp_path / "out", recipe, average=0.8, **SHORT)
    plain, ours = (load(tmp_path / name / LAST, "model.safetensors") for name in ("plain", "out"))
    assert all(torch.equal(ours[key], plain[key]) for key in plain)  # training knows nothing of it
    logs = [map(json.loads, (tmp_path / name / "log.jsonl").read_text().splitlines()) for name in ("plain", "out")]
    one, other = ([record for record in log if "loss" in record] for log in logs)
    assert one == other and len(one) > 3
    state = load(tmp_path / "out" / LAST, "optimizer.safetensors")
    means = {key.partition(".")[2]: tensor for key, tensor in state.items() if key.startswith("average.")}
    assert set(means) == set(seen[-1])
    assert all(torch.equal(seen[-1][name], means[name]) for name in means)
    final = load(tmp_path / "out", "model.safetensors")
    assert any(not torch.equal(final[key], plain[key]) for key in plain)
    network = load_checkpoint(run.folder).network
    for name in network.names:
        assert torch.equal(network.tensor(name), means[name]), name


@pytest.fixture(scope="module")
def whole(corpus, tmp_path_factory):
    """`whole(recipe)`: the folder of a run that nothing stopped."""

    @functools.cache
    def train_whole(recipe):
        out = tmp_path_factory.mktemp("whole") / recipe
        pretrain(corpus, out, recipe, **SHORT, average=0.9)
        return out

    return train_whole


@pytest.mark.parametrize("recipe", ["bert", "smith", "electra"])
@pytest.mark.parametrize("step", [6, 8, 12])
def test_a_run_that_stopped_goes_on_to_the_same_end(corpus, whole, tmp_path, recipe, step):
    more = {**SHORT, "average": 0.9}
    with pytest.raises(RuntimeError):
        pretrain(corpus, tmp_path / "out", recipe, **more, watchers=[Stop(step, RuntimeError)])
    pretrain(corpus, tmp_path / "out", recipe, **more)
    assert_same(tmp_path / "out", whole(recipe))


def test_a_killed_run_goes_on_to_the_same_end(starter, corpus, tmp_path):
    more = {**SHORT, "average": 0.9, "save_minutes": 0.0}
    pretrain(corpus, tmp_path / "whole", "smith", **more)
    for step in (2, 7, 12):
        run_killed(starter, corpus, tmp_path / "out", step, {}, recipe="smith", **more)
    pretrain(corpus, tmp_path / "out", "smith", **more)
    assert_same(tmp_path / "out", tmp_path / "whole")


def test_a_run_that_was_killed_before_its_results_writes_the_mean(corpus, whole, tmp_path, monkeypatch):
    """All steps are done and saved; what is left is to write the model."""
    more = {**SHORT, "average": 0.9}
    with monkeypatch.context() as patch:
        patch.setattr(Averages, "swap", lambda self: (_ for _ in ()).throw(RuntimeError("a made mistake")))
        patch.setattr(Averages, "in_place", nullcontext)
        with pytest.raises(RuntimeError):
            pretrain(corpus, tmp_path / "out", **more)
    assert (tmp_path / "out" / LAST).exists()
    pretrain(corpus, tmp_path / "out", **more)
    ours, theirs = (load(folder, "model.safetensors") for folder in (tmp_path / "out", whole("bert")))
    assert all(torch.equal(ours[key], theirs[key]) for key in theirs)


def test_a_twin_in_half_precision_learns_on_from_where_the_run_went_back_to(corpus, tmp_path, monkeypatch):
    """The full weights are averaged; and after the guard went back the twin has what the full weights have."""
    twins = []

    def make(network, study, settings, device, precision, ranks):
        twins.append(TwinPasses(network, study, settings, device, "bf16", ranks, compiles=False))
        return twins[-1]

    monkeypatch.setattr(loop_module, "make_passes", make)
    more = {**LONG, "average": 0.9, "recipe": "bert"}
    with poison({13: float("nan")}):
        pretrain(corpus, tmp_path / "out", **more)
    assert len(twins) == 2
    pretrain_around(corpus, tmp_path / "around", [[10, PASSES * 4]], monkeypatch, **more)
    assert_all_same(tmp_path / "out", tmp_path / "around", log=False)
    state = load(tmp_path / "out" / "checkpoints" / "last-000040", "optimizer.safetensors")
    assert {tensor.dtype for key, tensor in state.items() if key.startswith("average.")} == {torch.float32}


def test_each_process_has_the_same_and_parts_are_refused(starter, corpus, tmp_path):
    more = {**SHORT, "average": 0.9, "recipe": "smith", "dropout": 0.0}
    runs = {"out": more, "parts": {**more, "recipe": "bert", "spread": "fsdp"}}
    said = run_ranks(starter, corpus, tmp_path, runs, {})
    one, other = ((tmp_path / "out" / f"rank-{rank}").read_text() for rank in (0, 1))
    assert one == other
    pretrain(corpus, tmp_path / "alone", **more)
    ours, theirs = (load(tmp_path / name, "model.safetensors") for name in ("out", "alone"))
    for key, tensor in theirs.items():
        torch.testing.assert_close(ours[key], tensor, rtol=1e-2, atol=2e-3)
    assert "average needs whole weights, which fsdp cuts up; use spread ddp, or leave it out." in said
    assert not (tmp_path / "parts").exists()


def test_a_decay_of_1_is_refused():
    with pytest.raises(BertsmithError, match=r"average is 1\.0; it must be from 0 to 0.999999"):
        Pretraining(average=1.0)
