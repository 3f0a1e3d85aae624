"""uvicorn as this server needs it: it waits for slow clients so long and no longer, and ends in good order.

In: an ASGI app, a bound socket and the `Settings`. Out: answers, until a signal asks for the end.
"""

import asyncio
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from bertsmith.serving.settings import Settings

KEEP_ALIVE = 75  # seconds that a connection may idle between requests: longer than the 60 of common proxies
HEAD_BYTES = 64 * 1024  # of a request's line and headers
UNREAD = 60.0  # seconds without a step forward after which a client that does not read its answer is left
BACKLOG = 2048
NOTICE = 2.0  # seconds, at most, in which a server that stops still takes requests, so that balancers hear of it
SIGNALS = [getattr(signal, name) for name in ("SIGTERM", "SIGINT", "SIGHUP") if hasattr(signal, name)]


class PatientProtocol(HttpToolsProtocol):
    """HTTP where the head of a request must come within a time and a size, and answers must be read; bodies are the
    app's to watch."""

    patience = 20.0
    _timer: asyncio.TimerHandle | None = None  # for a head
    _stall: asyncio.TimerHandle | None = None  # for an answer that is not read
    _heads = _bytes = 0  # heads that were read; bytes of the one that is being read
    _in_head = True

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._start_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        self._stop_stall()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        before = self._heads
        super().data_received(data)
        self._bytes = self._bytes + len(data) if self._in_head and self._heads == before else 0
        if self._bytes > HEAD_BYTES:
            self._refuse(b"431 Request Header Fields Too Large")

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._in_head = True
        self._start_timer()

    def on_headers_complete(self) -> None:
        self._stop_timer()
        self._in_head = False
        self._heads += 1
        super().on_headers_complete()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._watch_reader()

    def resume_writing(self) -> None:
        self._stop_stall()
        super().resume_writing()

    def _watch_reader(self) -> None:
        left = self.transport.get_write_buffer_size()
        self._stall = self.loop.call_later(UNREAD, self._check_reader, left)

    def _check_reader(self, before: int) -> None:
        """A client that reads slowly may go on; one that does not read at all would hold its answer in our memory."""
        if self.transport.get_write_buffer_size() < before:
            self._watch_reader()
        else:
            self.transport.abort()

    def _stop_stall(self) -> None:
        if self._stall is not None:
            self._stall.cancel()
            self._stall = None

    def _start_timer(self) -> None:
        if self._timer is None:
            self._timer = self.loop.call_later(self.patience, self._give_up)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _give_up(self) -> None:
        self._timer = None
        if self._bytes:
            self._refuse(b"408 Request Timeout")
        elif not self.transport.is_closing():
            self.transport.close()  # it never asked anything

    def _refuse(self, status: bytes) -> None:
        if not self.transport.is_closing():
            self.transport.write(b"HTTP/1.1 %b\r\ncontent-length: 0\r\nconnection: close\r\n\r\n" % status)
            self.transport.close()


class HttpServer(uvicorn.Server):
    """`listening` is called once requests are taken; with `alone` a second signal ends the process at once."""

    def __init__(self, app: Any, settings: Settings, listening: Callable[[], None], *, alone: bool = True) -> None:
        protocol = type("Protocol", (PatientProtocol,), {"patience": settings.read_timeout})
        super().__init__(
            uvicorn.Config(
                app,
                http=protocol,
                ws="none",
                log_config=None,  # the app keeps the log
                access_log=False,
                server_header=False,
                timeout_keep_alive=KEEP_ALIVE,
                timeout_graceful_shutdown=max(1, round(settings.drain)),
                backlog=BACKLOG,
            )
        )
        self.app, self.listening, self.alone = app, listening, alone
        self.notice = min(NOTICE, settings.drain / 2)
        self._told: float | None = None  # when the end was asked for

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self.listening()

    def stop(self, number: int) -> None:
        """From now on it is not ready; what was accepted is answered."""
        if self._told is None:
            self._told = time.monotonic()
            self.app.state.draining = True
        elif self.alone:
            os._exit(128 + number)

    async def on_tick(self, counter: int) -> bool:
        if await super().on_tick(counter):
            return True
        if self._told is None:
            return False
        return not self.server_state.tasks or time.monotonic() - self._told > self.notice

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """uvicorn would raise them again at the end, and the process would not end with 0."""
        if sys.platform == "win32" or threading.current_thread() is not threading.main_thread():
            with super().capture_signals():
                yield
            return
        loop = asyncio.get_running_loop()
        numbers = SIGNALS if self.alone else [signal.SIGTERM]
        for number in numbers:
            loop.add_signal_handler(number, self.stop, number)
        try:
            yield
        finally:
            for number in numbers:
                loop.remove_signal_handler(number)
                with suppress(ValueError):  # a late one must not change how the process ends
                    signal.signal(number, signal.SIG_IGN)


def find_loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """uvloop where it is installed; None is the standard one."""
    try:
        import uvloop
    except ImportError:
        return None
    factory: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
    return factory
