"""Ranking as clients of Cohere, Jina and infinity ask for it, classes as infinity's do, and which model is asked."""

from types import SimpleNamespace

import httpx
import pytest
from serving.asking import near
from serving.served import serving_models
from whole.tiny import make_encoder

import bertsmith
from bertsmith.serving.asks import Card, Refusal
from bertsmith.serving.http.picking import pick_model

QUERY = "a good film"
TEXTS = ["the song was bad", "the film was good", "oslo is a town"]


@pytest.fixture(scope="module")
def library(heads):
    return {name: bertsmith.load(heads[name], device="cpu") for name in ("score", "classify")}


@pytest.fixture(scope="module")
def client(heads):
    models = {name: bertsmith.load(heads[name], device="cpu") for name in ("bare", "score", "classify")}
    with serving_models(models, inputs=8) as address, httpx.Client(base_url=address, timeout=30) as made:
        yield made


def post(client, path, **body):
    answer = client.post(path, json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()


@pytest.mark.parametrize("path", ["/v1/rerank", "/v2/rerank", "/rerank"])
@pytest.mark.parametrize("raw", [False, True])
def test_documents_are_ranked(client, library, path, raw):
    told = post(client, path, model="score", query=QUERY, documents=TEXTS, raw_scores=raw)
    wanted = library["score"].rerank(QUERY, TEXTS, raw=raw)
    near(told["results"], [{"index": a["index"], "relevance_score": a["score"]} for a in wanted])
    tokens = sum(len(encoding.ids) for encoding in library["score"].tokenize([QUERY] * 3, TEXTS))
    assert told["model"] == "score" and told["usage"] == {"prompt_tokens": tokens, "total_tokens": tokens}
    assert told["id"] != post(client, path, model="score", query=QUERY, documents=TEXTS)["id"]


def test_as_many_as_asked_with_their_texts(client, library):
    documents = [{"text": text, "title": "ignored"} for text in TEXTS]
    told = post(client, "/v1/rerank", query=QUERY, documents=documents, top_n=2, return_documents=True)
    wanted = library["score"].rerank(QUERY, TEXTS, top_k=2)
    near(told["results"], [{"index": a["index"], "relevance_score": a["score"], "document": {"text": a["text"]}}
                           for a in wanted])  # fmt: skip
    assert len(post(client, "/v1/rerank", query=QUERY, documents=TEXTS, top_n=99, rank_fields=["text"])["results"]) == 3


@pytest.mark.parametrize("given", [TEXTS, TEXTS[:1], TEXTS[0]], ids=["several", "list", "one"])
@pytest.mark.parametrize("raw", [False, True])
def test_classify_tells_all_classes(client, library, given, raw):
    told = post(client, "/classify", model="classify", input=given, raw_scores=raw)
    texts = [given] if isinstance(given, str) else given
    wanted = library["classify"].classify(texts, raw=raw)
    near(told["data"], [[{"score": a["score"], "label": a["label"]} for a in one] for one in wanted])
    assert told["object"] == "classify" and told["model"] == "classify" and told["usage"]["total_tokens"] > 0


def test_labels_under_their_thresholds_are_told_too(tmp_path):
    """A model of several labels gives in the library those that count; clients know all of them."""
    folder = make_encoder(tmp_path / "topics", "ForSequenceClassification", num_labels=4,
                          problem_type="multi_label_classification")  # fmt: skip
    wanted = bertsmith.load(folder, device="cpu").classify(TEXTS[0], top_k=4)
    assert len(bertsmith.load(folder, device="cpu").classify(TEXTS[0])) < 4 == len(wanted)
    expected = [{"score": a["score"], "label": a["label"]} for a in wanted]
    with (
        serving_models({"topics": bertsmith.load(folder, device="cpu")}) as address,
        httpx.Client(base_url=address) as made,
    ):
        near(post(made, "/classify", input=[TEXTS[0]])["data"], [expected])
        near(post(made, "/predict", inputs=TEXTS[0]), expected)


def test_an_adapter_is_asked_by_its_name(heads, adapters):
    library = bertsmith.load(heads["bare"], device="cpu", adapters=adapters)
    served = {"bare": bertsmith.load(heads["bare"], device="cpu", adapters=adapters)}
    with serving_models(served) as address, httpx.Client(base_url=address) as made:
        told = post(made, "/classify", model="bare:liked", input=TEXTS)
        assert told["model"] == "bare:liked"
        wanted = library.use("liked").classify(TEXTS)
        expected = [[{"score": a["score"], "label": a["label"]} for a in one] for one in wanted]
        near(told["data"], expected)
        # "better" learnt from pairs, so that of a text alone only one can be meant
        near(post(made, "/classify", model="bare", input=TEXTS)["data"], expected)


@pytest.mark.parametrize("path", ["/v1/rerank", "/rerank"])
@pytest.mark.parametrize(
    "body, sentence",
    [
        ({"query": QUERY, "documents": []}, "documents is empty"),
        ({"query": "", "documents": TEXTS}, "'query' does not fit"),
        ({"query": QUERY, "documents": TEXTS, "top_n": 0}, "'top_n' does not fit"),
        ({"query": QUERY, "documents": [{"title": "a"}]}, "a list of texts, or of objects"),
        ({"query": QUERY, "documents": "a"}, "a list of texts, or of objects"),
        ({"documents": TEXTS}, "'query' is missing"),
        ({"model": "bare", "query": QUERY, "documents": TEXTS}, "'bare' cannot rerank; score can"),
    ],
)
def test_mistakes_are_told_in_its_shape(client, path, body, sentence):
    answer = client.post(path, json=body)
    assert answer.status_code == 400 and answer.json().keys() == {"id", "message"}, answer.text
    assert sentence in answer.json()["message"]


def outline(value):
    """What keys and how many lists deep."""
    if isinstance(value, dict):
        return {key: outline(one) for key, one in value.items() if key != "capabilities"}
    if isinstance(value, list):
        return [outline(value[0])]
    return "number" if isinstance(value, int | float) else type(value).__name__


@pytest.mark.parametrize("path", ["/v1/embeddings", "/classify", "/v1/rerank", "/rerank", "/embed", "/embed_all",
                                  "/predict", "/similarity", "/tokenize", "/vertex", "/invocations"])  # fmt: skip
def test_examples_of_the_documentation_run(client, path):
    """The first body that is shown has an answer like the one that is shown, the others have some."""
    document = client.get("/openapi.json").json()
    operation = document["paths"][path]["post"]
    schema = operation["requestBody"]["content"]["application/json"]["schema"]
    if "$ref" in schema:
        schema = document["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    answers = [post(client, path, **example) for example in schema["examples"]]
    shown = operation["responses"]["200"]["content"]["application/json"]["example"]
    assert outline(answers[0]) == outline(shown)


def test_the_list_of_models_is_as_shown(client):
    shown = client.get("/openapi.json").json()["paths"]["/v1/models"]["get"]["responses"]["200"]["content"]
    assert outline(client.get("/v1/models").json()) == outline(shown["application/json"]["example"])


def card(id, *jobs):
    return Card(id, jobs, "", (), 64, 32, "mean", "float32", "cpu", "bert", 512, "", 0)


@pytest.mark.parametrize(
    "cards, name, picked",
    [
        ([card("a", "embed"), card("b", "rerank")], "", "b"),
        ([card("a", "embed"), card("b", "rerank")], "a", "a"),
        ([card("a", "rerank"), card("b", "rerank")], "other", "a"),
        ([card("a", "rerank"), card("b", "rerank")], "b", "b"),
        ([card("a", "embed"), card("b", "rerank"), card("b:x", "rerank"), card("b:y", "rerank")], None, "b"),
        ([card("a", "embed"), card("b", "rerank"), card("c", "rerank")], None, 'name one that can as "model": b, c'),
        ([card("a", "embed")], None, "'a' cannot rerank; none that is served can"),
        ([], None, "no model is served yet"),
    ],
)
def test_the_model_is_named_or_the_default_or_the_only_one(cards, name, picked):
    backend = SimpleNamespace(cards=lambda: cards)
    request = SimpleNamespace(app=SimpleNamespace(state=SimpleNamespace(backend=backend)))
    if " " in picked:
        with pytest.raises(Refusal, match=picked):
            pick_model(request, "rerank", name)
    else:
        assert pick_model(request, "rerank", name).id == picked
