"""The description of the server: true, whole, and at home without a network."""

import base64
import hashlib
import json
import re
import shlex
import subprocess

import pytest
from serving.pretend import Pretend, listening
from starlette.testclient import TestClient

from bertsmith.serving.http.app import ROUTERS, create_app
from bertsmith.serving.http.complaints import STYLES
from bertsmith.serving.settings import Settings


@pytest.fixture(scope="module")
def web():
    return TestClient(create_app(Pretend(), Settings()))


@pytest.fixture(scope="module")
def told(web):
    return web.get("/openapi.json").json()


def test_the_page_needs_nothing_from_elsewhere(web):
    answer = web.get("/docs")
    assert answer.status_code == 200 and answer.headers["content-type"].startswith("text/html")
    assert not re.search(r"""(src|href)=["'](?!data:|openapi\.json)|@import|https?://|//cdn""", answer.text)
    assert not re.search("innerHTML|outerHTML|insertAdjacent|document.write|eval", answer.text)


def test_the_pages_policy_lets_its_own_script_run_and_nothing_else(web):
    answer = web.get("/docs")
    policy = answer.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'") and "unsafe" not in policy and "frame-ancestors 'none'" in policy
    for tag in ("script", "style"):
        (inside,) = re.findall(f"<{tag}>(.*?)</{tag}>", answer.text, re.DOTALL)
        assert base64.b64encode(hashlib.sha256(inside.encode()).digest()).decode() in policy


def test_the_same_description_where_text_embeddings_inference_has_it(web, told):
    assert web.get("/api-doc/openapi.json").json() == told


def test_no_docs_where_none_are_wanted():
    web = TestClient(create_app(Pretend(), Settings(docs=False)))
    for path in ("/docs", "/openapi.json", "/api-doc/openapi.json"):
        assert web.get(path).status_code == 404
    assert "docs" not in web.get("/").json()


def test_every_route_is_described(told):
    shown = {(method.upper(), path) for path, operations in told["paths"].items() for method in operations}
    for route in (route for router in ROUTERS for route in router.routes if route.include_in_schema):
        path = re.sub(":path}", "}", route.path)
        assert {(method, path) for method in route.methods} <= shown
    names = {tag["name"] for tag in told["tags"]}
    assert all(tag["description"].endswith(".") for tag in told["tags"]) and set(STYLES) < names
    ids = [one["operationId"] for operations in told["paths"].values() for one in operations.values()]
    assert len(ids) == len(set(ids))
    assert told["info"]["title"] == "bertsmith" and told["info"]["version"]


def test_errors_are_described_as_they_are(told):
    assert "HTTPValidationError" not in json.dumps(told)
    for operations in told["paths"].values():
        for operation in operations.values():
            assert "422" not in operation["responses"]
            schema = operation["responses"]["4XX"]["content"]["application/json"]["schema"]["$ref"]
            assert schema == f"#/components/schemas/{operation['tags'][0].capitalize()}Error"


def find_example(operation, told):
    content = operation["requestBody"]["content"]["application/json"]
    if "examples" in content:
        return next(iter(content["examples"].values()))["value"]
    schema = content["schema"]
    forms = [schema, *schema.get("anyOf", ())]
    for form in forms:
        found = told["components"]["schemas"][form["$ref"].rpartition("/")[2]] if "$ref" in form else form
        if "example" in found or "examples" in found:
            return found.get("example") or found["examples"][0]
    return None


def test_examples_are_answered(web, told):
    """By a backend that checks the fields of each job as the real one does."""
    for path, operations in told["paths"].items():
        if "post" not in operations or path in ("/embed_sparse", "/invocations"):
            continue
        example = find_example(operations["post"], told)
        assert example is not None, path
        answer = web.post(path.replace("{id}", "pretend").replace("{task}", "fill-mask"), json=example)
        assert answer.status_code == 200, (path, example, answer.text)


def test_keys_are_described_where_they_are_wanted():
    web = TestClient(create_app(Pretend(), Settings(keys=("hush-hush",))))
    assert web.get("/docs").status_code == 200  # a page without anything of this server's
    found = web.get("/openapi.json", headers={"authorization": "Bearer hush-hush"}).json()
    assert found["components"]["securitySchemes"]["key"]["scheme"] == "bearer" and found["security"]
    assert "hush" not in json.dumps(found)


def test_curl_as_the_page_shows_it():
    """With the quoting that the page's script does, and without any header, which curl then calls a form."""
    body = json.dumps({"inputs": 'it\'s a "river" bank'})
    with listening(Pretend()) as port:
        quoted = "'" + body.replace("'", "'\\''") + "'"
        for header in ("-H 'Content-Type: application/json' ", ""):
            command = f"curl -s 'http://127.0.0.1:{port}/embed' -X POST {header}-d {quoted}"
            said = subprocess.run(shlex.split(command), capture_output=True, text=True, timeout=20)
            assert json.loads(said.stdout) == [[0.5] * 4]
