"""Muon: the nearest orthogonal matrix, a step that is left out, state on disk, a problem solved, several processes."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file
from training import muon_ranks

from bertsmith.training.muon import Muon, orthogonalize
from bertsmith.training.optimizer import give_state, take_state

sizes = st.integers(2, 24)


def make_matrix(rows, columns, seed, spread=1.0):
    """Random, with singular values from 1 down to 10 ** -spread."""
    generator = torch.Generator().manual_seed(seed)
    left, _, right = torch.linalg.svd(torch.randn(rows, columns, generator=generator), full_matrices=False)
    return left @ torch.diag(torch.logspace(0, -spread, min(rows, columns))) @ right


@settings(max_examples=40, deadline=None)
@given(sizes, sizes, st.integers(0, 1000), st.sampled_from([1e-4, 1.0, 1e4]))
def test_all_singular_values_become_one(rows, columns, seed, size):
    matrix = make_matrix(rows, columns, seed)
    found = orthogonalize(size * matrix[None])[0].float()
    values = torch.linalg.svdvals(found)
    assert found.shape == matrix.shape and values.min() > 0.7 and values.max() < 1.3
    ours, _, theirs = torch.linalg.svd(matrix, full_matrices=False)
    wanted = ours @ theirs  # the nearest matrix whose singular values are all 1
    assert (found - wanted).norm() / wanted.norm() < 0.3
    assert (found * wanted).sum() / (found.norm() * wanted.norm()) > 0.97


def test_a_stack_is_its_matrices_one_by_one():
    stack = torch.stack([make_matrix(12, 20, seed) for seed in range(3)])
    torch.testing.assert_close(orthogonalize(stack)[1], orthogonalize(stack[1:2])[0], rtol=0.02, atol=0.02)


def make_optimizer(matrices, vectors, rate=0.02, decay=0.0):
    groups = [
        {"params": matrices, "muon": True, "weight_decay": decay, "share": 1.0, "layer": 0},
        {"params": vectors, "muon": False, "weight_decay": 0.0, "share": 1.0, "layer": 0},
    ]
    return Muon(groups, lr=rate, betas=(0.9, 0.95), eps=1e-8, fused=True)


def make_parameters(seed=0):
    generator = torch.Generator().manual_seed(seed)
    shapes = ((8, 16), (8, 16), (16, 8))
    matrices = [torch.nn.Parameter(torch.randn(shape, generator=generator)) for shape in shapes]
    return matrices, [torch.nn.Parameter(torch.randn(16, generator=generator))]


def give_gradients(parameters, seed):
    generator = torch.Generator().manual_seed(seed)
    for parameter in parameters:
        parameter.grad = torch.randn(parameter.shape, generator=generator)


@pytest.mark.parametrize("rows", [True, False])
def test_an_update_has_the_size_of_an_adamw_one(rows):
    """The root of the mean square of AdamW's updates is about 0.2 of the rate (arXiv 2502.16982, section 2.2)."""
    matrices, vectors = make_parameters()
    before = [p.detach().clone() for p in matrices]
    optimizer = make_optimizer(matrices, vectors)
    optimizer.rows = rows
    give_gradients([*matrices, *vectors], 1)
    optimizer.step()
    for parameter, was in zip(matrices, before, strict=True):
        change = parameter.detach() - was
        assert change.square().mean().sqrt() == pytest.approx(0.2 * 0.02, rel=0.1)
        assert (change * parameter.grad).sum() < 0
        if rows:
            sizes = change.norm(dim=-1)
            assert (sizes / sizes.mean() - 1).abs().max() < 1e-3


def test_weights_decay_by_the_rate():
    matrices, vectors = make_parameters()
    before = [p.detach().clone() for p in (*matrices, *vectors)]
    optimizer = make_optimizer(matrices, vectors, rate=0.5, decay=0.1)
    for parameter in (*matrices, *vectors):
        parameter.grad = torch.zeros_like(parameter)
    optimizer.step()
    for parameter, was in zip(matrices, before, strict=False):
        torch.testing.assert_close(parameter.detach(), was * 0.95)
    assert torch.equal(vectors[0].detach(), before[-1])


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_step_whose_gradient_is_not_finite_changes_nothing(value):
    matrices, vectors = make_parameters()
    every = [*matrices, *vectors]
    names = {parameter: str(i) for i, parameter in enumerate(every)}
    optimizer = make_optimizer(matrices, vectors, decay=0.1)
    for step in range(2):
        optimizer.found_inf = torch.zeros(())
        give_gradients(every, step)
        optimizer.step()
    before = [p.detach().clone() for p in every]
    state = {key: tensor.clone() for key, tensor in give_state(optimizer, names).items()}
    give_gradients(every, 2)
    for parameter in every:
        parameter.grad.view(-1)[3] = value
    optimizer.found_inf = torch.ones(())
    optimizer.step()
    assert all(torch.equal(parameter.detach(), was) for parameter, was in zip(every, before, strict=True))
    after = give_state(optimizer, names)
    assert state.keys() == after.keys() and all(torch.equal(state[key], after[key]) for key in state)


