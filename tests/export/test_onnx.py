"""`export --to onnx`: ONNX Runtime gives what `transformers` gives, for every family and head; int8 stays near it."""

import json
import sys

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
import transformers
from cli.running import run_here
from export.made import make_all, make_base
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from oracle import CASES, distance, load_saved, make_reference, make_rows, pad, run_reference, unpad

import bertsmith
from bertsmith.errors import BertsmithError
from bertsmith.export import onnx_folder
from bertsmith.export.graph import round_weights
from bertsmith.export.onnx_model import build_graph
from bertsmith.layers.pooling import POOLINGS, DenseShape, Pooling
from bertsmith.model import Model
from bertsmith.models.graph import GraphFile, GraphNetwork
from bertsmith.models.sentence import Sentence

# Of the largest score: models of 48 random numbers a token are as hard on int8 as any.
BOUNDS = {"fp32": 2e-5, "int8": 0.4}
TEXTS = ["the film was good", "ann lives in oslo and works at the river", "it was not a fine film"]


@pytest.fixture(scope="module")
def made(tmp_path_factory, one_thread):
    return make_all(tmp_path_factory.mktemp("made"), "bert")


def start(graph):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    told = graph.SerializeToString() if hasattr(graph, "SerializeToString") else str(graph)
    return onnxruntime.InferenceSession(told, options, providers=["CPUExecutionProvider"])


def run(session, **given):
    names = [one.name for one in session.get_inputs()]
    found = session.run(None, {name: np.asarray(given[name]) for name in names})
    return {one.name: torch.tensor(x) for one, x in zip(session.get_outputs(), found, strict=True)}


def as_model(checkpoint, folder, pooling=None):
    return Model(folder, checkpoint, Sentence(folder, pooling or Pooling()), torch.device("cpu"), 1024)


def lay(ids, segments, padding):
    ones = [torch.ones_like(row) for row in ids]
    return {"input_ids": pad(ids, padding, "right"), "attention_mask": pad(ones, 0, "right"),
            "token_type_ids": pad(segments, 0, "right")}  # fmt: skip


@pytest.mark.parametrize("store", BOUNDS)
@pytest.mark.parametrize(("family", "head"), [case for case in CASES if case[1] != "pretraining"])
def test_every_family_and_head(family, head, store, tmp_path):
    reference = make_reference(family, head)
    graph = build_graph(as_model(load_saved(reference, tmp_path), tmp_path), store)
    onnx.checker.check_model(graph, full_check=True)
    ids, segments = make_rows(reference)
    given = lay(ids, segments, reference.config.pad_token_id)
    if head == "choose":
        given = {name: x[:, None] for name, x in given.items()}
        known = given if getattr(reference.config, "type_vocab_size", 0) else {**given, "token_type_ids": None}
        if reference.config.model_type in ("distilbert", "modernbert"):
            known.pop("token_type_ids")
        with torch.no_grad():
            theirs = reference(**known)
    else:
        theirs = run_reference(reference, ids, segments)
    found = run(start(graph), **given)
    expected = {"span": ["start_logits", "end_logits"], "": ["last_hidden_state", "sentence_embedding"]}
    assert list(found) == expected.get(head, ["logits"])
    for name, ours in found.items():
        if name == "sentence_embedding":
            continue
        other = getattr(theirs, name)
        assert ours.shape == other.shape
        if head in ("mask", "tag", "span", ""):
            ours, other = unpad(ours, ids), unpad(other, ids)
        assert distance(ours, other) < BOUNDS[store]


@pytest.mark.parametrize("store", BOUNDS)
@pytest.mark.parametrize("family", [family for family, head in CASES if head == "mask"])
def test_words_are_scored_where_they_are_wanted(family, store, tmp_path):
    """An input that nobody needs to give: others are told of those that they know."""
    reference = make_reference(family, "mask")
    session = start(build_graph(as_model(load_saved(reference, tmp_path), tmp_path), store))
    assert "wanted" not in [one.name for one in session.get_inputs()]
    given = lay(*make_rows(reference), reference.config.pad_token_id)
    every = run(session, **given)["logits"]
    known = {name: np.asarray(x) for name, x in given.items() if name in [one.name for one in session.get_inputs()]}
    for share in (0.1, 0.5):
        wanted = np.random.default_rng(0).random(known["input_ids"].shape) < share
        (found,) = session.run(["logits"], {**known, "wanted": wanted.astype(np.int64)})
        assert found.shape == (1, wanted.sum(), every.shape[-1])
        assert distance(torch.tensor(found[0]), every[torch.tensor(wanted)]) < 1e-5


