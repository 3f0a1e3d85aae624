"""The servers that are measured: how each is started, what it costs while it runs, and how it is ended.

In: a contestant's name. Out: a server that answers on a port, with the memory and processor time of all its processes.
"""

import base64
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).parent
GRAPH = "int8 graph"
PATIENCE = 180.0  # seconds to load a model, compile it where that is asked for, and answer
QUICK = 0.2  # seconds for one request to a server that has nothing else to do
PAGE, TICK = os.sysconf("SC_PAGE_SIZE"), os.sysconf("SC_CLK_TCK")
PROBES = ["a river bank", "a savings bank", "The quick brown fox jumps over the lazy dog. " * 8]


def list_contestants(infinity: str | None, flags: list[str], graph: Path | None = None) -> dict[str, list[str]]:
    """Names and commands; {model} and {port} are put in later. `flags` are more of `bertsmith serve`."""
    uvicorn = [sys.executable, "-m", "uvicorn", "--app-dir", str(HERE), "--port", "{port}", "--log-level", "warning"]
    ours = [sys.executable, "-m", "bertsmith", "serve", "--model", "minilm={model}", "--port", "{port}", *flags]
    found = {
        "bertsmith, 1 worker": [*ours, "--workers", "1"],
        "bertsmith, 2 workers": [*ours, "--workers", "2"],
        "plain, threads": [*uvicorn, "--factory", "plain_server:create_threaded"],
        "plain, async": [*uvicorn, "--factory", "plain_server:create_async"],
    }
    for workers, told in {"1": "1 worker", "2": "2 workers"}.items() if graph else ():
        words = ["serve", "--model", f"minilm={graph}", "--port", "{port}", *flags, "--workers", workers]
        found[f"bertsmith, {GRAPH}, {told}"] = [sys.executable, "-m", "bertsmith", *words]
    if infinity:
        words = [infinity, "-c", "from infinity_emb.cli import cli; cli()", "v2", "--model-id", "{model}", "--port"]
        words += ["{port}", "--host", "127.0.0.1", "--served-model-name", "minilm", "--engine", "torch", "--device"]
        words += ["cpu", "--url-prefix", "/v1", "--log-level", "warning"]
        found["infinity, compiled"] = [*words, "--compile"]
        found["infinity, not compiled"] = [*words, "--no-compile"]
    return found


class Failed(Exception):
    """A server did not come to answer; the end of what it said is told."""


class Server:
    """A contestant at work; `with` ends it and all that it started."""

    def __init__(self, command: list[str], model: Path) -> None:
        self.port = find_port()
        self.log = tempfile.TemporaryFile()  # noqa: SIM115 (it is closed with the server)
        words = [word.format(model=model, port=self.port) if "{" in word else word for word in command]
        settings = {**os.environ, "MODEL": str(model), "HF_HUB_OFFLINE": "1", "DO_NOT_TRACK": "1",
                    "INFINITY_ANONYMOUS_USAGE_STATS": "0", "TOKENIZERS_PARALLELISM": "false"}  # fmt: skip
        # A group of its own, so that nothing it started is left behind.
        self.process = subprocess.Popen(words, env=settings, stdout=self.log, stderr=self.log, start_new_session=True)
        self.peak = 0.0
        self.ended = threading.Event()
        self.watcher = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> "Server":
        self.watcher.start()
        try:
            self._wait_until_ready()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.process.terminate()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        self.ended.set()
        if self.watcher.is_alive():
            self.watcher.join()
        self.log.close()

    def _wait_until_ready(self) -> None:
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until:
            if self.process.poll() is not None:
                raise Failed(f"the server ended with {self.process.returncode}:\n{self.read_log()}")
            try:
                self.ask(PROBES[:1])
                return
            except OSError:
                time.sleep(0.2)
        raise Failed(f"the server gives no answer after {PATIENCE:.0f} s:\n{self.read_log()}")

    def read_log(self) -> str:
        self.log.seek(0)
        return self.log.read()[-3000:].decode(errors="replace")

    def ask(self, texts: list[str], encoding: str = "float") -> "np.ndarray[Any, Any]":
        body = json.dumps({"model": "minilm", "input": texts, "encoding_format": encoding}).encode()
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}/v1/embeddings", body, {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=60) as answer:
            data = [one["embedding"] for one in json.load(answer)["data"]]
        if encoding == "base64":
            return np.stack([np.frombuffer(base64.b64decode(one), "<f4") for one in data])
        return np.array(data, np.float32)

    def settle(self) -> None:
        """Wait until what was left of the last step is done: a request alone is answered quickly again."""
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until and self.process.poll() is None:
            begin = time.monotonic()
            try:
                self.ask(PROBES[:1])
                if time.monotonic() - begin < QUICK:
                    return
            except OSError:
                time.sleep(0.2)

    def _watch(self) -> None:
        while not self.ended.wait(0.2):
            self.peak = max(self.peak, self.memory())

    def memory(self) -> float:
        """Bytes that all processes hold; pages that they share are counted for each."""
        return sum(_read(f"/proc/{one}/statm", 1) * PAGE for one in list_tree(self.process.pid))

    def processor(self) -> float:
        """Seconds that the living processes have worked."""
        tree = list_tree(self.process.pid)
        return sum(_read(f"/proc/{one}/stat", 13) + _read(f"/proc/{one}/stat", 14) for one in tree) / TICK

    def processes(self) -> list[int]:
        return sorted(list_tree(self.process.pid))

    def take_peak(self) -> float:
        """The most memory since this was last asked."""
        peak, self.peak = max(self.peak, self.memory()), 0.0
        return peak


def tell_versions(python: str, *names: str) -> dict[str, str]:
    """What an environment has installed of these."""
    code = f"import json; from importlib.metadata import version; print(json.dumps([version(n) for n in {names!r}]))"
    done = subprocess.run([python, "-c", code], capture_output=True, text=True)
    return dict(zip(names, json.loads(done.stdout), strict=True)) if not done.returncode else {}


def list_tree(process: int) -> list[int]:
    """A process and all that it started, and what those started."""
    try:
        tasks = list(Path(f"/proc/{process}/task").iterdir())
        children = " ".join((task / "children").read_text() for task in tasks).split()
    except OSError:  # it has just ended
        return []
    return [process, *(one for child in children for one in list_tree(int(child)))]


def _read(path: str, place: int) -> int:
    """A number of a line of /proc; the name of a program, in brackets, may hold spaces."""
    try:
        line = Path(path).read_text()
    except OSError:
        return 0
    head, bracket, rest = line.rpartition(")")
    return int(([head, "", *rest.split()] if bracket else line.split())[place])


def find_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])
