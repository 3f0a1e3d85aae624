"""Looking inside a served model: the pictures are the library's, within limits, and nobody waits for them."""

import threading
import time

import httpx
import numpy as np
import pytest
from serving.asking import near
from serving.served import serving
from whole.tiny import make_encoder

import bertsmith
import bertsmith.inspect
from bertsmith.inspection.packing import unpack
from bertsmith.serving import looking
from bertsmith.serving.local import Local
from bertsmith.serving.looks import LOOKS
from bertsmith.serving.residents import Residents

TEXT = "the film was good"
SENTENCES = ["the river runs through the town", "ann lives at the river", "a river is in oslo"]
LOOKED = [
    ("long", "attention", {"text": TEXT}),
    ("long", "attention", {"text": TEXT, "pair": "a plot so poor", "causal": True, "neurons": True}),
    ("long", "step", {"text": TEXT, "word": "film", "layer": 1, "head": 0}),
    ("fill", "lens", {"text": "the [MASK] was good", "top_k": 3}),
    ("long", "senses", {"word": "river", "sentences": SENTENCES}),
    ("classify", "attribution", {"job": "classify", "texts": [TEXT]}),
    ("answer", "attribution", {"job": "answer", "texts": ["who lives here", "ann lives here"], "method": "gradient"}),
]


@pytest.fixture(scope="module")
def folders(heads, tmp_path_factory):
    long = make_encoder(tmp_path_factory.mktemp("long") / "long", limit=1024)
    return {"long": long, **{name: heads[name] for name in ("fill", "classify", "answer")}}


@pytest.fixture(scope="module")
def library(folders):
    return {name: bertsmith.load(folder, device="cpu") for name, folder in folders.items()}


@pytest.fixture(scope="module")
def backend(folders):
    backend = Local(Residents({name: bertsmith.load(folder, device="cpu") for name, folder in folders.items()}))
    yield backend
    backend.close()


@pytest.fixture(scope="module")
def http(backend):
    with serving(backend, timeout=20) as address, httpx.Client(base_url=address, timeout=30) as client:
        yield client


def draw(library, model, job, given):
    if job == "attribution":
        options = {name: value for name, value in given.items() if name not in ("job", "texts")}
        return bertsmith.inspect.attribute(library[model], given["job"], *given["texts"], **options)
    return getattr(bertsmith.inspect, job)(library[model], **given)


