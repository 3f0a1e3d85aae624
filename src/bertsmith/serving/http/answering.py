"""How every handler asks: `await ask(request, job, fields, model)`, and `JsonAnswer` to say what came.

In: a request and a job's fields. Out: a `Reply`, within the server's limits; the work stops when the client has gone.
A router is `APIRouter(route_class=JsonRoute)`: its bodies are read by orjson, and a bad one is a plain complaint.
"""

import asyncio
import gc
from collections.abc import Callable, Coroutine, Mapping
from typing import Any

import orjson
from fastapi import Request, Response
from fastapi.routing import APIRoute
from starlette.responses import JSONResponse

from bertsmith.serving.asks import Ask, Refusal, Reply
from bertsmith.serving.fields import Job
from bertsmith.serving.http.records import Record
from bertsmith.serving.jobs import find_job
from bertsmith.serving.settings import Settings

NUMBERS = 65_536  # token ids in a list; more is no text that a model would read
LARGE = 2**18  # bytes of JSON
# Jobs that put each text together with each of others, and how many such pairs are taken for each input that is:
# those of a short request could fill any memory. A label is a row for the model; a text to compare with only a number.
PAIRED = {"classify": ("labels", 32), "similar": ("others", 512)}
OPTIONS = orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_NON_STR_KEYS


class ClientGone(Exception):
    """Nobody waits for the answer any more."""


class BadJson(Exception):
    """The body is no JSON that can be worked with; the message is a sentence."""


class JsonAnswer(JSONResponse):
    """What a handler gives back: numpy arrays may stand in it, and become lists."""

    def render(self, content: Any) -> bytes:
        return orjson.dumps(content, option=OPTIONS)


class JsonRequest(Request):
    async def json(self) -> Any:
        """The body, where no list in it is longer than the server takes: to name what is wrong with each of 10^6 items
        would take longer than any answer."""
        if not hasattr(self, "_json"):
            value = parse(await self.body())
            check_lengths(value, self.app.state.settings.inputs)
            self._json = value
        return self._json


class JsonRoute(APIRoute):
    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def handle_json(request: Request) -> Response:
            request = JsonRequest(request.scope, request.receive)
            if await request.body():
                await request.json()  # here, for FastAPI would hide why it failed
            return await handle(request)

        return handle_json


def parse(body: bytes) -> Any:
    """Strict JSON: no NaN, no lone surrogate, no bytes that are not UTF-8, no nesting without end."""
    collects = gc.isenabled() and len(body) > LARGE
    if collects:
        gc.disable()  # with it, a million lists take 4 seconds instead of 0.1, and everybody else waits
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise BadJson(f"the body is not JSON: {str(error)[:120]}.") from error
    finally:
        if collects:
            gc.enable()


def check_lengths(value: Any, most: int, path: str = "") -> None:
    """Looks two lists deep, which is how deep texts stand in any shape that is served."""
    children: list[tuple[str, Any]] = []
    if isinstance(value, dict):
        children = [(f"{path}.{name}" if path else str(name), child) for name, child in value.items()]
    elif isinstance(value, list):
        is_numbers = bool(value) and isinstance(value[0], int)
        if len(value) > (NUMBERS if is_numbers else most):
            where = f"the field {path[:40]!r}" if path else "the body"
            raise Refusal("input", f"{where} holds {len(value)} inputs; at most {most} are taken in a request.")
        if not is_numbers:
            children = [(path, child) for child in value if isinstance(child, list | dict)]
    for name, child in children:
        if isinstance(child, list | dict):
            check_lengths(child, most, name)


async def ask(request: Request, job: str, given: Mapping[str, Any], model: str = "") -> Reply:
    """Raises a `Refusal`, which the app tells in the style of the route; never catch it to answer otherwise."""
    settings: Settings = request.app.state.settings
    record: Record = request.state.record
    kind = find_job(job)
    fields = dict(given)
    if settings.truncate and fields.get("truncate") is None:
        choice = kind.field("truncate")
        if choice is not None and settings.truncate in choice.choices:
            fields["truncate"] = settings.truncate
    record.job = job
    record.inputs += count_inputs(kind, fields, settings.inputs)
    refuse_pairs(kind, fields, settings)
    if settings.log_texts:
        record.texts = fields
    reply = await _wait(request, Ask(job, fields, model, settings.timeout))
    record.replies.append(reply)
    return reply


async def _wait(request: Request, ask: Ask) -> Reply:
    gone = False
    loop = asyncio.get_running_loop()

    async def watch() -> None:
        nonlocal gone
        while (await request.receive())["type"] != "http.disconnect":
            pass
        gone = True
        if not limit.expired():
            limit.reschedule(loop.time())  # cancels what waits below, as if its time were over

    await request.body()  # so that what is received next is the client's going
    try:
        async with asyncio.timeout(ask.timeout) as limit:
            watcher = loop.create_task(watch())
            try:
                reply: Reply = await request.app.state.backend.ask(ask)
                return reply
            finally:
                watcher.cancel()
    except TimeoutError:
        if gone:
            raise ClientGone from None
        message = f"no answer within {ask.timeout:g} seconds; send less at once, or ask again later."
        raise Refusal("timeout", message, 1.0) from None


def count_inputs(job: Job, given: Mapping[str, Any], most: int) -> int:
    """How many texts are asked about; a field with more of them than the server takes is named."""
    counts = {}
    for field in job.fields:
        value = given.get(field.name)
        if not isinstance(value, list) or field.kind not in ("text", "texts"):
            continue
        if field.ids and value and isinstance(value[0], int):
            continue  # one input, as token ids
        counts[field.name] = sum(len(one) if isinstance(one, list) and field.kind == "texts" else 1 for one in value)
        if counts[field.name] > most:
            raise Refusal(
                "input",
                f"the field {field.name!r} holds {counts[field.name]} inputs; at most {most} are taken in a request.",
            )
    return max(counts.values(), default=1)


def refuse_pairs(job: Job, given: Mapping[str, Any], settings: Settings) -> None:
    """What is asked about each text with each of others must not grow far beyond what a request may hold."""
    first = given.get(job.fields[0].name)
    count = len(first) if isinstance(first, list) else 1
    if job.name in PAIRED:
        name, times = PAIRED[job.name]
        others, most = given.get(name), times * settings.inputs
        pairs = count * len(others) if isinstance(others, list) else 0
        if pairs > most:
            told = f"{count} texts with {name} are {pairs} pairs; at most {most} are taken in a request."
            raise Refusal("input", told)
    context = given.get("context")
    if job.name == "answer" and isinstance(context, str) and count * len(context) > settings.body_bytes:
        raise Refusal(
            "input",
            f"{count} questions about one context read {count * len(context)} letters; at most {settings.body_bytes} "
            f"are taken in a request.",
        )
