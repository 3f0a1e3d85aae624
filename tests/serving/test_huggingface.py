"""Hugging Face's own client asks a real server for every task, and gets what the library and the pipelines give."""

import json
import shutil
from base64 import b64decode

import httpx
import huggingface_hub
import numpy as np
import pytest
import transformers
from huggingface_hub import InferenceClient
from huggingface_hub.errors import HfHubHTTPError
from serving.asking import near
from serving.served import serving_models

import bertsmith

TEXTS = ["the film was good", "ann lives in oslo and works at the river .", "a plot so poor"]
QUESTION, CONTEXT = "who lives here", "ann lives in oslo and works at the river ."
LABELS = ["sport", "news", "science"]


@pytest.fixture(scope="module")
def unsure(heads, tmp_path_factory):
    """The reader with the settings of one that was trained on questions without answers, too."""
    folder = tmp_path_factory.mktemp("unsure") / "model"
    shutil.copytree(heads["answer"], folder)
    learnt = {"impossible": True, "threshold": -1e9, "truncate": "windows", "labels": ["start", "end"]}
    (folder / "bertsmith.json").write_text(json.dumps({"task": "span", "settings": learnt}))
    return folder


@pytest.fixture(scope="module")
def library(heads, adapters, unsure):
    found = {name: bertsmith.load(folder, device="cpu") for name, folder in heads.items()}
    base = bertsmith.load(heads["bare"], device="cpu", adapters=adapters)
    found["unsure"] = bertsmith.load(unsure, device="cpu")
    return found | {"bare": base, **{f"bare:{name}": base.use(name) for name in adapters}}


@pytest.fixture(scope="module")
def address(heads, adapters, unsure):
    """A server of all heads, the bare encoder and its adapters; one has a name with a slash, as on the hub."""
    models = {name: bertsmith.load(folder, device="cpu") for name, folder in heads.items() if name != "bare"}
    models |= {"some/fill": models.pop("fill"), "unsure": bertsmith.load(unsure, device="cpu")}
    models = {"bare": bertsmith.load(heads["bare"], device="cpu", adapters=adapters), **models}
    with serving_models(models, inputs=50) as found:
        yield found


@pytest.fixture(scope="module", autouse=True)
def reachable():
    """The tests run with the hub out of reach; this server is no hub."""
    patch = pytest.MonkeyPatch()
    patch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", False)
    yield
    patch.undo()
    huggingface_hub.close_session()


@pytest.fixture(scope="module")
def client(address):
    """A client for a model."""
    return lambda model, task="": InferenceClient(f"{address}/models/{model}" + (f"/pipeline/{task}" if task else ""))


@pytest.fixture(scope="module")
def http(address):
    with httpx.Client(base_url=address) as made:
        yield made


def pipeline(heads, name, task, **options):
    return transformers.pipeline(task, model=str(heads[name]), tokenizer=str(heads[name]), device="cpu", **options)


def plain(elements):
    """What the client parsed, without what it left empty."""
    return [{key: value for key, value in dict(element).items() if value is not None} for element in elements]


