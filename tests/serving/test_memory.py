"""The memory of a process with models: caches of kernels that are bounded, and what is free given back."""

import json
import os
import subprocess
import sys
import threading

import pytest
import torch

from bertsmith.layers.onednn import can_pack
from bertsmith.serving.processes.memory import KEPT, OLD_NAME, Returning, bound_caches, find_trim

DEADLINE = 30.0
# What the heap holds after each of two halves: 600 sizes of a product that rounds nothing, as many as a day may bring.
GROW = """
import ctypes, json, torch
from bertsmith.serving.processes.memory import bound_caches
bound_caches()

class Heap(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in ("a", "b", "c", "d", "mapped", "f", "g", "used", "i", "j")]

measure = ctypes.CDLL(None).mallinfo2
measure.restype = Heap
torch.set_num_threads(1)
weight = torch.ops.mkldnn._reorder_linear_weight(torch.ones(96, 32), 256)
found = []
for sizes in (range(1, 301), range(301, 601)):
    for size in sizes:
        torch.ops.mkldnn._linear_pointwise(torch.ones(size, 32), weight, None, "none", [], "")
    heap = measure()
    found.append((heap.used + heap.mapped) / 2**20)
print(json.dumps(found))
"""


@pytest.fixture
def no_values(monkeypatch):
    for name in (*KEPT, OLD_NAME):
        monkeypatch.setenv(name, "")  # so that it is put back whatever the test does
        monkeypatch.delenv(name)


def test_caches_are_bounded(no_values):
    bound_caches()
    assert {name: os.environ[name] for name in KEPT} == KEPT


def test_what_somebody_has_set_stays(no_values, monkeypatch):
    monkeypatch.setenv("LRU_CACHE_CAPACITY", "5")
    monkeypatch.setenv(OLD_NAME, "7")
    bound_caches()
    assert os.environ["LRU_CACHE_CAPACITY"] == "5"
    assert "ONEDNN_PRIMITIVE_CACHE_CAPACITY" not in os.environ


@pytest.mark.skipif(not can_pack(torch.device("cpu"), torch.float32), reason="no oneDNN on this machine")
@pytest.mark.skipif(find_trim() is None, reason="asks glibc")
def test_sizes_without_end_do_not_take_memory_without_end(no_values):
    done = subprocess.run([sys.executable, "-c", GROW], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    first, second = json.loads(done.stdout)
    assert second - first < 10  # MiB; with 1,024 of each it is more than 40


def test_memory_is_given_back_where_there_was_work():
    asked, given, enough = [], [], threading.Event()
    counts = iter([0, 0, 1, 3, 3, 3, 4])

    def done():
        asked.append(next(counts, 4))
        if len(asked) > 10:
            enough.set()
        return asked[-1]

    thread = Returning(done, every=0.001, trim=lambda pad: given.append((pad, asked[-1])) or 1)
    thread.start()
    assert enough.wait(DEADLINE)
    thread.ended.set()
    thread.join(DEADLINE)
    assert given == [(0, 1), (0, 3), (0, 4)]
