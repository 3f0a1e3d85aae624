"""A server tells of a graph what it can be asked, and which one it is."""

import pytest
from export.made import make_all
from starlette.testclient import TestClient

import bertsmith
from bertsmith.serving import engine
from bertsmith.serving.http.app import create_app
from bertsmith.serving.local import Local
from bertsmith.serving.residents import Residents, make_card
from bertsmith.serving.settings import Settings

LOOKS = {"attention", "step", "senses", "lens", "attribution"}
VECTORS = {"embed", "hidden", "similar"}


@pytest.fixture(scope="module")
def graphs(tmp_path_factory, one_thread):
    place = tmp_path_factory.mktemp("served")
    base, adapters = make_all(place, "bert")
    sources = {"mood": (adapters["mood"], None), "nli": (adapters["nli"], None), "fill": (base, "fill"),
               "vectors": (base, "embed")}  # fmt: skip
    made = {
        name: bertsmith.export_model(folder, place / f"{name}-graph", to="onnx", head=head).folder
        for name, (folder, head) in sources.items()
    }
    return {name: bertsmith.load(folder) for name, folder in made.items()}


def test_jobs_of_a_graph_are_those_that_it_can_do(graphs):
    jobs = {name: set(make_card(name, model).jobs) for name, model in graphs.items()}
    assert not any(found & LOOKS for found in jobs.values())
    assert {name for name, found in jobs.items() if found & VECTORS} == {"vectors"} and jobs["vectors"] >= VECTORS
    assert "fill" in jobs["fill"] and "classify" in jobs["mood"] and all("tokenize" in found for found in jobs.values())


def test_vectors_are_asked_of_the_model_that_has_them(graphs):
    """Without a name the default would be asked, which has none."""
    backend = Local(Residents({name: graphs[name] for name in ("mood", "vectors")}))
    client = TestClient(create_app(backend, Settings()))
    found = client.post("/v1/jobs/embed", json={"texts": ["the film was good"]})
    refused = client.post("/v1/jobs/attention", json={"text": "the film"})
    backend.close()
    assert found.status_code == 200 and found.json()["model"] == "vectors"
    assert refused.status_code == 400 and "none that is served can" in refused.text


def test_the_first_request_does_not_wait_for_a_session(graphs, monkeypatch):
    """What was opened with all threads would be opened again, by a thread that has some of them."""
    monkeypatch.setattr(engine, "share_cores", lambda device: (1, 2))
    model = bertsmith.load(graphs["mood"].folder)
    backend = Local(Residents({"mood": model}))
    opened = dict(model.checkpoint.network.graph.sessions)
    assert model.classify("the film was good").answers
    backend.close()
    assert list(opened) == [2] and model.checkpoint.network.graph.sessions == opened


def test_each_graph_has_a_revision_of_its_own(graphs, tmp_path):
    revisions = {make_card(name, model).revision for name, model in graphs.items()}
    assert len(revisions) == len(graphs)
    file = graphs["mood"].folder / "onnx" / "model.onnx"
    before = make_card("mood", graphs["mood"]).revision
    (file.parent / "model.onnx_data").write_bytes(b"weights that lie beside it")
    assert make_card("mood", graphs["mood"]).revision != before
    (file.parent / "model.onnx_data").unlink()
