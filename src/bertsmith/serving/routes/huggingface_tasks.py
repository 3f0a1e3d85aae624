"""The tasks of Hugging Face's inference clients: what each sends, which job answers it, and the JSON it expects.

In: an `Asked`, the `inputs` and parameters of a request. Out: what `huggingface_hub.InferenceClient` parses. Parameters
that have no meaning here (`stride`, `max_seq_len`, `options`, …) are taken and not read.
"""

import math
from base64 import b64encode
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Literal

from fastapi import Request
from pydantic import Field

from bertsmith.serving.asks import Card, Refusal, Reply
from bertsmith.serving.http.answering import ask
from bertsmith.serving.http.picking import take_dimensions
from bertsmith.serving.http.replies import ALL_LABELS, list_rows
from bertsmith.serving.http.shapes import Body, Count, Inputs, Shape, Texts, check
from bertsmith.serving.jobs import ANSWER_LENGTH, ANSWERS
from bertsmith.serving.routes.tei_bodies import Direction, choose_prompt, choose_truncation


@dataclass(frozen=True)
class Asked:
    request: Request
    card: Card  # of the model that answers
    inputs: Any
    parameters: dict[str, Any]

    async def ask(self, job: str, given: dict[str, Any]) -> Reply:
        return await ask(self.request, job, given, self.card.id)


class TextsInputs(Shape):
    inputs: Texts


class FillParameters(Shape):
    top_k: Count | None = None
    targets: Texts | None = None


async def fill_masks(asked: Asked) -> Any:
    parameters = check(FillParameters, asked.parameters)
    targets = [parameters.targets] if isinstance(parameters.targets, str) else parameters.targets
    reply = await asked.ask("fill", {"text": take_texts(asked), "top_k": parameters.top_k, "targets": targets})
    return tell_answers(reply)


class QuestionInputs(Shape):
    question: str
    context: str


class QuestionParameters(Shape):
    top_k: Count | None = None
    handle_impossible_answer: bool | None = None
    max_answer_len: Count | None = None


async def answer_questions(asked: Asked) -> Any:
    """One answer where one is asked for, else a list.

    Without `handle_impossible_answer` the model says "" where it learnt that a text may hold no answer; false takes its
    best answer in any case.
    """
    parameters = check(QuestionParameters, asked.parameters)
    questions = [take_object(QuestionInputs, one) for one in list_inputs(asked)]
    count, forced = parameters.top_k or 1, parameters.handle_impossible_answer is False
    given = {"question": [one.question for one in questions], "context": [one.context for one in questions]}
    longest = None if parameters.max_answer_len is None else min(parameters.max_answer_len, ANSWER_LENGTH)
    most = min(count + forced, max(count, ANSWERS))
    reply = await asked.ask("answer", {**given, "top_k": most, "answer_length": longest})
    found = []
    for result in reply.results:
        answers = [one for one in result["answers"] if one["answer"]] if forced else result["answers"]
        answers = (answers or result["answers"])[:count]
        found.append(answers[0] if count == 1 else answers)
    return found if isinstance(asked.inputs, list) else found[0]


class TagParameters(Shape):
    aggregation_strategy: Literal["none", "simple", "first", "average", "max"] | None = None
    ignore_labels: list[str] | None = None


async def tag_tokens(asked: Asked) -> Any:
    """Groups of pieces unless another way is asked for, as Hugging Face's own service gives them."""
    parameters = check(TagParameters, asked.parameters)
    how = parameters.aggregation_strategy or "simple"
    reply = await asked.ask("tag", {"text": take_texts(asked), "aggregation": how})
    ignored = set(parameters.ignore_labels or ())
    found = [
        [one for one in result["answers"] if ignored.isdisjoint((one.get("entity"), one.get("entity_group")))]
        for result in reply.results
    ]
    return found[0] if reply.single else found


class ClassInputs(Shape):
    text: str
    text_pair: str | None = None


class ClassParameters(Shape):
    function_to_apply: Literal["softmax", "sigmoid", "none"] | None = None
    top_k: Count | None = None


