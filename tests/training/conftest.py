"""One small model folder for all, and one thread: a second would only wait."""

import pytest
import torch
from training.made import make_folder


@pytest.fixture(scope="package", autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def small_model(tmp_path_factory):
    """A BERT of two layers with dropout."""
    return make_folder(tmp_path_factory.mktemp("small") / "model")
