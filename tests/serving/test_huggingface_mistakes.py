"""Bad requests on the routes of Hugging Face's clients: a sentence each, never a failure, never another's folder."""

import copy
import socket

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from serving.served import serving_models

import bertsmith
from bertsmith.serving.routes.huggingface_tasks import TASKS

ABLE = {
    "fill-mask": "some/fill", "question-answering": "answer", "token-classification": "tag", "text-ranking": "score",
    "text-classification": "classify", "zero-shot-classification": "classify", "feature-extraction": "bare",
    "sentence-similarity": "bare", "multiple-choice": "choose",
}  # fmt: skip
PARAMETERS = st.sampled_from(
    ["top_k", "targets", "candidate_labels", "normalize", "dimensions", "aggregation_strategy", "function_to_apply"]
)
ANY_TEXT = st.text(max_size=8) | st.sampled_from(["[MASK]", "the [MASK] was good", "[SEP] [CLS]", "\x00", "a" * 300])
FIELDS = st.sampled_from(["text", "question"])
ANY_VALUE = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 10**20) | ANY_TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(FIELDS, inner, max_size=2),
    max_leaves=5,
)


@pytest.fixture(scope="module")
def address(heads):
    models = {name: bertsmith.load(folder, device="cpu") for name, folder in heads.items()}
    models["some/fill"] = models.pop("fill")
    with serving_models(models, inputs=50) as found:
        yield found


@pytest.fixture(scope="module")
def http(address):
    with httpx.Client(base_url=address) as made:
        yield made


@pytest.mark.parametrize(
    ("path", "body", "status", "said"),
    [
        ("/models/nobody", {"inputs": "a"}, 404, "there is no model 'nobody'"),
        ("/models/", {"inputs": "a"}, 404, "there is no model ''"),
        ("/models/tag/pipeline/painting", {"inputs": "a"}, 404, "there is no task 'painting'"),
        ("/pipeline/painting", {"inputs": "a"}, 404, "there is no task 'painting'"),
        ("/models/tag/pipeline/fill-mask", {"inputs": "a [MASK]"}, 400, "the model 'tag' cannot fill; "),
        ("/models/tag", {}, 400, "the field 'inputs' is missing"),
        ("/models/tag", {"inputs": []}, 400, "inputs is empty"),
        ("/models/tag", {"inputs": 5}, 400, "the field 'inputs' does not fit: it must be a text or a list of texts"),
        ("/models/tag", [], 400, "send a JSON object"),
        ("/models/tag", {"inputs": "a", "parameters": 3}, 400, "the field 'parameters' does not fit"),
        ("/models/tag", {"inputs": "a", "parameters": {"aggregation_strategy": "x"}}, 400, "'aggregation_strategy'"),
        ("/models/classify", {"inputs": "a", "parameters": {"top_k": 0}}, 400, "the field 'top_k' does not fit"),
        ("/models/classify", {"inputs": "a", "parameters": {"function_to_apply": "tanh"}}, 400, "'function_to_apply'"),
        ("/models/classify", {"inputs": [["a"]]}, 400, "an object with text and text_pair, or a list of"),
        ("/models/classify", {"inputs": 5}, 400, "inputs must be a text, an object with text and text_pair"),
        ("/models/classify", {"inputs": ["a", {"text": "b", "text_pair": "c"}]}, 400, "1 of 2 inputs have a text_pair"),
        ("/models/classify/pipeline/zero-shot-classification", {"inputs": "a"}, 400, "'candidate_labels' is missing"),
        ("/models/answer", {"inputs": "a"}, 400, "inputs must be an object with question and context"),
        ("/models/bare/pipeline/sentence-similarity", {"inputs": "a"}, 400, "source_sentence and sentences"),
        ("/models/score/pipeline/text-ranking", {"inputs": {"query": "a", "texts": []}}, 400, "the field 'texts'"),
        ("/models/bare/pipeline/feature-extraction", {"inputs": [1, 10**6]}, 400, "the token id 1000000"),
        ("/models/bare/pipeline/feature-extraction", {"inputs": "a", "prompt_name": "x"}, 400, "has no prompt 'x'"),
        ("/models/bare/pipeline/feature-extraction", {"inputs": "a", "dimensions": 99}, 400, "dimensions is 99"),
        ("/models/bare/pipeline/feature-extraction", {"inputs": ["a"] * 51}, 400, "at most 50"),
        ("/models/some/fill", {"inputs": "no mask"}, 400, "mask"),
    ],
)
def test_mistakes_are_told_in_a_sentence(http, path, body, status, said):
    answer = http.post(path, json=body)
    assert answer.status_code == status, answer.text
    assert list(answer.json()) == ["error"]
    assert said in answer.json()["error"]


@settings(max_examples=100)
@given(st.data())
def test_whatever_is_sent_is_answered_or_refused(http, data):
    task = data.draw(st.sampled_from(list(TASKS)))
    body = copy.deepcopy(TASKS[task].example)
    inputs = body["inputs"]
    if isinstance(inputs, dict) and data.draw(st.booleans()):
        inputs[data.draw(st.sampled_from(list(inputs)))] = data.draw(ANY_VALUE)
    elif data.draw(st.booleans()):
        body["inputs"] = data.draw(ANY_TEXT | ANY_VALUE)
    body["parameters"] = body.get("parameters", {}) | data.draw(st.dictionaries(PARAMETERS, ANY_VALUE, max_size=2))
    answer = http.post(f"/pipeline/{task}", json={**body, "model": ABLE[task]})
    assert answer.status_code in (200, 400), answer.text
    if answer.status_code == 400:
        assert list(answer.json()) == ["error"] and "Traceback" not in answer.text


CLIMBING = ("../../etc/passwd", "..%2f..%2fetc%2fpasswd", "%00", "tag/../answer", "/etc/passwd", "tag%2f..%2fanswer")


@pytest.mark.parametrize("path", [f"/models/{name}" for name in CLIMBING])
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_paths_that_climb_are_not_found(address, path, method):
    host, port = address.removeprefix("http://").split(":")
    body = b'{"inputs": "a"}' if method == "POST" else b""
    with socket.create_connection((host, int(port)), timeout=10) as connection:
        connection.sendall(
            f"{method} {path} HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode()
            + body
        )
        answer = b"".join(iter(lambda: connection.recv(65536), b""))
    assert answer.split()[1] == b"404" and b"root:" not in answer and b"Traceback" not in answer
