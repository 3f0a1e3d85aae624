"""Plain folders: `transformers` and sentence-transformers open them and compute what bertsmith computes."""

import json
import logging

import numpy as np
import pytest
import torch
import transformers
from export.made import ADAPTERS, DEFAULTS, make_all
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer import modules
from whole.tiny import make_encoder

import bertsmith
from bertsmith.errors import BertsmithError

TEXTS = ["the film was good", "ann lives in oslo and works at the river", "it was not very fine"]
PAIRS = [("the film was good", "it was bad"), ("who works", "ann lives in oslo and works at the river")]
SHAPES = ("bert", "modernbert")
# The name of the head -> the class that opens it.
CLASSES = {
    "mood": "SequenceClassification", "nli": "SequenceClassification", "alike": "SequenceClassification",
    "names": "TokenClassification", "tag": "TokenClassification", "answers": "QuestionAnswering",
    "answer": "QuestionAnswering", "score": "SequenceClassification", "zero-shot": "SequenceClassification",
}  # fmt: skip


@pytest.fixture(scope="module", params=SHAPES)
def shipped(request, tmp_path_factory, one_thread):
    """The compact form of a base with six adapters, and the model it is loaded as."""
    place = tmp_path_factory.mktemp(request.param)
    base, adapters = make_all(place, request.param)
    made = bertsmith.export_model(base, place / "shipped", to="compact", adapters=adapters, defaults=DEFAULTS)
    return bertsmith.load(made.folder)


def run_theirs(model, folder, first, second=None):
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    with torch.no_grad():
        return model(**tokenizer(first, second, return_tensors="pt"))


def run_ours(model, head, first, second=None):
    from bertsmith.data.batch import Batch

    encoded = model.tokenizer.encode(first, second)
    batch = Batch.of([encoded.ids], [encoded.segments])
    with torch.no_grad():
        return model.checkpoint.network.score(model.checkpoint.network(batch), batch, head)


@pytest.mark.parametrize("name", CLASSES)
def test_an_adapter_becomes_part_of_the_weights(shipped, name, tmp_path):
    made = bertsmith.export_model(shipped.folder, tmp_path / "plain", head=name)
    assert made.opens.endswith("For" + CLASSES[name])
    model = getattr(transformers, f"AutoModelFor{CLASSES[name]}").from_pretrained(made.folder).eval()
    own = {"tag": "names", "answer": "answers", "score": "alike", "zero-shot": "nli"}.get(name, name)
    home = shipped.use(own)
    (head,) = home.checkpoint.heads
    for first, second in ((TEXTS[1], None), PAIRS[1]):
        theirs = run_theirs(model, made.folder, first, second)
        ours = run_ours(home, head, first, second)
        if head == "span":
            assert torch.allclose(ours[:, 0], theirs.start_logits[0], atol=1e-4)
            assert torch.allclose(ours[:, 1], theirs.end_logits[0], atol=1e-4)
        else:
            assert torch.allclose(ours, theirs.logits[0] if head == "tag" else theirs.logits, atol=1e-4)
    task, labels, _ = ADAPTERS[own]
    if task != "span":
        assert [model.config.id2label[i] for i in range(len(labels))] == labels
    again = bertsmith.load(made.folder)  # and we read it as what it was
    assert again.trained == home.trained and not again.adapters


def test_their_pipeline_judges_by_the_same_function(shipped, tmp_path):
    for name, given in (("mood", TEXTS[0]), ("nli", {"text": PAIRS[0][0], "text_pair": PAIRS[0][1]})):
        folder = bertsmith.export_model(shipped.folder, tmp_path / name, head=name).folder
        pipeline = transformers.pipeline("text-classification", model=str(folder), top_k=None)
        ours = shipped.use(name).classify(*(PAIRS[0] if name == "nli" else TEXTS[:1]))
        theirs = pipeline([given])[0] if name == "nli" else pipeline(given)[0]
        theirs = [theirs] if isinstance(theirs, dict) else theirs
        one, other = ({a["label"]: a["score"] for a in answers} for answers in (ours, theirs))
        assert one == pytest.approx(other, abs=1e-5)
    folder = bertsmith.export_model(shipped.folder, tmp_path / "alike", head="alike").folder
    assert json.loads((folder / "config.json").read_text())["problem_type"] == "regression"