def test_heads_of_pretraining_are_written_one_by_one(made, tmp_path):
    base, _ = made
    reference = transformers.BertForPreTraining.from_pretrained(base)
    for head, output in (("fill", "prediction_logits"), ("follows", "seq_relationship_logits")):
        exported = bertsmith.export_model(base, tmp_path / head, to="onnx", head=head)
        given = transformers.AutoTokenizer.from_pretrained(tmp_path / head)(TEXTS, padding=True, return_tensors="pt")
        with torch.no_grad():
            theirs = getattr(reference(**given), output)
        ours = run(start(tmp_path / head / "onnx" / "model.onnx"), **given)["logits"]
        at = given["attention_mask"].bool() if head == "fill" else slice(None)
        assert distance(ours[at], theirs[at]) < 1e-5
        assert exported.largest_error < 1e-5 and exported.opens == (
            "BertForMaskedLM" if head == "fill" else "BertForNextSentencePrediction"
        )


@pytest.mark.parametrize("modes", [*((mode,) for mode in POOLINGS), ("cls", "mean")])
@pytest.mark.parametrize("store", BOUNDS)
def test_vectors(modes, store, tmp_path):
    checkpoint = load_saved(make_reference("bert", ""), tmp_path)
    torch.manual_seed(0)
    pooling = Pooling(modes, (DenseShape(48 * len(modes), 20, True, "Tanh"),), normalize=True).eval()
    agreed = onnx_folder.compare_graph
    model = as_model(checkpoint, tmp_path, pooling)
    path = tmp_path / "graph.onnx"
    onnx.save(build_graph(model, store), path)
    model.tokenizer = type("Any", (), {"limit": 60})()  # nothing is tokenized here
    found = agreed(model, GraphNetwork(GraphFile(path, threads=1), checkpoint.config, {}))
    assert found.usual <= found.largest < BOUNDS[store]


def test_vectors_are_compared_apart_from_the_states(tmp_path):
    """Beside states of thousands, each number of a vector of length 1 might be wrong."""
    checkpoint = load_saved(make_reference("bert", ""), tmp_path)
    with torch.no_grad():
        checkpoint.network.order[-1].feed_norm.weight.mul_(5000)
    means, firsts = (as_model(checkpoint, tmp_path, Pooling((mode,), normalize=True)) for mode in ("mean", "cls"))
    path = tmp_path / "graph.onnx"
    onnx.save(build_graph(firsts, "fp32"), path)
    means.tokenizer = type("Any", (), {"limit": 60})()
    found = onnx_folder.compare_graph(means, GraphNetwork(GraphFile(path, threads=1), checkpoint.config, {}))
    assert found.largest > 10 * onnx_folder.FURTHEST["fp32"] and found.usual > 10 * onnx_folder.FURTHEST["fp32"]


def test_a_row_in_int8_is_the_same_in_any_batch(tmp_path):
    reference = make_reference("modernbert", "classify")
    session = start(build_graph(as_model(load_saved(reference, tmp_path), tmp_path), "int8"))
    ids, segments = make_rows(reference)
    together = run(session, **lay(ids, segments, 0))["logits"]
    for row, expected in zip(ids, together, strict=True):
        alone = run(session, **lay([row], [row], 0))["logits"][0]
        torch.testing.assert_close(alone, expected, rtol=0, atol=0.02 * float(together.abs().max()))


numbers = st.floats(-4, 4, width=32)
matrices = arrays.arrays(np.float32, st.tuples(st.integers(1, 5), st.integers(1, 33)), elements=numbers)