def open_packed(value):
    """Numbers that were packed, as lists: what is rounded another way is packed into other letters."""
    if isinstance(value, dict):
        if "encoding" in value and "shape" in value:
            return unpack(value).astype(float).ravel().tolist()
        return {name: open_packed(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [open_packed(one) for one in value]
    return float(value) if isinstance(value, np.floating) else value


def alike(found, expected):
    """As `near`, but by arrays where there are many numbers, and no nearer than they are packed."""
    if isinstance(expected, list) and expected and isinstance(expected[0], float):
        np.testing.assert_allclose(found, expected, atol=1e-2, rtol=1e-3)
    elif isinstance(expected, dict):
        assert found.keys() == expected.keys()
        for key in expected:
            alike(found[key], expected[key])
    elif isinstance(expected, list):
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            alike(one, other)
    elif isinstance(expected, float):
        assert found == pytest.approx(expected, abs=1e-3, rel=1e-3)
    else:
        near(found, expected)


@pytest.mark.parametrize(("model", "job", "given"), LOOKED, ids=[f"{job}-{n}" for n, (_, job, _) in enumerate(LOOKED)])
def test_pictures_are_the_librarys(http, library, model, job, given):
    answer = http.post(f"/v1/jobs/{job}", json={"model": model, **given})
    assert answer.status_code == 200, answer.text
    told = answer.json()
    picture = draw(library, model, job, given)
    assert told["model"] == model and told["tokens"] > 0
    assert (told["kind"], told["title"]) == (picture.kind, picture.title)
    alike(open_packed(told["data"]), open_packed(picture.data()))


def test_every_job_that_looks_was_asked():
    assert {job for _, job, _ in LOOKED} == {job.name for job in LOOKS}


def test_who_can(http):
    jobs = {job["name"]: job for job in http.get("/v1/jobs").json()["jobs"]}
    assert set(jobs["attention"]["models"]) == {"long", "fill", "classify", "answer"}
    assert jobs["lens"]["models"] == ["fill"] and jobs["lens"]["gives_picture"]
    assert set(jobs["attribution"]["models"]) == {"fill", "classify", "answer"}


@pytest.mark.parametrize(
    ("job", "body", "said"),
    [
        ("attention", {"text": "film " * 600}, "the text has 602 tokens, of which at most 512 are looked at"),
        ("step", {"text": TEXT, "word": "boat", "layer": 0, "head": 0}, "boat"),
        ("step", {"text": TEXT, "word": "film", "layer": 9, "head": 0}, "layer"),
        ("step", {"text": TEXT, "word": "film", "layer": -1, "head": 0}, "'layer' must be a whole number from 0 on"),
        ("senses", {"word": "river", "sentences": ["a river"] * 65}, "must be a list of at most 64 texts"),
        ("senses", {"word": "boat", "sentences": SENTENCES}, "boat"),
        ("lens", {"model": "fill", "text": "film", "top_k": 21}, "'top_k' must be a whole number from 1 to 20"),
        ("lens", {"model": "long", "text": "film"}, "the model 'long' cannot lens; fill can"),
        ("attribution", {"model": "classify", "job": "paint", "texts": ["a"]}, "must be one of classify, answer"),
        ("attribution", {"model": "classify", "job": "answer", "texts": ["a", "b"]}, "no head to answer"),
        ("attribution", {"model": "classify", "job": "classify", "texts": ["a", "b", "c"]}, "at most 2 texts"),
    ],
)
def test_mistakes_are_told_in_a_sentence(http, job, body, said):
    answer = http.post(f"/v1/jobs/{job}", json={"model": "long", **body})
    assert answer.status_code == 400 and said in answer.json()["error"]["message"], answer.text


def test_what_is_cut_is_told(http):
    answer = http.post("/v1/jobs/attention", json={"model": "fill", "text": "film " * 100})  # it reads 64
    assert answer.status_code == 200 and answer.headers["x-truncated-tokens"] == "38"


@pytest.fixture
def slow(monkeypatch):
    """Pictures that are not drawn before they may be: (may, drawn)."""
    may, drawn = threading.Event(), []
    real = looking.draw

    def wait(model, job, given):
        drawn.append(given["text"])
        assert may.wait(20)
        return real(model, job, given)

    monkeypatch.setattr(looking, "draw", wait)
    yield may, drawn
    may.set()


def test_who_asks_for_answers_does_not_wait_for_pictures(http, slow):
    may, drawn = slow
    asked = threading.Thread(target=http.post, args=("/v1/jobs/attention",), kwargs={"json": {"text": TEXT}})
    asked.start()
    wait_until(lambda: drawn)
    assert http.post("/v1/jobs/fill", json={"text": "a [MASK]"}).status_code == 200
    may.set()
    asked.join(20)
    assert not asked.is_alive()


def test_one_picture_at_a_time_and_none_that_nobody_waits_for(http, slow, backend):
    may, drawn = slow
    first = threading.Thread(target=http.post, args=("/v1/jobs/attention",), kwargs={"json": {"text": "first"}})
    first.start()
    wait_until(lambda: drawn)
    with pytest.raises(httpx.TimeoutException):
        httpx.post(f"{http.base_url}/v1/jobs/attention", json={"text": "given up"}, timeout=0.3)
    wait_until(lambda: backend.load()["waiting"] == 1)
    may.set()
    first.join(20)
    http.post("/v1/jobs/attention", json={"text": "last"})
    assert drawn == ["first", "last"]


def test_a_picture_that_comes_too_late_is_a_timeout(backend, slow):
    with serving(backend, timeout=0.3) as address:
        answer = httpx.post(f"{address}/v1/jobs/attention", json={"text": TEXT})
    assert answer.status_code == 504 and "within" in answer.json()["error"]["message"]


def wait_until(condition):
    end = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.005)
