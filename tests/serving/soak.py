"""Mixed traffic on a real `bertsmith serve` for a long time: every answer is checked, and the memory must not grow.

    make soak                                                 20 minutes of it
    python tests/serving/soak.py --minutes 20 --users 12      the same
    python tests/serving/soak.py --minutes 1 --out soak.json

Several users ask, each on a connection of its own, all that `soak_questions` holds in a random order: every route and
job, several models and adapters, requests that are no good. Some hang up: with half a request sent, or before they are
answered. Out: how many answers were wrong (the first of them are told), and how the memory of all processes of the
server went: how steeply it rose in the second half, in MiB a minute. All of the slope's interval must lie below the
limit.
"""

import argparse
import asyncio
import json
import logging
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))

from serving.models import make_adapters, make_heads
from serving.soak_questions import DEFAULT, Question, ask_everything, judge, make_texts
from serving.soak_report import describe, tell_origin

import bertsmith

PATIENCE = 60.0  # seconds to start, to answer, to end
PAGE = os.sysconf("SC_PAGE_SIZE")
HANG_UPS = 0.04  # of all requests
STEEP = 0.5  # MiB a minute: what the long soak allows, and it must be sure of it


@dataclass
class Tally:
    """What has come of the traffic so far."""

    asked: Counter[str] = field(default_factory=Counter)  # by route
    wrong: list[str] = field(default_factory=list)
    hung_up: int = 0
    memory: list[tuple[float, dict[int, float]]] = field(default_factory=list)  # seconds, MiB of each process

    @property
    def answered(self) -> int:
        return sum(self.asked.values())


# -- the server -------------------------------------------------------------------------------------------------------