@given(matrices)
@settings(deadline=None)
def test_no_pair_of_products_leaves_16_bits(matrix):
    levels, scales = round_weights(torch.from_numpy(matrix))
    wide = np.pad(levels.astype(np.int64), ((0, 0), (0, levels.shape[1] % 2)))
    first, second = wide[:, 0::2], wide[:, 1::2]
    for one, other in ((255, 255), (255, 0), (0, 255)):
        sums = one * first + other * second
        assert sums.min() >= -(2**15) and sums.max() < 2**15
    largest = np.abs(matrix).max(axis=1)
    assert (np.abs(levels * scales[:, None] - matrix).max(axis=1) <= 0.45 * largest + 1e-6).all()


def test_a_folder_with_its_tokenizer_and_labels(made, tmp_path):
    _, adapters = made
    for store, name in (("fp32", "model.onnx"), ("int8", "model_quantized.onnx")):
        exported = bertsmith.export_model(adapters["mood"], tmp_path / store, to="onnx", store=store)
        folder = exported.folder
        assert [path.name for path in (folder / "onnx").iterdir()] == [name]
        assert not list(folder.rglob("*.safetensors")) and exported.size > (folder / "onnx" / name).stat().st_size
        config = json.loads((folder / "config.json").read_text())
        assert config["id2label"] == {"0": "bad", "1": "good"}
        given = transformers.AutoTokenizer.from_pretrained(folder)(TEXTS, padding=True, return_tensors="np")
        scores = run(start(folder / "onnx" / name), **given)["logits"].softmax(-1)
        ours = [{a["label"]: a["score"] for a in one} for one in bertsmith.load(adapters["mood"]).classify(TEXTS)]
        for found, known in zip(scores, ours, strict=True):
            assert [known["bad"], known["good"]] == pytest.approx(found.tolist(), abs=1e-5 if store == "fp32" else 0.1)
    sizes = {path.name: path.stat().st_size for path in tmp_path.rglob("*.onnx")}
    assert sizes["model_quantized.onnx"] < 0.6 * sizes["model.onnx"]


def test_large_weights_lie_beside_the_graph(made, tmp_path, monkeypatch):
    monkeypatch.setattr(onnx_folder, "LARGEST", 1000)
    bertsmith.export_model(made[0], tmp_path / "out", to="onnx", head="embed")
    assert {path.name for path in (tmp_path / "out" / "onnx").iterdir()} == {"model.onnx", "model.onnx_data"}
    assert (tmp_path / "out" / "onnx" / "model.onnx").stat().st_size < 60_000
    assert len({path.stat().st_mode for path in (tmp_path / "out" / "onnx").iterdir()}) == 1  # a server reads both
    start(tmp_path / "out" / "onnx" / "model.onnx")


@pytest.mark.parametrize("name", ["mood", "alike", "names", "answers"])
def test_scored_on_data_before_and_after(name, made, tmp_path, monkeypatch):
    _, adapters = made
    rows = {
        "mood": [{"text": text, "label": label} for text, label in zip(TEXTS, ["good", "bad", "good"], strict=True)],
        "alike": [{"text": text, "pair": TEXTS[0], "label": number} for number, text in enumerate(TEXTS)],
        "names": [{"tokens": ["ann", "lives"], "tags": ["B-PER", "O"]}, {"tokens": ["oslo"], "tags": ["B-LOC"]}],
        "answers": [{"id": str(n), "question": "who lives in oslo", "context": TEXTS[1],
                     "answers": {"text": ["ann"], "answer_start": [0]}} for n in range(2)],
    }  # fmt: skip
    data = tmp_path / "dev.jsonl"
    data.write_text("".join(json.dumps(row) + "\n" for row in rows[name]))
    exported = bertsmith.export_model(adapters[name], tmp_path / "out", to="onnx", data=data)
    known = bertsmith.evaluate(adapters[name], data)["metrics"]
    before, after = exported.scores
    assert before == pytest.approx(known[exported.metric]["value"], abs=1e-6) == pytest.approx(after, abs=1e-5)


