"""What is counted, by the rules of Prometheus; its own parser reads it."""

import json
import os
import re
import subprocess
import sys

import pytest
from prometheus_client.parser import text_string_to_metric_families
from serving.pretend import Pretend
from starlette.testclient import TestClient

from bertsmith.serving.http.app import create_app
from bertsmith.serving.settings import Settings

UNITS = ("_seconds", "_bytes", "_total", "_ratio")


def scrape(web):
    """Each sample by its name and labels."""
    found = web.get("/metrics")
    assert found.status_code == 200 and found.headers["content-type"].startswith("text/plain; version=")
    families = list(text_string_to_metric_families(found.text))
    return families, {
        (sample.name, frozenset(sample.labels.items())): sample.value for one in families for sample in one.samples
    }


def get(samples, name, **labels):
    return samples.get((name, frozenset(labels.items())), 0.0)


@pytest.fixture
def backend():
    return Pretend()


@pytest.fixture
def web(backend):
    return TestClient(create_app(backend, Settings(body_bytes=2000)))


def test_what_was_asked_is_counted(web, backend):
    web.post("/embed", json={"inputs": ["a", "b", "c"]})
    web.post("/embed", json={"inputs": "a"})
    web.post("/embed", json={})
    web.post("/embed", json={"inputs": "a" * 3000})
    backend.retry = 1.0
    web.post("/v1/embeddings", json={"input": "a"})
    _, samples = scrape(web)
    of = {"route": "/embed", "model": "pretend"}
    assert get(samples, "bertsmith_requests_total", **of, status="200") == 2
    assert get(samples, "bertsmith_requests_total", route="/embed", model="", status="422") == 1
    assert get(samples, "bertsmith_requests_total", route="/embed", model="", status="413") == 1
    assert get(samples, "bertsmith_requests_total", route="/v1/embeddings", model="", status="429") == 1
    assert get(samples, "bertsmith_rejected_total", reason="overloaded") == 1
    assert get(samples, "bertsmith_rejected_total", reason="large") == 1
    assert get(samples, "bertsmith_request_duration_seconds_count", **of) == 2
    assert get(samples, "bertsmith_request_queue_seconds_sum", model="pretend") == 0.5
    assert get(samples, "bertsmith_request_inference_seconds_sum", model="pretend") == 1.0
    assert get(samples, "bertsmith_inputs_total", model="pretend") == 4
    assert get(samples, "bertsmith_tokens_total", model="pretend") == 20
    assert get(samples, "bertsmith_truncated_tokens_total", model="pretend") == 8
    assert get(samples, "bertsmith_requests_in_flight") == 1  # the one that asks
    assert get(samples, "bertsmith_queue_requests") == 3 and get(samples, "bertsmith_queue_tokens") == 40
    assert get(samples, "bertsmith_batches_total") == 7 and get(samples, "bertsmith_ready") == 1


def test_names_follow_the_guide(web):
    web.post("/embed", json={"inputs": "a"})
    families, _ = scrape(web)
    for family in families:
        assert re.fullmatch(r"(bertsmith|process)_[a-z_]+", family.name) and family.documentation
        for sample in family.samples:
            if family.type == "counter" and not sample.name.endswith("_created"):
                assert sample.name.endswith("_total")
        if family.type == "histogram":
            assert family.name.endswith("_seconds")
        assert not re.search("milli|_ms|_kb|_minutes", family.name)


def test_what_strangers_ask_makes_no_new_series(web):
    for number in range(50):
        web.get(f"/nowhere/{number}")
        web.post(f"/models/no{number}", json={"inputs": "a"})
        web.post("/v1/jobs/embed", json={"texts": "a", "model": f"no{number}"})
        web.request(f"X{number}", "/embed")
    families, _ = scrape(web)
    routes = {sample.labels["route"] for one in families for sample in one.samples if "route" in sample.labels}
    models = {sample.labels["model"] for one in families for sample in one.samples if "model" in sample.labels}
    assert routes <= {"unmatched", "/models/{id:path}", "/v1/jobs/embed", "/embed"} and models == {""}


def test_two_apps_in_one_process_count_apart(web, backend):
    other = TestClient(create_app(backend, Settings()))
    web.post("/embed", json={"inputs": "a"})
    assert get(scrape(other)[1], "bertsmith_inputs_total", model="pretend") == 0
    assert get(scrape(web)[1], "bertsmith_inputs_total", model="pretend") == 1


PROCESS = """
import json, sys
from serving.pretend import Pretend
from starlette.testclient import TestClient
from bertsmith.serving.http.app import create_app
from bertsmith.serving.settings import Settings
web = TestClient(create_app(Pretend(), Settings()))
for _ in range(int(sys.argv[1])):
    assert web.post("/embed", json={"inputs": ["a", "b"]}).status_code == 200
print(json.dumps(web.get("/metrics").text))
"""


def test_several_processes_are_summed_whichever_is_asked(tmp_path):
    where = {**os.environ, "PROMETHEUS_MULTIPROC_DIR": str(tmp_path), "PYTHONPATH": os.pathsep.join(sys.path)}
    for asked in (2, 3):
        run = subprocess.run([sys.executable, "-c", PROCESS, str(asked)], env=where, capture_output=True, text=True)
        assert run.returncode == 0, run.stderr
    total = 5
    samples = {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(json.loads(run.stdout))
        for sample in family.samples
    }
    assert get(samples, "bertsmith_requests_total", route="/embed", model="pretend", status="200") == total
    assert get(samples, "bertsmith_inputs_total", model="pretend") == 2 * total
    assert get(samples, "bertsmith_queue_requests") == 3  # of the models, which are there once
