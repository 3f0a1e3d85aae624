"""A folder with a graph in the place of weights answers as the model it was written from, and does nothing else."""

import json
import pickle
import shutil
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import onnx
import pytest
import torch
from export.made import make_all
from hypothesis import given
from hypothesis import strategies as st
from starlette.testclient import TestClient
from whole.tiny import make_encoder, reviews

import bertsmith
from bertsmith.data.batch import Batch
from bertsmith.errors import BertsmithError
from bertsmith.inspect import ablate, ablate_answer, attention, attribute, input, lens, step, word_vectors
from bertsmith.model import Model
from bertsmith.models.graph import RUN, GraphFile, part_by_length
from bertsmith.serving.http.app import create_app
from bertsmith.serving.local import Local
from bertsmith.serving.residents import Residents
from bertsmith.serving.settings import Settings

TEXTS = ["the film was good", "ann lives in oslo and works at the river", "it was not a fine film"]
CLOSE = {"abs": 1e-5}


@pytest.fixture(scope="module", params=["bert", "modernbert"])
def pairs(request, tmp_path_factory, one_thread):
    """Name -> the model, and what is loaded from its graph."""
    place = tmp_path_factory.mktemp("graphs")
    base, adapters = make_all(place, request.param)
    sources = {**{name: (folder, None) for name, folder in adapters.items()}, "fill": (base, "fill"),
               "vectors": (base, "embed")}  # fmt: skip
    found = {}
    for name, (folder, head) in sources.items():
        graph = bertsmith.export_model(folder, place / f"{name}-graph", to="onnx", head=head).folder
        found[name] = bertsmith.load(folder), bertsmith.load(graph)
    return found


def flat(answers):
    """Words and numbers apart, so that the numbers may differ a little."""
    words, numbers = [], []
    for each in answers.values() if isinstance(answers, dict) else answers:
        if isinstance(each, float):
            numbers.append(each)
        elif isinstance(each, dict | list):
            for known, more in zip((words, numbers), flat(each), strict=True):
                known += more
        else:
            words.append(each)
    return words, numbers


@pytest.mark.parametrize(
    ("name", "ask"),
    [
        ("mood", lambda m: m.classify(TEXTS)),
        ("nli", lambda m: m.classify(TEXTS, [TEXTS[0]] * 3)),
        ("nli", lambda m: m.classify(TEXTS, labels=["river", "film"])),
        ("alike", lambda m: m.score(TEXTS, [TEXTS[0]] * 3)),
        ("names", lambda m: m.tag(TEXTS)),
        ("answers", lambda m: [m.answer("who lives in oslo", TEXTS[1])]),
        ("fill", lambda m: m.fill(["the [MASK] was [MASK]", "ann [MASK]"])),
    ],
)
def test_each_job(pairs, name, ask):
    for ours, graphs in zip(*map(ask, pairs[name]), strict=True):
        (words, numbers), (same, close) = flat(ours.answers), flat(graphs.answers)
        assert words == same and numbers == pytest.approx(close, **CLOSE)


def test_choices(tmp_path):
    model = bertsmith.load(make_encoder(tmp_path / "chooser", "ForMultipleChoice"))
    graph = bertsmith.load(bertsmith.export_model(model, tmp_path / "graph", to="onnx").folder)
    (words, numbers), (same, close) = (
        flat(each.choose("ann lives", ["in oslo", "it was fine and good", "at the river"]).answers)
        for each in (model, graph)
    )
    assert words == same and numbers == pytest.approx(close, **CLOSE)


@given(st.lists(st.integers(1, 60), min_size=1, max_size=40))
def test_rows_are_parted_where_padding_would_cost_a_run(lengths):
    parts = part_by_length(lengths)
    assert sorted(row for part in parts for row in part) == list(range(len(lengths)))
    for part in parts:
        longest = lengths[part[0]]
        assert longest == max(lengths[row] for row in part) and sum(longest - lengths[row] for row in part) <= RUN


