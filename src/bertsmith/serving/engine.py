"""Those who work: threads that take batches from the queue, whoever asked for their rows.

In: rows of a task, from the threads of the requests. Out: their scores. While a batch is read the next ones gather, so
under load batches fill by themselves, and alone a request does not wait for company. A batch is no longer than is
read in a moment: who comes next waits for its end, and larger ones are hardly faster.

A GPU has one such thread. On a CPU several read a batch each on a core or a few, which gives more than one batch on all
cores: threads that share a product wait for the slowest of them, and where others want the cores, too, for long.
"""

import logging
import math
import threading
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from bertsmith.errors import BertsmithError
from bertsmith.model import Model
from bertsmith.models.graph import GraphNetwork
from bertsmith.serving.asks import Refusal
from bertsmith.serving.passes import Together, Wanted, find_encoder
from bertsmith.serving.queue import FairQueue, Piece, Ticket, count_ahead, gone, late
from bertsmith.serving.waits import foretell
from bertsmith.tasks.predicting import Predictor
from bertsmith.tasks.task import Row, Task

log = logging.getLogger("bertsmith.serving")
FORGET = 0.1  # how much of the measured speed a new batch replaces
MOMENT = 0.07  # seconds that a batch may take, at most
LEAST = 64  # tokens in a batch, however slow the machine: with fewer it would mostly fetch weights
STUCK = 300.0  # seconds after which a batch is not expected to end any more
HANDS = 4  # threads that read batches on a CPU, at most; with more cores each has several
here = threading.local()  # the ticket of the request that this thread answers


@dataclass
class Call:
    """Rows of one request that are asked for at one time."""

    ticket: Ticket
    count: int  # of the rows
    scores: dict[int, Tensor] = field(default_factory=dict)  # by place; several threads may be filling it
    error: Exception | None = None
    done: threading.Event = field(default_factory=threading.Event)

    @property
    def is_over(self) -> bool:
        return len(self.scores) == self.count or self.error is not None


@dataclass(frozen=True)
class Work:
    wanted: Wanted
    call: Call
    place: int  # among the call's rows


def share_cores(device: torch.device) -> tuple[int, int]:
    """How many threads read batches, and on how many cores each."""
    if device.type != "cpu":
        return 1, torch.get_num_threads()
    cores = torch.get_num_threads()
    hands = min(cores, HANDS)
    return hands, cores // hands


class Engine:
    def __init__(self, device: torch.device, moment: float = MOMENT) -> None:
        """`moment`: seconds that a batch may take."""
        self.device, self.moment = device, moment
        self.queue = FairQueue()
        self.changed = threading.Condition()
        self.speed = 0.0  # tokens a second of one thread, while at work; 0 until the first batch was read
        self.batches = self.rows = self.tokens = 0
        self.stopping = False
        self.reading: dict[str, tuple[float, int]] = {}  # of each thread at work, when it began and how many tokens
        hands, self.cores = share_cores(device)  # of each thread
        self.threads = [
            threading.Thread(target=self._run, args=(self.cores,), name=f"engine-{number}", daemon=True)
            for number in range(hands)
        ]
        for thread in self.threads:
            thread.start()

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
            self.changed.notify(len(rows))  # as many threads as there may be batches
        if not ticket.gone.is_set():  # one that was cancelled before the call stood in its list wakes nobody
            call.done.wait(None if ticket.deadline is None else max(0.0, ticket.deadline - time.monotonic()))
        ticket.calls.remove(call)
        if not call.is_over:
            refusal = gone() if ticket.gone.is_set() else late()
            ticket.cancel()  # the queue forgets the rest
            raise refusal
        if call.error is not None:
            raise call.error
        return [call.scores[place] for place in range(len(rows))]

    def wait_for(self, size: int, tickets: Iterable[Ticket]) -> float:
        """About how many seconds it takes until a request of so many tokens has its answer, behind these others."""
        speed, now = self.speed, time.monotonic()
        if not speed:
            return 0.0
        free = [max(0.0, begun + tokens / speed - now) for begun, tokens in self.reading.copy().values()]
        free += [0.0] * (len(self.threads) - len(free))
        batch = min([self._limit(speed), *(lane.budget for lane in self.queue.lanes.copy().values())])
        return foretell(count_ahead(tickets, size), size, free, batch, speed)

    def is_alive(self) -> bool:
        """Whether all threads are there, and none hangs in a batch."""
        earliest = min((begun for begun, _ in self.reading.copy().values()), default=math.inf)
        return time.monotonic() - earliest < STUCK and all(thread.is_alive() for thread in self.threads)

    def stop(self) -> None:
        with self.changed:
            self.stopping = True
            self.changed.notify_all()
        for thread in self.threads:
            thread.join()

    def _run(self, cores: int) -> None:
        torch.set_num_threads(cores)
        together = Together(self.device)
        while (taken := self._next()) is not None:
            works: list[Work] = [piece.work for piece in taken]
            self._score(works, together)
            self._note(taken)
            for call in {id(work.call): work.call for work in works}.values():
                if call.is_over:
                    call.done.set()

    def _next(self) -> list[Piece] | None:
        with self.changed:
            while (found := self.queue.pop(self._limit(self.speed) if self.speed else None)) is None:
                if self.stopping:
                    return None
                self.changed.wait()
            size = sum(piece.size for piece in found[1])
            self.reading[threading.current_thread().name] = time.monotonic(), size
            return found[1]

    def _limit(self, speed: float) -> int:
        """Tokens that are read in a moment."""
        return max(LEAST, round(speed * self.moment))

    def _note(self, taken: Sequence[Piece]) -> None:
        """This thread has read its batch."""
        with self.changed:
            begun, size = self.reading.pop(threading.current_thread().name)
            seconds = time.monotonic() - begun
            found = size / max(seconds, 1e-6)
            self.speed = found if not self.speed else self.speed + FORGET * (found - self.speed)
            self.batches, self.rows, self.tokens = self.batches + 1, self.rows + len(taken), self.tokens + size
            for ticket in {id(piece.ticket): piece.ticket for piece in taken}.values():
                ticket.queued = ticket.queued or begun - ticket.came
                ticket.worked += seconds
            for piece in taken:
                piece.ticket.tokens += piece.size

    def _score(self, works: Sequence[Work], together: Together) -> None:
        """Gives each its scores; where a batch fails it is parted, so that only who is at fault gets the error."""
        try:
            with torch.inference_mode():
                found = together.score([work.wanted for work in works])
        except Exception as error:
            if len(works) > 1:
                if isinstance(error, torch.OutOfMemoryError) and self.device.type == "cuda":
                    torch.cuda.empty_cache()
                middle = len(works) // 2
                self._score(works[:middle], together)
                self._score(works[middle:], together)
                return
            works[0].call.error = _explain(error, works[0])
            return
        for work, scores in zip(works, found, strict=True):
            work.call.scores[work.place] = scores


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
    if isinstance(old.network, GraphNetwork):
        old.network.graph.prepare(engine.cores)
    queued = Queued(old.network, old.device, old.budget)
    object.__setattr__(queued, "engine", engine)  # the others are fixed once and for all, and so is this
    model.predictor = queued
