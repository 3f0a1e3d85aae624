"""Our own way of asking: `POST /v1/jobs/{job}` with the job's fields by name, as the method of `Model` takes them.

In: a body made after `jobs.JOBS`, with the id of a model if not the default one is meant. Out: the `Result` as it is, a
list of them under `results` where a list was given, or `vectors`; and the model that answered, with the tokens it read.
"""

from collections.abc import Awaitable, Callable
from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict, WithJsonSchema, create_model
from pydantic import Field as Documented
from starlette.exceptions import HTTPException

from bertsmith.serving.asks import Reply
from bertsmith.serving.fields import Field, Job
from bertsmith.serving.guide import EXAMPLES, NEEDS
from bertsmith.serving.http.answering import JsonAnswer, JsonRoute, ask
from bertsmith.serving.http.picking import pick_model
from bertsmith.serving.http.replies import list_rows
from bertsmith.serving.jobs import JOBS

router = APIRouter(route_class=JsonRoute)


class JobBody(BaseModel):
    """Whether fields fit is looked at where the job is done, so that every way to ask has the same complaints."""

    model_config = ConfigDict(extra="allow", protected_namespaces=())

    model: Annotated[str | None, Documented(description="The id of a served model; left out, the default.")] = None


@router.get("/v1/jobs", tags=["bertsmith"], summary="What can be asked, and which models can be asked it")
async def list_jobs(request: Request) -> JsonAnswer:
    cards = request.app.state.backend.cards()
    models = [{name: getattr(card, name) for name in ("id", "labels", "limit", "family", "mask")} for card in cards]
    return JsonAnswer({"jobs": [tell_job(request, job) for job in JOBS.values()], "models": models})


@router.get("/v1/jobs/{job}", tags=["bertsmith"], summary="One job: its fields, an example, the models that can")
async def show_job(request: Request, job: str) -> JsonAnswer:
    return JsonAnswer(tell_job(request, find(job)))


def tell_job(request: Request, job: Job) -> dict[str, Any]:
    able = [card.id for card in request.app.state.backend.cards() if job.name in card.jobs]
    fields = [asdict(field) for field in job.fields]
    told = {"name": job.name, "help": job.help, "fields": fields, "example": dict(job.example)}
    more = {"examples": [*map(dict, EXAMPLES.get(job.name, (job.example,)))], "needs": asdict(NEEDS[job.name])}
    return told | {"gives_vectors": job.gives_vectors, "gives_picture": job.looks, "models": able} | more


def find(name: str) -> Job:
    if name not in JOBS:
        raise HTTPException(404, f"there is no job {name[:40]!r}; the jobs are {', '.join(JOBS)}.")
    return JOBS[name]


def add_route(job: Job) -> None:
    """A route of its own for each job, so that its fields and its example stand in the documentation."""
    router.add_api_route(
        f"/v1/jobs/{job.name}", make_handler(job), methods=["POST"], tags=["bertsmith"], summary=job.help,
        operation_id=f"job_{job.name}",
    )  # fmt: skip


def make_handler(job: Job) -> Callable[..., Awaitable[JsonAnswer]]:
    async def handle(request: Request, body: Any) -> JsonAnswer:
        given = body.model_dump()
        model = given.pop("model") or pick_model(request, job.name).id
        return JsonAnswer(tell(await ask(request, job.name, given, model)))

    handle.__annotations__["body"] = make_body(job)
    return handle


def make_body(job: Job) -> type[JobBody]:
    fields: dict[str, Any] = {}
    for field in job.fields:
        kind = Annotated[Any, WithJsonSchema(describe(field)), Documented(description=field.help)]
        fields[field.name] = (kind, ... if field.required else None)
    made: type[JobBody] = create_model(f"{job.name.capitalize()}Job", __base__=JobBody, **fields)
    made.model_config["json_schema_extra"] = {"examples": [dict(job.example)], "additionalProperties": False}
    made.model_rebuild(force=True)
    return made


def describe(field: Field) -> dict[str, Any]:
    """What JSON Schema calls a field of this kind."""
    text: dict[str, Any] = {"type": "string"}
    kinds: dict[str, dict[str, Any]] = {
        "text": text,
        "texts": {"type": "array", "items": text} | ({"maxItems": field.most} if field.most else {}),
        "count": {"type": "integer", "minimum": 1} | ({"maximum": field.most} if field.most else {}),
        "place": {"type": "integer", "minimum": 0},
        "flag": {"type": "boolean"},
        "choice": {"type": "string", "enum": list(field.choices)},
        "numbers": {"type": "array", "items": {"type": "integer"}},
    }
    forms = [kinds[field.kind]]
    if field.ids:
        forms.append({"type": "array", "items": {"type": "integer", "minimum": 0}})
    if field.many:
        forms += [{"type": "array", "items": form} for form in list(forms)]
    return forms[0] if len(forms) == 1 else {"anyOf": forms}


def tell(reply: Reply) -> dict[str, Any]:
    told: dict[str, Any] = {"model": reply.model, "tokens": reply.tokens}
    if reply.vectors is not None:
        return {"vectors": list_rows(reply), "truncated": reply.truncated, **told}
    results = [{"text": result} if isinstance(result, str) else result for result in reply.results]
    return {**results[0], **told} if reply.single else {"results": results, **told}


for each in JOBS.values():
    add_route(each)


@router.post("/v1/jobs/{job}", tags=["bertsmith"], include_in_schema=False)
async def miss(job: str) -> JsonAnswer:
    find(job)
    raise HTTPException(404)
