"""The routes of Hugging Face's inference clients: a model by its id, or the default one, asked for one of its tasks.

In: `POST /models/{id}`, `/models/{id}/pipeline/{task}`, `/pipeline/{task}`, `/`. Out: the JSON of huggingface_tasks.
"""

from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, Body, Path, Request, Response
from pydantic import ConfigDict, Field
from starlette.exceptions import HTTPException

from bertsmith.serving.asks import Card, Refusal
from bertsmith.serving.http.answering import JsonAnswer, JsonRoute
from bertsmith.serving.http.picking import pick_model
from bertsmith.serving.http.shapes import Shape
from bertsmith.serving.routes.huggingface_tasks import OTHER_NAMES, TASKS, Asked

router = APIRouter(route_class=JsonRoute)
# What a body holds that only one task has, where the URL names none.
TOLD_BY = {
    "question-answering": ("question", "context"),
    "sentence-similarity": ("source_sentence", "sentences"),
    "multiple-choice": ("prompt", "choices"),
    "text-ranking": ("query",),
}
NOT_PARAMETERS = ("inputs", "parameters", "options")
EXAMPLES = {name: {"summary": name, "value": task.example} for name, task in TASKS.items()}


class InferenceBody(Shape):
    """Some clients put the parameters beside the inputs."""

    model_config = ConfigDict(extra="allow", protected_namespaces=())

    inputs: Any = Field(None, description="A text, several, or an object with the fields of the task.")
    parameters: dict[str, Any] | None = Field(None, description="Those without a meaning here are not read.")
    model: str | None = Field(None, description="The id of a model, where the URL names none.")


TaskName = Annotated[str, Path(json_schema_extra={"enum": list(TASKS)})]
Posted = Annotated[InferenceBody, Body(openapi_examples=EXAMPLES)]


@router.post("/models/{id:path}/pipeline/{task}", tags=["huggingface"], summary="A task of a model")
async def ask_task(request: Request, id: str, task: TaskName, body: Posted) -> JsonAnswer:
    card = find_card(request, id)
    return await answer(request, find_task(task), card, body)


@router.post("/models/{id:path}", tags=["huggingface"], summary="The main task of a model, or what the body tells")
async def ask_model(request: Request, id: str, body: Posted) -> JsonAnswer:
    card = find_card(request, id)
    return await answer(request, guess_task(body) or card.pipeline, card, body)


@router.post("/pipeline/{task}", tags=["huggingface"], summary="A task of the default model")
async def ask_default_task(request: Request, task: TaskName, body: Posted) -> JsonAnswer:
    name = find_task(task)
    return await answer(request, name, pick_for(request, name, body), body)


@router.post("/", tags=["huggingface"], summary="The main task of the default model, or what the body tells")
async def ask_default(request: Request, body: Posted) -> JsonAnswer:
    name = guess_task(body)
    card = pick_for(request, name, body) if name else pick_model(request, "embed", body.model)  # which every model can
    return await answer(request, name or card.pipeline, card, body)


@router.get("/models/{id:path}/health", tags=["huggingface"], summary="Whether a model can be asked now")
async def tell_health(request: Request, id: str) -> Response:
    """For `InferenceClient.health_check`, which puts /health behind the address of a model."""
    find_card(request, id)
    if request.app.state.draining or not request.app.state.backend.is_ready():
        raise Refusal("unavailable", "the model cannot be asked now.", 1.0)
    return Response()


@router.get("/models/{id:path}", tags=["huggingface"], summary="What a model is and what it can be asked")
@router.get("/models/{id:path}/info", tags=["huggingface"], include_in_schema=False)
async def tell_card(request: Request, id: str) -> JsonAnswer:
    card = find_card(request, id)
    return JsonAnswer({**asdict(card), "pipeline_tag": card.pipeline})


async def answer(request: Request, task: str, card: Card, body: InferenceBody) -> JsonAnswer:
    beside = body.model_extra or {}
    inputs = body.inputs
    if inputs is None and task == "text-ranking":
        inputs = beside  # as text-embeddings-inference has it: query and texts stand beside the parameters
    if inputs is None:
        raise Refusal("input", "the field 'inputs' is missing.")
    parameters = {name: value for name, value in beside.items() if name not in NOT_PARAMETERS}
    return JsonAnswer(await TASKS[task].answer(Asked(request, card, inputs, parameters | (body.parameters or {}))))


def find_card(request: Request, id: str) -> Card:
    cards: list[Card] = request.app.state.backend.cards()
    for card in cards:
        if card.id == id:
            return card
    raise Refusal("model", f"there is no model {id[:80]!r}; the models are {', '.join(card.id for card in cards)}.")


def find_task(name: str) -> str:
    name = OTHER_NAMES.get(name, name)
    if name not in TASKS:
        raise HTTPException(404, f"there is no task {name[:40]!r}; the tasks are {', '.join(TASKS)}.")
    return name


def guess_task(body: InferenceBody) -> str | None:
    """The task that a body can only be meant for."""
    beside = body.model_extra or {}
    if "candidate_labels" in (body.parameters or {}) or "candidate_labels" in beside:
        return "zero-shot-classification"
    inputs = body.inputs[0] if isinstance(body.inputs, list) and body.inputs else body.inputs
    held = beside if inputs is None else inputs if isinstance(inputs, dict) else {}
    return next((task for task, names in TOLD_BY.items() if all(name in held for name in names)), None)


def pick_for(request: Request, task: str, body: InferenceBody) -> Card:
    """The model that the body names, the default one, or the only one that can do the task."""
    meant = pick_model(request, "embed", body.model)
    if task == "text-classification" and "score" in meant.jobs:
        return meant
    return pick_model(request, TASKS[task].job, body.model)
