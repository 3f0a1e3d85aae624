"""Processes that live for a whole job and take one piece of work after the other.

In: a function that a fresh process can import, and what to call it with. Out: what it gave, as it comes; a `Lost` where
the process died over it. Each has a pipe of its own, so that one that is killed takes nothing of the others along.
"""

import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing import connection, current_process, get_context, parent_process
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from time import monotonic
from types import TracebackType
from typing import Any, Self

from bertsmith.errors import BertsmithError, Stopped

READY = "ready"
PATIENCE = 15.0  # seconds that a run has to save itself when all is stopped
GUARD = 'in a script of your own, call this under `if __name__ == "__main__":`'
THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "RAYON_NUM_THREADS")


def count_cores() -> int:
    """Those that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def refuse_second_run() -> None:
    """End a fresh process that runs the script of the one that started it again, before it does that work once more.

    Said nowhere: whoever started it sees that it ended, and tells of the guard that the script lacks.
    """
    if getattr(current_process(), "_inheriting", False):
        raise SystemExit(1)


@dataclass(frozen=True)
class Lost:
    """A piece of work whose process died."""

    why: str


@dataclass
class Worker:
    process: BaseProcess
    pipe: Connection
    is_ready: bool = False
    place: int | None = None  # of the piece it works on


class Workers:
    """A context manager: left by an error or an interrupt, it ends the processes, which save what they can."""

    def __init__(self, count: int, threads: int, work: Callable[[Any], Any]) -> None:
        self.count, self.threads, self.work = count, threads, work
        self.workers: list[Worker] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        for worker in self.workers:
            with suppress(OSError):
                if worker.place is None and worker.is_ready:
                    worker.pipe.send(None)
                else:
                    worker.process.terminate()
        until = monotonic() + PATIENCE
        for worker in self.workers:
            worker.process.join(max(0.0, until - monotonic()))
            if worker.process.is_alive():
                worker.process.kill()
                worker.process.join()
            worker.pipe.close()
        self.workers.clear()

    def run(self, items: Sequence[Any]) -> Iterator[tuple[int, Any]]:
        """(place, what the function gave for it), in the order in which they are done."""
        waiting = deque(enumerate(items))
        left = len(items)
        while left:
            while len(self.workers) < min(self.count, left):
                self.workers.append(self._start())
            for worker in self.workers:
                if worker.is_ready and worker.place is None and waiting:
                    self._give(worker, *waiting.popleft())
            talking = connection.wait([worker.pipe for worker in self.workers])
            for worker in [worker for worker in self.workers if worker.pipe in talking]:
                place, said = worker.place, self._hear(worker)
                if place is not None:
                    left -= 1
                    yield place, said

    def _give(self, worker: Worker, place: int, item: Any) -> None:
        worker.place = place
        with suppress(OSError):  # it died while it had nothing to do: `_hear` will notice
            worker.pipe.send(item)

    def _hear(self, worker: Worker) -> Any:
        try:
            said = worker.pipe.recv()
        except (EOFError, OSError):
            self.workers.remove(worker)
            worker.process.join()
            worker.pipe.close()
            if not worker.is_ready:
                raise BertsmithError(
                    f"a worker {_tell_end(worker.process)} before it could start; {GUARD}, or leave jobs at 1."
                ) from None
            return Lost(f"its process {_tell_end(worker.process)}")
        worker.is_ready, worker.place = True, None
        return said

    def _start(self) -> Worker:
        refuse_second_run()
        context = get_context("spawn")  # a fork would share CUDA and the tokenizer's threads
        ours, theirs = context.Pipe()
        process = context.Process(target=serve, args=(theirs, self.work), daemon=True)
        with _environment(dict.fromkeys(THREADS, str(self.threads))), _interrupts_held():
            process.start()
        theirs.close()  # so that ours ends when the process does
        return Worker(process, ours)


def serve(pipe: Connection, work: Callable[[Any], Any]) -> None:
    """What a worker does until it is told to go, or whoever started it is gone."""
    _leave_the_terminal()
    follow_parent()
    with suppress(EOFError, OSError, KeyboardInterrupt, Stopped):
        pipe.send(READY)
        while (item := pipe.recv()) is not None:
            pipe.send(work(item))


def _leave_the_terminal() -> None:
    """Ctrl-C is for the first process, which then ends the others once: a second signal would not let them save."""
    if hasattr(os, "setpgrp"):
        os.setpgrp()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # forgets one that came while it was held back
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    signal.signal(signal.SIGINT, signal.default_int_handler)


def follow_parent() -> None:
    """From now on this process ends in good order when the one that started it is gone, even if that was killed."""
    threading.Thread(target=_follow, daemon=True).start()


def _follow() -> None:
    parent = parent_process()
    if parent is not None:
        connection.wait([parent.sentinel])
        os.kill(os.getpid(), signal.SIGTERM)


@contextmanager
def _environment(values: dict[str, str]) -> Iterator[None]:
    """What a process inherits at its start; some libraries read it once, when they are imported."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name)
            else:
                os.environ[name] = value


@contextmanager
def _interrupts_held() -> Iterator[None]:
    """A process started in here gets no Ctrl-C until it asks for it."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _tell_end(process: BaseProcess) -> str:
    code = process.exitcode or 0
    if code >= 0:
        return f"ended with status {code}"
    name = signal.Signals(-code).name if -code in set(signal.Signals) else str(-code)
    return f"was killed by {name}" + (" (often: not enough memory)" if name == "SIGKILL" else "")
