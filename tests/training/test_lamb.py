"""LAMB: its definition written out, AdamW where nothing is scaled, steps that are left out, its state, a run."""

import json
import math

import pytest
import safetensors.torch
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from pretraining_made import SHORT, Stop, assert_same, pretrain

from bertsmith.errors import BertsmithError
from bertsmith.training.lamb import Lamb
from bertsmith.training.optimizer import give_state, make_optimizer, parameter_groups, take_state
from bertsmith.training.pretraining_settings import Pretraining

RATE, BETAS, EPS, DECAY = 0.02, (0.9, 0.97), 1e-6, 0.1


def make_parameters(seed=0, shapes=((8, 16), (5, 3), (16,), (1,))):
    generator = torch.Generator().manual_seed(seed)
    return [torch.nn.Parameter(torch.randn(shape, generator=generator)) for shape in shapes]


def give_gradients(parameters, seed):
    generator = torch.Generator().manual_seed(seed)
    for parameter in parameters:
        parameter.grad = torch.randn(parameter.shape, generator=generator)


def make(parameters, **more):
    groups = [
        {"params": [p for p in parameters if p.ndim > 1], "weight_decay": DECAY},
        {"params": [p for p in parameters if p.ndim < 2], "weight_decay": 0.0},
    ]
    return Lamb([group for group in groups if group["params"]], lr=RATE, betas=BETAS, eps=EPS, **more)


def step_plainly(weights, grads, memory, step, bounds=(0.0, math.inf)):
    """Algorithm 2 of the paper for one tensor, number by number where it matters, in double precision."""
    mean, square = memory
    mean.mul_(BETAS[0]).add_((1 - BETAS[0]) * grads)
    square.mul_(BETAS[1]).add_((1 - BETAS[1]) * grads**2)
    ratio = (mean / (1 - BETAS[0] ** step)) / ((square / (1 - BETAS[1] ** step)).sqrt() + EPS)
    if weights.ndim < 2:
        return weights - RATE * ratio
    update = ratio + DECAY * weights
    size = min(max(weights.norm().item(), bounds[0]), bounds[1])
    return weights - RATE * (size / update.norm().item() if size else 1.0) * update


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 1000), st.integers(1, 6), st.sampled_from([(0.0, math.inf), (0.0, 2.0), (8.0, 10.0)]))
def test_it_is_the_definition(seed, steps, bounds):
    parameters = make_parameters(seed)
    plain = [p.detach().double() for p in parameters]
    memory = [(torch.zeros_like(p), torch.zeros_like(p)) for p in plain]
    optimizer = make(parameters, bounds=bounds)
    for step in range(1, steps + 1):
        give_gradients(parameters, seed + step)
        optimizer.step()
        plain = [
            step_plainly(weights, p.grad.double(), known, step, bounds)
            for weights, p, known in zip(plain, parameters, memory, strict=True)
        ]
    for ours, theirs in zip(parameters, plain, strict=True):
        torch.testing.assert_close(ours.double(), theirs, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("decay", [0.0, 0.3])
def test_where_nothing_is_scaled_it_is_adamw(decay):
    """Biases and norms, at any time; and a matrix of zeros, whose size says nothing, in its first step."""
    ours, theirs = (make_parameters(shapes=((16,), (3,))) for _ in range(2))
    lamb = Lamb([{"params": ours, "weight_decay": decay}], lr=RATE, betas=BETAS, eps=EPS)
    adamw = torch.optim.AdamW(theirs, lr=RATE, betas=BETAS, eps=EPS, weight_decay=decay)
    for step in range(20):
        for parameters, optimizer in ((ours, lamb), (theirs, adamw)):
            give_gradients(parameters, step)
            optimizer.step()
    for one, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-6)
    one, other = (torch.nn.Parameter(torch.zeros(4, 6)) for _ in range(2))
    pairs = [(one, Lamb([{"params": [one]}], lr=RATE, eps=EPS)), (other, torch.optim.AdamW([other], lr=RATE, eps=EPS))]
    for parameter, optimizer in pairs:
        give_gradients([parameter], 0)
        optimizer.step()
    torch.testing.assert_close(one, other)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 1000), st.sampled_from([1e-3, 1.0, 1e3]), st.sampled_from([1e-4, 1.0, 1e4]))