async def classify_texts(asked: Asked) -> Any:
    """A list for each text, for one too: the client takes the first."""
    parameters = check(ClassParameters, asked.parameters)
    inputs = list_inputs(asked)
    if not all(isinstance(one, str | dict) for one in inputs):
        raise Refusal("input", "inputs must be a text, an object with text and text_pair, or a list of such.")
    texts = [check(ClassInputs, {"text": one} if isinstance(one, str) else one) for one in inputs]
    given: dict[str, Any] = {"text": [one.text for one in texts]}
    pairs = [one.text_pair for one in texts if one.text_pair is not None]
    if pairs and len(pairs) != len(texts):
        raise Refusal("input", f"{len(pairs)} of {len(texts)} inputs have a text_pair; give each one, or none.")
    given |= {"pair": pairs} if pairs else {}
    function = parameters.function_to_apply
    if "classify" not in asked.card.jobs and "score" in asked.card.jobs:
        reply = await asked.ask("score", given)
        label = asked.card.labels[0] if asked.card.labels else "score"
        numbers = [change_number(result["answers"][0]["score"], function) for result in reply.results]
        return [[{"label": label, "score": number}] for number in numbers]
    given |= {"top_k": parameters.top_k or ALL_LABELS, "raw": True if function == "none" else None}
    reply = await asked.ask("classify", {**given, "apply": None if function == "none" else function})
    return [result["answers"] for result in reply.results]


def change_number(number: float, function: str | None) -> float:
    """The one output of a model that gives a number."""
    if function == "sigmoid":
        return 0.5 * (1.0 + math.tanh(0.5 * number))
    return 1.0 if function == "softmax" else number


class LabelParameters(Shape):
    candidate_labels: Texts
    hypothesis_template: str | None = None
    multi_label: bool | None = None


async def judge_labels(asked: Asked) -> Any:
    parameters = check(LabelParameters, asked.parameters)
    labels = parameters.candidate_labels
    given = {
        "text": take_texts(asked),
        "labels": [label for label in labels.split(",") if label.strip()] if isinstance(labels, str) else labels,
        "hypothesis": parameters.hypothesis_template,
        "several": parameters.multi_label,
    }
    return tell_answers(await asked.ask("classify", given))


class FeatureInputs(Shape):
    inputs: Inputs


class FeatureParameters(Shape):
    normalize: bool | None = None
    prompt_name: str | None = None
    truncate: bool | None = None
    truncation_direction: Direction | None = None
    dimensions: Count | None = None
    encoding_format: Literal["float", "base64"] | None = None


async def embed_texts(asked: Asked) -> Any:
    """A list of vectors, for one text too."""
    parameters = check(FeatureParameters, asked.parameters)
    inputs = check(FeatureInputs, {"inputs": asked.inputs}).inputs
    refuse_nothing(inputs)
    given: dict[str, Any] = {"texts": inputs, "normalize": parameters.normalize}
    given |= choose_prompt(parameters.prompt_name, asked.card)
    given |= choose_truncation(asked.request, parameters.truncate, parameters.truncation_direction or "right")
    if parameters.dimensions is not None:
        given["dims"] = take_dimensions(parameters.dimensions, asked.card)
    vectors = list_rows(await asked.ask("embed", given))
    if parameters.encoding_format == "base64":
        return [b64encode(vector.tobytes()).decode() for vector in vectors]
    return vectors


class SimilarInputs(Shape):
    source_sentence: str
    sentences: list[str]


async def compare_sentences(asked: Asked) -> Any:
    inputs = take_object(SimilarInputs, asked.inputs)
    reply = await asked.ask("similar", {"text": inputs.source_sentence, "others": inputs.sentences})
    found = {answer["index"]: answer["score"] for answer in reply.results[0]["answers"]}
    return [found[index] for index in range(len(inputs.sentences))]


class RankParameters(Shape):
    top_k: Count | None = None
    raw_scores: bool | None = None
    return_text: bool = False
    function_to_apply: Literal["sigmoid", "none"] | None = None


class RankInputs(Shape):
    query: str
    texts: list[str] = Field(min_length=1)


