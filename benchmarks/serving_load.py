"""Asks a server for vectors at moments that do not depend on its answers: an open loop, in a process of its own.

    python benchmarks/serving_load.py                                     how fast this generator itself can be
    python benchmarks/serving_load.py --port 8000 --rate 100 --seconds 10

In: a port, a rate, a length of time. Out, as one JSON object: of every request when it was due (seconds from the
start), how long it took from that moment to the last byte of its answer, and the status; 0 is a connection that broke,
-1 one that was given up. The moments are a Poisson process. A request that finds no idle connection opens one, so none
waits for another, and a request that is sent late because this process is busy has waited nevertheless.
"""

import argparse
import asyncio
import gc
import json
import random
import resource
import socket
import subprocess
import sys
import time
from collections import deque
from itertools import islice
from typing import Any

import uvloop
from serving_texts import make_texts

PATIENCE = 30.0  # seconds until a request is given up
ROUTE = "/v1/embeddings"
Row = tuple[float, float, int]  # due, seconds, status


def main() -> None:
    options = parse()
    _raise_limit()
    if options.trivial:
        uvloop.run(serve_nothing(options.port))
    elif options.port:
        json.dump(uvloop.run(Load(options).run()), sys.stdout)
    else:
        measure_itself(options)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--rate", type=float, default=1000.0, help="requests a second, on average")
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--model", default="minilm", help="the id that requests name")
    parser.add_argument("--encoding", choices=("float", "base64"), default="float")
    parser.add_argument("--trivial", action="store_true", help="be a server that answers everything with one vector")
    return parser.parse_args()


