"""A long run on a CPU that computes in bfloat16 is told of it, in one sentence; no other run is."""

import pytest
import torch
from training.looping import fit, make_loop
from training.made import make_rows, make_task

from bertsmith.models.checkpoint import load_checkpoint
from bertsmith.training import advice
from bertsmith.training.settings import Training

ABLE, UNABLE = {"avx512_bf16": True, "avx2": True}, {"avx512_bf16": False, "amx_bf16": False, "avx2": True}


@pytest.fixture
def advise(small_model, tmp_path, monkeypatch):
    def ask(capabilities, long=0.0, **settings):
        monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: capabilities, raising=False)
        monkeypatch.setattr(advice, "LONG", long)
        task = make_task(small_model, "classify")
        fitted = fit(load_checkpoint(small_model), task)
        loop = make_loop(tmp_path / "run", fitted, task, make_rows("classify", 8), Training(batch=8, **settings))
        return advice.advise_half(loop)

    return ask


@pytest.mark.parametrize("capabilities", [ABLE, {"amx_bf16": True}])
def test_a_long_run_on_a_cpu_that_can_is_told(advise, capabilities):
    said = advise(capabilities)
    assert "--precision bf16" in said and said.endswith(".") and "\n" not in said


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_who_has_chosen_is_not_told(advise, precision):
    assert advise(ABLE, precision=precision) is None


def test_a_cpu_that_would_imitate_it_is_not_told(advise):
    assert advise(UNABLE) is None and advise({}) is None


def test_torch_that_cannot_tell_is_not_asked(advise, monkeypatch):
    monkeypatch.delattr(torch.cpu, "get_capabilities", raising=False)
    assert advice.has_half() is False


def test_short_runs_are_not_told(advise):
    assert advise(ABLE, long=1e14) is None


def test_what_a_step_costs_is_two_operations_a_number_and_token_and_twice_that_going_back(small_model, tmp_path):
    task = make_task(small_model, "classify")
    rows = make_rows("classify", 8)
    loop = make_loop(tmp_path / "run", fit(load_checkpoint(small_model), task), task, rows, Training(batch=8))
    layers = sum(p.numel() for name, p in loop.network.named_parameters() if name.startswith("blocks."))
    tokens = sum(len(row.ids) for some in rows for row in some)
    assert advice._count_operations(loop) == 6 * layers * tokens
