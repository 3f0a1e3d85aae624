"""The models in this process as those who answer: each request in a thread of its own, all of them on one queue.

In: an `Ask`. Out: a `Reply`. What a request gets is what the method of `Model` gives, for that is what is called.
"""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from bertsmith.errors import BertsmithError
from bertsmith.serving import engine as engines
from bertsmith.serving.asks import Ask, Card, Refusal, Reply
from bertsmith.serving.engine import Engine, put_on
from bertsmith.serving.fields import Job, take_fields
from bertsmith.serving.jobs import find_job
from bertsmith.serving.looking import Looker
from bertsmith.serving.queue import Ticket
from bertsmith.serving.residents import Residents
from bertsmith.serving.sizes import LETTERS_A_TOKEN, refuse_large


class Local:
    """A `Backend`."""

    def __init__(self, residents: Residents, requests: int = 512, wait: float | None = None) -> None:
        """`requests`: how many may be at work or wait at one time; `wait`: seconds that one may have to."""
        self.residents = residents
        self.most, self.wait = requests, wait
        # No batch takes more than half of that: one is being read when a request comes, then the one that it is in.
        self.engine = Engine(residents.device, engines.MOMENT if wait is None else min(engines.MOMENT, wait / 2))
        for model in residents.models.values():
            put_on(model, self.engine)
        self.looker = Looker()
        self.threads = ThreadPoolExecutor(requests, thread_name_prefix="ask")
        self.tickets: dict[int, Ticket] = {}  # of the requests that are at work or wait
        self.lock = threading.Lock()

    async def ask(self, ask: Ask) -> Reply:
        job = find_job(ask.job)
        given = take_fields(job, ask.given)
        name = self.residents.find(ask.model, job.name)
        refuse_large(self.residents.models[name], job, given)
        ticket = Ticket(ask.timeout, count_letters(given) // LETTERS_A_TOKEN)
        with self.lock:
            # Again, though it was admitted: in another process, which knows only how it stood a moment ago.
            seconds = self._refuse_for(ticket.expected)
            if seconds is not None:
                raise Refusal("overloaded", "too many requests are waiting; ask again later.", seconds)
            self.tickets[id(ticket)] = ticket
        try:
            work = self.threads.submit(self._answer, name, job, given, ticket)
        except RuntimeError:  # it is closed
            self._leave(ticket)
            raise Refusal("unavailable", "the server is stopping.") from None
        work.add_done_callback(lambda _: self._leave(ticket))
        try:
            reply = await asyncio.wrap_future(work)
        except asyncio.CancelledError:
            ticket.cancel()
            raise
        except BertsmithError as error:
            raise Refusal("input", str(error)) from error
        reply.tokens, reply.queued, reply.worked = ticket.tokens, ticket.queued, ticket.worked
        return reply

    def cards(self) -> list[Card]:
        return self.residents.list_cards()

    def is_ready(self) -> bool:
        return self.engine.is_alive()

    def load(self) -> dict[str, float]:
        e = self.engine
        with self.lock:
            seconds = e.wait_for(1, self.tickets.values())
        return {
            "waiting": float(len(self.tickets)),
            "tokens": float(e.queue.tokens),
            "seconds": seconds,
            "speed": e.speed,
            "batches": float(e.batches),
            "batch_rows": float(e.rows),
            "batch_tokens": float(e.tokens),
        }

    def admits(self, size: int) -> float | None:
        with self.lock:
            return self._refuse_for(size // LETTERS_A_TOKEN)

    def close(self) -> None:
        """Ends when what was accepted is answered."""
        self.threads.shutdown(wait=True)
        self.looker.stop()
        self.engine.stop()

    def _refuse_for(self, tokens: int) -> float | None:
        """Seconds after which to ask again; None: it may come in. One that finds nobody else always may."""
        if len(self.tickets) >= self.most:
            return max(1.0, self.engine.wait_for(1, self.tickets.values()))
        if self.wait is None or not self.tickets:
            return None
        seconds = self.engine.wait_for(max(1, tokens), self.tickets.values())
        return seconds if seconds > self.wait else None

    def _leave(self, ticket: Ticket) -> None:
        with self.lock:
            self.tickets.pop(id(ticket), None)

    def _answer(self, name: str, job: Job, given: dict[str, Any], ticket: Ticket) -> Reply:
        engines.here.ticket = ticket
        try:
            ticket.check()
            if job.looks:
                return self.looker.look(name, self.residents.models[name], job, given, ticket)
            return self._ask_model(name, job, given)
        finally:
            engines.here.ticket = None

    def _ask_model(self, name: str, job: Job, given: dict[str, Any]) -> Reply:
        first = given[job.fields[0].name]
        single = isinstance(first, str) or (bool(first) and isinstance(first[0], int))
        if job.name == "search":
            said: Any = self.residents.search(name, given)
        elif job.name == "decode":
            said = self.residents.decode(name, given)
        else:
            said = getattr(self.residents.models[name], job.name)(**given)
        if job.gives_vectors:
            rows = [said] if single else list(said)
            return Reply(name, [], single, [np.asarray(row) for row in rows], [int(row.truncated) for row in rows])
        results = [said] if single else said
        told = [_tell(one) for one in results]
        return Reply(name, told, single, truncated=[getattr(one, "truncated", 0) for one in results])


def count_letters(given: Any) -> int:
    """Of all texts in the fields of a job; a number counts as a word, for it is the id of one."""
    if isinstance(given, str):
        return len(given)
    if isinstance(given, dict):
        return sum(map(count_letters, given.values()))
    return sum(map(count_letters, given)) if isinstance(given, list) else LETTERS_A_TOKEN


def _tell(result: Any) -> Any:
    """As plain JSON."""
    if isinstance(result, str):
        return result
    if hasattr(result, "as_dict"):
        return result.as_dict()
    return {  # an encoding
        "ids": list(result.ids),
        "pieces": list(result.pieces),
        "offsets": [list(pair) for pair in result.offsets],
        "words": list(result.words),
        "segments": list(result.segments),
    }
