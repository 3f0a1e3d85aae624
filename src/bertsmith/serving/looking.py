"""Looking inside a served model: one picture at a time, in a thread of its own.

In: a job that looks, its fields and the request's ticket. Out: a picture's kind, title and numbers. Who asks for
answers does not wait for pictures: these are made beside the queue, and what they read by a `Predictor` stands in it.
"""

import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import torch

import bertsmith.inspect
from bertsmith.errors import BertsmithError
from bertsmith.model import Model
from bertsmith.serving import engine as engines
from bertsmith.serving.asks import Reply
from bertsmith.serving.engine import Call
from bertsmith.serving.fields import Job
from bertsmith.serving.queue import Ticket, gone, late

SAID = ("word", "target", "labels")  # fields that say what is meant and are no texts to read


class Looker:
    def __init__(self) -> None:
        # One thread: a picture of a long text needs much memory, and each thread that multiplies keeps helpers.
        self.thread = ThreadPoolExecutor(1, thread_name_prefix="look")

    def look(self, name: str, model: Model, job: Job, given: Mapping[str, Any], ticket: Ticket) -> Reply:
        """Called in the request's own thread, which waits as long as anybody waits for the answer."""
        tokens = check_size(model, job, given)
        call = Call(ticket, 1)  # so that a ticket that is cancelled wakes us
        ticket.calls.append(call)
        work = self.thread.submit(_work, ticket, lambda: draw(model, job, given))
        work.add_done_callback(lambda _: call.done.set())
        if not ticket.gone.is_set():
            call.done.wait(None if ticket.deadline is None else max(0.0, ticket.deadline - time.monotonic()))
        ticket.calls.remove(call)
        if not work.done():
            refusal = gone() if ticket.gone.is_set() else late()
            work.cancel()
            ticket.cancel()
            raise refusal
        picture: dict[str, Any] = work.result()
        ticket.tokens = max(ticket.tokens, tokens)
        return Reply(name, [picture], True, truncated=[int(picture["data"].get("truncated") or 0)])

    def stop(self) -> None:
        self.thread.shutdown(wait=True, cancel_futures=True)


def _work(ticket: Ticket, function: Callable[[], Any]) -> Any:
    engines.here.ticket = ticket
    begun = time.monotonic()
    try:
        ticket.check()
        ticket.queued = ticket.queued or begun - ticket.came
        return function()
    except torch.OutOfMemoryError:
        raise BertsmithError("there is not enough memory for this picture; give a shorter text.") from None
    finally:
        engines.here.ticket = None
        ticket.worked = time.monotonic() - begun  # with what its batches took


def draw(model: Model, job: Job, given: Mapping[str, Any]) -> dict[str, Any]:
    if job.name == "attribution":
        options = {name: value for name, value in given.items() if name not in ("job", "texts")}
        picture = bertsmith.inspect.attribute(model, given["job"], *given["texts"], **options)
    else:
        picture = getattr(bertsmith.inspect, job.name)(model, **given)
    return {"kind": picture.kind, "title": picture.title, "data": picture.data()}


def check_size(model: Model, job: Job, given: Mapping[str, Any]) -> int:
    """How many tokens all the texts have; a row that is longer than is looked at is refused."""
    kinds = {field.name: field.kind for field in job.fields if field.name not in SAID}
    texts = [value for name, value in given.items() if kinds.get(name) in ("text", "texts")]
    sizes = [len(model.tokenizer.encode(one).ids) for value in texts for one in _list(value)]
    rows = sizes if job.name == "senses" else [sum(sizes)]
    # What is longer than the model reads is cut, and told.
    longest = min(max(rows, default=0), model.limit)
    if job.tokens is not None and longest > job.tokens:
        raise BertsmithError(
            f"{job.name}: the text has {longest:,} tokens, of which at most {job.tokens:,} are looked at; give a "
            f"shorter one."
        )
    return sum(min(size, model.limit) for size in rows)


def _list(value: Any) -> list[str]:
    return value if isinstance(value, list) else [value]
