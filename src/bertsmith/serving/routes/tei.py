"""The routes of text-embeddings-inference 1.9, for clients that were written for it.

In: its JSON. Out: its JSON, lists at the root. The model is the default one, or the only one that can do what is asked,
unless "model" in the body names another; its own clients do not send that.
"""

from typing import Annotated, Any

import numpy as np
from fastapi import APIRouter, Body, Request

from bertsmith import __version__
from bertsmith.serving.asks import Refusal
from bertsmith.serving.http.answering import JsonAnswer, JsonRoute, ask
from bertsmith.serving.http.picking import do_all, list_cards, pick_model, refuse_empty, refuse_many, take_dimensions
from bertsmith.serving.http.replies import ALL_LABELS, list_rows, tell_classes
from bertsmith.serving.http.shapes import answered, check, is_ids
from bertsmith.serving.routes.rerank import TextsBody, rank_texts
from bertsmith.serving.routes.tei_bodies import (
    DecodeBody,
    EmbedAllBody,
    EmbedBody,
    PredictBody,
    SimilarityBody,
    TokenizeBody,
    Truncated,
    VertexBody,
    choose_prompt,
    choose_truncation,
)

router = APIRouter(route_class=JsonRoute, tags=["tei"])
VECTORS = [[0.0123, -0.0456]]
PIECES = [{"id": 2314, "text": "river", "special": False, "start": 0, "stop": 5}]
CLASSES = [{"score": 0.98, "label": "positive"}, {"score": 0.02, "label": "negative"}]
Anything = Annotated[dict[str, Any], Body(examples=[{"inputs": "a river bank"}])]


@router.post("/embed", summary="A vector for each text", responses=answered(VECTORS))
async def embed(request: Request, body: EmbedBody) -> JsonAnswer:
    return JsonAnswer(await embed_inputs(request, body))


async def embed_inputs(request: Request, body: EmbedBody) -> list[Any]:
    refuse_empty(body.inputs, "inputs")
    card = pick_model(request, "embed", body.model)
    given: dict[str, Any] = {"texts": body.inputs, "normalize": body.normalize}
    given |= _cut(request, body) | choose_prompt(body.prompt_name, card)
    if body.dimensions is not None:
        given["dims"] = take_dimensions(body.dimensions, card)
    return list_rows(await ask(request, "embed", given, card.id))


@router.post("/embed_all", summary="The vectors of all tokens of each text", responses=answered([VECTORS]))
async def embed_all(request: Request, body: EmbedAllBody) -> JsonAnswer:
    refuse_empty(body.inputs, "inputs")
    if body.prompt_name is not None:
        raise Refusal("input", "the vectors of tokens have no prompt; leave prompt_name out.")
    given = {"texts": body.inputs, **_cut(request, body)}
    return JsonAnswer(list_rows(await ask(request, "hidden", given, pick_model(request, "hidden", body.model).id)))


@router.post("/embed_sparse", summary="Refused: no model here gives sparse vectors")
async def embed_sparse(request: Request, body: EmbedAllBody) -> JsonAnswer:
    name = pick_model(request, "embed", body.model).id
    raise Refusal("job", f"the model {name!r} has no sparse vectors; ask /embed for dense ones.")


@router.post("/predict", summary="The classes of a text, a pair or a list of them", responses=answered(CLASSES))
async def predict(request: Request, body: PredictBody) -> JsonAnswer:
    return JsonAnswer(await predict_inputs(request, body))


async def predict_inputs(request: Request, body: PredictBody) -> list[Any]:
    refuse_empty(body.inputs, "inputs")
    is_batch = isinstance(body.inputs, list) and isinstance(body.inputs[0], list)
    inputs = body.inputs if is_batch else [[body.inputs] if isinstance(body.inputs, str) else body.inputs]
    refuse_many(request, len(inputs), "inputs")
    for number, one in enumerate(inputs):
        refuse_empty(one, f"inputs[{number}]" if is_batch else "inputs")
    settled = {"top_k": ALL_LABELS, **_cut(request, body)}
    if body.raw_scores:
        settled["raw"] = True
    model = pick_model(request, "classify", body.model).id
    # A job is asked about texts or about pairs; a batch may hold both.
    sides = [[n for n, one in enumerate(inputs) if len(one) == size] for size in (1, 2)]
    works = []
    for numbers in filter(None, sides):
        given = {"text": [inputs[n][0] for n in numbers], **settled}
        if len(inputs[numbers[0]]) == 2:
            given["pair"] = [inputs[n][1] for n in numbers]
        works.append(ask(request, "classify", given, model))
    results = [result for reply in await do_all(works) for result in reply.results]
    order = np.argsort([n for numbers in sides for n in numbers])
    told = [tell_classes(results[place]) for place in order]
    return told if is_batch else told[0]


