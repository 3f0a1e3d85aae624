"""What the soak asks: every route and job with the answer that the library gives, and requests that are no good.

In: models by id, as the library loads them. Out: `Question`s; what a server answers to one is right if `judge` has
nothing to say about it.
"""

import base64
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from serving.asking import EVERY_JOB, TEXTS, ask_library
from whole.tiny import WORDS

CLOSE = 1e-5
DEFAULT = "classify"  # of the served models; it gives vectors, too


@dataclass(frozen=True)
class Question:
    path: str
    body: Any = None  # None: it is a GET; bytes: they are sent as they are
    expected: Any = None  # arrays stand for lists of numbers
    part: Callable[[Any], Any] = lambda answer: answer  # of the answer, that is compared
    is_good: bool = True  # else any 4xx is right


def judge(question: Question, status: int, answer: Any) -> str:
    """What is wrong with an answer; "" where nothing is."""
    if not question.is_good:
        return "" if 400 <= status < 500 and status != 429 else f"status {status} for a bad request"
    if status != 200:
        return f"status {status}: {str(answer)[:200]}"
    if question.expected is None:
        return ""
    try:
        return _differ(question.part(answer), question.expected, "answer")
    except (KeyError, IndexError, TypeError, ValueError) as problem:
        return f"another shape: {problem!r}, {str(answer)[:200]}"


def _differ(found: Any, expected: Any, place: str) -> str:
    if isinstance(expected, np.ndarray):
        got = np.asarray(found, np.float32)
        if got.shape != expected.shape:
            return f"{place} has the shape {got.shape}, not {expected.shape}"
        apart = float(np.abs(got - expected).max(initial=0.0))
        return "" if apart < CLOSE else f"{place} is {apart:g} away"
    if isinstance(expected, dict):
        if not isinstance(found, dict) or found.keys() != expected.keys():
            return f"{place} is {str(found)[:100]}, not {str(expected)[:100]}"
        return next(filter(None, (_differ(found[key], expected[key], f"{place}.{key}") for key in expected)), "")
    if isinstance(expected, list):
        if not isinstance(found, list) or len(found) != len(expected):
            return f"{place} is {str(found)[:100]}, not {str(expected)[:100]}"
        pairs = enumerate(zip(found, expected, strict=True))
        return next(filter(None, (_differ(one, two, f"{place}[{n}]") for n, (one, two) in pairs)), "")
    if isinstance(expected, float):
        return "" if abs(found - expected) < CLOSE else f"{place} is {found}, not {expected}"
    return "" if found == expected else f"{place} is {found!r}, not {expected!r}"


def is_clear(answers: Any) -> bool:
    """Whether no two neighbours are so close that rounding could swap them."""
    if isinstance(answers, list) and answers and isinstance(answers[0], list):
        return all(is_clear(one) for one in answers)
    scores = [one["score"] for one in answers]
    return all(abs(one - two) > 10 * CLOSE for one, two in pairwise(scores))


def make_texts(count: int = 24, seed: int = 0) -> list[str]:
    """From one word to more than the models read."""
    chance, words = random.Random(seed), WORDS.split()
    return [" ".join(chance.choices(words, k=chance.choice((1, 3, 6, 12, 25, 50, 80)))) for _ in range(count)]


def ask_everything(models: dict[str, Any], index: Any) -> list[Question]:
    """`models` as a server has them: adapters as ID:NAME; `index` is that of the model "bare"."""
    texts = [*TEXTS, *make_texts()]
    found = [*ask_jobs(models, texts), *ask_openai(models, texts), *ask_tei(models, texts)]
    found += [*ask_huggingface(models, texts), *ask_index(index, texts), *ask_about(models), *ask_badly()]
    assert sum(question.is_good for question in found) > 200, "too many questions were left out"
    return found


def ask_jobs(models: dict[str, Any], texts: list[str]) -> Iterator[Question]:
    """Our own routes, one a job."""
    for name, job, given in [*EVERY_JOB, *_more_jobs(texts)]:
        said = ask_library(models[name], job, given)
        body, path = {**given, "model": name}, f"/v1/jobs/{job}"
        if job in ("embed", "hidden"):
            single = isinstance(given["texts"], str)
            expected = {"vectors": [np.asarray(row) for row in ([said] if single else said)],
                        "truncated": [said.truncated] if single else [row.truncated for row in said]}  # fmt: skip
            yield Question(path, body, expected, _leave_out_model)
        elif job == "tokenize":
            pieces = [[list(one.ids), list(one.pieces)] for one in said]
            yield Question(path, body, pieces, lambda told: [[one["ids"], one["pieces"]] for one in told["results"]])
        elif isinstance(said, list):
            if all(is_clear(one.answers) for one in said):
                yield Question(path, body, {"results": [one.as_dict() for one in said]}, _leave_out_model)
        elif is_clear(said.answers):
            yield Question(path, body, said.as_dict(), _leave_out_model)


