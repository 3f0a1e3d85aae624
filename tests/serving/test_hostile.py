"""What comes from people who mean no good, or do not know better: refused in words, and the server goes on."""

import json
import re
import socket
import threading
from contextlib import suppress

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from serving.pretend import Pretend, check, hear, listening, talk
from starlette.testclient import TestClient

from bertsmith.serving.http.app import create_app
from bertsmith.serving.settings import Settings

PATHS = [
    "/v1/embeddings",
    "/embed",
    "/predict",
    "/rerank",
    "/v1/rerank",
    "/similarity",
    "/tokenize",
    "/decode",
    "/",
    "/models/pretend",
    "/models/pretend/pipeline/fill-mask",
    "/v1/jobs/classify",
    "/vertex",
    "/classify",
]


@pytest.fixture(scope="module")
def web():
    """Where the server itself fails, the answer is 500, and no error comes here that a client would not see."""
    return TestClient(create_app(Pretend(), Settings()))


@pytest.fixture(scope="module")
def port():
    with listening(Pretend()) as found:
        yield found


ANYTHING = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(["\ud800", "[MASK]", "a" * 5000]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
KEYS = [
    "input",
    "inputs",
    "text",
    "texts",
    "query",
    "documents",
    "parameters",
    "model",
    "top_k",
    "top_n",
    "truncate",
    "ids",
    "instances",
    "source_sentence",
    "sentences",
    "question",
    "context",
    "dimensions",
    "candidate_labels",
]


@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True, database=None)
@given(st.sampled_from(PATHS), st.dictionaries(st.sampled_from(KEYS), ANYTHING, max_size=5))
def test_bodies_with_the_right_names_and_wrong_values(web, path, body):
    check(web.post(path, content=json.dumps(body)))


@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True, database=None)
@given(st.sampled_from(PATHS), st.binary(max_size=40))
def test_bytes(web, path, body):
    answer = check(web.post(path, content=body))
    assert answer.status_code in (400, 422)


@pytest.mark.parametrize("one", ['"a"', "1", "[]", "{}"])
def test_a_million_inputs(web, one):
    many = "[" + ",".join([one] * 1_000_000) + "]"
    for path, field in (
        ("/v1/embeddings", "input"),
        ("/embed", "inputs"),
        ("/v1/rerank", "documents"),
        ("/decode", "ids"),
        ("/models/pretend", "inputs"),
        ("/v1/jobs/classify", "text"),
        ("/vertex", "instances"),
    ):
        answer = check(web.post(path, content=f'{{"query": "a", "{field}": {many}}}'))
        assert 400 <= answer.status_code < 500 and len(answer.content) < 500


@pytest.mark.parametrize(
    "name",
    [
        "..%2f..%2f..%2fetc%2fpasswd",
        "../../../etc/passwd",
        "%2e%2e/%2e%2e/etc/passwd",
        "..\\..\\etc",
        "/etc/passwd",
        "%00",
        "pretend/../../x",
        "a" * 4000,
        "%ff%fe",
        "pretend%0d%0ax-evil:1",
        "{id}",
        "${jndi:ldap://a}",
        "<script>",
    ],
)
@pytest.mark.parametrize(
    "path", ["/models/{}", "/v1/models/{}", "/models/{}/pipeline/fill-mask", "/pipeline/{}", "/v1/jobs/{}"]
)
def test_names_of_models_are_no_paths(port, path, name):
    """Sent as they are, for clients would tidy them up."""
    asked = path.format(name).encode()
    for method, body in ((b"GET", b""), (b"POST", b'{"inputs": "a"}')):
        said = talk(
            port,
            b"%b %b HTTP/1.1\r\nhost: a\r\nconnection: close\r\ncontent-length: %d\r\n\r\n%b"
            % (method, asked, len(body), body),
        )
        status = int(said.split()[1])
        assert 400 <= status < 500 and b"root:" not in said and b"x-evil" not in said.split(b"\r\n\r\n")[0].lower()
        assert len(said) < 4000


