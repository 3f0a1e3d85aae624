"""Compiled passes stay compiled: what differs between steps, layers and networks makes few graphs."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

from bertsmith.models.network import GRAPHS

pytestmark = pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="Triton is for Linux only")


@pytest.fixture(scope="module")
def graphs():
    """Case -> how many there are after each step."""
    script = Path(__file__).with_name("graphs_script.py")
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    assert "recompile_limit" not in done.stderr
    return json.loads(done.stdout)


def test_heads_of_any_size_share_a_graph(graphs):
    assert set(graphs["heads"]) == {3}  # the embedding, a block, the loss


def test_layers_that_are_watched_are_not_compiled_each(graphs):
    assert set(graphs["watched"]) == {2}


def test_networks_of_many_sizes_are_all_compiled(graphs):
    found = graphs["sizes"]
    assert [later - one for one, later in zip([0, *found], found, strict=False)] == [3] * 5
    assert GRAPHS >= 3 * 12
