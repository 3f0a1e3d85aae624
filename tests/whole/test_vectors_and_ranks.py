"""Vectors and rankings from a file to a folder that others open: fine-tuning, resuming, evaluating, searching."""

import json

import numpy as np
import pytest
import torch
import transformers
from safetensors.torch import load_file
from sentence_transformers import CrossEncoder, SentenceTransformer
from sentence_transformers.sentence_transformer.evaluation import (
    EmbeddingSimilarityEvaluator,
    InformationRetrievalEvaluator,
)
from typer.testing import CliRunner
from whole.test_resume import Stop
from whole.tiny import DISLIKED, LIKED, THINGS, make_encoder

import bertsmith
from bertsmith.cli.app import app
from bertsmith.errors import BertsmithError, Stopped

pytestmark = pytest.mark.usefixtures("one_thread")
LEARN = {"epochs": 20, "batch": 16, "rate": 2e-3, "dropout": 0.0, "device": "cpu", "threads": 1}
TEXTS = [f"the {thing} was {word}" for thing in THINGS for word in (*LIKED, *DISLIKED)]


def asked(start="what", told="the"):
    return [{"query": f"{start} {thing} is {word}", "positive": f"{told} {thing} was {word}"}
            for thing in THINGS for word in (*LIKED, *DISLIKED)]  # fmt: skip


