"""MPNet and DeBERTa down the whole road, beside the reference where it walks along."""

import json

import pytest
import torch
import transformers
from pretraining_made import ROUND, SMALL, make_corpus, pretrain
from starlette.testclient import TestClient
from whole.relative_made import MAKERS
from whole.tiny import reviews

import bertsmith
from bertsmith.pretraining import make_study
from bertsmith.serving.http.app import create_app
from bertsmith.serving.local import Local
from bertsmith.serving.residents import Residents
from bertsmith.serving.settings import Settings
from bertsmith.training.devices import Ranks
from bertsmith.training.pretraining_start import prepare
from bertsmith.training.recipes import find_recipe

pytestmark = pytest.mark.usefixtures("one_thread")
PRESETS = {"mpnet": "mpnet-base", "deberta-v2": "deberta-v3-xsmall"}
LEARN = {"epochs": 12, "batch": 8, "rate": 2e-3, "device": "cpu", "threads": 1}


@pytest.fixture(scope="module", params=MAKERS)
def family(request):
    return request.param


@pytest.fixture(scope="module")
def encoder(family, tmp_path_factory):
    return MAKERS[family](tmp_path_factory.mktemp(family) / "encoder", "ForMaskedLM")


@pytest.fixture(scope="module")
def mood(encoder, tmp_path_factory):
    run = bertsmith.finetune("classify", reviews(), reviews("a"), out=tmp_path_factory.mktemp("mood") / "model",
                             model=encoder, **LEARN)  # fmt: skip
    return run.folder


def test_words_are_filled_as_the_reference_fills_them(encoder):
    ours, tokenizer = bertsmith.load(encoder), transformers.AutoTokenizer.from_pretrained(encoder)
    theirs = transformers.AutoModelForMaskedLM.from_pretrained(encoder).eval()
    mask = ours.tokenizer.mask_token
    for text in (f"the film was {mask}", f"{mask} lives in oslo"):
        given = tokenizer(text, return_tensors="pt")
        with torch.no_grad():
            scores = theirs(**given).logits[given.input_ids == tokenizer.mask_token_id].softmax(-1)[0]
        found = ours.fill(text, top_k=3).answers
        assert [one["token"] for one in found] == scores.topk(3).indices.tolist()
        assert [one["score"] for one in found] == pytest.approx(scores.topk(3).values.tolist(), abs=1e-5)


def test_what_was_learnt_is_told_served_and_opened_elsewhere(mood, tmp_path):
    rows = reviews("this")
    assert bertsmith.evaluate(mood, rows)["metrics"]["accuracy"]["value"] == 1
    model = bertsmith.load(mood)
    texts = [row["text"] for row in rows[:6]]
    ours = [one.answers[0] for one in model.classify(texts)]
    given = bertsmith.export_model(mood, tmp_path / "theirs", to="transformers").folder
    pipeline = transformers.pipeline("text-classification", model=str(given), device="cpu")
    for text, one in zip(texts, ours, strict=True):
        theirs = pipeline(text)[0]
        assert theirs["label"] == one["label"] and theirs["score"] == pytest.approx(one["score"], abs=1e-5)
    backend = Local(Residents({"mood": model}))
    said = TestClient(create_app(backend, Settings())).post("/models/mood", json={"inputs": texts[0]}).json()
    backend.close()
    assert max(said[0], key=lambda one: one["score"])["label"] == ours[0]["label"]


def test_graphs_and_small_forms_answer_alike(mood, tmp_path):
    texts = [row["text"] for row in reviews("this")]
    model = bertsmith.load(mood)
    for to, close in (("onnx", 1e-4), ("compact", 0.05)):
        folder = bertsmith.export_model(mood, tmp_path / to, to=to).folder
        found = bertsmith.load(folder).classify(texts)
        for one, other in zip(found, model.classify(texts), strict=True):
            assert one.answers[0]["label"] == other.answers[0]["label"]
            assert one.answers[0]["score"] == pytest.approx(other.answers[0]["score"], abs=close)


def test_adapters_learn(encoder, tmp_path):
    run = bertsmith.finetune("classify", reviews(), reviews("a"), out=tmp_path / "model", model=encoder, lora=4,
                             **{**LEARN, "rate": 1e-2, "epochs": 20})  # fmt: skip
    assert bertsmith.evaluate(run.folder, reviews("this"))["metrics"]["accuracy"]["value"] > 0.9


def test_texts_are_found(encoder, tmp_path):
    (tmp_path / "texts").mkdir()
    lines = ["The river runs through Oslo.", "The film was good.", "The party won the vote."]
    for number, line in enumerate(lines):
        (tmp_path / f"texts/{number}.txt").write_text(line + "\n")
    index = bertsmith.index(tmp_path / "texts", encoder, place=tmp_path / "index")
    assert index.search("the party won the vote", how="dense").answers[0]["text"] == lines[2]


def test_one_teaches_another(family, tmp_path):
    """The student's passes are then not compiled either, as the teacher's cannot be."""
    make_corpus(tmp_path)
    bertsmith.train_tokenizer(tmp_path / "texts.txt", tmp_path / "pieces", kind="bpe", size=400)
    bertsmith.build_corpus(tmp_path / "texts.txt", tmp_path / "pieces", tmp_path / "rows", filters=False)
    pretrain(tmp_path / "rows", tmp_path / "teacher", "roberta", preset=PRESETS[family], max_steps=2)
    taught = {"asks": "distilled,relations", "teacher": str(tmp_path / "teacher"), "preset": PRESETS[family]}
    pretrain(tmp_path / "rows", tmp_path / "student", "distilbert", max_steps=2, **taught)
    for teacher, can_twin in ((taught["teacher"], False), (None, True)):
        more = taught if teacher else {"preset": PRESETS[family], "asks": "masked"}
        start = prepare(tmp_path / "rows", find_recipe("distilbert", {**SMALL, **more}), Ranks())
        assert make_study(start, start.recipe.training, 2).can_twin == can_twin


def test_a_fresh_one_is_pretrained_and_opened_elsewhere(family, tmp_path):
    make_corpus(tmp_path)  # its texts
    bertsmith.train_tokenizer(tmp_path / "texts.txt", tmp_path / "pieces", kind="bpe", size=400)
    bertsmith.build_corpus(tmp_path / "texts.txt", tmp_path / "pieces", tmp_path / "rows", filters=False)
    pretrain(tmp_path / "rows", tmp_path / "made", "roberta", preset=PRESETS[family], max_steps=60)
    log = [json.loads(line) for line in (tmp_path / "made/log.jsonl").read_text().splitlines()]
    losses = [record["loss"] for record in log if "loss" in record]
    assert losses[-1] < losses[0] - 0.5
    theirs, said = transformers.AutoModelForMaskedLM.from_pretrained(tmp_path / "made", output_loading_info=True)
    assert not said["missing_keys"] and not said["unexpected_keys"]
    model = bertsmith.load(tmp_path / "made")
    text = f"{ROUND[0]} {ROUND[1]} {model.tokenizer.mask_token} {ROUND[3]}."
    row = model.tokenizer.encode(text)
    with torch.no_grad():
        scores = theirs.eval()(input_ids=torch.tensor([row.ids])).logits[0, row.ids.index(model.tokenizer.mask_id)]
    assert model.fill(text, top_k=1).answers[0]["token"] == scores.argmax().item()
