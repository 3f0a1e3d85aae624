"""A backend that answers at once without a model, and says what it was asked; a real server for it."""

import asyncio
import re
import socket
import threading
import time
from contextlib import contextmanager

import numpy as np

from bertsmith.serving.asks import Ask, Card, Refusal, Reply
from bertsmith.serving.fields import take_fields
from bertsmith.serving.http.app import create_app
from bertsmith.serving.jobs import JOBS, find_job
from bertsmith.serving.processes.httpserver import HttpServer
from bertsmith.serving.settings import Settings

DEADLINE = 20.0
INSIDE = re.compile(r"Traceback|File \"|\.py\b|site-packages|Error\(|<class|0x[0-9a-f]{6}")  # of the program
CARD = Card(
    id="pretend", jobs=tuple(JOBS), pipeline="feature-extraction", labels=("bad", "good"), limit=64, width=4,
    pooling="mean", dtype="float32", device="cpu", family="bert", batch_tokens=1024, revision="0", created=0,
)  # fmt: skip
ANSWER = {"label": "good", "score": 0.5, "index": 0, "text": "a", "token": 1, "token_str": "a", "sequence": "a",
          "entity_group": "PER", "word": "a", "start": 0, "end": 1, "answer": "a", "choice": "a"}  # fmt: skip
PIECES = {"ids": [1], "pieces": ["a"], "offsets": [[0, 1]], "words": [0], "segments": [0]}


class Pretend:
    """A `Backend`; `refusal` is raised and `hold` is waited for where they are set."""

    def __init__(self):
        self.asked: list[Ask] = []
        self.refusal: Exception | None = None
        self.hold: asyncio.Event | None = None
        self.cancelled = threading.Event()
        self.entered = threading.Event()
        self.ready, self.retry = True, None
        self.admitted: list[int] = []

    async def ask(self, ask):
        if ask.model not in ("", CARD.id):
            raise Refusal("model", f"there is no model {ask.model!r}.")
        job = find_job(ask.job)
        given = take_fields(job, ask.given)
        self.asked.append(ask)
        if self.refusal is not None:
            raise self.refusal
        if self.hold is not None:
            try:
                self.entered.set()
                await self.hold.wait()
            except asyncio.CancelledError:
                self.cancelled.set()
                raise
        others = next((given[name] for name in ("others", "choices", "texts") if name in given), [])
        if others and isinstance(others[0], list):
            others = others[0]
        return self._reply(job, given[job.fields[0].name], len(others))

    def _reply(self, job, first, others):
        single = isinstance(first, str) or (bool(first) and isinstance(first[0], int))
        count = 1 if single else len(first)
        costs = {"truncated": [2] * count, "tokens": 5 * count, "queued": 0.25, "worked": 0.5}
        if job.gives_vectors:
            shape = (4,) if job.name == "embed" else (3, 4)
            return Reply(CARD.id, [], single, [np.full(shape, 0.5, "float32") for _ in range(count)], **costs)
        answers = [{**ANSWER, "index": index} for index in range(max(1, others))]
        result = {"tokenize": PIECES, "decode": "a"}.get(job.name, {"answers": answers, "truncated": 2})
        if job.looks:
            result = {"kind": job.name, "title": "a", "data": {}}
        return Reply(CARD.id, [result] * count, single, **costs)

    def cards(self):
        return [CARD] if self.ready else []

    def is_ready(self):
        return self.ready

    def load(self):
        return {"waiting": 3.0, "tokens": 40.0, "seconds": 0.5, "batches": 7.0}

    def admits(self, size):
        self.admitted.append(size)
        return self.retry


@contextmanager
def listening(backend, at=0, **settings):
    """A real server in a thread: its port, which is a free one unless it is given."""
    settings = Settings(**settings)
    server = HttpServer(create_app(backend, settings), settings, lambda: None)
    with socket.create_server(("127.0.0.1", at)) as listener:
        thread = threading.Thread(target=lambda: asyncio.run(server.serve(sockets=[listener])))
        thread.start()
        try:
            end = time.monotonic() + DEADLINE
            while not server.started:
                assert thread.is_alive() and time.monotonic() < end, "the server did not start"
                thread.join(0.01)
            yield listener.getsockname()[1]
        finally:
            server.should_exit = True
            thread.join(DEADLINE)
            assert not thread.is_alive()


def talk(port, *parts, until_closed=True, seconds=DEADLINE):
    """What the server says to raw bytes, until it closes the connection (or the first answer has come)."""
    with socket.create_connection(("127.0.0.1", port), seconds) as connection:
        for part in parts:
            connection.sendall(part)
        return hear(connection, until_closed)


def hear(connection, until_closed=True):
    said = b""
    try:
        while part := connection.recv(65536):
            said += part
            if not until_closed and b"\r\n\r\n" in said:
                break
    except ConnectionResetError:
        pass
    return said


def check(answer):
    """No fault of the server, and nothing told of its inside."""
    assert answer.status_code < 500, (answer.request.url, answer.request.content[:500], answer.text[:500])
    assert not INSIDE.search(answer.text), answer.text
    return answer