@contextmanager
def serving(made: "Made", workers: int) -> Iterator[tuple[int, int]]:
    """A server with all of it; its port and its process."""
    words = [sys.executable, "-m", "bertsmith", "serve", "--port", "0", "--threads", "1", "--device", "cpu"]
    words += ["--workers", str(workers), "--default", DEFAULT, "--index", str(made.documents)]
    words += [word for name, folder in made.heads.items() for word in ("--model", f"{name}={folder}")]
    words += [word for name, folder in made.adapters.items() for word in ("--adapter", f"{name}={folder}")]
    settings = {**os.environ, "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
    with tempfile.TemporaryFile() as log:
        server = subprocess.Popen(words, env=settings, stdout=subprocess.PIPE, stderr=log, start_new_session=True)
        try:
            assert server.stdout is not None
            line = server.stdout.readline()  # it is written when the models are there
            if not line:
                log.seek(0)
                raise AssertionError(f"the server did not start: {log.read()[-2000:].decode(errors='replace')}")
            yield json.loads(line)["port"], server.pid
            assert server.poll() is None, "the server ended by itself"
            server.terminate()
            assert server.wait(PATIENCE) == 0, "the server did not end well"
        finally:
            with suppress(ProcessLookupError):
                os.killpg(server.pid, signal.SIGKILL)
            server.wait()
            assert server.stdout is not None
            server.stdout.close()


def measure_memory(process: int) -> dict[int, float]:
    """MiB of a process and of all that it started."""
    try:
        tasks = list(Path(f"/proc/{process}/task").iterdir())
        children = " ".join((task / "children").read_text() for task in tasks).split()
        pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
    except OSError:  # it has just ended
        return {}
    found = {process: pages * PAGE / 2**20}
    for child in children:
        found |= measure_memory(int(child))
    return found


# -- the traffic ------------------------------------------------------------------------------------------------------


class User:
    """One connection that asks at random; it is opened anew after each hanging up."""

    def __init__(self, port: int, questions: list[Question], tally: Tally, seed: int, pause: float) -> None:
        self.port, self.questions, self.tally, self.pause = port, questions, tally, pause
        self.chance = random.Random(seed)
        self.reader: asyncio.StreamReader | None = None
        self.writer: asyncio.StreamWriter | None = None

    async def ask_until(self, end: float) -> None:
        while time.monotonic() < end:
            question = self.chance.choice(self.questions)
            if self.chance.random() < HANG_UPS:
                await self._hang_up(question)
            else:
                await self._ask(question)
            if self.pause:
                await asyncio.sleep(self.chance.expovariate(1 / self.pause))
        self._close()

    async def _ask(self, question: Question) -> None:
        try:
            status, answer = await asyncio.wait_for(self._exchange(question), PATIENCE)
            problem = judge(question, status, answer)
        except (TimeoutError, OSError, EOFError, ValueError) as error:
            problem = f"no answer: {error!r}"
            self._close()
        self.tally.asked[question.path] += 1
        if problem:
            self.tally.wrong.append(f"{question.path} {str(question.body)[:200]}: {problem}")

    async def _exchange(self, question: Question) -> tuple[int, Any]:
        """A connection that the server closed while it was idle is opened again."""
        request = write_request(question)
        for _ in range(2):
            reader, writer = await self._open()
            try:
                writer.write(request)
                head = await reader.readuntil(b"\r\n\r\n")
                break
            except (ConnectionError, asyncio.IncompleteReadError) as error:
                self._close()
                if getattr(error, "partial", b""):
                    raise
        else:
            raise ConnectionError("the server closed the connection twice")
        lines = head.decode("latin-1").lower().split("\r\n")
        headers = dict(line.split(": ", 1) for line in lines[1:] if ": " in line)
        body = await reader.readexactly(int(headers["content-length"])) if "content-length" in headers else b""
        if "content-length" not in headers or headers.get("connection") == "close":
            self._close()
        is_json = "json" in headers.get("content-type", "")
        return int(lines[0].split()[1]), json.loads(body) if is_json and body else body

    async def _hang_up(self, question: Question) -> None:
        """In the middle of the request, at once behind it, or a moment later."""
        request = write_request(question)
        _, writer = await self._open()
        writer.write(request[: self.chance.choice((len(request) // 2, len(request), len(request)))])
        with suppress(ConnectionError):
            await writer.drain()
        await asyncio.sleep(self.chance.choice((0.0, 0.002, 0.01)))
        writer.transport.abort()
        self.writer = None
        self.tally.hung_up += 1

    async def _open(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if self.writer is None or self.reader is None:
            self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self.port, limit=2**24)
        return self.reader, self.writer

    def _close(self) -> None:
        if self.writer is not None:
            self.writer.close()
            self.writer = None


def write_request(question: Question) -> bytes:
    if question.body is None:
        return f"GET {question.path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode()
    body = question.body if isinstance(question.body, bytes) else json.dumps(question.body).encode()
    head = f"POST {question.path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


async def drive(
    port: int, process: int, questions: list[Question], seconds: float, users: int, pause: float, seed: int = 0
) -> Tally:
    """All users at once; the memory is looked at every second."""
    tally, begin = Tally(), time.monotonic()
    traffic = [asyncio.create_task(User(port, questions, tally, seed + number, pause).ask_until(begin + seconds))
               for number in range(users)]  # fmt: skip
    while not all(task.done() for task in traffic):
        tally.memory.append((time.monotonic() - begin, measure_memory(process)))
        await asyncio.wait(traffic, timeout=1.0)
    for task in traffic:
        task.result()
    return tally


# -- what is served ---------------------------------------------------------------------------------------------------


@dataclass
class Made:
    """Folders: a model for each head, adapters on the first of them, documents that it searches."""

    heads: dict[str, Path]
    adapters: dict[str, Path]
    documents: Path


def make(place: Path) -> Made:
    heads = make_heads(place)
    documents = place / "documents"
    documents.mkdir()
    for number, text in enumerate(make_texts(12, seed=1)):
        (documents / f"{number}.txt").write_text(text, encoding="utf-8")
    return Made(heads, make_adapters(place / "adapters", heads["bare"]), documents)


def make_questions(made: Made) -> list[Question]:
    """With the answers of the library, whose models have the ids that the server gives them."""
    first = next(iter(made.heads))
    models = {name: bertsmith.load(folder, device="cpu") for name, folder in made.heads.items()}
    models[first] = bertsmith.load(made.heads[first], device="cpu", adapters=made.adapters)
    index = bertsmith.index(made.documents, models[first])
    return ask_everything(models | {f"{first}:{name}": one for name, one in models[first].adapters.items()}, index)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=20.0)
    parser.add_argument("--users", type=int, default=12)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, metavar="FILE.json")
    options = parser.parse_args()
    logging.getLogger("bertsmith.cuts").setLevel(logging.ERROR)  # long texts are among the questions
    with tempfile.TemporaryDirectory() as place:
        made = make(Path(place))
        questions = make_questions(made)
        with serving(made, options.workers) as (port, process):
            seconds = 60 * options.minutes
            tally = asyncio.run(drive(port, process, questions, seconds, options.users, 0.0, options.seed))
    report = {**tell_origin(), "limit_mib_a_minute": STEEP, "questions": len(questions), **describe(tally, seconds)}
    print(json.dumps(report, indent=1))
    if options.out:
        options.out.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    if tally.wrong:
        raise SystemExit("answers were wrong.")
    if report["slope_interval"][1] > STEEP:
        raise SystemExit("the memory grew, or this was too short to be sure that it did not.")


if __name__ == "__main__":
    main()