@router.post("/similarity", summary="How alike sentences are to one", responses=answered([0.71, 0.12]))
async def compare(request: Request, body: SimilarityBody) -> JsonAnswer:
    """The cosines of the vectors, in the order of the sentences."""
    texts = [body.inputs.source_sentence, *body.inputs.sentences]
    refuse_empty(body.inputs.sentences, "sentences")
    refuse_many(request, len(texts) - 1, "sentences")
    card = pick_model(request, "embed", body.model)
    shared: dict[str, Any] = {"normalize": True}
    if body.parameters is not None:
        shared |= _cut(request, body.parameters) | choose_prompt(body.parameters.prompt_name, card)
    works = [ask(request, "embed", {"texts": some, **shared}, card.id) for some in (texts[:1], texts[1:])]
    (source,), others = (list_rows(reply) for reply in await do_all(works))
    return JsonAnswer(np.clip(np.stack(others) @ source, -1.0, 1.0))


@router.post("/tokenize", summary="The pieces of each text", responses=answered([PIECES]))
async def tokenize(request: Request, body: TokenizeBody) -> JsonAnswer:
    refuse_empty(body.inputs, "inputs")
    if body.prompt_name is not None:
        raise Refusal("input", "a text is cut into pieces without a prompt; leave prompt_name out.")
    texts = [body.inputs] if isinstance(body.inputs, str) else body.inputs
    reply = await ask(request, "tokenize", {"text": texts}, pick_model(request, "tokenize", body.model).id)
    rows = zip(reply.results, texts, strict=True)
    return JsonAnswer([tell_pieces(found, text, body.add_special_tokens) for found, text in rows])


def tell_pieces(found: dict[str, Any], text: str, specials: bool) -> list[dict[str, Any]]:
    """A piece of the text is told as it stands there; one that was put around it has no place in it."""
    told = []
    for id, piece, (start, stop), word in zip(
        found["ids"], found["pieces"], found["offsets"], found["words"], strict=True
    ):
        if word is None:
            if specials:
                told.append({"id": id, "text": piece, "special": True, "start": None, "stop": None})
        else:
            told.append({"id": id, "text": text[start:stop], "special": False, "start": start, "stop": stop})
    return told


@router.post("/decode", summary="The text of token ids", responses=answered(["a river"]))
async def decode(request: Request, body: DecodeBody) -> JsonAnswer:
    refuse_empty(body.ids, "ids")
    rows = [body.ids] if isinstance(body.ids[0], int) else body.ids
    given: dict[str, Any] = {"ids": rows}
    if not body.skip_special_tokens:
        given["skip_specials"] = False
    reply = await ask(request, "decode", given, pick_model(request, "decode", body.model).id)
    return JsonAnswer(reply.results)


@router.post("/invocations", summary="What the default model is for, as SageMaker asks", responses=answered(VECTORS))
async def invoke(request: Request, body: Anything) -> JsonAnswer:
    return JsonAnswer(await answer_by_kind(request, body))


@router.post("/vertex", summary="The same for each instance", responses=answered({"predictions": [VECTORS]}))
async def answer_instances(request: Request, body: VertexBody) -> JsonAnswer:
    refuse_empty(body.instances, "instances")
    refuse_many(request, sum(count_texts(request, one) for one in body.instances), "instances")
    told = await do_all([answer_by_kind(request, instance) for instance in body.instances])
    return JsonAnswer({"predictions": told})


def count_texts(request: Request, given: dict[str, Any]) -> int:
    """Of what one instance asks; a pair, or the ids of a text, are one."""
    inputs = given.get("texts" if "query" in given else "inputs")
    if not isinstance(inputs, list) or is_ids(inputs):
        return 1
    is_pair = "query" not in given and isinstance(inputs[0], str) and find_kind(request, given) == "classifier"
    return 1 if is_pair else len(inputs)


def find_kind(request: Request, given: dict[str, Any]) -> str:
    """What the model is for that the body names, or the default one."""
    cards = list_cards(request)
    return next((card.kind for card in cards if card.id == given.get("model")), cards[0].kind)


async def answer_by_kind(request: Request, given: dict[str, Any]) -> list[Any]:
    """Texts to rank are known by their keys; the rest by the model."""
    kind = find_kind(request, given)
    if "query" in given or kind == "reranker":
        return await rank_texts(request, check(TextsBody, given))
    if kind == "classifier":
        return await predict_inputs(request, check(PredictBody, given))
    return await embed_inputs(request, check(EmbedBody, given))


@router.get("/info", summary="What the default model is, and the server's limits")
async def tell_info(request: Request) -> JsonAnswer:
    settings, card = request.app.state.settings, list_cards(request)[0]
    labels = {str(number): label for number, label in enumerate(card.labels)}
    about = {"id2label": labels, "label2id": {label: number for number, label in enumerate(card.labels)}}
    return JsonAnswer(
        {
            "model_id": card.id,
            "model_sha": card.revision,
            "model_dtype": card.dtype,
            "served_model_name": card.id,
            "model_type": {card.kind: {"pooling": card.pooling} if card.kind == "embedding" else about},
            "max_concurrent_requests": settings.requests,
            "max_input_length": card.main_limit,
            "max_batch_tokens": card.batch_tokens,
            "max_batch_requests": None,
            "max_client_batch_size": settings.inputs,
            "auto_truncate": settings.truncate != "error",
            "tokenization_workers": settings.workers,
            "version": __version__,
            "sha": None,
            "docker_label": None,
        }
    )


def _cut(request: Request, body: Truncated) -> dict[str, str]:
    return choose_truncation(request, body.truncate, body.truncation_direction)
