"""The model in the package: small enough, every job has its adapter, and other libraries compute the same from it."""

import json

import numpy as np
import pytest
import torch
import transformers

import bertsmith
import bertsmith.inspect
from bertsmith.errors import BertsmithError
from bertsmith.models.hub import HOUSE, HOUSE_NAME, find_default, name_of
from bertsmith.resident import JOBS

MASKED = "if you don't want to inhale viruses, you should wear a [MASK]."
TEXTS = ["A man is playing a guitar.", "Someone plays an instrument.", "The shares fell on Monday."]


@pytest.fixture(scope="module")
def model():
    return bertsmith.load()


def export(folder, **settings):
    return bertsmith.export_model(HOUSE, folder, **settings).folder


def open_both(kind, folder):
    return transformers.AutoTokenizer.from_pretrained(folder), kind.from_pretrained(folder).eval()


def test_it_is_the_default_and_light():
    assert find_default() == HOUSE and name_of(HOUSE) == HOUSE_NAME
    weights = sum(path.stat().st_size for path in HOUSE.rglob("*.safetensors"))
    assert 20 * 2**20 < weights <= 56 * 2**20
    about = json.loads((HOUSE / "bertsmith.json").read_text())
    assert set(about["default_for"]) <= set(JOBS) and set(about["default_for"].values()) == set(about["adapters"])
    for path in HOUSE.rglob("*.json"):
        assert "/tmp" not in path.read_text(encoding="utf-8"), path  # no path of whoever made it


def test_what_explains_an_answer_asks_whoever_gave_it(model):
    """Each job's own adapter, pairs' too: what is explained is what the method says."""
    first, second = "the man went to the store", "he bought a gallon of milk"
    for job, given in {"classify": (TEXTS[0],), "classify of a pair": TEXTS[:2], "follows": (first, second)}.items():
        said = getattr(model, job.split()[0])(*given)[0]["label"]
        assert bertsmith.inspect.attribute(model, job.split()[0], *given, steps=2).target == said
    cosine = bertsmith.inspect.attribute(model, "similar", *TEXTS[:2], steps=2).parts[0].score
    assert cosine == pytest.approx(model.similar(TEXTS[0], TEXTS[1])[0]["score"], abs=1e-5)
    number = bertsmith.inspect.attribute(model, "score", *TEXTS[:2], steps=2).parts[0].score
    assert number == pytest.approx(model.score(*TEXTS[:2])[0]["score"], abs=1e-4)


def test_what_would_mean_nothing_is_refused(model):
    for given in ({"several": True}, {"hypothesis": "It is {}."}):
        with pytest.raises(BertsmithError, match="say how labels are judged; give those too"):
            model.classify("a", **given)
    with pytest.raises(BertsmithError, match=r"^follows has no meaning for truncate='windows'"):
        model.follows("A man.", "He eats.", truncate="windows")


def test_what_a_lecture_asks_of_it(model):
    assert model.fill(MASKED)[0]["token_str"] == "mask"
    assert "money" in [one["token_str"] for one in model.fill("The poor don't have any [MASK].")]
    first = "the man went to the store"
    follows = [model.follows(first, second)[0]["label"] for second in ("he bought a gallon of milk",
                                                                       "penguins are flightless")]  # fmt: skip
    assert follows == ["follows", "random"]
    text = "The National University of Singapore (NUS) was founded in 1905. In NUS we learn law and music."
    said = [model.answer(question, text)[0]["answer"] for question in ("What can we learn in NUS?",
                                                                       "When was NUS founded?")]  # fmt: skip
    assert said == ["law and music", "1905"]
    for question in ("Who wrote Hamlet?", "What does it cost to study there?"):
        assert model.answer(question, text)[0]["answer"] == "" and model.answer(question, text).no_answer > 0.9
    found = [(one["word"], one["entity_group"]) for one in model.tag("Marie Curie was born in Warsaw.")]
    assert found == [("Marie Curie", "PER"), ("Warsaw", "LOC")]
    assert [model.classify(text)[0]["label"] for text in ("A warm, funny film.", "A waste of time.")] == [
        "positive", "negative"]  # fmt: skip
    assert model.classify(TEXTS[0], TEXTS[1])[0]["label"] == "entailment"
    alike, unlike = (model.score(TEXTS[0], other)[0]["score"] for other in TEXTS[1:])
    assert alike > unlike + 1
    topics = model.classify("The striker scored twice in the final.", labels=["politics", "sport", "cooking"])
    assert topics[0]["label"] == "sport"
    vectors = model.embed(TEXTS)
    assert vectors[0] @ vectors[1] > vectors[0] @ vectors[2]


def test_transformers_fills_the_same(model, tmp_path):
    tokenizer, other = open_both(transformers.AutoModelForMaskedLM, export(tmp_path / "plain"))
    row = tokenizer(MASKED, return_tensors="pt")
    with torch.no_grad():
        chances = other(**row).logits[0, row["input_ids"][0].tolist().index(tokenizer.mask_token_id)].softmax(-1)
    for one in model.fill(MASKED, top_k=20):
        assert one["score"] == pytest.approx(float(chances[one["token"]]), abs=1e-5)


def test_transformers_judges_the_same(model, tmp_path):
    tokenizer, other = open_both(transformers.AutoModelForSequenceClassification,
                                 export(tmp_path / "plain", head="nli"))  # fmt: skip
    with torch.no_grad():
        chances = other(**tokenizer(TEXTS[0], TEXTS[1], return_tensors="pt")).logits[0].softmax(-1)
    for one in model.classify(TEXTS[0], TEXTS[1]):
        assert one["score"] == pytest.approx(float(chances[other.config.label2id[one["label"]]]), abs=1e-5)


def test_sentence_transformers_gives_the_same_vectors(model, tmp_path):
    from sentence_transformers import SentenceTransformer

    vectors = SentenceTransformer(str(export(tmp_path / "plain", head="embed")), device="cpu").encode(TEXTS)
    assert np.allclose(vectors, model.embed(TEXTS), atol=1e-5)