def test_its_state_can_be_saved_and_restored():
    runs = []
    for stops in (False, True):
        matrices, vectors = make_parameters()
        every = [*matrices, *vectors]
        names = {parameter: str(i) for i, parameter in enumerate(every)}
        optimizer = make_optimizer(matrices, vectors)
        for step in range(6):
            if stops and step == 3:
                kept = {key: tensor.clone() for key, tensor in give_state(optimizer, names).items()}
                optimizer = make_optimizer(matrices, vectors)
                take_state(optimizer, names, kept)
            give_gradients(every, step)
            optimizer.step()
        runs.append([p.detach() for p in every])
    assert all(torch.equal(one, other) for one, other in zip(*runs, strict=True))


def test_it_finds_a_matrix():
    """Least squares with very unequal directions, in which a plain gradient crawls."""
    wanted = make_matrix(8, 16, 5)
    inputs = torch.randn(64, 16, generator=torch.Generator().manual_seed(1)) * torch.logspace(0, -1.5, 16)
    found = torch.nn.Parameter(torch.zeros(8, 16))
    bias = torch.nn.Parameter(torch.ones(8))
    optimizer = make_optimizer([found], [bias])
    for step in range(300):
        optimizer.zero_grad()
        for group in optimizer.param_groups:
            group["lr"] = 0.1 * (1 - step / 300)
        loss = (inputs @ (found - wanted).T + bias).square().mean()
        loss.backward()
        optimizer.step()
    assert loss < 1e-4


PROCESSES = 3


@pytest.fixture(scope="module")
def shared(starter, tmp_path_factory):
    """What three processes come to, each with all weights (ddp) or with its rows of them (fsdp)."""
    folder = tmp_path_factory.mktemp("muon")
    ran = starter.run_ranks(["training.muon_ranks", folder], folder, PROCESSES)
    assert ran.returncode == 0, ran.stderr[-3000:]
    return folder


@pytest.mark.parametrize("rows", [True, False])
@pytest.mark.parametrize("spread", ["ddp", "fsdp"])
def test_processes_that_share_the_work_come_to_what_one_does(shared, spread, rows):
    alone = muon_ranks.train(muon_ranks.make_weights(), rows)
    before = dict(muon_ranks.make_weights())
    files = [load_file(shared / f"{spread}-{rows}-{rank}.safetensors") for rank in range(PROCESSES)]
    assert all(file.keys() == alone.keys() for file in files)
    for name, tensor in alone.items():
        # Products in bfloat16 may round in another way when fewer matrices are stacked.
        near = 0.02 * muon_ranks.RATE if name.startswith("matrix") else 0.0
        torch.testing.assert_close(files[0][name], tensor, rtol=1e-6, atol=near)
        assert all(torch.equal(file[name], files[0][name]) for file in files), name
        if name in before:
            assert (tensor - before[name]).abs().max() > 0.2 * muon_ranks.RATE, name


def test_layers_that_learn_at_other_rates_step_apart():
    """Of two groups whose rates differ each goes as far as its own says."""
    matrices, _ = make_parameters()
    groups = [
        {"params": [matrix], "muon": True, "weight_decay": 0.0, "share": share, "layer": 0, "lr": 0.02 * share}
        for matrix, share in zip(matrices, (1.0, 0.5, 0.25), strict=True)
    ]
    vector = {"params": [torch.nn.Parameter(torch.ones(3))], "muon": False, "weight_decay": 0.0, "share": 1.0}
    optimizer = Muon([*groups, vector], lr=0.02, betas=(0.9, 0.95), eps=1e-8, fused=True)
    before = [p.detach().clone() for p in matrices]
    give_gradients(matrices, 1)
    optimizer.step()
    for parameter, was, share in zip(matrices, before, (1.0, 0.5, 0.25), strict=True):
        change = (parameter.detach() - was).square().mean().sqrt()
        assert change == pytest.approx(0.2 * 0.02 * share, rel=0.1)
