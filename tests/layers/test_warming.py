"""Kernels are made ready beside a run: that whatever goes wrong there is no concern of the run.

That they are the right ones is checked in kernels_script.py.
"""

import importlib.util
import sys
from dataclasses import replace

import pytest
import torch

from bertsmith.layers import warming
from bertsmith.models.fresh import make_fresh

CPU = torch.device("cpu")


@pytest.fixture
def config():
    sizes = {"vocabulary": 50, "width": 32, "depth": 2, "heads": 1, "inner": 48}
    warming._begin.cache_clear()
    warming.failures.clear()
    yield make_fresh("bert-base", ("mask",), sizes, {"pad": 0}).network.config
    warming._begin.cache_clear()
    warming.failures.clear()


def test_without_triton_nothing_is_begun(config, monkeypatch):
    for name in [name for name in sys.modules if name.startswith("bertsmith.layers.packed")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delattr("bertsmith.layers.packed_attention", raising=False)
    monkeypatch.setitem(sys.modules, "triton", None)
    assert warming.warm(config, [16], CPU, torch.float32) == []


@pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="Triton is for Linux only")
def test_a_kernel_that_fails_is_left_to_the_pass_that_needs_it(config):
    """Without a GPU each of them fails."""
    threads = warming.warm(config, [16, 256, 16], CPU, torch.float32)
    assert len(threads) == 6  # two of attention for each length, two of the activation
    for thread in threads:
        thread.join()
    assert len(warming.failures) == 6
    assert warming.warm(config, [256, 16], CPU, torch.float32) is threads  # begun once


def test_a_device_without_a_number_is_the_current_one(monkeypatch):
    """`--device cuda` names none, and torch.cuda.set_device wants one: nothing would ever be made ready."""
    called, chosen = [], []
    monkeypatch.setattr(torch.cuda, "_exchange_device", lambda index: chosen.append(index) or -1)
    monkeypatch.setattr(torch.cuda, "_maybe_exchange_device", lambda index: -1)
    for device in (torch.device("cuda"), torch.device("cuda", 1)):
        warming._try(lambda: called.append(True), device)
    assert called == [True, True] and warming.failures == [] and chosen[1] == 1


@pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="Triton is for Linux only")
def test_heads_of_a_size_without_kernels_have_none_to_make_ready(config):
    odd = replace(config, width=48)
    assert len(warming.list_calls(odd, [16, 256], CPU, torch.float32)) == 2  # the activation's