def test_a_step_is_the_rate_s_share_of_the_weights(seed, size, gradient):
    """However large weights and gradients are."""
    parameter = make_parameters(seed, ((12, 7),))[0]
    parameter.data *= size
    before = parameter.detach().clone()
    optimizer = make([parameter])
    give_gradients([parameter], seed)
    parameter.grad *= gradient
    optimizer.step()
    assert ((parameter - before).norm() / before.norm()).item() == pytest.approx(RATE, rel=1e-4)


@pytest.mark.parametrize("bad_step", [0, 2])
def test_a_step_whose_gradient_is_not_finite_is_as_if_it_had_not_been(bad_step):
    runs = []
    for steps in ([0, 1, 2, 3], [*[0, 1, 2, 3][:bad_step], "bad", *[0, 1, 2, 3][bad_step:]]):
        parameters = make_parameters()
        optimizer = make(parameters)
        for step in steps:
            give_gradients(parameters, 0 if step == "bad" else step)
            if step == "bad":
                parameters[0].grad[0, 0], parameters[2].grad[1] = float("nan"), float("inf")
            optimizer.found_inf = torch.tensor(float(step == "bad"))
            optimizer.step()
        states = [tensor for p in parameters for tensor in optimizer.state[p].values()]
        runs.append([*parameters, *states])
    assert all(map(torch.equal, *runs))
    assert runs[0][-1].item() == 4


def test_its_state_comes_back():
    ends = []
    for stops in (False, True):
        parameters = make_parameters()
        names = {parameter: f"part.{number}" for number, parameter in enumerate(parameters)}
        optimizer = make(parameters)
        for step in range(6):
            if stops and step == 3:
                kept = {name: tensor.clone() for name, tensor in give_state(optimizer, names).items()}
                optimizer = make(parameters)
                take_state(optimizer, names, kept)
            give_gradients(parameters, step)
            optimizer.step()
        ends.append(parameters)
    assert set(kept) == {f"{moment}.part.{n}" for moment in ("exp_avg", "exp_avg_sq", "step") for n in range(4)}
    assert all(map(torch.equal, *ends))


def test_a_run_with_it_learns_and_goes_on_to_the_same_end(corpus, tmp_path):
    more = {**SHORT, "optimizer": "lamb", "rate": 0.02}
    pretrain(corpus, tmp_path / "whole", "albert", **more)
    losses = [json.loads(line).get("loss") for line in (tmp_path / "whole" / "log.jsonl").read_text().splitlines()]
    assert losses[-2] < losses[0]
    with pytest.raises(RuntimeError):
        pretrain(corpus, tmp_path / "out", "albert", **more, watchers=[Stop(7, RuntimeError)])
    pretrain(corpus, tmp_path / "out", "albert", **more)
    assert_same(tmp_path / "out", tmp_path / "whole")
    state = safetensors.torch.load_file(tmp_path / "out" / "checkpoints" / "last-000012" / "optimizer.safetensors")
    assert {key.partition(".")[0] for key in state} == {"exp_avg", "exp_avg_sq", "step"}


def test_weights_that_are_cut_up_are_refused(corpus):
    from bertsmith.training.devices import Ranks
    from bertsmith.training.pretraining_start import prepare
    from bertsmith.training.recipes import find_recipe

    network = prepare(corpus, find_recipe("bert", {"depth": 1, "width": 16, "heads": 2, "inner": 16}), Ranks())
    network = network.checkpoint.network
    chosen = Pretraining(optimizer="lamb", rate=RATE, weight_decay=DECAY)
    assert isinstance(make_optimizer(network, chosen), Lamb)
    assert {group["weight_decay"] for group in parameter_groups(network, chosen)} == {DECAY, 0.0}
    next(network.parameters()).full_tensor = lambda: None  # as the parts of FSDP have it
    with pytest.raises(BertsmithError, match="LAMB measures whole tensors, which fsdp cuts up; use spread ddp"):
        make_optimizer(network, chosen)
