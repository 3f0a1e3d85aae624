"""Our own routes: every job of the table, alone and as a list, is answered as the library answers it."""

import httpx
import numpy as np
import pytest
from serving.asking import EVERY_JOB, TEXTS, near
from serving.served import serving

import bertsmith
from bertsmith.serving.jobs import JOBS
from bertsmith.serving.local import Local
from bertsmith.serving.looks import LOOKS
from bertsmith.serving.residents import Residents

# Every job once more the other way: a list where EVERY_JOB has one input, and one where it has a list.
OTHER_WAY = [
    ("fill", "fill", {"text": ["the [MASK] was good"], "top_k": 3}),
    ("follows", "follows", {"a": ["the film", "a plot"], "b": ["was good", "so poor"]}),
    ("classify", "classify", {"text": TEXTS[0], "raw": True}),
    ("classify", "classify", {"text": TEXTS, "apply": "sigmoid", "top_k": 2}),
    ("score", "score", {"text": TEXTS[0]}),
    ("score", "rerank", {"query": TEXTS[:2], "texts": [TEXTS, TEXTS[:1]], "raw": True}),
    ("tag", "tag", {"text": TEXTS[0], "aggregation": "simple"}),
    ("answer", "answer", {"question": ["who", "what"], "context": [TEXTS[1], TEXTS[0]]}),
    ("choose", "choose", {"prompt": TEXTS[:2], "choices": [TEXTS, TEXTS[1:]]}),
    ("bare", "embed", {"texts": TEXTS[0]}),
    ("bare", "embed", {"texts": [2, 50, 60, 3]}),
    ("bare", "embed", {"texts": [[2, 50, 60, 3], [7]]}),
    ("bare", "hidden", {"texts": TEXTS[0]}),
    ("bare", "similar", {"text": TEXTS[:2], "others": TEXTS, "top_k": 2}),
    ("bare", "tokenize", {"text": TEXTS[0], "pair": TEXTS[1]}),
    ("bare", "search", {"query": "who lives in oslo", "top_k": 2}),
    ("bare", "search", {"query": TEXTS, "how": "bm25"}),
]
LOOKED = [job.name for job in LOOKS]  # whose answers are pictures: test_looking.py


@pytest.fixture(scope="module")
def library(heads, adapters):
    found = {name: bertsmith.load(folder, device="cpu") for name, folder in heads.items()}
    base = bertsmith.load(heads["bare"], device="cpu", adapters=adapters)
    return found | {"bare": base, **{f"bare:{name}": base.use(name) for name in adapters}}


@pytest.fixture(scope="module")
def index(heads, tmp_path_factory):
    folder = tmp_path_factory.mktemp("texts")
    for number, text in enumerate(TEXTS):
        (folder / f"{number}.txt").write_text(text)
    place = tmp_path_factory.mktemp("index")
    return bertsmith.index(folder, bertsmith.load(heads["bare"], device="cpu"), place=place)


@pytest.fixture(scope="module")
def http(heads, adapters, index):
    models = {name: bertsmith.load(folder, device="cpu") for name, folder in heads.items() if name != "bare"}
    models = {"bare": bertsmith.load(heads["bare"], device="cpu", adapters=adapters), **models}
    backend = Local(Residents(models, indexes={"bare": index}))
    try:
        with serving(backend, inputs=50) as address, httpx.Client(base_url=address) as client:
            yield client
    finally:
        backend.close()


def tell(said, gives_vectors):
    """What the library said, as the route tells it."""
    if gives_vectors:
        rows = list(said) if isinstance(said, list) or isinstance(said.truncated, list) else [said]
        return {"vectors": [np.asarray(row).tolist() for row in rows], "truncated": [row.truncated for row in rows]}
    if isinstance(said, list):
        return {"results": [tell(one, gives_vectors=False) for one in said]}
    if hasattr(said, "as_dict"):
        return said.as_dict()
    return {"ids": list(said.ids), "pieces": list(said.pieces), "offsets": [list(pair) for pair in said.offsets],
            "words": list(said.words), "segments": list(said.segments)}  # fmt: skip


@pytest.mark.parametrize(("model", "job", "given"), EVERY_JOB + OTHER_WAY)
def test_answers_are_the_librarys(http, library, index, model, job, given):
    answer = http.post(f"/v1/jobs/{job}", json={"model": model, **given})
    assert answer.status_code == 200, answer.text
    told = answer.json()
    assert told.pop("model") == model
    assert (told.pop("tokens") > 0) == (job not in ("tokenize", "search"))  # which read nothing in this model
    said = index.search(**given) if job == "search" else getattr(library[model], job)(**given)
    near(told, tell(said, JOBS[job].gives_vectors))


def test_every_job_was_asked():
    assert {job for _, job, _ in EVERY_JOB + OTHER_WAY} | {"decode", *LOOKED} == set(JOBS)


