"""What a server takes and what it does not: keys, sizes, counts, times, too much at once."""

import asyncio
import json
import socket
import time
from contextlib import suppress

import httpx
import pytest
from serving.pretend import CARD, Pretend, hear, listening, talk
from starlette.testclient import TestClient

from bertsmith.serving.asks import Refusal
from bertsmith.serving.http.app import create_app
from bertsmith.serving.http.keys import OPEN
from bertsmith.serving.settings import Settings

TEXT = {"inputs": "a river bank"}


@pytest.fixture
def backend():
    return Pretend()


def client(backend, **settings):
    return TestClient(create_app(backend, Settings(**settings)))


def test_without_keys_everybody_may_ask(backend):
    assert client(backend).post("/embed", json=TEXT).status_code == 200


@pytest.mark.parametrize(
    "sent", ["", "Bearer", "Bearer ", "Bearer wrong", "Basic right", "right", "Bearer right2", "\u00e9"]
)
def test_a_wrong_key_is_refused_before_anything_is_read(backend, sent):
    answer = client(backend, keys=("right", "other")).post(
        "/embed", content=b"not json", headers={"authorization": sent.encode("latin-1")}
    )
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"].startswith("Bearer")
    assert answer.json()["error_type"] == "Unauthorized" and "right" not in answer.text
    assert not backend.asked and not backend.admitted


@pytest.mark.parametrize("key", ["right", "other"])
@pytest.mark.parametrize("scheme", ["Bearer", "bearer"])
def test_each_key_opens(backend, key, scheme):
    web = client(backend, keys=("right", "other"))
    assert web.post("/embed", json=TEXT, headers={"authorization": f"{scheme} {key}"}).status_code == 200


def test_what_is_served_is_told_to_those_with_a_key(backend):
    web = client(backend, keys=("right",))
    for headers in ({}, {"authorization": "Bearer left"}):
        assert "models" not in web.get("/", headers=headers).json()
    assert web.get("/", headers={"authorization": "Bearer right"}).json()["models"] == [CARD.id]
    assert client(backend).get("/").json()["models"] == [CARD.id]


def test_only_what_watches_a_server_is_open_without_a_key(backend):
    web = client(backend, keys=("right",))
    for path in ["/", *OPEN]:
        assert web.get(path).status_code == 200, path
    for path in ("/v1/models", "/info", "/openapi.json", "/nowhere", "/models/pretend"):
        assert web.get(path).status_code == 401, path
    for path in ("/", "/health", "/embed"):
        assert web.post(path, json=TEXT).status_code == (405 if path == "/health" else 401), path


def test_a_body_that_says_it_is_too_large_is_refused(backend):
    web = client(backend, body_bytes=2000)
    assert web.post("/embed", json={"inputs": "a" * 1900}).status_code == 200
    answer = web.post("/embed", json={"inputs": "a" * 2000})
    assert answer.status_code == 413 and answer.headers["connection"] == "close"
    assert "2000 bytes" in answer.json()["error"]
    assert len(backend.asked) == 1


def test_a_body_that_does_not_say_how_large_it_is_is_counted(backend):
    def parts(count):
        yield b'{"inputs": "'
        for _ in range(count):
            yield b"a" * 100
        yield b'"}'

    web = client(backend, body_bytes=2000)
    assert web.post("/embed", content=parts(10)).status_code == 200
    assert web.post("/embed", content=parts(20)).status_code == 413


def test_too_many_inputs_are_named(backend):
    web = client(backend, inputs=3)
    assert web.post("/embed", json={"inputs": ["a"] * 3}).status_code == 200
    answer = web.post("/embed", json={"inputs": ["a"] * 4})
    assert answer.status_code == 422
    assert answer.json()["error"] == "the field 'inputs' holds 4 inputs; at most 3 are taken in a request."
    assert web.post("/embed", json={"inputs": list(range(40))}).status_code == 200  # one text, as token ids
    answer = web.post("/rerank", json={"query": "a", "texts": ["a"] * 4})
    assert answer.status_code == 422 and "at most 3" in answer.json()["error"]