def test_rows_of_all_lengths_at_once(pairs):
    """More than one run of the graph; each row has the scores that it has alone."""
    texts = [" ".join(["the film was good"] * count) for count in (12, 1, 7, 1, 2, 12, 5)]
    for name, ask in (("mood", Model.classify), ("names", Model.tag), ("vectors", Model.embed)):
        together, alone = ask(pairs[name][1], texts), [ask(pairs[name][1], text) for text in texts]
        if name == "vectors":
            np.testing.assert_allclose(together, np.stack(alone), atol=1e-5)
            continue
        for one, other in zip(together, alone, strict=True):
            (words, numbers), (same, close) = flat(one.answers), flat(other.answers)
            assert words == same and numbers == pytest.approx(close, **CLOSE)


def test_words_are_scored_where_they_are_wanted(pairs, monkeypatch):
    """As everywhere; of rows that are run together and have no such place nothing is read."""
    network = pairs["fill"][1].checkpoint.network
    random, lengths = np.random.default_rng(0), (3, 60, 4, 59, 3, 60, 60)
    assert sorted(map(sorted, part_by_length(lengths))) == [[0, 2, 4], [1, 3, 5, 6]]
    batch = Batch.of([random.integers(5, 60, length).tolist() for length in lengths])
    every, run, rows = network(batch), GraphFile._run, []

    def count(self, some, *more):
        rows.append(len(some.lengths))
        return run(self, some, *more)

    monkeypatch.setattr(GraphFile, "_run", count)
    for places, expected in (([1], 3), ([0, 2, 64, 65, 130], 7), ([*range(len(batch.ids))], 7), ([248], 4)):
        rows.clear()
        found = network(batch.wanting(torch.tensor(places)))
        torch.testing.assert_close(found[places], every[places], atol=1e-4, rtol=0)
        others = [place for place in range(len(batch.ids)) if place not in places]
        assert found.shape == every.shape and not found[others].any() and sum(rows) == expected
    alone = Batch.of([[7, 8, 9]])
    torch.testing.assert_close(network(alone.wanting(torch.tensor([2])))[2], network(alone)[2], atol=1e-4, rtol=0)


def test_vectors_and_states(pairs):
    model, graph = pairs["vectors"]
    np.testing.assert_allclose(graph.embed(TEXTS), model.embed(TEXTS), atol=1e-5)
    for ours, theirs in zip(model.hidden(TEXTS), graph.hidden(TEXTS), strict=True):
        np.testing.assert_allclose(theirs, ours, atol=1e-4)
    with pytest.raises(BertsmithError, match=r"model\.onnx is a graph: it has no states between its layers\. Give the"):
        graph.hidden(TEXTS, layers="all")


def test_it_is_told_and_travels(pairs):
    model, graph = pairs["mood"]
    assert graph.info()["graph"] == "onnx/model.onnx" and "graph" not in model.info()
    assert graph.info()["parameters"] == model.info()["parameters"]
    again = pickle.loads(pickle.dumps(graph))
    assert again.classify(TEXTS[0]).answers == graph.classify(TEXTS[0]).answers


def test_sessions_are_few(pairs):
    """Each number of threads has its own, with all weights in it; the one that was asked longest ago goes."""
    graph, before = bertsmith.load(pairs["mood"][1].folder), torch.get_num_threads()
    sessions = []
    try:
        for threads in (3, 2, 3, 4, 3):
            torch.set_num_threads(threads)
            assert graph.classify(TEXTS[0]).answers
            sessions.append(list(graph.checkpoint.network.graph.sessions))
    finally:
        torch.set_num_threads(before)
    assert sessions == [[3], [3, 2], [2, 3], [3, 4], [4, 3]]