def test_vectors_are_scored_by_how_alike_they_are(made, tmp_path):
    rows = [{"text": text, "pair": TEXTS[0], "label": number} for number, text in enumerate(TEXTS)]
    exported = bertsmith.export_model(made[0], tmp_path / "out", to="onnx", head="embed", data=rows)
    assert exported.metric == "spearman" and exported.scores[0] == pytest.approx(exported.scores[1], abs=1e-6)


def test_a_graph_that_loses_too_much_is_not_written(made, tmp_path, monkeypatch):
    _, adapters = made
    answers = bertsmith.load(adapters["mood"]).classify(TEXTS)
    data = [{"text": text, "label": found[0]["label"]} for text, found in zip(TEXTS, answers, strict=True)]
    monkeypatch.setattr(GraphNetwork, "score", lambda self, found, *rest: -found)
    with pytest.raises(BertsmithError, match=r"would change from 1\.0000 to 0\.0000 on 3 examples, more than is"):
        bertsmith.export_model(adapters["mood"], tmp_path / "out", to="onnx", store="int8", data=data)
    assert not (tmp_path / "out").exists() and not list(tmp_path.glob(".*"))
    exported = bertsmith.export_model(adapters["mood"], tmp_path / "out", to="onnx", data=data, max_loss=1.0)
    assert exported.scores == (1.0, 0.0)


def test_a_wrong_graph_is_not_written(made, tmp_path, monkeypatch):
    monkeypatch.setattr(GraphNetwork, "forward", lambda self, batch: torch.full((4, 2), torch.nan))
    for store in BOUNDS:
        with pytest.raises(BertsmithError, match="differs from the model by nan of its largest score; nothing was wr"):
            bertsmith.export_model(made[1]["mood"], tmp_path / "out", to="onnx", store=store)
        assert not (tmp_path / "out").exists()


def test_mistakes(made, tmp_path, monkeypatch):
    base, adapters = made

    def refused(told, source=base, **more):
        with pytest.raises(BertsmithError, match=told):
            bertsmith.export_model(source, tmp_path / "out", **{"to": "onnx", **more})
        assert not (tmp_path / "out").exists() and not list(tmp_path.glob(".*"))

    refused(r"has the heads mask, follows, and a graph answers for one; name it \(--head\)")
    refused("store='bf16' is not a choice for ONNX; use one of fp32, int8", store="bf16")
    refused("adapters are put together in the compact form alone", adapters=adapters)
    refused(r"max_loss needs data to score the model on \(--data\)", head="embed", max_loss=0.1)
    refused("max_loss=2.0 must be a number from 0 to 1", head="embed", data=[{"text": "a"}], max_loss=2.0)
    refused("data and max_loss belong to the form onnx", to="transformers", data=[{"text": "a"}])
    for missing in ("onnxruntime", "onnx"):
        with monkeypatch.context() as patched:
            patched.setitem(sys.modules, missing, None)
            refused(r"needs the extra `onnx`: pip install 'bertsmith\[onnx\]'", head="embed")


def test_the_verb(made, tmp_path, monkeypatch, capsys):
    (tmp_path / "dev.csv").write_text("text,label\nthe film was good,good\nit was not a fine film,bad\n")
    words = ("export", made[1]["mood"], tmp_path / "out", "--to", "onnx", "--store", "int8", "--max-loss", "1",
             "--data", tmp_path / "dev.csv")  # fmt: skip
    ran = run_here(monkeypatch, capsys, words, b"")
    assert ran.status == 0, ran.err
    (told,) = ran.records
    assert told["form"] == "onnx" and told["metric"] == "accuracy" and {"before", "after", "largest_error"} <= set(told)
    monkeypatch.setattr("bertsmith.cli.export.wants_json", lambda asked: asked)
    ran = run_here(monkeypatch, capsys, (*words, "--overwrite"), b"")
    shown = " ".join(ran.out.split())
    assert "MiB in int8; scores on random words are off by" in shown and "as a graph" in shown


def test_of_modernbert_with_rotary_positions(tmp_path):
    base = make_base(tmp_path / "modern", "modernbert")
    exported = bertsmith.export_model(bertsmith.load(base, dtype="bfloat16"), tmp_path / "out", to="onnx")
    assert exported.largest_error < 1e-5 and exported.opens == "ModernBertForMaskedLM"
