"""A tiny encoder and its tokenizer, made once."""

import pytest
import torch
from whole.tiny import make_encoder

import bertsmith


@pytest.fixture(scope="session", autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def encoder(tmp_path_factory):
    return bertsmith.load(make_encoder(tmp_path_factory.mktemp("search") / "encoder"), device="cpu")


@pytest.fixture(scope="session")
def tokenizer(encoder):
    return encoder.tokenizer