def test_what_a_graph_cannot_do(pairs, tmp_path):
    (model, graph), vectors = pairs["mood"], pairs["vectors"][1]
    data = [{"text": text, "label": "good"} for text in TEXTS]
    for refused in (
        lambda: graph.save(tmp_path / "out"),
        lambda: bertsmith.export_model(graph, tmp_path / "out"),
        lambda: bertsmith.export_model(graph, tmp_path / "out", to="onnx"),
        lambda: bertsmith.export_model(graph, tmp_path / "out", to="compact"),
        lambda: graph.embed(TEXTS),
        lambda: graph.use(model.folder),
        lambda: bertsmith.load(graph.folder, adapters={"mood": model.folder}),
        lambda: attention(graph, TEXTS[0]),
        lambda: step(graph, TEXTS[0], layer=0, head=0, word="film"),
        lambda: lens(pairs["fill"][1], "the [MASK]"),
        lambda: attribute(graph, "classify", TEXTS[0]),
        lambda: ablate(graph, data),
        lambda: ablate_answer(graph, "classify", TEXTS[0]),
        lambda: input(graph, TEXTS[0]),
        lambda: word_vectors(vectors, "film", TEXTS[:1]),
        lambda: vectors.hidden(TEXTS, layers=[0]),
    ):
        with pytest.raises(BertsmithError, match=r"is a graph: it .* Give the folder that it was written from\."):
            refused()
    with pytest.raises(BertsmithError, match=r"has no head to tag words \(heads there: classify\); give another model"):
        graph.tag(TEXTS)
    for learn in ({}, {"lora": 4}):
        with pytest.raises(BertsmithError, match="holds an ONNX graph and no weights: it answers and cannot learn"):
            bertsmith.finetune("classify", reviews(), reviews("a"), model=graph.folder, out=tmp_path / "out", **learn)
    with pytest.raises(BertsmithError, match="runs on the CPU with its own numbers; leave dtype='bfloat16' out"):
        bertsmith.load(graph.folder, dtype="bfloat16")
    assert not (tmp_path / "out" / "config.json").exists()


def test_served_beside_others(pairs):
    """Requests of two kinds at a time, which a network with weights would read in one pass."""
    models = {"mood": pairs["mood"][1], "nli": pairs["nli"][1], "plain": pairs["mood"][0]}
    backend = Local(Residents(models))
    client = TestClient(create_app(backend, Settings()))
    with ThreadPoolExecutor(6) as hands:
        bodies = [(name, {"inputs": text}) for text in TEXTS * 4 for name in ("mood", "plain")]
        bodies += [("nli", {"inputs": text, "parameters": {"candidate_labels": ["river", "film"]}}) for text in TEXTS]
        found = list(hands.map(lambda one: client.post(f"/models/{one[0]}", json=one[1]).json(), bodies))
    backend.close()
    for (name, body), said in zip(bodies, found, strict=True):
        if name == "mood":
            (words, numbers), (same, close) = flat(said), flat(found[bodies.index(("plain", body))])
            assert words == same and numbers == pytest.approx(close, **CLOSE)
        elif name == "nli":
            known = pairs["nli"][0].classify(body["inputs"], labels=["river", "film"])
            assert said[0]["score"] == pytest.approx(known[0]["score"], **CLOSE)


def test_a_file_of_answers_knows_its_graph(pairs, tmp_path):
    """Its folder's own files stay as they are when the graph is written anew."""
    folder, source, out = tmp_path / "model", tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    shutil.copytree(pairs["mood"][1].folder, folder)
    source.write_text("".join(json.dumps({"text": text}) + "\n" for text in TEXTS))
    bertsmith.predict_file("classify", source, out, folder)
    path = folder / "onnx" / "model.onnx"
    graph = onnx.load(path)
    bias = next(one for one in graph.graph.initializer if one.name == "head.out.bias")
    bias.CopyFrom(onnx.numpy_helper.from_array(np.float32([9, -9]), bias.name))
    onnx.save(graph, path)
    with pytest.raises(BertsmithError, match=r"the model .* has changed"):
        bertsmith.predict_file("classify", source, out, folder)
    bertsmith.predict_file("classify", source, out, folder, overwrite=True)
    assert {json.loads(line)["answers"][0]["label"] for line in out.read_text().splitlines()} == {"bad"}