def test_ids_become_texts_again(http, library):
    ids = [library["bare"].tokenize(text).ids for text in TEXTS]
    found = http.post("/v1/jobs/decode", json={"ids": ids}).json()
    wanted = [{"text": library["bare"].tokenizer.decode(row)} for row in ids]
    assert found["results"] == wanted and found["model"] == "bare"
    assert http.post("/v1/jobs/decode", json={"ids": ids[0]}).json()["text"] == wanted[0]["text"]


def test_without_a_model_the_one_that_can_answers(http, library):
    found = http.post("/v1/jobs/answer", json={"question": "who", "context": TEXTS[1]}).json()
    assert found["model"] == "answer"
    near(found["answers"], library["answer"].answer("who", TEXTS[1]).answers)


def test_the_list_of_jobs(http):
    jobs = {job["name"]: job for job in http.get("/v1/jobs").json()["jobs"]}
    assert list(jobs) == list(JOBS)
    assert jobs["answer"]["models"] == ["answer"] and "bare:names" in jobs["tag"]["models"]
    assert [field["name"] for field in jobs["fill"]["fields"]] == ["text", "top_k", "targets", "truncate"]
    assert http.get("/v1/jobs/fill").json() == jobs["fill"]


def test_every_example_of_the_list_runs(http):
    for job in http.get("/v1/jobs").json()["jobs"]:
        if job["name"] == "decode":  # whose ids are of a larger vocabulary
            continue
        answer = http.post(f"/v1/jobs/{job['name']}", json={**job["example"], "model": job["models"][0]})
        # The base of several adapters does not know which of them is meant.
        ambiguous = job["name"] in ("classify", "tag", "attribution") and answer.status_code == 400
        assert answer.status_code == 200 or (ambiguous and "adapter" in answer.text), answer.text


def test_the_documentation_has_each_job_with_its_fields_and_example(http):
    from bertsmith.serving.routes.jobs import make_body

    for job in JOBS.values():
        schema = make_body(job).model_json_schema()
        assert set(schema["properties"]) == {"model", *(field.name for field in job.fields)}
        assert schema["examples"] == [dict(job.example)]
        assert set(schema["required"]) == {field.name for field in job.fields if field.required}


@pytest.mark.parametrize(
    ("path", "body", "status", "said"),
    [
        ("/v1/jobs/paint", {"text": "a"}, 404, "there is no job 'paint'; the jobs are fill, follows"),
        ("/v1/jobs/fill", {"text": "a [MASK]", "model": "nobody"}, 404, "there is no model 'nobody'"),
        ("/v1/jobs/fill", {"text": "a [MASK]", "model": "tag"}, 400, "the model 'tag' cannot fill"),
        ("/v1/jobs/fill", {}, 400, "the field 'text' is missing"),
        ("/v1/jobs/fill", {"model": "fill", "text": None}, 400, "fill needs the field 'text'"),
        ("/v1/jobs/fill", {"model": "fill", "text": 5}, 400, "the field 'text' must be a text or a list of texts"),
        ("/v1/jobs/fill", {"model": "fill", "text": "a", "top_k": 0}, 400, "'top_k' must be a whole number"),
        ("/v1/jobs/fill", {"model": "fill", "text": "a", "colour": 1}, 400, "fill has no field 'colour'; its fields"),
        ("/v1/jobs/fill", {"text": "a [MASK]", "model": 3}, 400, "the field 'model' does not fit"),
        ("/v1/jobs/fill", ["a"], 400, "send a JSON object"),
        ("/v1/jobs/embed", {"texts": ["a"] * 51}, 400, "at most 50"),
        ("/v1/jobs/embed", {"texts": [3, 10**7]}, 400, "the token id 10000000"),
        ("/v1/jobs/rerank", {"query": "a", "texts": [["b"], "c"]}, 400, "texts"),
        ("/v1/jobs/classify", {"text": "a", "raw": True, "labels": ["b"]}, 400, "raw and apply"),
    ],
)
def test_mistakes_are_told_in_a_sentence(http, path, body, status, said):
    answer = http.post(path, json=body)
    assert answer.status_code == status, answer.text
    error = answer.json()["error"]
    assert said in error["message"] and error["request_id"] == answer.headers["x-request-id"]


def test_more_passages_than_an_answer_holds(http, index, monkeypatch):
    monkeypatch.setattr("bertsmith.serving.sizes.PASSAGES", 5)
    asked = {"query": ["who", "what"], "top_k": 10**9}  # of an index that has three
    answer = http.post("/v1/jobs/search", json=asked)
    assert answer.status_code == 400 and "2 queries with 3 passages each" in answer.json()["error"]["message"]
    answer = http.post("/v1/jobs/search", json=asked | {"query": "who"})
    assert answer.status_code == 200 and len(answer.json()["answers"]) == len(index) == 3