def post(http, path, body):
    answer = http.post(path, json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()


@pytest.mark.parametrize("asked", [{}, {"top_k": 2}, {"targets": ["good", "film"]}])
def test_fill_mask(client, library, asked):
    found = client("some/fill").fill_mask("the [MASK] was good", **asked)
    near(plain(found), library["fill"].fill("the [MASK] was good", **asked).answers)


def test_fill_mask_is_the_pipelines(client, heads):
    found = plain(client("some/fill").fill_mask("the [MASK] was good", top_k=3))
    near(found, pipeline(heads, "fill", "fill-mask")("the [MASK] was good", top_k=3))


def test_several_masks_and_several_texts(http, library):
    texts = ["the [MASK] was [MASK]", "a [MASK]"]
    found = post(http, "/models/some/fill", {"inputs": texts, "options": {"wait_for_model": True}})
    near(found, [result.answers for result in library["fill"].fill(texts)])
    near(post(http, "/models/some/fill", {"inputs": texts[0]}), found[0])


def test_question_answering(client, library):
    found = client("answer").question_answering(question=QUESTION, context=CONTEXT)
    near(dict(found), library["answer"].answer(QUESTION, CONTEXT)[0])
    asked = {"doc_stride": 8, "max_seq_len": 40, "align_to_words": True, "max_question_len": 9}
    several = client("answer").question_answering(question=QUESTION, context=CONTEXT, top_k=3, **asked)
    near(plain(several), library["answer"].answer(QUESTION, CONTEXT, top_k=3).answers)
    short = client("answer").question_answering(question=QUESTION, context=CONTEXT, max_answer_len=1)
    near(dict(short), library["answer"].answer(QUESTION, CONTEXT, answer_length=1)[0])
    assert short["answer"] and " " not in short["answer"]


def test_several_questions(http, library):
    asked = [{"question": QUESTION, "context": CONTEXT}, {"question": "what", "context": TEXTS[0]}]
    found = post(http, "/models/answer", {"inputs": asked})
    near(found, [library["answer"].answer(one["question"], one["context"])[0] for one in asked])


def test_no_answer_unless_it_is_not_wanted(client, library):
    """`unsure` learnt that a text may hold no answer, and says so here."""
    found = library["unsure"].answer(QUESTION, CONTEXT, top_k=3)
    assert found[0]["answer"] == ""
    ask = client("unsure").question_answering
    assert ask(question=QUESTION, context=CONTEXT).answer == ""
    assert ask(question=QUESTION, context=CONTEXT, handle_impossible_answer=True).answer == ""
    forced = ask(question=QUESTION, context=CONTEXT, handle_impossible_answer=False)
    near(dict(forced), found[1])
    forced = ask(question=QUESTION, context=CONTEXT, handle_impossible_answer=False, top_k=2)
    near(plain(forced), found[1:3])
    assert ask(question=QUESTION, context=" ", handle_impossible_answer=False).answer == ""


@pytest.mark.parametrize("strategy", [None, "none", "simple", "first", "average", "max"])
def test_token_classification(client, library, strategy):
    found = client("tag").token_classification(CONTEXT, aggregation_strategy=strategy)
    near(plain(found), library["tag"].tag(CONTEXT, aggregation=strategy or "simple").answers)


def test_token_classification_is_the_pipelines(client, heads):
    wanted = pipeline(heads, "tag", "token-classification", aggregation_strategy="none")(CONTEXT)
    found = plain(client("tag").token_classification(CONTEXT, aggregation_strategy="none"))
    assert wanted and len(found) == len(wanted)
    for ours, theirs in zip(found, wanted, strict=True):
        assert [ours[key] for key in ("entity", "index", "start", "end")] == [
            theirs[key] for key in ("entity", "index", "start", "end")
        ]
        assert ours["score"] == pytest.approx(float(theirs["score"]), abs=1e-5)


def test_labels_are_ignored(client, library):
    whole = library["tag"].tag(CONTEXT, aggregation="none").answers
    kind = whole[0]["entity"]
    found = client("tag").token_classification(CONTEXT, aggregation_strategy="none", ignore_labels=[kind], stride=4)
    near(plain(found), [answer for answer in whole if answer["entity"] != kind])


@pytest.mark.parametrize("function", [None, "softmax", "sigmoid", "none"])
@pytest.mark.parametrize("top_k", [None, 2])
def test_text_classification(client, heads, function, top_k):
    found = plain(client("classify").text_classification(TEXTS[0], function_to_apply=function, top_k=top_k))
    whole = pipeline(heads, "classify", "text-classification")(TEXTS[0], top_k=None, function_to_apply=function)
    near(found, whole[:top_k])


def test_text_classification_of_texts_and_pairs(http, library):
    found = post(http, "/models/classify", {"inputs": TEXTS})
    near(found, [result.answers for result in library["classify"].classify(TEXTS)])
    pairs = [{"text": TEXTS[0], "text_pair": TEXTS[1]}, {"text": TEXTS[2], "text_pair": TEXTS[0]}]
    found = post(http, "/models/classify", {"inputs": pairs})
    near(found, [result.answers for result in library["classify"].classify([TEXTS[0], TEXTS[2]], [TEXTS[1], TEXTS[0]])])
    near(post(http, "/models/classify", {"inputs": pairs[0]}), found[:1])


@pytest.mark.parametrize("function", [None, "sigmoid", "none"])
def test_a_model_of_numbers_is_asked_as_one_of_classes(client, library, function):
    found = plain(client("score").text_classification(TEXTS[0], function_to_apply=function))
    number = library["score"].score(TEXTS[0])[0]["score"]
    wanted = 1 / (1 + np.exp(-number)) if function == "sigmoid" else number
    assert found == [{"label": "LABEL_0", "score": pytest.approx(wanted, abs=1e-5)}]


@pytest.mark.parametrize("several", [None, True])
def test_zero_shot_classification(client, http, library, heads, several):
    found = plain(client("classify").zero_shot_classification(
        TEXTS[0], LABELS, multi_label=several, hypothesis_template="it is {} ."))  # fmt: skip
    asked = {"hypothesis": "it is {} .", "several": bool(several)}
    near(found, library["classify"].classify(TEXTS[0], labels=LABELS, **asked).answers)
    numbers = {"contradiction": 0, "neutral": 1, "entailment": 2}
    model = transformers.AutoModelForSequenceClassification.from_pretrained(heads["classify"], label2id=numbers)
    judge = transformers.pipeline("zero-shot-classification", model, tokenizer=str(heads["classify"]), device="cpu")
    wanted = judge(TEXTS[0], LABELS, multi_label=bool(several), hypothesis_template="it is {} .")
    near(found, [{"label": a, "score": b} for a, b in zip(wanted["labels"], wanted["scores"], strict=True)])
    # Labels in one text, between commas; the pipeline passes over what holds nothing.
    for labels in (", ".join(LABELS), ",".join(LABELS) + ", ,"):
        wanted = judge(TEXTS[0], labels, multi_label=bool(several), hypothesis_template="it is {} .")
        body = {"candidate_labels": labels, "multi_label": several, "hypothesis_template": "it is {} ."}
        answer = http.post("/models/classify", json={"inputs": TEXTS[0], "parameters": body})
        assert answer.status_code == 200, answer.text
        near(answer.json(), [{"label": a, "score": b} for a, b in zip(wanted["labels"], wanted["scores"], strict=True)])


@pytest.mark.parametrize("texts", [TEXTS[0], TEXTS])
@pytest.mark.parametrize("asked", [{}, {"normalize": True, "dimensions": 8}, {"truncate": True}])
def test_feature_extraction(client, library, texts, asked):
    found = client("bare:liked", "feature-extraction").feature_extraction(texts, **asked)
    wanted = library["bare:liked"].embed(texts, normalize=asked.get("normalize"), dims=asked.get("dimensions"))
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, np.atleast_2d(wanted), atol=1e-5)


