"""A process that the supervisor starts (`python -m` this file): one that speaks HTTP, or one with models.

In: a line of JSON on standard input, which stays open: its end is the end of the supervisor, and so of this process.
Out: a line of JSON on the file descriptor `report`, once it is at work or cannot be.
"""

import asyncio
import json
import os
import shutil
import signal
import socket
import sys
import threading
from typing import Any

from bertsmith.errors import BertsmithError
from bertsmith.serving.http.logs import configure_logs
from bertsmith.serving.processes.memory import Returning, bound_caches
from bertsmith.serving.processes.plan import read_plan, read_settings
from bertsmith.serving.settings import Settings

PATIENCE = 5.0  # seconds that an HTTP process waits for the models before it says that they are not there


def main() -> None:
    for number in (signal.SIGINT, signal.SIGHUP):  # they are for the supervisor, which then ends the others in order
        signal.signal(number, signal.SIG_IGN)
    order = json.loads(sys.stdin.buffer.readline())
    threading.Thread(target=_follow, args=(order["folder"],), daemon=True).start()
    configure_logs()
    settings = read_settings(order["settings"])
    listening = socket.socket(fileno=order["socket"])
    try:
        if order["role"] == "http":
            _run(_serve_http(order, settings, listening))
        else:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)  # it ends last, when nobody can ask any more
            _run(_serve_models(order, settings, listening))
    except BertsmithError as error:
        report(order, {"error": str(error)})
        _end(1)
    _end(0)


def _run(work: Any) -> None:
    from bertsmith.serving.processes.httpserver import find_loop_factory

    with asyncio.Runner(loop_factory=find_loop_factory()) as runner:
        runner.run(work)


async def _serve_http(order: dict[str, Any], settings: Settings, listening: socket.socket) -> None:
    from bertsmith.serving.http.app import create_app
    from bertsmith.serving.processes.httpserver import HttpServer
    from bertsmith.serving.processes.remote import Remote

    backend = Remote(order["paths"])
    backend.open()
    await backend.wait(PATIENCE)
    server = HttpServer(create_app(backend, settings), settings, lambda: report(order, {}), alone=False)
    await server.serve(sockets=[listening])
    await backend.close()


async def _serve_models(order: dict[str, Any], settings: Settings, listening: socket.socket) -> None:
    from bertsmith.serving.local import Local
    from bertsmith.serving.processes.listening import Listener

    bound_caches()
    residents = read_plan(order["plan"]).load(settings, order["device"])
    backend = Local(residents, settings.requests, settings.longest_wait)
    Returning(lambda: backend.engine.batches).start()
    listener = Listener(backend)
    await listener.open(listening)
    report(order, {"models": [card.id for card in residents.list_cards()]})
    await asyncio.Event().wait()  # until the supervisor closes our standard input


def report(order: dict[str, Any], facts: dict[str, Any]) -> None:
    os.write(order["report"], json.dumps(facts).encode() + b"\n")


def _follow(folder: str) -> None:
    """Waits for the end of the supervisor, even if it was killed: nobody stays behind, and no folder of sockets."""
    said = sys.stdin.buffer.readline()
    if not said:
        shutil.rmtree(folder, ignore_errors=True)
    _end(0)


def _end(status: int) -> None:
    """At once: threads that still work on what nobody waits for would hold up a plain exit."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


if __name__ == "__main__":
    main()
