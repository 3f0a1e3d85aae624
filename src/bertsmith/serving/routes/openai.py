"""Embeddings and the list of models as OpenAI's clients ask for them, and classes as infinity's do.

In: `POST /v1/embeddings`, `POST /classify`, `GET /v1/models`. Out: their JSON, made straight from the arrays.
"""

from base64 import b64encode
from typing import Any, Literal

from fastapi import APIRouter, Request
from pydantic import Field

from bertsmith.serving.asks import Card, Refusal, Reply
from bertsmith.serving.http.answering import JsonAnswer, JsonRoute, ask
from bertsmith.serving.http.picking import pick_model, refuse_empty, take_dimensions
from bertsmith.serving.http.replies import ALL_LABELS, list_rows, tell_classes, tell_usage
from bertsmith.serving.http.shapes import Count, Inputs, Shape, Texts, answered, shown_as

router = APIRouter(route_class=JsonRoute)
USAGE = {"prompt_tokens": 5, "total_tokens": 5}
VECTOR = {"object": "embedding", "index": 0, "embedding": [0.0123, -0.0456]}
MODEL = {
    "id": "mini", "object": "model", "created": 1767225600, "owned_by": "bertsmith", "capabilities": ["embed"],
    "max_model_len": 256,
}  # fmt: skip
VECTORS = answered({"object": "list", "data": [VECTOR], "model": "mini", "usage": USAGE})
CLASSES = answered(
    {"object": "classify", "data": [[{"score": 0.98, "label": "positive"}]], "model": "films", "usage": USAGE}
)
MODELS = answered({"object": "list", "data": [MODEL]})


class EmbeddingsBody(Shape):
    model_config = shown_as(
        {"model": "default", "input": "a river bank"},
        {"input": ["a river bank", "a savings bank"], "encoding_format": "base64"},
    )

    input: Inputs
    model: str | None = Field(None, description="The id of a served model; any other name means the default one.")
    encoding_format: Literal["float", "base64"] | None = Field(
        None, description="A list of numbers, or base64 of the little-endian float32 values."
    )
    dimensions: Count | None = Field(None, description="How many numbers of each vector are kept.")
    user: Any = Field(None, description="Taken and not read.")


class ClassifyBody(Shape):
    model_config = shown_as({"model": "default", "input": ["A wonderful film.", "A dull one."]})

    input: Texts
    model: str | None = Field(None, description="The id of a served model; any other name means the default one.")
    raw_scores: bool = Field(False, description="Whether scores are the head's own, not probabilities.")


@router.post("/v1/embeddings", tags=["openai"], summary="A vector for each text", responses=VECTORS)
@router.post("/embeddings", tags=["openai"], include_in_schema=False)
async def embed(request: Request, body: EmbeddingsBody) -> JsonAnswer:
    """Vectors have length 1, as those of OpenAI and of text-embeddings-inference have."""
    refuse_empty(body.input, "input")
    card = pick_model(request, "embed", body.model)
    given: dict[str, Any] = {"texts": body.input, "normalize": True}
    if body.dimensions is not None:
        given["dims"] = take_dimensions(body.dimensions, card)
    reply = await ask(request, "embed", given, card.id)
    return JsonAnswer(tell_embeddings(reply, body.encoding_format == "base64"))


def tell_embeddings(reply: Reply, base64: bool) -> dict[str, Any]:
    rows = list_rows(reply)
    told = [b64encode(row.tobytes()).decode() for row in rows] if base64 else rows
    data = [{"object": "embedding", "index": number, "embedding": one} for number, one in enumerate(told)]
    return {"object": "list", "data": data, "model": reply.model, "usage": tell_usage(reply)}


@router.post("/classify", tags=["openai"], summary="The classes of each text, in infinity's shape", responses=CLASSES)
async def classify(request: Request, body: ClassifyBody) -> JsonAnswer:
    refuse_empty(body.input, "input")
    texts = [body.input] if isinstance(body.input, str) else body.input
    given: dict[str, Any] = {"text": texts, "top_k": ALL_LABELS}
    if body.raw_scores:
        given["raw"] = True
    reply = await ask(request, "classify", given, pick_model(request, "classify", body.model).id)
    data = [tell_classes(result) for result in reply.results]
    return JsonAnswer({"object": "classify", "data": data, "model": reply.model, "usage": tell_usage(reply)})


@router.get("/v1/models", tags=["openai"], summary="The served models, the default first", responses=MODELS)
@router.get("/models", tags=["openai"], include_in_schema=False)
async def list_models(request: Request) -> JsonAnswer:
    return JsonAnswer({"object": "list", "data": [tell_model(card) for card in request.app.state.backend.cards()]})


@router.get("/v1/models/{id:path}", tags=["openai"], summary="One served model", responses=answered(MODEL))
async def find_model(request: Request, id: str) -> JsonAnswer:
    cards: list[Card] = request.app.state.backend.cards()
    for card in cards:
        if card.id == id:
            return JsonAnswer(tell_model(card))
    raise Refusal("model", f"there is no model {id[:80]!r}; the models are {', '.join(card.id for card in cards)}.")


def tell_model(card: Card) -> dict[str, Any]:
    """`capabilities` is infinity's word for what a model can be asked, `max_model_len` vLLM's for what it reads."""
    told = {"id": card.id, "object": "model", "created": card.created, "owned_by": "bertsmith"}
    return told | {"capabilities": list(card.jobs), "max_model_len": card.main_limit}
