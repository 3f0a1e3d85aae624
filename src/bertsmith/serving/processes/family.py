"""A child process that is always there: started, watched, and started again when it dies or hangs.

In: what it is to do. Out: `ready`, once it does it; a BertsmithError where it cannot be kept at work.
"""

import asyncio
import json
import logging
import os
import signal
import socket
import sys
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from prometheus_client.multiprocess import mark_process_dead

from bertsmith.errors import BertsmithError
from bertsmith.serving.processes.pulse import until_silent

log = logging.getLogger("bertsmith.serving")
TRIES = 5  # failed starts in a row after which there is no point in another
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 10.0  # seconds before a successor is started
PATIENCE = 30.0  # seconds of silence after which one that others find at a path is taken to hang
LONG_LIFE = 30.0  # seconds: one that lived so long is replaced without a longer pause


@dataclass
class Child:
    role: Literal["http", "inference"]
    name: str  # for sentences
    socket: socket.socket  # that it serves
    order: dict[str, Any]
    path: str = ""  # of the socket, where others are to find it
    facts: dict[str, Any] = field(default_factory=dict)  # what it said when it was ready


class Keeper:
    def __init__(self, child: Child, folder: Path) -> None:
        """`folder` is the server's own: for sockets and counts."""
        self.child, self.folder = child, folder
        self.ready = asyncio.Event()  # whether it was ready once
        self.stopping = asyncio.Event()
        self.process: asyncio.subprocess.Process | None = None

    async def keep(self) -> None:
        """Until it is told to stop."""
        failures, pause = 0, FIRST_PAUSE
        while not self.stopping.is_set():
            born = time.monotonic()
            facts = await self._start()
            if facts is None or "error" in facts:
                ended = await self._wait()
                failures += 1
                if not self.stopping.is_set() and (failures == TRIES or not self.ready.is_set()):
                    said = (facts or {}).get("error")
                    raise BertsmithError(said or f"{self.child.name} {ended} before it could begin.")
            else:
                failures, self.child.facts = 0, facts
                self.ready.set()
                ended = await self._watch()
            if self.stopping.is_set():
                return
            log.warning("%s %s; another takes its place.", self.child.name, ended)
            pause = FIRST_PAUSE if time.monotonic() - born > LONG_LIFE else pause
            await asyncio.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)

    def command(self) -> list[str]:
        """The role is there for who looks at the list of processes."""
        return [sys.executable, "-P", "-m", "bertsmith.serving.processes.child", self.child.role]

    def kill(self) -> None:
        self.stopping.set()
        self.signal(signal.SIGKILL)

    def signal(self, number: int) -> None:
        if self.process is not None and self.process.returncode is None:
            with suppress(ProcessLookupError):
                self.process.send_signal(number)

    def tell_end(self) -> None:
        """To one that no signal but the last one ends: it goes when standard input says so."""
        if self.process is not None and self.process.stdin is not None and self.process.returncode is None:
            self.process.stdin.write(b"end\n")

    async def _start(self) -> dict[str, Any] | None:
        """What the new process reports; None where it ended without a word."""
        read, write = os.pipe()
        order = self.child.order | {
            "role": self.child.role,
            "folder": str(self.folder),
            "socket": self.child.socket.fileno(),
            "report": write,
        }
        try:
            self.process = await asyncio.create_subprocess_exec(
                *self.command(),
                stdin=asyncio.subprocess.PIPE,
                pass_fds=(self.child.socket.fileno(), write),
                env=self._environment(),
            )
        finally:
            os.close(write)
        if self.stopping.is_set():
            self.kill()
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(order).encode() + b"\n")  # not as arguments, which everybody can see
        return await _read_report(read)

    def _environment(self) -> dict[str, str]:
        counts = self.folder / "counts"
        counts.mkdir(exist_ok=True)
        found = os.environ | {
            "PROMETHEUS_MULTIPROC_DIR": str(counts),
            "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),  # it imports what we do
        }
        if self.child.role == "http":  # one that only passes bytes on needs no threads for arithmetic
            found |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        return found

    async def _watch(self) -> str:
        """How it ended; one that hangs is ended."""
        if not self.child.path:
            return await self._wait()
        silence = asyncio.create_task(until_silent(self.child.path, PATIENCE))
        end = asyncio.create_task(self._wait())
        try:
            await asyncio.wait([silence, end], return_when=asyncio.FIRST_COMPLETED)
            if end.done():
                return end.result()
            self.signal(signal.SIGKILL)
            await end
            return f"did not answer for {PATIENCE:g} seconds and was ended"
        finally:
            silence.cancel()
            end.cancel()

    async def _wait(self) -> str:
        """How it ended."""
        assert self.process is not None
        code = await self.process.wait()
        mark_process_dead(self.process.pid, str(self.folder / "counts"))
        if code >= 0:
            return f"ended with status {code}"
        name = signal.Signals(-code).name if -code in set(signal.Signals) else str(-code)
        return f"was killed by {name}" + (" (often: not enough memory)" if name == "SIGKILL" else "")


async def _read_report(pipe: int) -> dict[str, Any] | None:
    reader = asyncio.StreamReader(limit=2**24)
    loop = asyncio.get_running_loop()
    transport, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(pipe, "rb"))
    try:
        line = await reader.readline()
    finally:
        transport.close()
    found: dict[str, Any] | None = json.loads(line) if line.endswith(b"\n") else None
    return found
