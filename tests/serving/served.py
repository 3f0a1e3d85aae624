"""A real server on a free port of this machine, in a thread, for as long as a test needs it."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn

from bertsmith.serving.asks import Backend
from bertsmith.serving.http.app import create_app
from bertsmith.serving.local import Local
from bertsmith.serving.residents import Residents
from bertsmith.serving.settings import Settings

DEADLINE = 30.0


@contextmanager
def serving(backend: Backend, **settings) -> Iterator[str]:
    """The address of the server."""
    config = uvicorn.Config(create_app(backend, Settings(**settings)), host="127.0.0.1", port=0, log_level="warning")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        end = time.monotonic() + DEADLINE
        while not server.started:
            assert thread.is_alive() and time.monotonic() < end, "the server did not start"
            thread.join(0.01)
        port = server.servers[0].sockets[0].getsockname()[1]
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        thread.join(DEADLINE)


@contextmanager
def serving_models(models, default=None, **settings) -> Iterator[str]:
    backend = Local(Residents(models, default))
    try:
        with serving(backend, **settings) as address:
            yield address
    finally:
        backend.close()
