"""The application: routes in the shapes that clients know, and what goes wrong told in each one's style.

In: a `Backend` that answers and the `Settings`. Out: a FastAPI app that any ASGI server can run.
"""

from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware

from bertsmith import __version__
from bertsmith.serving.asks import Backend, Refusal
from bertsmith.serving.http.answering import BadJson, ClientGone
from bertsmith.serving.http.complaints import Complaint, of_refusal, of_status, of_validation, render
from bertsmith.serving.http.directory import Directory
from bertsmith.serving.http.door import Door
from bertsmith.serving.http.metrics import make_metrics
from bertsmith.serving.routes import docs, health, huggingface, jobs, openai, page, rerank, tei
from bertsmith.serving.settings import Settings

ROUTERS = [module.router for module in (openai, tei, rerank, huggingface, jobs, health, docs, page)]


def create_app(backend: Backend, settings: Settings) -> FastAPI:
    """`app.state.draining`: set it when the server is about to stop, so that nobody new is sent here."""
    app = FastAPI(
        title="bertsmith",
        version=__version__,
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        redirect_slashes=False,
        # Given here they are looked through one by one; routers that are included cost each request a fifth more.
        routes=[route for router in ROUTERS for route in router.routes],
    )
    app.state.backend = backend
    app.state.settings = settings
    app.state.draining = False
    app.state.metrics = make_metrics()
    app.state.directory = Directory(ROUTERS)
    add_complaints(app)
    app.add_middleware(Door, state=app.state)
    if settings.cors:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=list(settings.cors),
            allow_methods=["GET", "POST"],
            allow_headers=["*"],  # what clients add of their own (OpenAI's x-stainless-*) asks for leave, too
            expose_headers=["x-request-id", "x-truncated-tokens", "retry-after", "retry-after-ms"],
        )
    return app


def add_complaints(app: FastAPI) -> None:
    """Every way in which a request can fail ends in `render`."""

    async def refuse(request: Request, error: Any) -> Response:
        return complain(request, of_refusal(error))

    async def misread(request: Request, error: Any) -> Response:
        return complain(request, Complaint("json", str(error)))

    async def invalidate(request: Request, error: Any) -> Response:
        return complain(request, of_validation(error.errors()))

    async def miss(request: Request, error: Any) -> Response:
        response = complain(request, of_status(error.status_code, request.method, request.url.path, error.detail))
        response.headers.update(error.headers or {})
        if error.status_code == 405:
            response.headers["allow"] = ", ".join(app.state.directory.list_methods(request.url.path))
        return response

    async def leave(request: Request, error: Any) -> Response:
        return complain(request, Complaint("gone", "the client has gone."))

    app.add_exception_handler(Refusal, refuse)
    app.add_exception_handler(BadJson, misread)
    app.add_exception_handler(RequestValidationError, invalidate)
    app.add_exception_handler(HTTPException, miss)
    app.add_exception_handler(ClientGone, leave)


def complain(request: Request, complaint: Complaint) -> Response:
    record = request.state.record
    record.complaint = complaint.kind
    return render(complaint, record.style, record.id)