def likeness():
    """Pairs with 5 where both words are the same, 3 where they are of one kind, else 0."""
    found = []
    for thing in THINGS:
        for i, one in enumerate(words := (*LIKED, *DISLIKED)):
            for j, other in enumerate(words):
                number = 5.0 if i == j else 3.0 * (i // 4 == j // 4)
                found.append({"sentence1": f"the {thing} was {one}", "sentence2": f"a {thing} is {other}",
                              "score": number})  # fmt: skip
    return found


@pytest.fixture(scope="module")
def embedded(tmp_path_factory, encoder):
    place = tmp_path_factory.mktemp("embedded")
    return bertsmith.finetune("embed", asked(), asked("where", "a"), out=place / "model", model=encoder,
                              dims=[32, 8], **{**LEARN, "epochs": 60}, evaluate_every=90)  # fmt: skip


@pytest.fixture(scope="module")
def ranked(tmp_path_factory, encoder):
    place = tmp_path_factory.mktemp("ranked")
    return bertsmith.finetune("rerank", asked(), asked("where", "a"), out=place / "model", model=encoder,
                              **{**LEARN, "epochs": 60}, evaluate_every=90)  # fmt: skip


def test_texts_find_their_pairs(embedded):
    found = embedded.metrics["dev"]
    assert list(found) == ["mrr@10", "ndcg@10", "accuracy@1", "recall@10"] and found["mrr@10"]["value"] > 0.7
    assert bertsmith.evaluate(embedded.folder, asked("where", "a"), device="cpu")["metrics"] == found


def test_sentence_transformers_opens_the_folder_and_finds_the_same(embedded):
    theirs = SentenceTransformer(str(embedded.folder), device="cpu")
    rows = asked("where", "a")
    texts = [row["query"] for row in rows]
    assert np.allclose(theirs.encode(texts), embedded.model.embed(texts), atol=1e-5)
    for size in (32, 8):
        cut = theirs.encode(texts, truncate_dim=size, normalize_embeddings=True)
        assert np.allclose(cut, embedded.model.embed(texts, dims=size), atol=1e-5)
    numbered = {str(i): row for i, row in enumerate(rows)}
    judge = InformationRetrievalEvaluator(
        {i: row["query"] for i, row in numbered.items()}, {i: row["positive"] for i, row in numbered.items()},
        {i: {i} for i in numbered}, mrr_at_k=[10], ndcg_at_k=[10], accuracy_at_k=[1], show_progress_bar=False,
        write_csv=False, precision_recall_at_k=[10], map_at_k=[10],
    )  # fmt: skip
    wanted = judge(theirs)
    ours = embedded.metrics["dev"]
    for name in ("mrr@10", "ndcg@10", "accuracy@1", "recall@10"):
        assert ours[name]["value"] == pytest.approx(wanted[f"cosine_{name}"], abs=0.011), name  # ties to the last digit


def test_cut_vectors_are_scored_on_request(embedded):
    rows = asked("where", "a")
    whole, cut = (bertsmith.evaluate(embedded.folder, rows, device="cpu", **more)["metrics"]["mrr@10"]["value"]
                  for more in ({}, {"dims": 8}))  # fmt: skip
    assert cut > 0.4 and whole == embedded.metrics["dev"]["mrr@10"]["value"]
    with pytest.raises(BertsmithError, match="dims is 99, but the vectors of this model have 32 numbers"):
        bertsmith.evaluate(embedded.folder, rows, device="cpu", dims=99)


def test_numbers_are_followed(tmp_path, encoder):
    said = []
    run = bertsmith.finetune("embed", likeness(), likeness(), out=tmp_path / "sts", model=encoder, check=False,
                             say=said.append, **{**LEARN, "epochs": 4})  # fmt: skip
    found = run.metrics["dev"]
    assert list(found) == ["spearman", "pearson"] and found["spearman"]["value"] > 0.6
    assert any("from 0 (not at all) to 5 (perfectly)" in sentence for sentence in said)
    rows = likeness()
    judge = EmbeddingSimilarityEvaluator([r["sentence1"] for r in rows], [r["sentence2"] for r in rows],
                                         [r["score"] for r in rows], write_csv=False)  # fmt: skip
    wanted = judge(SentenceTransformer(str(run.folder), device="cpu"))
    assert found["spearman"]["value"] == pytest.approx(wanted["spearman_cosine"], abs=2e-3)
    assert found["pearson"]["value"] == pytest.approx(wanted["pearson_cosine"], abs=1e-4)


def test_a_sentence_encoder_keeps_its_pooling_prompts_and_length(tmp_path, encoder):
    from bertsmith.layers.pooling import Pooling
    from bertsmith.models.sentence import Sentence, read_sentence, write_sentence

    base = tmp_path / "base"
    bertsmith.load(encoder, device="cpu").save(base)
    write_sentence(Sentence(base, Pooling(("cls", "max")), 20, {"query": "who ", "document": "it "}, "query"), base)
    run = bertsmith.finetune("embed", asked(), asked("where"), out=tmp_path / "new", model=base, check=False,
                             max_steps=2, **{**LEARN, "epochs": None})  # fmt: skip
    found = read_sentence(run.folder)
    assert (found.pooling.modes, found.pooling.normalize, found.limit) == (("cls", "max"), False, 20)
    assert found.prompts == {"query": "who ", "document": "it "} and found.default_prompt == "query"
    theirs = SentenceTransformer(str(run.folder), device="cpu")
    assert np.allclose(theirs.encode(TEXTS[:9]), run.model.embed(TEXTS[:9]), atol=1e-4)


@pytest.mark.parametrize("task", ["embed", "rerank"])
def test_a_run_that_was_stopped_ends_as_one_that_was_not(task, tmp_path, encoder):
    more = {**LEARN, "epochs": 2, "dropout": 0.1, "model": encoder, "check": False}
    whole = bertsmith.finetune(task, asked(), asked("where"), out=tmp_path / "whole", **more)
    with pytest.raises(Stopped):
        bertsmith.finetune(task, asked(), asked("where"), out=tmp_path / "part", watchers=[Stop(2, KeyboardInterrupt)],
                           **more)  # fmt: skip
    again = bertsmith.finetune(task, asked(), asked("where"), out=tmp_path / "part", **more)
    weights = [(run.folder / "model.safetensors").read_bytes() for run in (whole, again)]
    assert weights[0] == weights[1] and whole.metrics == again.metrics


def test_queries_find_their_texts(ranked):
    found = ranked.metrics["dev"]
    assert list(found) == ["mrr@10", "ndcg@10", "map", "recall@1"] and found["mrr@10"]["value"] > 0.6
    assert bertsmith.evaluate(ranked.folder, asked("where", "a"), device="cpu")["metrics"] == found


def test_others_open_the_reranker_and_say_the_same(ranked):
    reference = transformers.AutoModelForSequenceClassification.from_pretrained(ranked.folder).eval()
    assert reference.config.num_labels == 1
    query, result = "what film is good", ranked.model.rerank("what film is good", TEXTS)
    theirs = CrossEncoder(str(ranked.folder), device="cpu").predict([(query, answer["text"]) for answer in result])
    assert [answer["score"] for answer in result] == pytest.approx(theirs.tolist(), abs=1e-5)
    tokenizer = transformers.AutoTokenizer.from_pretrained(ranked.folder)
    with torch.no_grad():
        logits = reference(**tokenizer([query], [result[0]["text"]], return_tensors="pt")).logits
    assert result[0]["score"] == pytest.approx(logits.sigmoid().item(), abs=1e-5)


def test_a_cross_encoder_of_others_goes_on_training(tmp_path):
    base = make_encoder(tmp_path / "base", "ForSequenceClassification", num_labels=1)
    said = []
    run = bertsmith.finetune("rerank", asked(), asked("where"), out=tmp_path / "new", model=base, check=False,
                             say=said.append, max_steps=1, **{**LEARN, "epochs": None, "rate": 1e-9})  # fmt: skip
    assert "The model's own head for classify goes on training." in said
    old, new = (load_file(folder / "model.safetensors")["classifier.weight"] for folder in (base, run.folder))
    assert torch.allclose(old, new, atol=1e-6)


def test_search_takes_both_models(embedded, ranked, tmp_path):
    (tmp_path / "texts.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in TEXTS))
    made = bertsmith.index(tmp_path, embedded.folder)
    plain = made.search("what film is good", 8, how="dense")
    judged = made.search("what film is good", 8, how="dense", rerank=ranked.folder, rerank_depth=8)
    wanted = ranked.model.rerank("what film is good", [answer["text"] for answer in plain])
    assert [answer["text"] for answer in judged] == [answer["text"] for answer in wanted]
    assert [a["score"] for a in judged] == pytest.approx([a["score"] for a in wanted], abs=1e-5)


def test_cards_and_reports(embedded, ranked):
    for run, pipeline, use in ((embedded, "sentence-similarity", "model.similar("),
                               (ranked, "text-ranking", "model.rerank(")):  # fmt: skip
        card = (run.folder / "README.md").read_text()
        assert f"pipeline_tag: {pipeline}" in card and use in card and "A task of its own" not in card
        assert (run.folder / "report.html").exists()


def run_cli(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


def test_verbs_from_a_file_to_an_answer(tmp_path, encoder):
    for side, start in (("train", "what"), ("dev", "where")):
        (tmp_path / f"{side}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in asked(start)))
    shared = ["--train", tmp_path / "train.jsonl", "--dev", tmp_path / "dev.jsonl", "--model", encoder,
              "--max-steps", 2, "--device", "cpu", "--threads", 1]  # fmt: skip
    found = run_cli("finetune", "--task", "embed", "--dims", "32,8", "--out", tmp_path / "e", *shared)
    assert found.exit_code == 0 and json.loads(found.stdout)["task"] == "embed"
    assert 'bertsmith similar "A text." "Another text." "A third." --model' in found.stderr
    found = run_cli("finetune", "--task", "rerank", "--negatives", 2, "--out", tmp_path / "r", *shared)
    assert found.exit_code == 0 and 'bertsmith rerank "A query" --texts FILE --model' in found.stderr
    found = run_cli("evaluate", "--model", tmp_path / "r", "--data", tmp_path / "dev.jsonl", "--device", "cpu")
    assert found.exit_code == 0 and json.loads(found.stdout)["task"] == "rerank"
    found = run_cli("check", tmp_path / "train.jsonl", "--task", "rerank", "--model", encoder)
    assert found.exit_code == 0


@pytest.mark.parametrize(
    ("task", "more", "why"),
    [
        ("embed", {"negatives": 3}, "negatives is for rerank and has no use in embed"),
        ("rerank", {"dims": "8"}, "dims is for embed and has no use in rerank"),
        ("rerank", {"negatives": 0}, "negatives is 0; it must be at least 1"),
        ("embed", {"dims": "64"}, "dims names 64, but the vectors of this model have 32 numbers"),
        ("embed", {"metric": "map"}, "metric='map' is not a choice for embed; use one of mrr@10, ndcg@10"),
        ("embed", {"focal": 1.0}, "focal has no meaning for the task embed"),
    ],
)
def test_wrong_settings(task, more, why, tmp_path, encoder):
    with pytest.raises(BertsmithError) as error:
        bertsmith.finetune(task, asked(), asked("where"), out=tmp_path / "x", model=encoder, **{**LEARN, **more})
    assert why in str(error.value) and not (tmp_path / "x").exists()


def test_memory_that_does_not_suffice_names_the_batch(tmp_path, encoder, monkeypatch):
    from bertsmith.training.passes import Passes

    def fail(*_):
        raise torch.OutOfMemoryError

    monkeypatch.setattr(Passes, "run", fail)
    with pytest.raises(BertsmithError, match=r"for a whole step, whose 16 examples .* use a smaller batch"):
        bertsmith.finetune("embed", asked(), asked("where"), out=tmp_path / "x", model=encoder, **LEARN)


def test_pairs_are_learnt_and_numbers_choose_and_measure(tmp_path, encoder):
    """As sentence encoders are mostly trained: pairs to learn from, graded pairs (STS) to choose and to test by."""
    graded = [{"query": row["sentence1"], "positive": row["sentence2"], "label": row["score"]} for row in likeness()]
    few = {**LEARN, "epochs": 1}
    run = bertsmith.finetune("embed", asked(), graded, test=asked("where", "a"), out=tmp_path / "by-numbers",
                             model=encoder, check=False, **few)  # fmt: skip
    assert list(run.metrics["dev"]) == ["spearman", "pearson"] and "mrr@10" in run.metrics["test"]
    judge = EmbeddingSimilarityEvaluator([r["query"] for r in graded], [r["positive"] for r in graded],
                                         [r["label"] for r in graded], write_csv=False)  # fmt: skip
    wanted = judge(SentenceTransformer(str(run.folder), device="cpu"))
    assert run.metrics["dev"]["spearman"]["value"] == pytest.approx(wanted["spearman_cosine"], abs=2e-3)
    assert json.loads((run.folder / "bertsmith.json").read_text())["run"]["metric"] == "spearman"
    other = bertsmith.finetune("embed", asked(), asked("where", "a"), test=graded, out=tmp_path / "by-pairs",
                               model=encoder, check=False, metric="accuracy@1", **few)  # fmt: skip
    assert "accuracy@1" in other.metrics["dev"] and list(other.metrics["test"]) == ["spearman", "pearson"]
    said = []
    bertsmith.finetune("embed", asked(), graded, out=tmp_path / "x", model=encoder, check=False, dry_run=True,
                       say=said.append, metric="pearson", **few)  # fmt: skip
    assert any(line.endswith("chosen by: pearson") for line in said)


def test_layers_wake_where_no_head_learns(tmp_path, encoder):
    """Vectors have no head: the top layer learns from the start, those below it later."""
    run = bertsmith.finetune("embed", asked(), asked("where", "a"), out=tmp_path / "m", model=encoder, unfreeze=5.0,
                             **{**LEARN, "epochs": 2})  # fmt: skip
    before, after = load_file(encoder / "model.safetensors"), load_file(run.folder / "model.safetensors")
    moved = {name for name, tensor in after.items() if not torch.equal(tensor, before[name])}
    assert moved and all(name.startswith("encoder.layer.1.") for name in moved)


ONE_TEXT = [{"query": "the film", "positive": text} for text in TEXTS]


@pytest.mark.parametrize(
    ("train", "more", "why"),
    [
        (asked(), {"batch": 1}, "batch is 1, but embed compares the examples of a step with each other"),
        (likeness(), {"batch": 1}, "batch is 1, but embed compares the examples of a step with each other"),
        (ONE_TEXT, {}, "all 48 pairs of train have the same first text, so nothing stands against any of them"),
        ([{"query": row["positive"], "positive": row["query"]} for row in ONE_TEXT], {}, "have the same second text"),
    ],
)
def test_what_would_teach_nothing_is_refused(train, more, why, tmp_path, encoder):
    """The loss of such steps is 0, whatever the vectors are."""
    with pytest.raises(BertsmithError) as error:
        bertsmith.finetune("embed", train, asked("where"), out=tmp_path / "x", model=encoder, check=False,
                           **{**LEARN, "epochs": 1, **more})  # fmt: skip
    assert why in str(error.value) and not (tmp_path / "x").exists()


def test_a_negative_of_its_own_is_enough_for_a_step(tmp_path, encoder):
    rows = [{**row, "negative": other["positive"]} for row, other in zip(asked(), asked()[::-1], strict=True)]
    run = bertsmith.finetune("embed", rows, asked("where"), out=tmp_path / "m", model=encoder, check=False,
                             **{**LEARN, "max_steps": 3, "batch": 1})  # fmt: skip
    logged = [json.loads(line) for line in (run.folder / "log.jsonl").read_text().splitlines()]
    assert all(record["loss"] > 0 for record in logged if "loss" in record)
