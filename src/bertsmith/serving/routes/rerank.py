"""Texts by how well they answer a query, as the clients of Cohere, Jina, infinity and vLLM ask for it.

In: `POST /v1/rerank` with `documents`; `POST /rerank`, whose `texts` are text-embeddings-inference's. Out: their JSON.
"""

from typing import Annotated, Any
from uuid import uuid4

from fastapi import APIRouter, Depends, Request
from pydantic import Field, PlainValidator, WithJsonSchema
from pydantic_core import PydanticCustomError

from bertsmith.serving.asks import Refusal
from bertsmith.serving.http.answering import JsonAnswer, JsonRoute, ask
from bertsmith.serving.http.complaints import EmptyInput
from bertsmith.serving.http.picking import pick_model
from bertsmith.serving.http.replies import tell_usage
from bertsmith.serving.http.shapes import TEXT, Count, Shape, answered, shown_as
from bertsmith.serving.routes.tei_bodies import Direction, choose_truncation

router = APIRouter(route_class=JsonRoute)
QUERY = "Who lived in London?"
TEXTS = ["Ada Lovelace lived in London.", "Milk is white."]
RANKED = answered(
    {
        "id": "4b8c0d5e-0000-4000-8000-000000000000", "object": "rerank", "model": "ranker",
        "results": [{"index": 0, "relevance_score": 0.97}], "usage": {"prompt_tokens": 17, "total_tokens": 17},
    }
)  # fmt: skip
DOCUMENT = {"anyOf": [TEXT, {"type": "object", "properties": {"text": TEXT}, "required": ["text"]}]}


def _take_documents(value: Any) -> list[str]:
    if isinstance(value, list):
        texts: list[Any] = [one.get("text") if isinstance(one, dict) else one for one in value]
        if all(isinstance(text, str) for text in texts):
            return texts
    raise PydanticCustomError("documents", 'it must be a list of texts, or of objects with a "text"')


Documents = Annotated[
    list[str],
    PlainValidator(_take_documents),
    WithJsonSchema({"type": "array", "items": DOCUMENT, "minItems": 1}),
]


class DocumentsBody(Shape):
    model_config = shown_as({"model": "default", "query": QUERY, "documents": TEXTS, "top_n": 1})

    query: str = Field(min_length=1)
    documents: Documents
    model: str | None = Field(None, description="The id of a served model; any other name means the default one.")
    top_n: Count | None = Field(None, description="How many are given; all, if it is left out.")
    return_documents: bool | None = Field(False, description="Whether each document comes with its score.")
    raw_scores: bool = Field(False, description="Whether scores are the head's own, not from 0 to 1.")


class TextsBody(Shape):
    """Of both shapes; which one it is shows by its key."""

    model_config = shown_as({"query": QUERY, "texts": TEXTS}, {"query": QUERY, "documents": TEXTS})

    query: str = Field(min_length=1)
    texts: list[str] | None = Field(None, description="For an answer in the shape of text-embeddings-inference.")
    documents: Documents | None = Field(None, description="For an answer as `/v1/rerank` gives it.")
    raw_scores: bool = Field(False, description="Whether scores are the head's own, not from 0 to 1.")
    return_text: bool = False
    truncate: bool | None = None
    truncation_direction: Direction = "right"
    model: str | None = None
    top_n: Count | None = None
    return_documents: bool | None = False


@router.post("/v1/rerank", tags=["cohere"], summary="Documents by how well they answer a query", responses=RANKED)
@router.post("/v2/rerank", tags=["cohere"], include_in_schema=False)
async def rerank_documents(request: Request, body: DocumentsBody) -> JsonAnswer:
    if not body.documents:
        raise EmptyInput("documents is empty; give at least one.")
    given: dict[str, Any] = {"query": body.query, "texts": body.documents, "top_k": body.top_n}
    if body.raw_scores:
        given["raw"] = True
    reply = await ask(request, "rerank", given, pick_model(request, "rerank", body.model).id)
    results = []
    for answer in reply.results[0]["answers"]:
        result = {"index": answer["index"], "relevance_score": answer["score"]}
        if body.return_documents:
            result["document"] = {"text": answer["text"]}
        results.append(result)
    told = {"id": str(uuid4()), "object": "rerank", "model": reply.model, "results": results}
    return JsonAnswer(told | {"usage": tell_usage(reply)})


async def find_style(request: Request) -> None:
    """Mistakes are told in the shape of whoever asks."""
    value = await request.json()
    if isinstance(value, dict) and "documents" in value:
        request.state.record.style = "cohere"


@router.post(
    "/rerank",
    tags=["tei"],
    dependencies=[Depends(find_style)],
    summary="Texts by how well they answer a query: texts as text-embeddings-inference, documents as Cohere",
    responses=answered([{"index": 0, "score": 0.97}, {"index": 1, "score": 0.02}]),
)
async def rerank(request: Request, body: TextsBody) -> JsonAnswer:
    if body.documents is not None:
        return await rerank_documents(
            request,
            DocumentsBody(
                query=body.query, documents=body.documents, model=body.model, top_n=body.top_n,
                return_documents=body.return_documents, raw_scores=body.raw_scores,
            ),
        )  # fmt: skip
    return JsonAnswer(await rank_texts(request, body))


async def rank_texts(request: Request, body: TextsBody) -> list[dict[str, Any]]:
    if body.texts is None:
        raise Refusal("input", "the field 'texts' is missing.")
    if not body.texts:
        raise EmptyInput("texts is empty; give at least one.")
    given: dict[str, Any] = {"query": body.query, "texts": body.texts}
    given |= choose_truncation(request, body.truncate, body.truncation_direction)
    if body.raw_scores:
        given["raw"] = True
    reply = await ask(request, "rerank", given, pick_model(request, "rerank", body.model).id)
    kept = ("index", "score", "text") if body.return_text else ("index", "score")
    return [{key: answer[key] for key in kept} for answer in reply.results[0]["answers"]]
