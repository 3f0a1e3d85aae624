"""`bertsmith serve`: everything in one process, or several that are started, watched, replaced and ended in order.

In: a `Plan` (which models), the `Settings` and whom to tell. Out: a server, until a signal ends it.

With several processes the first one holds the listening sockets and nothing else, so that a process which dies takes
only its own requests along and its successor goes on with the same sockets.
"""

import asyncio
import logging
import os
import shutil
import signal
import socket
import sys
import tempfile
import threading
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

from bertsmith.errors import BertsmithError
from bertsmith.serving.http.logs import configure_logs
from bertsmith.serving.processes.family import Child, Keeper
from bertsmith.serving.processes.httpserver import BACKLOG, NOTICE, SIGNALS, HttpServer, find_loop_factory
from bertsmith.serving.processes.memory import Returning, bound_caches
from bertsmith.serving.processes.plan import Plan, to_json
from bertsmith.serving.processes.sockets import bind, listen, listen_here, tell_url
from bertsmith.serving.settings import Settings

log = logging.getLogger("bertsmith.serving")
Tell = Callable[[dict[str, Any]], None]
SPARE = 5.0  # seconds beyond the drain in which a process has to end


def run(plan: Plan, settings: Settings, tell: Tell = print) -> None:
    """Serves until a signal asks for the end; `tell` gets one record when requests are taken."""
    listening = bind(settings.host, settings.port)
    with listening:
        if settings.workers == 1 and len(plan.devices) == 1:
            run_alone(plan, settings, listening, tell)
        elif sys.platform == "win32":
            raise BertsmithError("several processes need sockets that Windows does not have; leave --workers at 1.")
        else:
            asyncio.run(Supervisor(plan, settings, listening, tell).run())


def describe(settings: Settings, listening: socket.socket, models: Sequence[str]) -> dict[str, Any]:
    host, port = listening.getsockname()[:2]
    return {"url": tell_url(host, port), "host": host, "port": port, "models": list(models), "pid": os.getpid(),
            "workers": settings.workers}  # fmt: skip


def run_alone(plan: Plan, settings: Settings, listening: socket.socket, tell: Tell) -> None:
    from bertsmith.serving.http.app import create_app
    from bertsmith.serving.local import Local

    bound_caches()
    configure_logs()
    residents = plan.load(settings, plan.devices[0])
    facts = describe(settings, listening, [card.id for card in residents.list_cards()])
    backend = Local(residents, settings.requests, settings.longest_wait)
    Returning(lambda: backend.engine.batches).start()
    listen(listening, BACKLOG)
    server = HttpServer(create_app(backend, settings), settings, lambda: tell(facts))
    with asyncio.Runner(loop_factory=find_loop_factory()) as runner:
        runner.run(server.serve(sockets=[listening]))
    closing = threading.Thread(target=backend.close, daemon=True)
    closing.start()
    closing.join(SPARE)
    if closing.is_alive():  # a batch that nobody waits for would hold up a plain exit
        end_now(0)


def end_now(status: int) -> NoReturn:
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError, AttributeError):
            stream.flush()
    os._exit(status)


class Supervisor:
    def __init__(self, plan: Plan, settings: Settings, listening: socket.socket, tell: Tell) -> None:
        self.plan, self.settings, self.listening, self.tell = plan, settings, listening, tell
        self.folder = Path(tempfile.mkdtemp(prefix="bertsmith-"))  # only this user may look into it
        self.stopped = asyncio.Event()
        self.keepers: list[Keeper] = []
        self.watching: list[asyncio.Task[None]] = []

    async def run(self) -> None:
        configure_logs()
        loop = asyncio.get_running_loop()
        for number in SIGNALS:
            loop.add_signal_handler(number, self.stop, number)
        try:
            await self._start()
            await self._until_stopped(asyncio.Event().wait())
            await self._drain()
        finally:
            for keeper in self.keepers:
                keeper.kill()
            await asyncio.gather(*self.watching, return_exceptions=True)
            shutil.rmtree(self.folder, ignore_errors=True)

    def stop(self, number: int) -> None:
        if not self.stopped.is_set():
            self.stopped.set()
            return
        for keeper in self.keepers:
            keeper.kill()
        shutil.rmtree(self.folder, ignore_errors=True)
        end_now(128 + number)

    async def _start(self) -> None:
        models = [self._make_inference(number, device) for number, device in enumerate(self.plan.devices)]
        if not await self._until_ready(models):
            return
        listen(self.listening, BACKLOG)
        paths = [child.path for child in models]
        speakers = [self._make_speaker(number, paths) for number in range(self.settings.workers)]
        if await self._until_ready(speakers):
            self.tell(describe(self.settings, self.listening, models[0].facts["models"]))

    async def _until_ready(self, children: Sequence[Child]) -> bool:
        keepers = [Keeper(child, self.folder) for child in children]
        self.keepers += keepers
        self.watching += [asyncio.create_task(keeper.keep()) for keeper in keepers]

        async def wait() -> None:
            for keeper in keepers:
                await keeper.ready.wait()

        return await self._until_stopped(wait())

    async def _until_stopped(self, work: Coroutine[Any, Any, Any]) -> bool:
        """Whether the work was done before the end was asked for; a child that cannot be kept raises its sentence."""
        task, stop = asyncio.create_task(work), asyncio.create_task(self.stopped.wait())
        try:
            done, _ = await asyncio.wait([task, stop, *self.watching], return_when=asyncio.FIRST_COMPLETED)
        finally:
            task.cancel()
            stop.cancel()
        for watcher in done & set(self.watching):
            watcher.result()
        return stop not in done

    async def _drain(self) -> None:
        """Those who speak HTTP end first, with all that they accepted; then the models."""
        for keeper in self.keepers:
            keeper.stopping.set()
        self.listening.close()
        speakers = [keeper for keeper in self.keepers if keeper.child.role == "http"]
        for keeper in speakers:
            keeper.signal(signal.SIGTERM)
        await self._until_gone(speakers, self.settings.drain + NOTICE + SPARE)
        models = [keeper for keeper in self.keepers if keeper.child.role != "http"]
        for keeper in models:
            keeper.tell_end()
        await self._until_gone(models, SPARE)

    async def _until_gone(self, keepers: Sequence[Keeper], seconds: float) -> None:
        tasks = [task for task, keeper in zip(self.watching, self.keepers, strict=True) if keeper in keepers]
        if tasks:
            await asyncio.wait(tasks, timeout=seconds)

    def _make_inference(self, number: int, device: str) -> Child:
        path = str(self.folder / f"{number}.sock")
        order = {"plan": to_json(self.plan), "device": device, "settings": to_json(self.settings)}
        name = "the inference process" + (f" on {device}" if len(self.plan.devices) > 1 else "")
        return Child("inference", name, listen_here(path), order, path)

    def _make_speaker(self, number: int, paths: Sequence[str]) -> Child:
        order = {"paths": list(paths), "settings": to_json(self.settings)}
        return Child("http", f"HTTP process {number + 1}", self.listening, order)