@pytest.mark.parametrize(
    ("job", "body", "said"),
    [
        ("classify", {"text": ["a"] * 600, "labels": ["b"] * 32}, None),
        ("classify", {"text": ["a"] * 600, "labels": ["b"] * 33}, "600 texts with labels are 19800 pairs; at most"),
        ("classify", {"text": "a", "labels": ["b"] * 600}, None),
        ("similar", {"text": ["a"] * 500, "others": ["b"] * 600}, None),
        ("similar", {"text": ["a"] * 600, "others": ["b"] * 600}, "360000 pairs; at most 307200"),
        ("answer", {"question": ["a"] * 30, "context": "b" * 600}, None),
        ("answer", {"question": ["a"] * 30, "context": "b" * 700}, "30 questions about one context read 21000 letters"),
        ("answer", {"question": "a", "context": "b" * 19_000}, None),
        ("answer", {"question": ["a"] * 30, "context": ["b" * 600] * 30}, None),
    ],
)
def test_a_short_request_cannot_ask_for_more_than_a_long_one(backend, job, body, said):
    """2048 texts with as many labels are 60 KB, and 20 GB of rows for the model."""
    answer = client(backend, inputs=600, body_bytes=20_000).post(f"/v1/jobs/{job}", json=body)
    assert answer.status_code == (200 if said is None else 400), answer.text
    assert said is None or (said in answer.json()["error"]["message"] and not backend.asked)


def test_too_much_at_once_is_refused_before_the_body_is_read(backend):
    backend.retry = 2.4
    web = client(backend)
    answer = web.post("/v1/embeddings", content=b"not json")
    assert answer.status_code == 429
    assert answer.headers["retry-after"] == "3" and answer.headers["retry-after-ms"] == "2400"
    assert answer.json()["error"]["code"] == "rate_limit_exceeded"
    assert backend.admitted == [8] and not backend.asked
    assert web.get("/health").status_code == 200 and web.get("/v1/models").status_code == 200


def test_the_servers_way_with_long_inputs_is_used_where_a_request_says_nothing(backend):
    web = client(backend, truncate="error")
    web.post("/v1/embeddings", json={"input": "a"})
    web.post("/embed", json={**TEXT, "truncate": True})
    web.post("/tokenize", json=TEXT)  # a job without that field
    assert [ask.given.get("truncate") for ask in backend.asked] == ["error", "head", None]
    assert all(ask.timeout == 60.0 for ask in backend.asked)


def test_costs_are_told_in_headers(backend):
    answer = client(backend).post("/embed", json={"inputs": ["a", "b"]})
    told = {
        name: answer.headers[f"x-{name}"]
        for name in ("truncated-tokens", "compute-tokens", "queue-time", "inference-time")
    }
    assert told == {"truncated-tokens": "4", "compute-tokens": "10", "queue-time": "250", "inference-time": "500"}
    assert int(answer.headers["x-total-time"]) >= 0 and "x-compute-tokens" not in client(backend).get("/").headers


def test_headers_that_keep_browsers_in_check(backend):
    web = client(backend)
    for answer in (web.post("/embed", json=TEXT), web.get("/nowhere"), web.get("/v1/models")):
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["cache-control"] == "no-store"
        assert "frame-ancestors 'none'" in answer.headers["content-security-policy"]
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert "access-control-allow-origin" not in answer.headers and "server" not in answer.headers


def test_other_pages_may_ask_only_where_they_are_named(backend):
    ask = {"origin": "https://a.example", "access-control-request-method": "POST"}
    assert client(backend).options("/embed", headers=ask).status_code == 405
    web = client(backend, cors=("https://a.example",), keys=("right",))
    assert web.options("/embed", headers=ask).headers["access-control-allow-origin"] == "https://a.example"
    other = web.options("/embed", headers={**ask, "origin": "https://b.example"})
    assert "access-control-allow-origin" not in other.headers
    refused = web.post("/embed", json=TEXT, headers={"origin": "https://a.example"})
    assert refused.status_code == 401 and refused.headers["access-control-allow-origin"] == "https://a.example"


def test_clients_in_other_pages_may_send_headers_of_their_own(backend):
    asked = {"origin": "https://a.example", "access-control-request-method": "POST"}
    asked["access-control-request-headers"] = "authorization,content-type,x-stainless-os"  # as OpenAI's for JavaScript
    answer = client(backend, cors=("https://a.example",)).options("/v1/embeddings", headers=asked)
    assert answer.status_code == 200 and "x-stainless-os" in answer.headers["access-control-allow-headers"]


@pytest.mark.parametrize(
    ("sent", "kept"), [("a-B.c_1", True), ("a" * 65, False), ("a b", False), ("", False), ('"', False)]
)
def test_request_ids(backend, sent, kept):
    web = client(backend)
    found = web.get("/", headers={"x-request-id": sent}).headers["x-request-id"]
    assert (found == sent) == kept and found
    assert web.get("/").headers["x-request-id"] != web.get("/").headers["x-request-id"]


