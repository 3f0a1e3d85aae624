"""Passes by a twin in half precision: in full precision the very same numbers, in half the same to rounding."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from oracle import load_saved, make_reference
from training.looping import fit
from training.made import make_folder, make_rows, make_task

from bertsmith.training.compiled import TwinPasses, make_twin
from bertsmith.training.devices import Ranks
from bertsmith.training.optimizer import make_optimizer
from bertsmith.training.passes import Passes
from bertsmith.training.settings import Training
from bertsmith.training.study import TaskStudy

CPU = torch.device("cpu")
SETTINGS = Training(batch=12, batch_tokens=64, rate=1e-3, dropout=0.0, seed=3)


def train(kind, tmp_path, steps=4, **more):
    """The weights and the losses after some steps of several passes each."""
    checkpoint = load_saved(make_reference("bert", "", vocab_size=300), tmp_path)
    fitted = fit(checkpoint, make_task(make_folder(tmp_path / "words"), "classify"))
    study = TaskStudy(make_task(tmp_path / "words", "classify"), make_rows("classify", 48), SETTINGS)
    passes = kind(fitted.network, study, SETTINGS, CPU, more.pop("precision", "fp32"), Ranks(0, 1, CPU), **more)
    optimizer, losses = make_optimizer(fitted.network, SETTINGS), []
    fitted.network.train()
    for step in range(steps):
        works = study.works(step, 0, 1, SETTINGS.batch_tokens)
        assert len(works) > 1
        passes.run(works, step)
        passes.finish(optimizer)
        losses.append(passes.report()[0]["loss"])
    return fitted.network, passes, losses


def test_in_full_precision_nothing_differs(tmp_path, monkeypatch):
    monkeypatch.setattr("bertsmith.layers.onednn.is_quicker", lambda: False)  # the twin's products are torch's own
    plain, _, losses = train(Passes, tmp_path / "plain")
    twin, passes, others = train(TwinPasses, tmp_path / "twin", compiles=False)
    assert losses == pytest.approx(others, rel=1e-6)
    for (name, one), (_, other) in zip(plain.named_parameters(), twin.named_parameters(), strict=True):
        if name.endswith("qkv.bias"):  # what is added to every key moves no weight: that gradient is rounding alone
            one, other = (each.view(3, -1)[[0, 2]] for each in (one, other))
        assert torch.allclose(one, other, atol=1e-5), name  # AdamW grows the rounding of a gradient near 0
    for full, half in zip(twin.parameters(), passes.halves, strict=True):
        assert torch.equal(full, half[: len(full)]) and half.grad is None


def test_in_half_precision_it_learns_the_same_to_rounding(tmp_path):
    _, _, losses = train(Passes, tmp_path / "plain", steps=8)
    network, passes, others = train(TwinPasses, tmp_path / "twin", steps=8, precision="bf16", compiles=False)
    assert losses == pytest.approx(others, rel=0.03)
    assert all(parameter.dtype == torch.float32 for parameter in network.parameters())
    for full, half in zip(network.parameters(), passes.halves, strict=True):
        assert torch.equal(full.bfloat16(), half[: len(full)])


def test_a_twin_is_apart(tmp_path):
    network = load_saved(make_reference("bert", ""), tmp_path).network
    twin = make_twin(network, torch.bfloat16)
    assert twin.order[0] is twin.blocks[0] and twin.blocks[0] is not network.blocks[0]
    with torch.no_grad():
        next(twin.parameters()).zero_()
    assert next(network.parameters()).abs().sum() > 0


@pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="Triton is for Linux only")
@pytest.mark.parametrize("preset, reads", [("bert-base", "all"), ("modernbert-base", "asked")])
def test_ragged_rows_share_their_graphs(preset, reads):
    """What a GPU would run, step by step the plain loss; and no new lengths or places make it compile again."""
    script = Path(__file__).with_name("compiled_script.py")
    done = subprocess.run([sys.executable, str(script), preset, reads], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    steps = [[float(number) for number in line.split()] for line in done.stdout.splitlines()]
    assert len(steps) == 4
    for plain, compiled, _ in steps:
        assert compiled == pytest.approx(plain, rel=1e-5)
    assert len({graphs for *_, graphs in steps}) == 1 and steps[0][2] >= 3  # a block, the embedding, the loss