def test_the_base_with_its_own_heads(shipped, tmp_path):
    made = bertsmith.export_model(shipped.folder, tmp_path / "plain")
    assert made.left_out == list(ADAPTERS) and not (made.folder / "adapters").exists()
    assert "default_for" not in json.dumps([p.read_text() for p in made.folder.glob("bertsmith.json")])
    masked = f"the {shipped.tokenizer.mask_token} was good"
    pipeline = transformers.pipeline("fill-mask", model=str(made.folder))
    for ours, theirs in zip(shipped.fill(masked), pipeline(masked), strict=True):
        assert ours["token"] == theirs["token"] and ours["score"] == pytest.approx(theirs["score"], abs=1e-5)
    only = bertsmith.export_model(shipped.folder, tmp_path / "mask", head="fill")
    assert only.opens.endswith("ForMaskedLM")
    for ours, again in zip(shipped.fill(masked), bertsmith.load(only.folder).fill(masked), strict=True):
        assert ours["token"] == again["token"] and ours["score"] == pytest.approx(again["score"], abs=1e-6)


def test_the_next_sentence_head(shipped, tmp_path):
    if "follows" not in shipped.checkpoint.heads:
        with pytest.raises(BertsmithError, match="no head to write as a head for follows"):
            bertsmith.export_model(shipped.folder, tmp_path / "x", head="follows")
        return
    made = bertsmith.export_model(shipped.folder, tmp_path / "plain", head="follows")
    model = transformers.BertForNextSentencePrediction.from_pretrained(made.folder).eval()
    theirs = run_theirs(model, made.folder, *PAIRS[0]).logits.softmax(-1)[0]
    ours = shipped.follows(*PAIRS[0])
    assert sorted(theirs.tolist(), reverse=True) == pytest.approx([a["score"] for a in ours], abs=1e-5)


@pytest.mark.parametrize("store", ["bf16", "fp16"])
def test_half_precision(shipped, store, tmp_path):
    made = bertsmith.export_model(shipped.folder, tmp_path / store, head="mood", store=store)
    whole = bertsmith.export_model(shipped.folder, tmp_path / "whole", head="mood")
    assert made.size < whole.size
    model = transformers.AutoModelForSequenceClassification.from_pretrained(made.folder)
    assert model.dtype == {"bf16": torch.bfloat16, "fp16": torch.float16}[store]
    ours = bertsmith.load(made.folder).classify(TEXTS[0])
    assert ours[0]["score"] == pytest.approx(shipped.classify(TEXTS[0])[0]["score"], abs=0.05)


@pytest.mark.parametrize("to", ["compact", "transformers"])
def test_a_sentence_encoder_stays_one(to, tmp_path, one_thread):
    make_encoder(tmp_path / "encoder")
    parts = [modules.Transformer(str(tmp_path / "encoder")), modules.Pooling(32, "mean"), modules.Normalize()]
    theirs = SentenceTransformer(modules=parts, device="cpu")
    theirs.save(str(tmp_path / "sentence"))
    made = bertsmith.export_model(tmp_path / "sentence", tmp_path / "out", to=to)
    if to == "compact":
        near = np.asarray(bertsmith.load(made.folder).embed(TEXTS))
        assert (np.sum(near * theirs.encode(TEXTS), axis=1) > 0.999).all()
        made = bertsmith.export_model(made.folder, tmp_path / "plain", head="embed")
    else:
        near = theirs.encode(TEXTS)
    opened = SentenceTransformer(str(made.folder), device="cpu")
    assert np.allclose(opened.encode(TEXTS), near, atol=1e-5)


def test_mistakes(shipped, tmp_path, caplog):
    caplog.set_level(logging.ERROR)
    for told, settings in (
        (r"head 'sing' is not known; give the name of an adapter or of a job: mood, nli", {"head": "sing"}),
        (r"store='int8' is not a choice for a folder that transformers opens", {"store": "int8"}),
        (r"several adapters .* can write as a head for classify: mood, nli, order", {"head": "classify"}),
    ):
        with pytest.raises(BertsmithError, match=told):
            bertsmith.export_model(shipped.folder, tmp_path / "x", **settings)
        assert not (tmp_path / "x").exists()
