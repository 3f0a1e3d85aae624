"""The routes of text-embeddings-inference give what the library gives, in their shapes, and fail in their way."""

import httpx
import numpy as np
import pytest
import transformers
from serving.asking import near
from serving.served import serving_models

import bertsmith

TEXTS = ["the film was good", "Ann lives in Oslo and works at the river.", "a plot so poor"]
LONG = "the river runs through the town " * 20
CLOSE = 1e-5
SERVED = ("bare", "classify", "score")


@pytest.fixture(scope="module")
def library(heads):
    return {name: bertsmith.load(heads[name], device="cpu") for name in SERVED}


def serve(heads, default, **settings):
    models = {name: bertsmith.load(heads[name], device="cpu") for name in SERVED}
    models["bare"].sentence.prompts["query"] = "what is "
    return serving_models(models, default, inputs=8, **settings)


@pytest.fixture(scope="module")
def client(heads):
    """The default gives vectors; each other job has one model that can do it."""
    with serve(heads, "bare") as address, httpx.Client(base_url=address, timeout=30) as made:
        yield made


def post(client, path, **body):
    answer = client.post(path, json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()


def refused(client, path, status, kind, sentence, **body):
    answer = client.post(path, json=body)
    told = answer.json()
    assert (answer.status_code, told.keys(), told["error_type"]) == (status, {"error", "error_type"}, kind), told
    assert sentence in told["error"]


@pytest.mark.parametrize("inputs", [TEXTS[0], TEXTS], ids=["one", "several"])
@pytest.mark.parametrize("more", [{}, {"normalize": False}, {"dimensions": 8}], ids=["plain", "raw", "cut"])
def test_embed_gives_a_list_of_vectors(client, library, inputs, more):
    wanted = library["bare"].embed(inputs, normalize=more.get("normalize", True), dims=more.get("dimensions"))
    np.testing.assert_allclose(post(client, "/embed", inputs=inputs, **more), np.atleast_2d(wanted), atol=CLOSE)


def test_embed_takes_ids_and_prompts(client, library):
    ids = list(library["bare"].tokenize(TEXTS[0]).ids)
    wanted = library["bare"].embed(TEXTS[0], normalize=True)
    for given in (ids, [ids], ids[1:-1]):
        np.testing.assert_allclose(post(client, "/embed", inputs=given), [wanted], atol=CLOSE)
    prompted = post(client, "/embed", inputs=TEXTS[0], prompt_name="query", options={"use_cache": False})
    wanted = library["bare"].embed(TEXTS[0], prompt="what is ", normalize=True)
    np.testing.assert_allclose(prompted, [wanted], atol=CLOSE)


@pytest.mark.parametrize(
    "asked, policy",
    [
        ({}, "head"),
        ({"truncate": True}, "head"),
        ({"truncate": True, "truncation_direction": "Right"}, "head"),
        ({"truncate": True, "truncation_direction": "Left"}, "tail"),
        ({"truncate": None, "truncation_direction": "left"}, "tail"),
    ],
)
def test_long_inputs_are_cut_on_the_side_that_is_asked(client, library, asked, policy):
    answer = client.post("/embed", json={"inputs": LONG, **asked})
    wanted = library["bare"].embed(LONG, truncate=policy, normalize=True)
    np.testing.assert_allclose(answer.json(), [wanted], atol=CLOSE)
    assert int(answer.headers["x-truncated-tokens"]) == wanted.truncated > 0


def test_long_inputs_are_refused_where_they_may_not_be_cut(client):
    refused(client, "/embed", 422, "Validation", "at most 64 fit", inputs=LONG, truncate=False)
    refused(client, "/rerank", 422, "Validation", "tokens", query="a", texts=[LONG], truncate=False)


def test_the_server_may_refuse_long_inputs_unless_asked(heads):
    with serve(heads, "bare", truncate="error") as address, httpx.Client(base_url=address) as made:
        refused(made, "/embed", 422, "Validation", "at most 64 fit", inputs=LONG)
        refused(made, "/embed", 422, "Validation", "at most 64 fit", inputs=LONG, truncation_direction="Left")
        assert post(made, "/embed", inputs=LONG, truncate=True)
        assert made.get("/info").json()["auto_truncate"] is False


def test_embed_all_gives_every_token(client, library):
    found = post(client, "/embed_all", inputs=TEXTS)
    for one, wanted in zip(found, library["bare"].hidden(TEXTS), strict=True):
        np.testing.assert_allclose(one, wanted, atol=CLOSE)
    (one,) = post(client, "/embed_all", inputs=TEXTS[0])
    np.testing.assert_allclose(one, found[0], atol=CLOSE)


def test_predict_takes_a_text_a_pair_and_a_batch_of_both(client, library):
    def wanted(*texts, raw=False):
        return [{"score": a["score"], "label": a["label"]} for a in library["classify"].classify(*texts, raw=raw)]

    near(post(client, "/predict", inputs=TEXTS[0]), wanted(TEXTS[0]))
    near(post(client, "/predict", inputs=TEXTS[:1]), wanted(TEXTS[0]))
    near(post(client, "/predict", inputs=TEXTS[:2]), wanted(*TEXTS[:2]))
    batch = [[TEXTS[0]], TEXTS[:2], [TEXTS[2]], TEXTS[1:]]
    near(post(client, "/predict", inputs=batch), [wanted(*one) for one in batch])
    near(post(client, "/predict", inputs=batch, raw_scores=True), [wanted(*one, raw=True) for one in batch])
    near(post(client, "/predict", inputs=[[TEXTS[0]]]), [wanted(TEXTS[0])])


@pytest.mark.parametrize("raw", [False, True])
def test_rerank_sorts_texts(client, library, raw):
    wanted = library["score"].rerank(TEXTS[0], TEXTS, raw=raw).answers
    found = post(client, "/rerank", query=TEXTS[0], texts=TEXTS, raw_scores=raw, return_text=True)
    near(found, wanted)
    bare = post(client, "/rerank", query=TEXTS[0], texts=TEXTS, raw_scores=raw)
    near(bare, [{"index": a["index"], "score": a["score"]} for a in wanted])


def test_similarity_keeps_the_order_of_the_sentences(client, library):
    inputs = {"source_sentence": TEXTS[0], "sentences": [*TEXTS[1:], LONG]}
    by_place = sorted(library["bare"].similar(TEXTS[0], inputs["sentences"]), key=lambda answer: answer["index"])
    near(post(client, "/similarity", inputs=inputs), [answer["score"] for answer in by_place])
    parameters = {"truncate": True, "truncation_direction": "Left", "prompt_name": "query"}
    found = post(client, "/similarity", inputs=inputs, parameters=parameters)
    texts = [inputs["source_sentence"], *inputs["sentences"]]
    first, *others = library["bare"].embed(texts, prompt="what is ", truncate="tail", normalize=True)
    np.testing.assert_allclose(found, np.stack(others) @ first, atol=CLOSE)


def test_tokenize_says_where_each_piece_stands(client, heads):
    reference = transformers.AutoTokenizer.from_pretrained(heads["bare"])
    texts = ["Ann's naïve café", "the [MASK] runs"]
    read = reference(texts, return_offsets_mapping=True, return_special_tokens_mask=True)
    found = post(client, "/tokenize", inputs=texts)
    for row, ids, offsets, text in zip(found, read["input_ids"], read["offset_mapping"], texts, strict=True):
        assert [piece["id"] for piece in row] == ids
        assert all(piece.keys() == {"id", "text", "special", "start", "stop"} for piece in row)
        first, *middle, last = row
        assert first == {"id": ids[0], "text": "[CLS]", "special": True, "start": None, "stop": None}
        assert last["text"] == "[SEP]" and last["special"] and last["stop"] is None
        assert [(piece["start"], piece["stop"]) for piece in middle] == offsets[1:-1]
        assert [piece["text"] for piece in middle] == [text[start:stop] for start, stop in offsets[1:-1]]
        assert not any(piece["special"] for piece in middle)
    assert post(client, "/tokenize", inputs=texts[0], add_special_tokens=False) == [found[0][1:-1]]


def test_decode_gives_the_texts(client, heads):
    reference = transformers.AutoTokenizer.from_pretrained(heads["bare"])
    ids = reference(TEXTS)["input_ids"]
    wanted = [reference.decode(row, skip_special_tokens=True) for row in ids]
    assert [text.replace(" .", ".") for text in post(client, "/decode", ids=ids)] == [
        text.replace(" .", ".") for text in wanted
    ]
    assert post(client, "/decode", ids=ids[0]) == wanted[:1]
    assert post(client, "/decode", ids=ids[0], skip_special_tokens=False) == [f"[CLS] {TEXTS[0]} [SEP]"]


def test_info_tells_of_each_kind_of_model(client, heads, library):
    told = client.get("/info").json()
    assert told["model_id"] == "bare" and told["model_type"] == {"embedding": {"pooling": "mean"}}
    assert told["max_input_length"] == library["bare"].limit and told["max_client_batch_size"] == 8
    assert told["model_dtype"] == "float32" and told["auto_truncate"] is True and told["version"]


def test_a_model_whose_adapters_classify_is_told_by_its_vectors():
    """The one that comes along was a classifier without labels, of 512 tokens; its vectors are of fewer."""
    house = bertsmith.load(threads=1)
    long = LONG * 2
    many = len(house.tokenize(long))
    with serving_models({"house": house}) as address, httpx.Client(base_url=address, timeout=30) as made:
        told = made.get("/info").json()
        assert told["model_type"] == {"embedding": {"pooling": "mean"}}
        answer = made.post("/embed", json={"inputs": long})
        assert told["max_input_length"] == many - int(answer.headers["x-truncated-tokens"]) < many
        served = made.get("/v1/models").json()["data"]
        assert {one["id"]: one["max_model_len"] for one in served}["house"] == told["max_input_length"]
        np.testing.assert_allclose(post(made, "/invocations", inputs=TEXTS), house.embed(TEXTS), atol=CLOSE)
        assert len(post(made, "/predict", inputs=TEXTS[0])) == 2  # by an adapter


def test_who_is_asked_for_nothing_special_does_what_the_default_is_for(client, heads, library):
    vectors = library["bare"].embed(TEXTS, normalize=True)
    np.testing.assert_allclose(post(client, "/invocations", inputs=TEXTS), vectors, atol=CLOSE)
    ranked = {"query": TEXTS[0], "texts": TEXTS}
    predictions = post(client, "/vertex", instances=[{"inputs": TEXTS[0]}, ranked])["predictions"]
    np.testing.assert_allclose(predictions[0], vectors[:1], atol=CLOSE)
    near(predictions[1], post(client, "/rerank", **ranked))
    with serve(heads, "classify") as address, httpx.Client(base_url=address) as made:
        near(post(made, "/invocations", inputs=TEXTS[0]), post(client, "/predict", inputs=TEXTS[0]))
        told = made.get("/info").json()["model_type"]["classifier"]
        assert told["id2label"] == {"0": "contradiction", "1": "neutral", "2": "entailment"}
        assert told["label2id"]["entailment"] == 2
        post(made, "/vertex", instances=[{"inputs": TEXTS[:2]}] * 8)  # pairs
        near(post(made, "/vertex", instances=[{"inputs": [[text] for text in TEXTS]}])["predictions"][0],
             post(client, "/predict", inputs=[[text] for text in TEXTS]))  # fmt: skip
    with serve(heads, "score") as address, httpx.Client(base_url=address) as made:
        near(post(made, "/invocations", **ranked), predictions[1])
        assert "reranker" in made.get("/info").json()["model_type"]


@pytest.mark.parametrize(
    "path, body, status, kind, sentence",
    [
        ("/embed", {"inputs": ""}, 400, "Empty", "inputs is empty"),
        ("/embed", {"inputs": []}, 400, "Empty", "inputs is empty"),
        ("/embed", {"inputs": ["a", ""]}, 400, "Empty", "inputs[1] is empty"),
        ("/embed_all", {"inputs": [""]}, 400, "Empty", "inputs[0] is empty"),
        ("/predict", {"inputs": []}, 400, "Empty", "inputs is empty"),
        ("/predict", {"inputs": [["a"], ["a", ""]]}, 400, "Empty", "inputs[1][1] is empty"),
        ("/rerank", {"query": "a", "texts": []}, 400, "Empty", "texts is empty"),
        ("/tokenize", {"inputs": []}, 400, "Empty", "inputs is empty"),
        ("/decode", {"ids": []}, 400, "Empty", "ids is empty"),
        ("/vertex", {"instances": []}, 400, "Empty", "instances is empty"),
        ("/embed", {}, 422, "Validation", "'inputs' is missing"),
        ("/similarity", {"inputs": {"source_sentence": "a"}}, 422, "Validation", "'inputs.sentences' is missing"),
        ("/similarity", {"inputs": {"source_sentence": "a", "sentences": [""]}}, 400, "Empty", "sentences[0] is empty"),
        ("/embed", {"inputs": 5}, 422, "Validation", "must be a text"),
        ("/embed", {"inputs": ["a"] * 9}, 422, "Validation", "at most 8"),
        ("/embed", {"inputs": "a", "dimensions": 99}, 422, "Validation", "dimensions is 99"),
        ("/embed", {"inputs": "a", "prompt_name": "none"}, 422, "Validation", "no prompt 'none'; they are query"),
        ("/embed", {"inputs": "a", "truncation_direction": "up"}, 422, "Validation", "truncation_direction"),
        ("/embed_all", {"inputs": "a", "prompt_name": "query"}, 422, "Validation", "leave prompt_name out"),
        ("/predict", {"inputs": ["a", "b", "c"]}, 422, "Validation", "a list of one text or of two"),
        ("/predict", {"inputs": [["a"], "b"]}, 422, "Validation", "a list of one text or of two"),
        ("/predict", {"inputs": [["a"]] * 9}, 422, "Validation", "at most 8"),
        ("/rerank", {"query": "a"}, 422, "Validation", "'texts' is missing"),
        ("/rerank", {"query": " ", "texts": ["a"]}, 422, "Validation", "query is empty"),
        ("/decode", {"ids": ["a"]}, 422, "Validation", "token ids"),
        ("/decode", {"ids": [2_000_000]}, 422, "Validation", "token id"),
        ("/vertex", {"instances": [{"inputs": "a"}, {"input": "a"}]}, 422, "Validation", "'inputs' is missing"),
        ("/vertex", {"instances": [{"inputs": "a"}] * 9}, 422, "Validation", "at most 8"),
        ("/vertex", {"instances": [{"inputs": ["a"] * 3}] * 3}, 422, "Validation", "holds 9 inputs; at most 8"),
        ("/vertex", {"instances": [{"query": "a", "texts": ["a"] * 5}] * 2}, 422, "Validation", "holds 10 inputs"),
        ("/invocations", {"input": "a"}, 422, "Validation", "'inputs' is missing"),
        ("/embed_sparse", {"inputs": "a"}, 424, "Backend", "no sparse vectors"),
    ],
)
def test_mistakes_are_told_in_its_shape(client, path, body, status, kind, sentence):
    refused(client, path, status, kind, sentence, **body)


def test_a_model_without_the_head_says_so(heads):
    with (
        serving_models({"bare": bertsmith.load(heads["bare"], device="cpu")}) as address,
        httpx.Client(base_url=address) as made,
    ):
        refused(made, "/rerank", 424, "Backend", "'bare' cannot rerank", query="a", texts=["b"])
        refused(made, "/predict", 424, "Backend", "'bare' cannot classify", inputs="a")


def test_where_several_models_can_the_body_names_one(heads, library):
    """As the refusal of a request that names none says; a name that nobody here has means the default."""
    classifier = bertsmith.load(heads["classify"], device="cpu")
    models = {"bare": bertsmith.load(heads["bare"], device="cpu"), "first": classifier, "second": library["classify"],
              "one": bertsmith.load(heads["score"], device="cpu"), "other": library["score"]}  # fmt: skip
    other = bertsmith.load(heads["score"], device="cpu")
    with serving_models(models) as address, httpx.Client(base_url=address, timeout=30) as made:
        refused(made, "/predict", 424, "Backend", 'name one that can as "model": first, second', inputs=TEXTS[0])
        told = post(made, "/predict", inputs=TEXTS[0], model="second")
        near(told, [{"score": one["score"], "label": one["label"]} for one in classifier.classify(TEXTS[0])])
        ranked = {"query": "Ann", "texts": TEXTS}
        refused(made, "/rerank", 424, "Backend", '"model": one, other', **ranked)
        for told in (post(made, "/rerank", model="other", **ranked), post(made, "/invocations", model="one", **ranked)):
            near(told, [{"index": one["index"], "score": one["score"]} for one in other.rerank("Ann", TEXTS)])
        vectors = classifier.embed(TEXTS, normalize=False).tolist()
        near(post(made, "/embed", inputs=TEXTS, model="first", normalize=False), vectors)
        near(post(made, "/embed", inputs=TEXTS, model="nobody"), post(made, "/embed", inputs=TEXTS))
        named = {"inputs": TEXTS[0], "model": "first"}
        near(post(made, "/invocations", **named), post(made, "/predict", **named))
        refused(made, "/rerank", 424, "Backend", "'bare' cannot rerank", model="bare", **ranked)
