"""Compiled passes stay compiled: what differs between steps, layers and networks makes few graphs."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="Triton is for Linux only")


def count_graphs(case):
    script = Path(__file__).with_name("graphs_script.py")
    done = subprocess.run([sys.executable, str(script), case], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    assert "recompile_limit" not in done.stderr
    return [int(line) for line in done.stdout.split()]


def test_heads_of_any_size_share_a_graph():
    assert set(count_graphs("heads")) == {3}  # the embedding, a block, the loss


def test_layers_that_are_watched_are_not_compiled_each():
    assert set(count_graphs("watched")) == {2}


def test_networks_of_many_sizes_are_all_compiled():
    graphs = count_graphs("sizes")
    assert [later - one for one, later in zip([0, *graphs], graphs, strict=False)] == [3] * 12
