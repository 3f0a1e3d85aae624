"""Whether the server is alive and ready, how much it did, and what is here."""

from typing import Any

from fastapi import APIRouter, Request, Response
from prometheus_client import CONTENT_TYPE_LATEST

from bertsmith import __version__
from bertsmith.serving.http.answering import JsonAnswer
from bertsmith.serving.http.keys import Keys
from bertsmith.serving.routes.page import show, wants_page

router = APIRouter()
UNHEALTHY = {"error": "unhealthy", "error_type": "unhealthy"}


def is_ready(request: Request) -> bool:
    return not request.app.state.draining and bool(request.app.state.backend.is_ready())


@router.get("/health", tags=["tei", "health"], operation_id="health", summary="Whether to send requests here")
@router.get("/ping", tags=["tei", "health"], operation_id="ping", summary="The same, where SageMaker asks")
async def tell_health(request: Request) -> Response:
    """200 where a request would be answered, else 503."""
    return Response() if is_ready(request) else JsonAnswer(UNHEALTHY, 503)


@router.get("/healthz/live", tags=["bertsmith", "health"], summary="Whether the process lives")
async def tell_live() -> Any:
    """200 for as long as the process works at all; one that does not answer is to be started again."""
    return JsonAnswer({"live": True})


@router.get("/healthz/ready", tags=["bertsmith", "health"], summary="Whether to send requests here, with why not")
async def tell_ready(request: Request) -> Any:
    """200 where requests may be sent here; 503 while models load, are gone or the server is about to stop."""
    state = request.app.state
    ready = is_ready(request)
    return JsonAnswer({"ready": ready, "draining": state.draining}, 200 if ready else 503)


@router.get("/metrics", tags=["bertsmith", "health"], summary="What the server has done, for Prometheus")
async def tell_metrics(request: Request) -> Response:
    """Counts and durations as Prometheus reads them, summed over the processes of this server."""
    state = request.app.state
    return Response(state.metrics.tell(state.backend), headers={"content-type": CONTENT_TYPE_LATEST})


@router.get("/", tags=["bertsmith", "health"], operation_id="root", summary="What this is")
async def tell_root(request: Request) -> Any:
    """The version, the served models, and where more is told; a browser gets a page to play with."""
    state = request.app.state
    if state.settings.page and wants_page(request):
        return show("index.html", request)
    given = request.headers.get("authorization", "").encode("latin-1")
    may_know = Keys(state.settings.keys).opens("GET", "/v1/models", given)  # this path has none, for the page
    ids = [card.id for card in state.backend.cards()] if state.backend.is_ready() else []
    docs = {"docs": "/docs", "openapi": "/openapi.json"} if state.settings.docs else {}
    told = {"name": "bertsmith", "version": __version__, **({"models": ids} if may_know else {}), **docs}
    return JsonAnswer(told, headers={"vary": "accept"})
