"""What tests without labels ask: a tiny model that fills masks, and a text."""

import pytest
from evaluation.unlabelled_text import TEXT
from whole import tiny

import bertsmith


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tiny.make_encoder(tmp_path_factory.mktemp("masks"), head="ForMaskedLM", limit=64)


@pytest.fixture(scope="module")
def model(folder):
    return bertsmith.load(folder, device="cpu")


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "held-out.txt"
    path.write_text(TEXT)
    return path
