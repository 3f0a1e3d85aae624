"""The memory that a run tells of is its own."""

import os
import subprocess
import sys

import pytest

ASK = "import torch; from bertsmith.training.devices import peak_memory; print(peak_memory(torch.device('cpu')))"


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="elsewhere the system tells what it tells")
def test_what_its_parent_held_is_not_its_own():
    """What getrusage tells of a process begins with the memory of the one that started it."""
    held = bytearray(os.urandom(1 << 20)) * 900
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    ran = subprocess.run([sys.executable, "-c", ASK], env=environment, capture_output=True, text=True, check=True)
    assert 50 << 20 < int(ran.stdout) < len(held) - (100 << 20)
