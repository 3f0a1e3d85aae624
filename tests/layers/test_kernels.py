"""The GPU's kernels without a GPU: interpreted number by number against the definition, and compiled for one."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("kernels_script.py")


@pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="Triton is for Linux only")
@pytest.mark.parametrize("how", ["interpret", "compile"])
def test_kernels(how):
    done = subprocess.run([sys.executable, str(SCRIPT), how], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
