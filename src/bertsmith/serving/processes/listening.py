"""The other end of `remote`: the backend of this process, for those that connect to a Unix socket.

In: frames that ask or cancel. Out: frames that answer, refuse, and tell every moment how busy this process is.
"""

import asyncio
import dataclasses
import logging
import socket
from typing import Any

from bertsmith.serving.asks import Ask, Backend, Refusal
from bertsmith.serving.processes.remote import REPLY, SIZES
from bertsmith.serving.processes.wire import MOST, Array, Channel, TooLarge, pack

log = logging.getLogger("bertsmith.serving")
# Seconds between two reports of how busy it is. Who is told that too much waits sends nothing until the next one: by
# then the queue must not be empty, and it is no longer than a batch or two where little wait is allowed.
PULSE = 0.05


class Listener:
    """Serves `backend` on a socket that listens, until it is closed."""

    def __init__(self, backend: Backend, most: int = MOST) -> None:
        self.backend, self.most = backend, most
        self.peers: set[Peer] = set()
        self._server: asyncio.Server | None = None
        self._pulse: asyncio.Task[None] | None = None

    async def open(self, listening: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        self._server = await loop.create_unix_server(lambda: Peer(self).channel, sock=listening)
        self._pulse = loop.create_task(self._tell_all())

    async def close(self) -> None:
        if self._pulse is not None:
            self._pulse.cancel()
        if self._server is not None:
            self._server.close()
        for peer in list(self.peers):
            peer.channel.close()

    def tell_load(self) -> bytes:
        backend = self.backend
        admits = [backend.admits(size) for size in SIZES]
        return pack({"is": "load", "load": backend.load(), "admits": admits, "ready": backend.is_ready()})

    async def _tell_all(self) -> None:
        while True:
            try:
                frame = self.tell_load()
            except Exception:  # a fault of the backend's must not end the pulse of a process that answers
                log.exception("the load cannot be told")
            else:
                for peer in self.peers:
                    peer.channel.send(frame)
            await asyncio.sleep(PULSE)


class Peer:
    """One process that asks; when it goes, what it asked is taken out of the queue."""

    def __init__(self, listener: Listener) -> None:
        self.listener = listener
        self.tasks: dict[int, asyncio.Task[None]] = {}
        self.channel = _Greeting(self)

    def greet(self) -> None:
        self.listener.peers.add(self)
        cards = [dataclasses.asdict(card) for card in self.listener.backend.cards()]
        self.channel.send(pack({"is": "cards", "cards": cards}))
        self.channel.send(self.listener.tell_load())

    def hear(self, header: dict[str, Any], _: list[Array] | None) -> None:
        number = header["id"]
        match header["is"]:
            case "ask":
                ask = Ask(header["job"], header["given"], header["model"], header["timeout"])
                if not isinstance(number, int) or number in self.tasks:
                    raise ValueError("a number that is taken")
                if not (isinstance(ask.job, str) and isinstance(ask.given, dict) and isinstance(ask.model, str)):
                    raise ValueError("an ask of another shape")
                task = asyncio.get_running_loop().create_task(self.answer(number, ask))
                self.tasks[number] = task
                task.add_done_callback(lambda _: self.tasks.pop(number, None))
            case "cancel":
                if number in self.tasks:
                    self.tasks[number].cancel()
            case _:
                raise ValueError("a message of an unknown kind")

    async def answer(self, number: int, ask: Ask) -> None:
        self.channel.send(await self._ask(number, ask))

    async def _ask(self, number: int, ask: Ask) -> bytes:
        try:
            reply = await self.listener.backend.ask(ask)
            told = {name: getattr(reply, name) for name in REPLY}
            return pack({"is": "reply", "id": number, **told}, reply.vectors, self.listener.most)
        except Refusal as refusal:
            return _refuse(number, refusal)
        except TooLarge:
            return _refuse(number, Refusal("input", "the answer would be too large; ask with fewer inputs."))
        except Exception:
            log.exception("an ask for %s failed", ask.job)
            return _refuse(number, Refusal("internal", "something went wrong here; the log of the server has more."))

    def leave(self) -> None:
        self.listener.peers.discard(self)
        for task in list(self.tasks.values()):
            task.cancel()


class _Greeting(Channel):
    """A channel that says at once what is served here."""

    def __init__(self, peer: Peer) -> None:
        super().__init__(peer.hear, peer.leave, peer.listener.most)
        self.peer = peer

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self.peer.greet()


def _refuse(number: int, refusal: Refusal) -> bytes:
    message = refusal.message.encode("utf-8", "backslashreplace").decode()  # it may quote what was asked
    return pack({"is": "refusal", "id": number, "kind": refusal.kind, "message": message,
                 "retry_after": refusal.retry_after})  # fmt: skip