@pytest.mark.parametrize(("direction", "truncate"), [("left", "tail"), ("right", "head"), (None, "head")])
def test_long_texts_are_cut_on_the_side_that_is_asked_for(http, client, library, direction, truncate):
    long = " ".join(TEXTS * 12)
    bare = client("bare", "feature-extraction")
    found = bare.feature_extraction(long, truncate=True, truncation_direction=direction)
    wanted = library["bare"].embed(long, truncate=truncate)
    np.testing.assert_allclose(found[0], wanted, atol=1e-5)
    path = "/models/bare/pipeline/feature-extraction"
    answer = http.post(path, json={"inputs": long, "truncation_direction": direction or "right"})
    assert int(answer.headers["x-truncated-tokens"]) == wanted.truncated > 0
    with pytest.raises(HfHubHTTPError) as failed:
        bare.feature_extraction(long, truncate=False)
    assert failed.value.response.status_code == 400


def test_features_in_base64_and_of_token_ids(http, library):
    ids = library["bare"].tokenize(TEXTS[0]).ids
    for inputs in (ids, [ids]):
        found = post(http, "/pipeline/feature-extraction", {"inputs": inputs, "encoding_format": "base64"})
        assert len(found) == 1
        vector = np.frombuffer(b64decode(found[0]), "<f4")
        np.testing.assert_allclose(vector, library["bare"].embed(TEXTS[0]), atol=1e-5)


