"""A server on loopback answers to its own names alone: a page that lets its name point there gets nothing."""

import pytest
from serving.pretend import Pretend
from starlette.testclient import TestClient

from bertsmith.serving.http.app import create_app
from bertsmith.serving.http.hosts import is_loopback, list_hosts
from bertsmith.serving.settings import Settings


def ask(bound, allowed, header, path="/v1/models"):
    web = TestClient(create_app(Pretend(), Settings(host=bound, hosts=list_hosts(bound, allowed))))
    return web.get(path, headers={"host": header})


@pytest.mark.parametrize(
    "header",
    ["localhost", "localhost:8000", "LocalHost:1", "127.0.0.1", "127.0.0.1:8000", "[::1]", "[::1]:8000", "localhost."],
)
def test_its_own_names_are_taken(header):
    assert ask("127.0.0.1", (), header).status_code == 200


@pytest.mark.parametrize(
    "header", ["evil.example", "evil.example:8000", "127.0.0.1.evil.example", "localhost.evil.example", "[::2]:80",
               "localhost@evil.example", "evil.example:localhost", "10.0.0.1", "\u00e9"]
)  # fmt: skip
@pytest.mark.parametrize("path", ["/v1/models", "/", "/health", "/nowhere"])
def test_other_names_are_refused_on_every_route(header, path):
    answer = ask("127.0.0.1", (), header.encode("latin-1"), path)
    assert answer.status_code == 421 and "--allowed-host" in answer.text and "evil" not in answer.text


def test_a_name_that_is_allowed_is_taken_beside_them():
    assert ask("127.0.0.1", ("my.site",), "my.site:443").status_code == 200
    assert ask("127.0.0.1", ("my.site",), "localhost").status_code == 200
    assert ask("127.0.0.1", ("my.site",), "your.site").status_code == 421
    assert ask("127.0.0.2", (), "127.0.0.2:8000").status_code == 200


def test_where_others_reach_it_any_name_is_taken_unless_some_are_given():
    assert ask("0.0.0.0", (), "any.site").status_code == 200
    assert ask("0.0.0.0", ("my.site",), "any.site").status_code == 421
    assert ask("0.0.0.0", ("my.site",), "my.site").status_code == 200


def test_a_program_that_sends_no_name_is_taken():
    assert ask("127.0.0.1", (), "").status_code == 200


@pytest.mark.parametrize("host, expected", [("localhost", True), ("127.8.9.1", True), ("::1", True), ("", False),
                                            ("0.0.0.0", False), ("::", False), ("my.site", False)])  # fmt: skip
def test_loopback(host, expected):
    assert is_loopback(host) is expected
