"""A tiny encoder and its tokenizer, made once."""

import pytest
from tasks.made import bytelevel_files, open_both, sentencepiece_files
from whole.tiny import make_encoder

import bertsmith


@pytest.fixture(scope="module", autouse=True)
def small_and_alone(one_thread):
    """These models are so small that a second thread only waits."""


@pytest.fixture(scope="session")
def encoder(tmp_path_factory):
    return bertsmith.load(make_encoder(tmp_path_factory.mktemp("search") / "encoder"), device="cpu")


@pytest.fixture(scope="session", params=["wordpiece", "bytelevel", "sentencepiece"])
def tokenizer(request, encoder, tmp_path_factory):
    """Each kind of vocabulary in turn."""
    if request.param == "wordpiece":
        return encoder.tokenizer
    made = {"bytelevel": ("roberta", bytelevel_files), "sentencepiece": ("albert", sentencepiece_files)}
    family, files = made[request.param]
    return open_both(tmp_path_factory.mktemp(request.param), family, "mask", files()).ours.tokenizer