async def rank_texts(asked: Asked) -> Any:
    """`index, score`, best first, as text-embeddings-inference ranks; sentences and documents are texts, too."""
    parameters = check(RankParameters, asked.parameters)
    given = asked.inputs
    if isinstance(given, dict):
        texts = next((given[name] for name in ("texts", "documents", "sentences") if name in given), None)
        given = {"query": given.get("query", given.get("source_sentence")), "texts": texts}
    inputs = take_object(RankInputs, given)
    raw = parameters.raw_scores or parameters.function_to_apply == "none" or None
    reply = await asked.ask("rerank", {"query": inputs.query, "texts": inputs.texts, "top_k": parameters.top_k,
                                       "raw": raw})  # fmt: skip
    kept = ("index", "score", "text") if parameters.return_text else ("index", "score")
    return [{key: answer[key] for key in kept} for answer in reply.results[0]["answers"]]


class ChoiceInputs(Shape):
    prompt: str
    choices: list[str]


async def choose(asked: Asked) -> Any:
    inputs = take_object(ChoiceInputs, asked.inputs)
    reply = await asked.ask("choose", {"prompt": inputs.prompt, "choices": inputs.choices})
    return reply.results[0]["answers"]


@dataclass(frozen=True)
class HuggingFaceTask:
    job: str  # that answers it
    answer: Callable[[Asked], Awaitable[Any]]
    example: dict[str, Any]


TASKS: dict[str, HuggingFaceTask] = {
    "fill-mask": HuggingFaceTask("fill", fill_masks, {"inputs": "Paris is the [MASK] of France."}),
    "question-answering": HuggingFaceTask(
        "answer", answer_questions,
        {"inputs": {"question": "Who lived in London?", "context": "Ada Lovelace lived in London."}},
    ),
    "token-classification": HuggingFaceTask("tag", tag_tokens, {"inputs": "Ada Lovelace lived in London."}),
    "text-classification": HuggingFaceTask("classify", classify_texts, {"inputs": "A wonderful film."}),
    "zero-shot-classification": HuggingFaceTask(
        "classify", judge_labels,
        {"inputs": "The match ended in a draw.", "parameters": {"candidate_labels": ["sport", "politics"]}},
    ),
    "feature-extraction": HuggingFaceTask(
        "embed", embed_texts, {"inputs": ["a river bank", "a savings bank"], "normalize": True}
    ),
    "sentence-similarity": HuggingFaceTask(
        "similar", compare_sentences,
        {"inputs": {"source_sentence": "a river bank", "sentences": ["the shore of a stream", "a savings account"]}},
    ),
    "text-ranking": HuggingFaceTask(
        "rerank", rank_texts,
        {"inputs": {"query": "Who lived in London?", "texts": ["Ada Lovelace lived in London.", "Milk is white."]}},
    ),
    "multiple-choice": HuggingFaceTask(
        "choose", choose,
        {"inputs": {"prompt": "Where does one buy milk?", "choices": ["in a shop", "in the sky"]}},
    ),
}  # fmt: skip
OTHER_NAMES = {"ner": "token-classification", "sentiment-analysis": "text-classification",
               "embeddings": "feature-extraction", "zero-shot": "zero-shot-classification"}  # fmt: skip


def take_texts(asked: Asked) -> Any:
    """One text or several."""
    texts = check(TextsInputs, {"inputs": asked.inputs}).inputs
    refuse_nothing(texts)
    return texts


def list_inputs(asked: Asked) -> list[Any]:
    inputs = asked.inputs if isinstance(asked.inputs, list) else [asked.inputs]
    refuse_nothing(inputs)
    return inputs


def take_object(kind: type[Body], given: Any) -> Body:
    if not isinstance(given, dict):
        raise Refusal("input", f"inputs must be an object with {' and '.join(kind.model_fields)}.")
    return check(kind, given)


def refuse_nothing(inputs: Any) -> None:
    if inputs == []:
        raise Refusal("input", "inputs is empty; give at least one.")


def tell_answers(reply: Reply) -> Any:
    return reply.results[0]["answers"] if reply.single else [result["answers"] for result in reply.results]
