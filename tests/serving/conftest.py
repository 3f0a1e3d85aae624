"""Models that the server's tests share."""

import pytest
from serving.models import make_adapters, make_heads

import bertsmith


@pytest.fixture(scope="session")
def heads(tmp_path_factory):
    """A folder for each head, by the name of its job."""
    return make_heads(tmp_path_factory.mktemp("heads"))


@pytest.fixture(scope="session")
def adapters(tmp_path_factory, heads):
    """Folders of three adapters on the bare encoder."""
    return make_adapters(tmp_path_factory.mktemp("adapters"), heads["bare"])


@pytest.fixture
def models(heads, adapters):
    """Freshly loaded, as those of a server: what is put on a queue is not the library's own any more."""
    found = {name: bertsmith.load(folder, device="cpu") for name, folder in heads.items() if name != "bare"}
    return {"bare": bertsmith.load(heads["bare"], device="cpu", adapters=adapters), **found}