def test_sentence_similarity(client, library):
    found = client("bare").sentence_similarity(TEXTS[0], TEXTS)
    wanted = {answer["index"]: answer["score"] for answer in library["bare"].similar(TEXTS[0], TEXTS)}
    assert found == pytest.approx([wanted[0], wanted[1], wanted[2]], abs=1e-5)
    assert found[0] == pytest.approx(1, abs=1e-5)


def test_text_ranking_and_choices(http, library):
    wanted = [{"index": a["index"], "score": a["score"]} for a in library["score"].rerank(TEXTS[0], TEXTS)]
    inside = {"inputs": {"query": TEXTS[0], "texts": TEXTS}}
    near(post(http, "/models/score", inside), wanted)
    sentences = {"inputs": {"source_sentence": TEXTS[0], "sentences": TEXTS}}
    near(post(http, "/models/score/pipeline/text-ranking", sentences), wanted)
    near(post(http, "/", {"query": TEXTS[0], "texts": TEXTS, "return_text": True}),
         library["score"].rerank(TEXTS[0], TEXTS).answers)  # fmt: skip
    raw = post(http, "/models/score", {**inside, "parameters": {"raw_scores": True, "top_k": 1}})
    assert raw[0]["score"] == pytest.approx(library["score"].rerank(TEXTS[0], TEXTS, raw=True)[0]["score"], abs=1e-5)
    found = post(http, "/models/choose", {"inputs": {"prompt": TEXTS[0], "choices": TEXTS}})
    near(found, library["choose"].choose(TEXTS[0], TEXTS).answers)


def test_adapters_have_ids_of_their_own(client, library):
    found = plain(client("bare:liked").text_classification(TEXTS[0]))
    near(found, library["bare:liked"].classify(TEXTS[0]).answers)
    tags = client("bare:names").token_classification("Ann lives in Rome", aggregation_strategy="first")
    near(plain(tags), library["bare:names"].tag("Ann lives in Rome").answers)


def test_without_a_model_the_default_answers_or_the_one_that_can(http, address, library):
    similar = InferenceClient(address).sentence_similarity(TEXTS[0], TEXTS[:1])
    assert similar == pytest.approx([1], abs=1e-5)
    question = {"inputs": {"question": QUESTION, "context": CONTEXT}}
    near(post(http, "/", {**question, "model": "answer"}), library["answer"].answer(QUESTION, CONTEXT)[0])
    assert "name one that can" in http.post("/", json=question).json()["error"]
    found = post(http, "/", {"inputs": {"source_sentence": TEXTS[0], "sentences": TEXTS}})
    assert found[0] == pytest.approx(1, abs=1e-5)
    found = post(http, "/pipeline/feature-extraction", {"inputs": TEXTS})
    np.testing.assert_allclose(found, library["bare"].embed(TEXTS), atol=1e-5)
    near(post(http, "/pipeline/multiple-choice", {"inputs": {"prompt": TEXTS[0], "choices": TEXTS}}),
         library["choose"].choose(TEXTS[0], TEXTS).answers)  # fmt: skip


def test_a_model_tells_its_card_and_its_health(address, http):
    client = InferenceClient(f"{address}/models/some/fill", provider="hf-inference")
    assert client.health_check() is True and client.get_endpoint_info()["pipeline_tag"] == "fill-mask"
    assert client.health_check(f"{address}/models/nobody") is False
    card = http.get("/models/tag").json()
    assert card["id"] == "tag" and card["pipeline"] == "token-classification" and "tag" in card["jobs"]
    assert card["labels"] == ["O", "B-PER", "I-PER"]
