"""What may be sent by the letter of the description, and texts that nobody expects, to real models."""

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from serving.pretend import check
from starlette.testclient import TestClient

import bertsmith
from bertsmith.serving.http.app import create_app
from bertsmith.serving.local import Local
from bertsmith.serving.residents import Residents
from bertsmith.serving.settings import Settings


@pytest.fixture
def every_head(models):
    backend = Local(Residents(models))
    yield TestClient(create_app(backend, Settings()))
    backend.close()


def test_what_the_description_allows_is_answered(every_head):
    """schemathesis makes requests from the OpenAPI document, right and wrong ones; every head is there to answer."""
    web = every_head
    schema = schemathesis.openapi.from_dict(web.get("/openapi.json").json())
    tried = 0
    for result in schema.get_all_operations():
        operation = result.ok()
        if operation.method.upper() != "POST":
            continue

        @settings(
            max_examples=4,
            deadline=None,
            database=None,
            derandomize=True,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(case=operation.as_strategy())
        def try_case(case):
            nonlocal tried
            sent = case.as_transport_kwargs(base_url="http://testserver")
            allowed = {
                key: sent[key] for key in ("method", "url", "json", "data", "params") if sent.get(key) is not None
            }
            check(web.request(**allowed))
            tried += 1

        try_case()
    assert tried > 60


@pytest.fixture(scope="module")
def real():
    backend = Local(Residents({"house": bertsmith.load(threads=1)}))
    yield TestClient(create_app(backend, Settings()))
    backend.close()


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "\u0000",
        "\u200b",
        "\U0001f468‍\U0001f469",
        "a" * 100_000,
        "\n" * 5000,
        "[MASK]" * 12,
        "\u0301" * 3000,
        "\ufdfa" * 500,
        "</s>[CLS][SEP][PAD]",
        "\ufffe\uffff",
    ],
)
def test_odd_texts_to_a_real_model(real, text):
    for path, body in (
        ("/v1/embeddings", {"input": text}),
        ("/embed", {"inputs": [text, "a"]}),
        ("/tokenize", {"inputs": text}),
        ("/v1/jobs/similar", {"text": text, "others": ["a", text]}),
        ("/", {"inputs": text}),
        ("/v1/jobs/fill", {"text": text}),
    ):
        answer = check(real.post(path, json=body))
        if answer.status_code == 200:
            assert "NaN" not in answer.text and "null" not in answer.text.replace('"start":null,"stop":null', "")
    vectors = real.post("/v1/embeddings", json={"input": "a river bank"}).json()["data"][0]["embedding"]
    assert len(vectors) == 640