def test_readiness_is_not_liveness(backend):
    app = create_app(backend, Settings())
    web = TestClient(app)
    for path in ("/health", "/ping", "/healthz/live", "/healthz/ready", "/"):
        assert web.get(path).status_code == 200
    assert web.get("/health").content == b"" and "connection" not in web.get("/").headers
    app.state.draining = True
    assert web.get("/healthz/ready").json() == {"ready": False, "draining": True}
    assert web.get("/healthz/ready").headers["connection"] == "close"
    assert web.post("/embed", json=TEXT).status_code == 200  # what still comes is answered
    app.state.draining, backend.ready = False, False
    for path in ("/health", "/ping"):
        assert web.get(path).status_code == 503
        assert web.get(path).json() == {"error": "unhealthy", "error_type": "unhealthy"}
    assert web.get("/healthz/ready").status_code == 503 and web.get("/healthz/live").status_code == 200
    answer = web.post("/v1/embeddings", json={"input": "a"})
    assert answer.status_code == 503 and answer.headers["retry-after"] == "1"
    assert web.get("/").status_code == 200


def test_a_body_where_none_is_read_is_thrown_away(backend):
    web = client(backend, body_bytes=2000)
    assert web.request("GET", "/v1/models", content=b"a" * 5000).status_code == 200
    with listening(backend) as port:
        head = b"GET /v1/models HTTP/1.1\r\nhost: a\r\nconnection: close\r\ntransfer-encoding: chunked\r\n\r\n"
        assert talk(port, head + b"a\r\n0123456789\r\n").startswith(b"HTTP/1.1 200 ")  # though it does not end


def test_an_answer_that_takes_too_long_is_given_up(backend):
    with listening(backend, timeout=0.05) as port:
        backend.hold = asyncio.Event()
        answer = httpx.post(f"http://127.0.0.1:{port}/v1/embeddings", json={"input": "a"})
        assert answer.status_code == 504 and answer.json()["error"]["code"] == "timeout"
        assert backend.cancelled.wait(10)


def test_the_work_of_a_client_that_has_gone_is_stopped(backend):
    backend.hold = asyncio.Event()
    with listening(backend) as port:
        body = json.dumps(TEXT).encode()
        with socket.create_connection(("127.0.0.1", port)) as connection:
            connection.sendall(b"POST /embed HTTP/1.1\r\nhost: a\r\ncontent-length: %d\r\n\r\n%b" % (len(body), body))
            assert backend.entered.wait(10) and not backend.cancelled.is_set()
        assert backend.cancelled.wait(10)
        assert httpx.get(f"http://127.0.0.1:{port}/health").status_code == 200


def test_clients_that_send_slowly_are_cut_off(backend):
    """A head that does not end, a body that does not end, and nothing at all."""
    with listening(backend, read_timeout=0.3) as port:
        began = time.monotonic()
        assert b" 408 " in talk(port, b"POST /embed HTTP/1.1\r\nhost: a\r\nx-one: ")
        said = talk(port, b'POST /embed HTTP/1.1\r\nhost: a\r\ncontent-length: 90\r\n\r\n{"inputs": "')
        assert said.startswith(b"HTTP/1.1 408 ") and b"connection: close" in said and b"error_type" in said
        assert talk(port) == b""
        assert time.monotonic() - began >= 0.9  # each had its time
        assert not backend.asked


def test_a_head_without_end_is_cut_off(backend):
    with listening(backend) as port:
        with socket.create_connection(("127.0.0.1", port), 20) as connection:
            connection.sendall(b"GET / HTTP/1.1\r\n")
            with suppress(BrokenPipeError, ConnectionResetError):
                for _ in range(4000):
                    connection.sendall(b"x-header: " + b"a" * 10_000 + b"\r\n")
                raise AssertionError("40 MB of headers were taken")
            said = hear(connection)
        assert said == b"" or said.startswith(b"HTTP/1.1 431 ")


def test_what_the_backend_refuses_keeps_its_time_to_come_back(backend):
    backend.refusal = Refusal("overloaded", "too much.", 0.2)
    answer = client(backend).post("/embed", json=TEXT)
    assert (
        answer.status_code == 429 and answer.headers["retry-after"] == "1" and answer.headers["retry-after-ms"] == "200"
    )
