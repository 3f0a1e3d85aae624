"""Models in other processes as those who answer: a `Backend` over Unix sockets.

In: an `Ask`. Out: a `Reply`, or the `Refusal` that the other process gave. Many requests share one connection; how busy
the others are comes by itself, so that only `ask` waits for anybody.
"""

import asyncio
import random
import time
from bisect import bisect_right
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import fields
from typing import Any

from bertsmith.serving.asks import Ask, Card, Refusal, Reply
from bertsmith.serving.processes.wire import MOST, Array, Channel, TooLarge, pack

SIZES = [4**power for power in range(4, 15)]  # bytes of requests for which the other side says whether it admits them
FIRST_PAUSE, LONGEST_PAUSE = 0.05, 2.0  # seconds between two tries to connect
SILENCE = 10.0  # seconds; the load is told several times in each of them
BYTES_A_TOKEN = 4  # about; only to tell which of several processes has less to do
TUPLES = ("jobs", "labels", "prompts")
REPLY = [field.name for field in fields(Reply) if field.name != "vectors"]


def gone() -> Refusal:
    return Refusal("unavailable", "the models are being started again; ask again in a moment.", 1.0)


def _read_card(given: dict[str, Any]) -> Card:
    values: dict[str, Any] = {key: tuple(value) if key in TUPLES else value for key, value in given.items()}
    return Card(**values)


class Link:
    """The connection to one inference process, made again whenever it is lost."""

    def __init__(self, path: str, most: int = MOST) -> None:
        self.path, self.most = path, most
        self.waiting: dict[int, asyncio.Future[Reply]] = {}
        self.cards: list[Card] = []
        self.busy: dict[str, float] = {}
        self.admitted: list[float | None] = []
        self.said_ready = False
        self.heard = 0.0  # when it last said how busy it is
        self.sent = 0  # bytes asked since the other side last said how busy it is
        self.known = asyncio.Event()  # whether the models' cards have come
        self._channel: Channel | None = None
        self._lost = asyncio.Event()
        self._number = 0
        self._task: asyncio.Task[None] | None = None

    def open(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._keep_connected())

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task
        if self._channel is not None:
            self._channel.close()
        self._forget()

    async def ask(self, ask: Ask) -> Reply:
        self._number += 1
        number = self._number
        frame = self._pack(ask, number)
        answer: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        self.waiting[number] = answer
        self.sent += len(frame)
        try:
            if self._channel is None or not self._channel.send(frame):
                raise gone()
            return await answer
        except asyncio.CancelledError:
            if self._channel is not None:
                self._channel.send(pack({"is": "cancel", "id": number}))
            raise
        finally:
            self.waiting.pop(number, None)

    def is_ready(self) -> bool:
        """Whether it answers: one that has been silent for long is stuck, even if its socket is open."""
        return self.said_ready and time.monotonic() - self.heard < SILENCE

    def weight(self) -> tuple[float, int]:
        """How much waits there: tokens, then requests."""
        return self.busy.get("tokens", 0.0) + self.sent / BYTES_A_TOKEN, len(self.waiting)

    def _pack(self, ask: Ask, number: int) -> bytes:
        header = {"is": "ask", "id": number, "job": ask.job, "given": ask.given, "model": ask.model,
                  "timeout": ask.timeout}  # fmt: skip
        try:
            return pack(header, most=self.most)
        except TooLarge as error:
            raise Refusal("input", "the request is too large.") from error
        except TypeError as error:
            raise Refusal(
                "input",
                "the request holds a text that is not Unicode (half of a surrogate pair) or too large a number.",
            ) from error

    async def _keep_connected(self) -> None:
        pause = FIRST_PAUSE
        loop = asyncio.get_running_loop()
        while True:
            self._lost.clear()
            try:
                _, self._channel = await loop.create_unix_connection(
                    lambda: Channel(self._hear, self._lose, self.most), self.path
                )
            except OSError:
                pass
            else:
                await self._lost.wait()
                if self.known.is_set():  # it was a real one: its successor is expected soon
                    pause = FIRST_PAUSE
                self._forget()
            await asyncio.sleep(pause * random.uniform(0.5, 1.0))
            pause = min(2 * pause, LONGEST_PAUSE)

    def _lose(self) -> None:
        self._forget()
        self._lost.set()

    def _forget(self) -> None:
        """Nobody is at the other end: those who wait hear of it."""
        self._channel = None
        self.said_ready = False
        self.busy, self.admitted, self.sent = {}, [], 0
        for answer in self.waiting.values():
            if not answer.done():
                answer.set_exception(gone())
        self.waiting.clear()

    def _hear(self, header: dict[str, Any], arrays: list[Array] | None) -> None:
        match header["is"]:
            case "cards":
                self.cards = [_read_card(card) for card in header["cards"]]
                self.known.set()
            case "load":
                self.busy, self.admitted, self.said_ready = header["load"], header["admits"], header["ready"]
                self.heard, self.sent = time.monotonic(), 0
            case "reply" | "refusal":
                answer = self.waiting.pop(header["id"], None)  # None: it was cancelled while the answer was on its way
                if answer is None or answer.done():
                    return
                if header["is"] == "reply":
                    answer.set_result(Reply(**{name: header[name] for name in REPLY}, vectors=arrays))
                else:
                    answer.set_exception(Refusal(header["kind"], header["message"], header["retry_after"]))
            case _:
                raise ValueError("a message of an unknown kind")


class Remote:
    """A `Backend`: each ask goes to the process with the least to do. `open` it in the event loop that asks."""

    def __init__(self, paths: Sequence[str], most: int = MOST) -> None:
        self.links = [Link(path, most) for path in paths]

    def open(self) -> None:
        for link in self.links:
            link.open()

    async def wait(self, seconds: float) -> bool:
        """Until one of the processes has said what it serves; whether it did."""
        tasks = [asyncio.ensure_future(link.known.wait()) for link in self.links]
        done, pending = await asyncio.wait(tasks, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        for task in pending:
            task.cancel()
        return bool(done)

    async def close(self) -> None:
        for link in self.links:
            await link.close()

    async def ask(self, ask: Ask) -> Reply:
        there = [link for link in self.links if link.is_ready()]
        if not there:
            raise gone()
        return await min(there, key=Link.weight).ask(ask)

    def cards(self) -> list[Card]:
        """Those that were told last, so that the list of models does not vanish while a process is replaced."""
        return next((link.cards for link in self.links if link.cards), [])

    def is_ready(self) -> bool:
        return any(link.is_ready() for link in self.links)

    def load(self) -> dict[str, float]:
        there = [link.busy for link in self.links if link.is_ready() and link.busy]
        found = dict.fromkeys(("waiting", "tokens", "seconds"), 0.0)
        for name in {name for busy in there for name in busy}:
            values = [busy[name] for busy in there if name in busy]
            found[name] = min(values) if name == "seconds" else sum(values)
        return found

    def admits(self, size: int) -> float | None:
        """As the least busy said a moment ago; whoever comes in too late is refused by it, one hop on."""
        place = max(0, bisect_right(SIZES, size) - 1)
        said = [link.admitted[place] for link in self.links if link.is_ready() and link.admitted]
        waits = [seconds for seconds in said if seconds is not None]
        return min(waits) if said and len(waits) == len(said) else None
