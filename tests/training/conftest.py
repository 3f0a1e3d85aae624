"""One small model folder for all, and one thread: a second would only wait."""

import pytest
from training.made import make_folder


@pytest.fixture(scope="module", autouse=True)
def small_and_alone(one_thread):
    """These models are so small that a second thread only waits."""


@pytest.fixture(scope="session")
def small_model(tmp_path_factory):
    """A BERT of two layers with dropout."""
    return make_folder(tmp_path_factory.mktemp("small") / "model")