def _more_jobs(texts: list[str]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for one, two in pairwise(texts):
        yield "classify", "classify", {"text": one}
        yield "bare:liked", "classify", {"text": [one, two]}
        yield "bare:better", "classify", {"text": one, "pair": two, "truncate": "head"}
        yield "bare:names", "tag", {"text": one}
        yield "bare", "embed", {"texts": [one, two], "normalize": True}
        yield "fill", "fill", {"text": f"{two[:100]} [MASK] {one[:60]}", "top_k": 2}
        yield "tag", "tag", {"text": one, "aggregation": "simple"}
        yield "answer", "answer", {"question": "who lives here", "context": one}
        yield "follows", "follows", {"a": one, "b": two}


def _leave_out_model(told: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in told.items() if key not in ("model", "tokens")}


def ask_openai(models: dict[str, Any], texts: list[str]) -> Iterator[Question]:
    """Vectors in both encodings, from texts and from ids; and Cohere's ranks, which stand beside them."""

    def decode(told: dict[str, Any]) -> Any:
        return [np.frombuffer(base64.b64decode(one["embedding"]), "<f4") for one in told["data"]]

    for name in ("bare", "classify", "tag"):
        for some in (texts[0], texts[:4], texts[5:8], texts[9]):
            vectors = np.atleast_2d(models[name].embed(some, normalize=True))
            asked = {"input": some, "model": name}
            yield Question("/v1/embeddings", asked, vectors, lambda told: [one["embedding"] for one in told["data"]])
            yield Question("/embeddings", {**asked, "encoding_format": "base64"}, vectors, decode)
        ids = list(models[name].tokenize(texts[1]).ids)
        vector = np.atleast_2d(models[name].embed(texts[1], normalize=True))
        yield Question("/v1/embeddings", {"input": ids, "model": name, "encoding_format": "base64"}, vector, decode)
    for query, others in ((texts[0], texts[1:6]), (texts[7], texts[8:12])):
        answers = models["score"].rerank(query, others).answers
        if is_clear(answers):
            expected = [{"index": one["index"], "relevance_score": one["score"]} for one in answers]
            asked = {"model": "score", "query": query, "documents": others}
            yield Question("/v1/rerank", asked, expected, lambda told: told["results"])
            expected = [{"index": one["index"], "score": one["score"]} for one in answers]
            yield Question("/rerank", {"query": query, "texts": others}, expected)


def ask_tei(models: dict[str, Any], texts: list[str]) -> Iterator[Question]:
    """Of the default model."""
    model = models[DEFAULT]
    for some in (texts[0], texts[:5], texts[6:9], texts[10]):
        yield Question("/embed", {"inputs": some}, np.atleast_2d(model.embed(some, normalize=True)))
        several = [some] if isinstance(some, str) else some
        yield Question("/embed_all", {"inputs": several}, [np.asarray(one) for one in model.hidden(several)])
        classes = [_tell_classes(one) for one in model.classify(several, top_k=99)]
        if all(is_clear(one) for one in classes):
            yield Question("/predict", {"inputs": [[one] for one in several]}, classes)
            yield Question("/classify", {"input": several}, classes, lambda told: told["data"])
            yield Question("/invocations", {"inputs": several[0]}, classes[0])
            expected = {"predictions": [[one] for one in classes]}
            yield Question("/vertex", {"instances": [{"inputs": [[one]]} for one in several]}, expected)
        ids = [list(one.ids) for one in model.tokenize(several)]
        yield Question("/tokenize", {"inputs": several}, ids, lambda told: [[one["id"] for one in row] for row in told])
        yield Question("/decode", {"ids": ids}, [model.tokenizer.decode(row) for row in ids])
    others = model.embed(texts[1:4], normalize=True) @ model.embed(texts[0], normalize=True)
    asked = {"inputs": {"source_sentence": texts[0], "sentences": texts[1:4]}}
    yield Question("/similarity", asked, np.asarray(others))


def _tell_classes(result: Any) -> list[dict[str, Any]]:
    return [{"score": one["score"], "label": one["label"]} for one in result.answers]


def ask_huggingface(models: dict[str, Any], texts: list[str]) -> Iterator[Question]:
    masked, question = "the [MASK] was good", {"question": "who lives here", "context": texts[1]}
    yield Question("/models/fill", {"inputs": masked}, models["fill"].fill(masked).answers)
    said = models["answer"].answer(**question).answers[0]
    yield Question("/models/answer", {"inputs": question}, said)
    yield Question("/models/answer/pipeline/question-answering", {"inputs": question, "parameters": {"top_k": 1}}, said)
    for text in (texts[1], texts[6], texts[11]):
        said = models["tag"].tag(text, aggregation="simple").answers
        yield Question("/models/tag/pipeline/token-classification", {"inputs": text}, said)
        said = models["bare:names"].tag(text, aggregation="simple").answers
        yield Question("/models/bare:names", {"inputs": text}, said)
        classes = models["bare:liked"].classify(text, top_k=99).answers
        if is_clear(classes):
            yield Question("/models/bare:liked", {"inputs": text}, [classes])
        said = models[DEFAULT].classify(text, labels=["sport", "news"]).answers
        if is_clear(said):
            asked = {"inputs": text, "parameters": {"candidate_labels": ["sport", "news"]}}
            yield Question("/pipeline/zero-shot-classification", asked, said)
            yield Question("/", asked, said)
        vector = np.atleast_2d(models["bare"].embed(text))
        yield Question("/models/bare/pipeline/feature-extraction", {"inputs": text}, vector)
    scores = {one["index"]: one["score"] for one in models["bare"].similar(texts[0], texts[1:4])}
    asked = {"inputs": {"source_sentence": texts[0], "sentences": texts[1:4]}}
    yield Question("/models/bare/pipeline/sentence-similarity", asked, [scores[place] for place in range(3)])


def ask_index(index: Any, texts: list[str]) -> Iterator[Question]:
    """By words and by vectors; passages that share their words share their score, so their order is not asked for."""
    for query in texts[:8]:
        for how in ("dense", "bm25"):
            found = index.search(query, top_k=50, how=how).answers
            expected = {f"{one['document']} {one['start']}": one["score"] for one in found}
            yield Question("/v1/jobs/search", {"query": query, "top_k": 50, "how": how}, expected, _by_passage)


def _by_passage(told: dict[str, Any]) -> dict[str, float]:
    return {f"{one['document']} {one['start']}": one["score"] for one in told["answers"]}


def ask_about(models: dict[str, Any]) -> Iterator[Question]:
    """What needs no model."""
    yield Question("/v1/models", None, sorted(models), lambda told: sorted(one["id"] for one in told["data"]))
    yield Question("/info", None, DEFAULT, lambda told: told["model_id"])
    yield Question("/models/bare:liked", None, "bare:liked", lambda told: told["id"])
    yield from (Question(path) for path in ("/health", "/ping", "/metrics", "/v1/jobs", "/openapi.json", "/"))


def ask_badly() -> Iterator[Question]:
    long = " ".join(make_texts(40))
    for path, body in (
        ("/v1/embeddings", b'{"input": "the film'),
        ("/v1/embeddings", b""),
        ("/v1/embeddings", b"\xff\xfe\x00"),
        ("/v1/embeddings", {"input": []}),
        ("/v1/embeddings", {"input": {"text": 1}}),
        ("/v1/embeddings", {"input": "a", "dimensions": 10**6}),
        ("/v1/embeddings", {"input": "a", "encoding_format": "hex"}),
        ("/v1/embeddings", {"input": [10**9]}),
        ("/v1/jobs/tag", {"text": "a", "model": "nobody"}),
        ("/v1/jobs/tag", {"text": "a", "model": "fill"}),
        ("/v1/jobs/tag", {"texts": "a"}),
        ("/v1/jobs/dance", {"text": "a"}),
        ("/v1/jobs/fill", {"text": "no mask", "model": "fill"}),
        ("/v1/jobs/embed", {"texts": "a", "truncate": "softly"}),
        ("/embed", {"inputs": long, "truncate": False}),
        ("/embed", {}),
        ("/predict", {"inputs": [["a", "b", "c"]]}),
        ("/rerank", {"query": "a", "texts": []}),
        ("/models/nobody", {"inputs": "a"}),
        ("/models/../../etc/passwd", {"inputs": "a"}),
        ("/models/tag/pipeline/dance", {"inputs": "a"}),
        ("/nowhere", None),
        ("/embed", None),
    ):
        yield Question(path, body, is_good=False)
