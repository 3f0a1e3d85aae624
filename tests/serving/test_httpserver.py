"""The HTTP server itself: slow and endless heads, pipelined requests, and an end in good order."""

import asyncio
import http.client
import signal
import socket
import threading
import urllib.request
from concurrent.futures import ThreadPoolExecutor

import pytest
from fastapi.routing import APIRoute
from serving.pretend import DEADLINE, Pretend, hear, listening, talk

from bertsmith.serving.http.app import ROUTERS
from bertsmith.serving.processes import httpserver

READY = b"GET /healthz/ready HTTP/1.1\r\nhost: a\r\n\r\n"


def post(port, path="/v1/embeddings", body=b'{"input": "a", "model": "pretend"}'):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=DEADLINE)
    try:
        connection.request("POST", path, body, {"content-type": "application/json"})
        response = connection.getresponse()
        return response.status, response.read(), response.headers
    finally:
        connection.close()


def test_a_head_that_does_not_come_is_given_up():
    with listening(Pretend(), read_timeout=0.2) as port:
        assert talk(port) == b""  # it never said anything, and gets nothing
        assert talk(port, b"GET /health HTT").startswith(b"HTTP/1.1 408 ")
        with socket.create_connection(("127.0.0.1", port), DEADLINE) as connection:
            connection.sendall(READY)
            assert hear(connection, until_closed=False).startswith(b"HTTP/1.1 200 ")
            connection.sendall(READY[:20])  # the second request of a connection is watched, too
            assert b"HTTP/1.1 408 " in hear(connection)


@pytest.mark.parametrize("head", [b"GET /%b", b"GET / HTTP/1.1\r\nx: %b", b"GET / HTTP/1.1\r\n%b"])
def test_a_head_without_end_is_refused(head):
    with listening(Pretend()) as port:
        filler = b"a: b\r\n" * 20_000 if head.endswith(b"\n%b") else b"x" * 120_000
        assert talk(port, head % filler).startswith((b"HTTP/1.1 431 ", b"HTTP/1.1 400 "))
        assert post(port)[0] == 200


def test_a_long_body_is_no_long_head():
    with listening(Pretend()) as port:
        text = b'{"input": "%b", "model": "pretend"}' % (b"a " * httpserver.HEAD_BYTES)
        assert post(port, body=text)[0] == 200


def test_pipelined_requests_are_answered_in_order():
    with listening(Pretend()) as port:
        said = talk(port, READY * 20 + READY.replace(b"\r\n\r\n", b"\r\nconnection: close\r\n\r\n"))
        assert said.count(b"HTTP/1.1 200 ") == 21


def test_the_server_does_not_say_what_it_runs_on():
    with listening(Pretend()) as port:
        assert b"uvicorn" not in talk(port, READY.replace(b"\r\n\r\n", b"\r\nconnection: close\r\n\r\n")).lower()


def test_a_client_that_does_not_read_is_left(monkeypatch):
    body, gone = b"x" * 20_000_000, threading.Event()

    async def app(scope, receive, send):
        if scope["type"] != "http":
            return
        await receive()
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"20000000")]})
        await send({"type": "http.response.body", "body": body[:1], "more_body": True})
        await send({"type": "http.response.body", "body": body[1:], "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})  # waits until the rest is read
        gone.set()

    monkeypatch.setattr("serving.pretend.create_app", lambda backend, settings: app)
    with listening(Pretend()) as port, socket.create_connection(("127.0.0.1", port), DEADLINE) as connection:
        monkeypatch.setattr(httpserver, "UNREAD", 0.2)
        connection.sendall(READY)
        assert gone.wait(DEADLINE)  # it was given up, and did not stay in the way
        assert len(hear(connection)) < len(body)
        monkeypatch.setattr(httpserver, "UNREAD", DEADLINE)
        url = f"http://127.0.0.1:{port}/"
        assert len(urllib.request.urlopen(url, timeout=DEADLINE).read()) == len(body)  # who reads gets it all


@pytest.fixture
def servers(monkeypatch):
    """The servers that were made, to stop them as a signal would."""
    made = []
    startup = httpserver.HttpServer.startup

    async def note(self, sockets=None):
        made.append((self, asyncio.get_running_loop()))
        await startup(self, sockets)

    monkeypatch.setattr(httpserver.HttpServer, "startup", note)
    return made


def test_it_ends_when_what_it_accepted_is_answered(servers):
    backend = Pretend()
    backend.hold = asyncio.Event()
    with listening(backend, drain=DEADLINE) as port, ThreadPoolExecutor(1) as pool:
        ((server, loop),) = servers
        asked = pool.submit(post, port)
        assert backend.entered.wait(DEADLINE)
        loop.call_soon_threadsafe(server.stop, 15)
        stopping = threading.Event()
        loop.call_soon_threadsafe(stopping.set)
        assert stopping.wait(DEADLINE)
        said = talk(port, READY)  # still there for who asks whether it is, and closes by itself
        assert said.startswith(b"HTTP/1.1 503 ") and b'"draining":true' in said and b"connection: close" in said
        assert not asked.done()
        loop.call_soon_threadsafe(backend.hold.set)
        assert asked.result(DEADLINE)[0] == 200


def test_what_does_not_end_in_time_is_cancelled_and_told_to_come_again(servers, caplog):
    backend = Pretend()
    backend.hold = asyncio.Event()
    with listening(backend, drain=0.5) as port, ThreadPoolExecutor(1) as pool:
        ((server, loop),) = servers
        asked = pool.submit(post, port)
        assert backend.entered.wait(DEADLINE)
        loop.call_soon_threadsafe(server.stop, 15)
        assert backend.cancelled.wait(DEADLINE)
        status, body, headers = asked.result(DEADLINE)
    assert (status, headers["retry-after"]) == (503, "1") and b"the server is stopping" in body
    assert not [line for line in caplog.records if line.exc_info]


def test_a_second_signal_ends_it_at_once(servers, monkeypatch):
    ended = []
    monkeypatch.setattr(httpserver.os, "_exit", ended.append)
    with listening(Pretend()):
        ((server, _),) = servers
        server.stop(signal.SIGTERM)
        assert not ended
        server.stop(signal.SIGINT)
        assert ended == [130]


def test_what_can_be_got_can_be_asked_for_its_head():
    """RFC 9110, 9.1 and 9.3.2: HEAD is GET without the content; what watches a server often sends no other."""
    routes = [route for router in ROUTERS for route in router.routes if isinstance(route, APIRoute)]
    paths = {route.path for route in routes if "GET" in route.methods and route.path != "/metrics"}
    changing = {"date", "x-request-id"}
    with listening(Pretend()) as port:
        for path in [*paths, "/nowhere", "/models/unknown"]:
            path = path.replace("{id:path}", "pretend").replace("{job}", "embed").replace("{name}", "page.js")
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=DEADLINE)
            found = []
            for method in ("GET", "HEAD", "GET"):  # the connection must be fit for one more
                connection.request(method, path)
                answer = connection.getresponse()
                content = answer.read()
                assert not (method == "HEAD" and content), path
                head = {name: value for name, value in answer.getheaders() if name not in changing}
                found.append((answer.status, head | {"content-length": 0} if path == "/nowhere" else head))
            connection.close()
            assert found[0] == found[1] == found[2], path
        refused = talk(port, b"HEAD /embed HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n")
        assert refused.startswith(b"HTTP/1.1 405 ") and b"\r\nallow: POST\r\n" in refused
        counted = talk(port, b"HEAD /metrics HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n")
        assert counted.startswith(b"HTTP/1.1 200 ") and counted.endswith(b"\r\n\r\n")
