"""Every complaint in the shape that the route's clients read, and never more in it than they may know."""

import logging

import openai
import pytest
from fastapi.routing import APIRoute
from serving.pretend import Pretend, listening
from starlette.testclient import TestClient

from bertsmith.serving.asks import Refusal
from bertsmith.serving.http.answering import JsonRoute
from bertsmith.serving.http.app import ROUTERS, create_app
from bertsmith.serving.http.complaints import STATUS, STYLES, Complaint, render
from bertsmith.serving.http.directory import style_of
from bertsmith.serving.settings import Settings

ASKS = {
    "openai": ("/v1/embeddings", {"input": "a"}),
    "tei": ("/embed", {"inputs": "a"}),
    "huggingface": ("/models/pretend/pipeline/feature-extraction", {"inputs": "a"}),
    "cohere": ("/v1/rerank", {"query": "a", "documents": ["b"]}),
    "bertsmith": ("/v1/jobs/embed", {"texts": "a"}),
}
KINDS = {"input": 400, "job": 400, "model": 404, "overloaded": 429, "unavailable": 503, "timeout": 504, "internal": 500}


@pytest.fixture
def backend():
    return Pretend()


@pytest.fixture
def web(backend):
    return TestClient(create_app(backend, Settings()))


def sentence(style, answer):
    """The message, where clients of that style look for it."""
    found = answer.json()
    match style:
        case "openai":
            assert found["error"].keys() == {"message", "type", "param", "code"}
            return found["error"]["message"]
        case "tei":
            assert found.keys() == {"error", "error_type"}
            return found["error"]
        case "huggingface":
            assert found.keys() == {"error"}
            return found["error"]
        case "cohere":
            assert found.keys() == {"id", "message"}
            return found["message"]
        case _:
            assert found["error"]["request_id"] == answer.headers["x-request-id"]
            return found["error"]["message"]


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("kind", KINDS)
def test_what_is_refused_is_told_in_the_style_of_the_route(web, backend, style, kind):
    path, body = ASKS[style]
    assert web.post(path, json=body).status_code == 200
    backend.refusal = Refusal(kind, "because of this.")
    answer = web.post(path, json=body)
    expected = {"input": 422, "job": 424}.get(kind, KINDS[kind]) if style == "tei" else KINDS[kind]
    assert answer.status_code == expected
    assert (sentence(style, answer) == "because of this.") == (kind != "internal")


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[1, 2",
        b"inputs=a",
        b'{"inputs": NaN}',
        b'{"inputs": "\\ud800"}',
        b'{"inputs": "\xff"}',
        b"null",
        b"[]",
        b'"a"',
        b"1",
        b"{}",
        b'{"inputs": 1' + b"0" * 400 + b"}",
        b"[" * 100_000,
        b'{"a":' * 100_000,
        b"\x00",
        b"\xef\xbb\xbf{}",
    ],
)
def test_bodies_that_cannot_be_read(web, backend, style, content):
    answer = web.post(ASKS[style][0], content=content)
    assert answer.status_code in (400, 422), answer.text
    assert len(sentence(style, answer)) < 400 and "Traceback" not in answer.text
    assert not backend.asked


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize(
    ("path", "method", "status"), [("{}/nowhere/else", "POST", 404), ("{}", "PUT", 405), ("{}", "DELETE", 405)]
)
def test_routes_and_methods_that_are_not_there(web, style, path, method, status):
    answer = web.request(method, path.format(ASKS[style][0]), json=ASKS[style][1])
    assert answer.status_code == status and answer.headers["content-type"] == "application/json"
    assert "error" in answer.text or "message" in answer.text
    if status == 405:
        assert "POST" in answer.headers["allow"] and method in sentence(style, answer)


@pytest.mark.parametrize("kind", ["multipart/form-data; boundary=a", "image/png", "text/html", "application/zip"])
def test_what_is_surely_no_json(web, kind):
    answer = web.post("/embed", content=b'{"inputs": "a"}', headers={"content-type": kind})
    assert answer.status_code == 415 and "Content-Type: application/json" in answer.json()["error"]


def test_a_packed_body_is_not_unpacked(web):
    answer = web.post("/embed", content=b"\x1f\x8b", headers={"content-encoding": "gzip"})
    assert answer.status_code == 415


@pytest.mark.parametrize(
    "kind",
    [
        "application/x-www-form-urlencoded",
        "text/plain",
        "application/json; charset=utf-8",
        "application/vnd.api+json",
        "",
        "nonsense",
    ],
)
def test_json_by_any_other_name(web, kind):
    """curl calls it a form unless told otherwise."""
    assert web.post("/embed", content=b'{"inputs": "a"}', headers={"content-type": kind}).status_code == 200


def test_a_field_at_fault_is_named_and_what_was_sent_is_not_repeated(web):
    answer = web.post("/v1/embeddings", json={"input": "a", "encoding_format": "secret"})
    error = answer.json()["error"]
    assert answer.status_code == 400 and error["param"] == "encoding_format" and "encoding_format" in error["message"]
    assert "secret" not in answer.text
    assert web.post("/v1/embeddings", json={}).json()["error"]["message"] == "the field 'input' is missing."


def test_a_fault_of_the_server_is_told_to_the_log_alone(web, backend, caplog):
    backend.refusal = RuntimeError("the inside")
    answer = web.post("/embed", json={"inputs": "a"}, headers={"x-request-id": "this-one"})
    assert answer.status_code == 500 and answer.headers["x-request-id"] == "this-one"
    assert "inside" not in answer.text and answer.json()["error_type"] == "Backend"
    (line,) = (line for line in caplog.records if line.levelno == logging.ERROR)
    assert line.exc_info and line.fields["id"] == "this-one"
    backend.refusal = None
    assert web.post("/embed", json={"inputs": "a"}).status_code == 200


@pytest.mark.parametrize("style", STYLES)
def test_every_kind_has_a_shape(style):
    for kind, status in STATUS.items():
        answer = render(Complaint(kind, "why."), style, "0")
        assert answer.status_code in (status, 422, 424) and b"why." in answer.body


def test_every_route_has_a_style_and_reads_strict_json():
    for route in (route for router in ROUTERS for route in router.routes):
        assert isinstance(route, APIRoute)
        assert route.tags and style_of(route) == route.tags[0], route.path
        assert isinstance(route, JsonRoute) or not route.methods & {"POST"}, route.path


def test_openais_own_client_understands_what_is_refused(backend):
    with listening(backend, keys=("right",)) as port:
        address = f"http://127.0.0.1:{port}/v1"
        with (
            openai.OpenAI(base_url=address, api_key="wrong", max_retries=0) as client,
            pytest.raises(openai.AuthenticationError, match="wants a key"),
        ):
            client.embeddings.create(model="pretend", input="a")
        with openai.OpenAI(base_url=address, api_key="right", max_retries=1) as client:
            with pytest.raises(openai.BadRequestError) as caught:
                client.embeddings.create(model="pretend", input=[{}])
            assert caught.value.param == "input" and caught.value.request_id
            backend.retry = 0.01
            with pytest.raises(openai.RateLimitError) as limited:
                client.embeddings.create(model="pretend", input="a")
            assert limited.value.code == "rate_limit_exceeded"
            assert len(backend.admitted) == 3  # it asked once more after the time it was told
            backend.retry = None
            assert len(client.embeddings.create(model="pretend", input="a").data[0].embedding) == 4