def test_fifty_megabytes_are_not_kept(port):
    """Said beforehand, and without saying so; the client gets its answer though it was still sending."""
    large = b"a" * 50 * 2**20
    answer = httpx.post(f"http://127.0.0.1:{port}/embed", content=large, timeout=30)
    assert answer.status_code == 413 and "bytes" in answer.json()["error"]
    answer = httpx.post(f"http://127.0.0.1:{port}/embed", content=(large[: 2**20] for _ in range(50)), timeout=30)
    assert answer.status_code == 413
    assert httpx.get(f"http://127.0.0.1:{port}/health").status_code == 200


def test_one_that_waits_for_leave_to_send_gets_none(port):
    head = b"POST /embed HTTP/1.1\r\nhost: a\r\ncontent-length: 99999999999\r\nexpect: 100-continue\r\n\r\n"
    said = talk(port, head)
    assert said.startswith(b"HTTP/1.1 413 ") and b"100 Continue" not in said


def test_requests_sent_ahead_are_answered_each_in_its_turn(port):
    """Pipelining: the answers come in the order of the requests, each its own."""
    sent = b""
    for count in (1, 3, 2):
        body = json.dumps({"inputs": ["a"] * count}).encode()
        sent += b"POST /embed HTTP/1.1\r\nhost: a\r\ncontent-length: %d\r\nx-request-id: n%d\r\n\r\n%b" % (
            len(body),
            count,
            body,
        )
    sent += b"GET /nowhere HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n"
    said = talk(port, sent)
    assert re.findall(rb"HTTP/1.1 (\d+)", said) == [b"200", b"200", b"200", b"404"]
    assert re.findall(rb"x-request-id: (n\d)", said) == [b"n1", b"n3", b"n2"]
    bodies = [json.loads(found) for found in re.findall(rb"\[\[.*?\]\]", said)]
    assert [len(found) for found in bodies] == [1, 3, 2]


@pytest.mark.parametrize(
    "sent",
    [
        b"\x16\x03\x01\x02\x00\x01",
        b"GET\r\n\r\n",
        b"NONSENSE / HTTP/9.9\r\n\r\n",
        b"GET / HTTP/1.1\r\nhost a\r\n\r\n",
        b"POST /embed HTTP/1.1\r\nhost: a\r\ncontent-length: -1\r\n\r\n",
        b"POST /embed HTTP/1.1\r\nhost: a\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
        b"POST /embed HTTP/1.1\r\nhost: a\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\nabcdef",
        b"POST /embed HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    ],
)
def test_broken_http(port, sent):
    said = talk(port, sent)
    assert said == b"" or said.startswith(b"HTTP/1.1 4"), said
    assert httpx.get(f"http://127.0.0.1:{port}/health").status_code == 200


def test_many_slow_clients_do_not_keep_others_waiting():
    with listening(Pretend(), read_timeout=1.0) as port:
        slow = [socket.create_connection(("127.0.0.1", port), 20) for _ in range(100)]
        for number, connection in enumerate(slow):
            connection.sendall(
                b"POST /embed HTTP/1.1\r\n" + (b"content-length: 50\r\n\r\n{" if number % 2 else b"x-slow: ")
            )
        for _ in range(5):
            assert httpx.post(f"http://127.0.0.1:{port}/embed", json={"inputs": "a"}).status_code == 200
        stop = threading.Event()

        def drip():
            while not stop.wait(0.05):
                for connection in slow:
                    with suppress(OSError):
                        connection.sendall(b"a")

        dripping = threading.Thread(target=drip)
        dripping.start()
        try:
            for connection in slow:
                said = hear(connection)  # ends, though something comes all the time
                assert said == b"" or said.startswith(b"HTTP/1.1 408 ")
        finally:
            stop.set()
            dripping.join()
            for connection in slow:
                connection.close()
