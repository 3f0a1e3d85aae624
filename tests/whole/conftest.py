"""A tiny encoder, made once, and a machine without a network."""

import socket

import pytest
import torch
from whole.tiny import make_encoder


@pytest.fixture(scope="session")
def encoder(tmp_path_factory):
    return make_encoder(tmp_path_factory.mktemp("tiny") / "encoder")


@pytest.fixture
def offline(monkeypatch):
    """No socket can be made, and one thread: a second would only wait for models this small."""

    def refuse(*_, **__):
        raise AssertionError("something asked for the network")

    monkeypatch.setattr(socket, "socket", refuse)
    monkeypatch.setattr(socket, "create_connection", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