def _raise_limit() -> None:
    """Each waiting request holds a connection."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


# -- the load ---------------------------------------------------------------------------------------------------------


class Connection(asyncio.Protocol):
    """One request at a time; the answer is read as far as its length and its status tell."""

    def __init__(self, load: "Load") -> None:
        self.load = load
        self.transport: asyncio.Transport | None = None
        self.due = -1.0  # of the request that is under way; -1: none
        self.received = bytearray()
        self.length = -1  # of the whole answer, once its head is there

    def connection_made(self, transport: Any) -> None:
        self.transport = transport
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def send(self, due: float, request: bytes) -> None:
        assert self.transport is not None
        self.due, self.length = due, -1
        self.received.clear()
        self.transport.write(request)

    def data_received(self, data: bytes) -> None:
        self.received += data
        if self.length < 0:
            end = self.received.find(b"\r\n\r\n")
            if end < 0:
                return
            head = bytes(self.received[:end]).lower()
            place = head.find(b"content-length:")
            assert place >= 0, "the answer does not tell its length"
            self.length = end + 4 + int(head[place + 15 :].split(b"\r\n", 1)[0])
        if len(self.received) < self.length or self.due < 0:
            return
        self.load.note(self.due, int(self.received[9:12]))
        self.due = -1.0
        if b"connection: close" not in bytes(self.received[: self.received.find(b"\r\n\r\n")]).lower():
            self.load.idle.append(self)

    def connection_lost(self, problem: Exception | None) -> None:
        self.transport = None
        if self.due >= 0:
            self.load.note(self.due, 0)
            self.due = -1.0


class Load:
    """All requests of a run, made before it begins."""

    def __init__(self, options: argparse.Namespace) -> None:
        chance, at, self.moments = random.Random(options.seed), 0.0, []
        while (at := at + chance.expovariate(options.rate)) < options.seconds:
            self.moments.append(at)
        texts = islice(make_texts(options.seed), len(self.moments))
        self.requests = [_write_request(text, options) for text in texts]
        self.port = options.port
        self.idle: deque[Connection] = deque()
        self.rows: list[Row] = []
        self.late: list[float] = []
        self.start = 0.0
        self.tasks: set[asyncio.Task[None]] = set()

    async def run(self) -> dict[str, Any]:
        gc.freeze()
        gc.disable()
        used, self.start = time.process_time(), time.perf_counter() + 0.05
        for due, request in zip(self.moments, self.requests, strict=True):
            wait = self.start + due - time.perf_counter()
            if wait > 0:
                await asyncio.sleep(wait)
            self._send(due, request)
        last = time.perf_counter() + PATIENCE
        while len(self.rows) < len(self.moments) and time.perf_counter() < last:
            await asyncio.sleep(0.01)
        used = time.process_time() - used
        given_up = len(self.moments) - len(self.rows)
        known = {due for due, _, _ in self.rows}
        self.rows += [(due, PATIENCE, -1) for due in self.moments if due not in known][:given_up]
        late = sorted(self.late)
        return {"rows": sorted(self.rows), "late_p99_ms": 1000 * late[int(0.99 * (len(late) - 1))] if late else 0.0,
                "cpu_s": used, "connections": len(self.idle)}  # fmt: skip

    def _send(self, due: float, request: bytes) -> None:
        self.late.append(time.perf_counter() - self.start - due)
        while self.idle:
            connection = self.idle.pop()  # the newest: the others may close
            if connection.transport is not None and not connection.transport.is_closing():
                connection.send(due, request)
                return
        task = asyncio.get_running_loop().create_task(self._open(due, request))
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    async def _open(self, due: float, request: bytes) -> None:
        loop = asyncio.get_running_loop()
        try:
            _, connection = await loop.create_connection(lambda: Connection(self), "127.0.0.1", self.port)
        except OSError:
            self.note(due, 0)
            return
        connection.send(due, request)

    def note(self, due: float, status: int) -> None:
        self.rows.append((due, time.perf_counter() - self.start - due, status))


def _write_request(text: str, options: argparse.Namespace) -> bytes:
    body = json.dumps({"model": options.model, "input": text, "encoding_format": options.encoding}).encode()
    head = (f"POST {ROUTE} HTTP/1.1\r\nHost: 127.0.0.1:{options.port}\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\n\r\n")  # fmt: skip
    return head.encode() + body


# -- the generator measured -------------------------------------------------------------------------------------------


class Nothing(asyncio.Protocol):
    """Answers everything at once with a vector that is as long as a real one."""

    body = json.dumps({"object": "list", "data": [{"index": 0, "embedding": [0.0123456] * 384}]}).encode()
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body

    def connection_made(self, transport: Any) -> None:
        self.transport, self.received = transport, b""

    def data_received(self, data: bytes) -> None:
        self.received += data
        head, found, body = self.received.partition(b"\r\n\r\n")
        if found and len(body) >= int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0]):
            self.received = b""
            self.transport.write(self.answer)


async def serve_nothing(port: int) -> None:
    server = await asyncio.get_running_loop().create_server(Nothing, "127.0.0.1", port, backlog=2048)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


def measure_itself(options: argparse.Namespace) -> None:
    """Against a server that does nothing: beyond what rate would the generator, not the server, be measured?"""
    server = subprocess.Popen([sys.executable, __file__, "--trivial"], stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        options.port = int(server.stdout.readline())
        for options.rate in (250.0, 500.0, 1000.0, 2000.0, 4000.0):
            told = measure_in_process(options)
            took = sorted(seconds for _, seconds, _ in told["rows"])
            print(f"{options.rate:6.0f} requests/s asked, {len(took) / options.seconds:6.0f} answered: "
                  f"p50 {1000 * took[len(took) // 2]:.1f} ms, p99 {1000 * took[int(0.99 * len(took))]:.1f} ms, "
                  f"{1e6 * told['cpu_s'] / len(took):.0f} µs of a processor each", flush=True)  # fmt: skip
    finally:
        server.kill()
        server.wait()
        assert server.stdout is not None
        server.stdout.close()


def measure_in_process(options: argparse.Namespace) -> dict[str, Any]:
    """A run in a process of its own."""
    words = [f"--{name}={getattr(options, name)}" for name in ("port", "rate", "seconds", "seed", "model", "encoding")]
    done = subprocess.run([sys.executable, __file__, *words], stdout=subprocess.PIPE, check=True)
    told: dict[str, Any] = json.loads(done.stdout)
    return told


if __name__ == "__main__":
    main()