def test_files_that_are_no_such_graph(pairs, tmp_path):
    def change(name, content):
        folder = tmp_path / name
        shutil.copytree(pairs["mood"][1].folder, folder)
        content(folder)
        return folder

    def rename(folder):
        graph = onnx.load(folder / "onnx" / "model.onnx")
        graph.graph.input[0].name = "pixels"
        onnx.save(graph, folder / "onnx" / "model.onnx")

    def rename_file(folder):
        (folder / "onnx" / "model.onnx").rename(folder / "onnx" / "model_fp16.onnx")

    def tell(**changed):
        def write(folder):
            config = json.loads((folder / "config.json").read_text())
            (folder / "config.json").write_text(json.dumps({**config, **changed}))

        return write

    def spoil(folder):
        (folder / "onnx" / "model.onnx").write_bytes(b"no")

    cases = {
        "broken": (spoil, "is not a graph that ONNX Runtime can run"),
        "other": (rename, "(is not a graph that ONNX Runtime can run|has other inputs and outputs than an encoder)"),
        "odd": (tell(architectures=5), "says no class, which is no head of"),
        "labels": (tell(id2label={"0": "a"}), "names 1 labels in id2label, but the classifier has 2"),
        "bare": (tell(architectures=["BertModel"]), r"says BertModel, which is no head of .*model\.onnx"),
        "renamed": (rename_file, r"no graph of a name that is known: it has onnx/model_fp16\.onnx; rename the one"),
        "absent": (lambda folder: (folder / "onnx" / "model.onnx").unlink(), "has no weights; looked for"),
    }
    for name, (content, told) in cases.items():
        with pytest.raises(BertsmithError, match=told):
            bertsmith.load(change(name, content))
    for name, size, told in (("vectors", "hidden_size", "width of 64, .* has one of 32"),
                             ("fill", "vocab_size", r"vocabulary of 64, .* has one of \d+")):  # fmt: skip
        folder = shutil.copytree(pairs[name][1].folder, tmp_path / f"{name} of another")
        tell(**{size: 64})(folder)
        with pytest.raises(BertsmithError, match=f"tells of a {told}; they do not belong together"):
            bertsmith.load(folder)


def test_graphs_of_others(pairs, tmp_path):
    """Beside the settings, as half numbers, and silent on how many labels there are."""
    model, graph = pairs["mood"]
    folder = shutil.copytree(graph.folder, tmp_path / "theirs")
    theirs = onnx.load(folder / "onnx" / "model.onnx")
    shutil.rmtree(folder / "onnx")
    (output,) = theirs.graph.output
    half = onnx.helper.make_node("Cast", [theirs.graph.node[-1].input[0]], ["logits"], to=onnx.TensorProto.FLOAT16)
    theirs.graph.node[-1].CopyFrom(half)
    output.CopyFrom(onnx.helper.make_tensor_value_info("logits", onnx.TensorProto.FLOAT16, ["batch", "labels"]))
    onnx.save(theirs, folder / "model.onnx")
    found = bertsmith.load(folder)
    assert found.info()["graph"] == "model.onnx"
    known = bertsmith.load(model.folder)  # which nobody served
    for ours, others in zip(known.classify(TEXTS), found.classify(TEXTS), strict=True):
        (words, numbers), (same, close) = flat(ours.answers), flat(others.answers)
        assert words == same and numbers == pytest.approx(close, abs=2e-3)


def test_weights_come_first_and_a_graph_that_fails_says_so(pairs, tmp_path):
    model, graph = pairs["mood"]
    compact = bertsmith.export_model(model, tmp_path / "compact", to="compact").folder
    shutil.copytree(graph.folder / "onnx", compact / "onnx")
    assert "graph" not in bertsmith.load(compact).info()
    failing = bertsmith.load(graph.folder)
    failing.checkpoint.network.graph.inputs = {"attention_mask": 2}
    with pytest.raises(BertsmithError, match=r"model\.onnx could not read 1 rows: .*input_ids"):
        failing.classify(TEXTS[0])
