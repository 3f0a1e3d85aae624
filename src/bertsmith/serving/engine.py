"""The one who works: a thread a device that takes batches from the queue, whoever asked for their rows.

In: rows of a task, from the threads of the requests. Out: their scores. While a batch is read the next ones gather, so
under load batches fill by themselves, and alone a request does not wait for company.
"""

import logging
import threading
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from bertsmith.errors import BertsmithError
from bertsmith.model import Model
from bertsmith.serving.asks import Refusal
from bertsmith.serving.passes import Together, Wanted, find_encoder
from bertsmith.serving.queue import FairQueue, Piece, Ticket, count_ahead, late
from bertsmith.tasks.predicting import Predictor
from bertsmith.tasks.task import Row, Task

log = logging.getLogger("bertsmith.serving")
FORGET = 0.1  # how much of the measured speed a new batch replaces
here = threading.local()  # the ticket of the request that this thread answers


@dataclass
class Call:
    """Rows of one request that are asked for at one time."""

    ticket: Ticket
    left: int
    scores: dict[int, Tensor] = field(default_factory=dict)
    error: Exception | None = None
    done: threading.Event = field(default_factory=threading.Event)


@dataclass(frozen=True)
class Work:
    wanted: Wanted
    call: Call
    place: int  # among the call's rows


class Engine:
    def __init__(self, device: torch.device) -> None:
        self.device = device
        self.together = Together(device)
        self.queue = FairQueue()
        self.changed = threading.Condition()
        self.speed = 0.0  # tokens a second, while at work
        self.reading = 0  # tokens in the batch that is being read
        self.batches = self.rows = self.tokens = 0
        self.stopping = False
        self.thread = threading.Thread(target=self._run, name="engine", daemon=True)
        self.thread.start()

    def run(self, predictor: Predictor, task: Task[Any, Any], rows: Sequence[Row]) -> list[Tensor]:
        """The scores of the rows, when their turn has come; called in a request's own thread."""
        ticket = getattr(here, "ticket", None) or Ticket()
        ticket.check()
        if not rows:
            return []
        call = Call(ticket, len(rows))
        key = find_encoder(predictor.network)
        ticket.calls.append(call)
        with self.changed:
            for place, row in enumerate(rows):
                wanted = Wanted(row, task, predictor.network)
                self.queue.push(key, predictor.budget, Piece(ticket, wanted.size, Work(wanted, call, place)))
            self.changed.notify()
        call.done.wait(None if ticket.deadline is None else max(0.0, ticket.deadline - time.monotonic()))
        ticket.calls.remove(call)
        if call.left and call.error is None:
            ticket.check()
            ticket.cancel()
            raise late()
        if call.error is not None:
            raise call.error
        return [call.scores[place] for place in range(len(rows))]

    def wait_for(self, size: int, tickets: Iterable[Ticket]) -> float:
        """About how many seconds until a request of so many tokens is done, behind these others."""
        return (self.reading + count_ahead(tickets, size) + size) / self.speed if self.speed else 0.0

    def stop(self) -> None:
        with self.changed:
            self.stopping = True
            self.changed.notify()
        self.thread.join()

    def _run(self) -> None:
        while (taken := self._next()) is not None:
            begun = time.monotonic()
            works: list[Work] = [piece.work for piece in taken]
            self._score(works)
            self._note(taken, begun, time.monotonic() - begun)
            for call in {id(work.call): work.call for work in works}.values():
                if not call.left or call.error is not None:
                    call.done.set()

    def _next(self) -> list[Piece] | None:
        with self.changed:
            while (found := self.queue.pop()) is None:
                if self.stopping:
                    return None
                self.changed.wait()
            self.reading = sum(piece.size for piece in found[1])
            return found[1]

    def _note(self, taken: Sequence[Piece], begun: float, seconds: float) -> None:
        size = sum(piece.size for piece in taken)
        found = size / max(seconds, 1e-6)
        self.speed = found if not self.speed else self.speed + FORGET * (found - self.speed)
        self.reading = 0
        self.batches, self.rows, self.tokens = self.batches + 1, self.rows + len(taken), self.tokens + size
        for ticket in {id(piece.ticket): piece.ticket for piece in taken}.values():
            ticket.queued = ticket.queued or begun - ticket.came
            ticket.worked += seconds
        for piece in taken:
            piece.ticket.tokens += piece.size

    def _score(self, works: Sequence[Work]) -> None:
        """Gives each its scores; where a batch fails it is parted, so that only who is at fault gets the error."""
        try:
            with torch.inference_mode():
                found = self.together.score([work.wanted for work in works])
        except Exception as error:
            if len(works) > 1:
                if isinstance(error, torch.OutOfMemoryError) and self.device.type == "cuda":
                    torch.cuda.empty_cache()
                middle = len(works) // 2
                self._score(works[:middle])
                self._score(works[middle:])
                return
            works[0].call.error = _explain(error, works[0])
            return
        for work, scores in zip(works, found, strict=True):
            work.call.scores[work.place] = scores
            work.call.left -= 1


def _explain(error: Exception, work: Work) -> Exception:
    if isinstance(error, BertsmithError):
        return error
    if isinstance(error, torch.OutOfMemoryError):
        return BertsmithError(f"there is not enough memory for a row of {work.wanted.size:,} tokens; cut it shorter.")
    log.exception("a row of %s could not be read", work.wanted.task.name, exc_info=error)
    return Refusal("internal", "the model could not read this; the server's log has the reason.")


class Queued(Predictor):
    """A `Predictor` whose rows stand in the queue with those of all other requests."""

    engine: Engine

    def run(self, task: Task[Any, Any], rows: Sequence[Row]) -> list[Tensor]:
        return self.engine.run(self, task, rows)


def put_on(model: Model, engine: Engine) -> None:
    """From now on what this model is asked goes through the queue."""
    old = model.predictor
    queued = Queued(old.network, old.device, old.budget)
    object.__setattr__(queued, "engine", engine)  # the others are fixed once and for all, and so is this
    model.predictor = queued
