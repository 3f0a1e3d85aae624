"""The log: a line of JSON for each request, and nothing in it that is nobody's business."""

import io
import json
import logging
import re

import pytest
from serving.pretend import CARD, Pretend
from starlette.testclient import TestClient

import bertsmith
from bertsmith.serving.http.app import create_app
from bertsmith.serving.http.logs import NAME, configure_logs
from bertsmith.serving.processes.plan import Plan
from bertsmith.serving.settings import Settings

TEXT = {"inputs": "a river bank"}


def client(backend, **settings):
    return TestClient(create_app(backend, Settings(**settings)))


@pytest.fixture
def backend():
    return Pretend()


@pytest.fixture
def lines():
    """What is written, from a process that serves; its loggers are put back."""
    names = ("bertsmith", NAME, "uvicorn", "uvicorn.access", "uvicorn.error", "bertsmith.cuts")
    loggers = [logging.getLogger(name) for name in names]
    before = [(one, one.handlers[:], one.propagate, one.level, one.disabled) for one in loggers]
    stream = io.StringIO()
    configure_logs(stream)
    yield lambda: [json.loads(line) for line in stream.getvalue().splitlines()]
    for one, handlers, propagate, level, disabled in before:
        one.handlers[:], one.propagate, one.disabled = handlers, propagate, disabled
        one.setLevel(level)


def test_the_log_has_one_line_a_request_and_no_texts(backend, caplog):
    caplog.set_level(logging.INFO, "bertsmith.serving.requests")
    web = client(backend, keys=("hush",))
    secret = {"authorization": "Bearer hush", "x-request-id": "one"}
    web.post("/embed?token=hush", json={"inputs": ["secret words"]}, headers=secret)
    web.post("/models/secret/pipeline/words", json={"inputs": "secret words"}, headers=secret)
    first, second = (line.fields for line in caplog.records)
    assert first["id"] == "one" and first["route"] == "/embed" and first["status"] == 200 and first["method"] == "POST"
    assert first["tokens"] == 5 and first["queue_ms"] == 250 and first["inputs"] == 1 and first["ms"] > 0
    assert first["model"] == CARD.id and first["truncated"] == 2
    assert second["status"] == 404 and second["route"] == "/models/{id:path}/pipeline/{task}" and second["complaint"]
    assert "secret" not in json.dumps([first, second]) and "hush" not in json.dumps([first, second])


def test_the_log_holds_texts_where_it_is_asked_to(backend, caplog):
    caplog.set_level(logging.INFO, "bertsmith.serving.requests")
    client(backend, log_texts=True).post("/embed", json=TEXT)
    assert caplog.records[0].fields["asked"]["texts"] == "a river bank"


def test_every_line_is_json_with_a_time(backend, lines):
    backend.refusal = RuntimeError("the inside\nof it")
    client(backend).post("/embed", json=TEXT, headers={"x-request-id": "one"})
    logging.getLogger(NAME).warning("a word about %s", "this")
    logging.getLogger("uvicorn.error").warning("Invalid HTTP request received.")  # anybody can cause it
    failure, request, word = lines()
    assert failure["level"] == "error" and "RuntimeError" in failure["error"] and failure["id"] == "one"
    assert request["status"] == 500 and request["complaint"] == "internal" and request["id"] == "one"
    assert word["message"] == "a word about this" and word["level"] == "warning"
    assert all(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", line["time"]) for line in lines())


def test_a_stranger_cannot_write_lines(backend, lines):
    client(backend).post("/embed", json=TEXT, headers={"x-request-id": 'a"}\u2028{"level":"error'.encode()})
    (line,) = lines()
    assert line["level"] == "info" and re.fullmatch("[0-9a-f]{16}", line["id"])


def test_what_was_cut_stands_in_the_line_of_its_request_alone(heads, lines, caplog):
    bertsmith.load(heads["score"], device="cpu").score("much of it " * 500)
    assert lines() == [] and caplog.records == []


def test_what_is_passed_over_while_models_load_stands_in_the_log(heads, lines, tmp_path):
    (tmp_path / "river.txt").write_text("The river is long.")
    (tmp_path / "latin.txt").write_bytes(b"caf\xe9")
    Plan(models=(str(heads["bare"]),), index=str(tmp_path)).load(Settings(), "cpu")
    logging.getLogger("bertsmith").warning("left out a tensor")
    note, tensor = lines()
    assert note["level"] == "warning" and note["message"].startswith("latin.txt, line 1: byte 4")
    assert tensor["message"] == "left out a tensor"
