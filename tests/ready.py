"""Commands in processes of their own that need not import torch first: each is a fork of one that has imported it.

    with Starter(env) as starter:
        done = starter.run(["bertsmith", "info"], folder)    # a CompletedProcess, as from `python -m bertsmith info`
        done = starter.run_ranks(["training.ranks"], folder)    # as from torchrun

As for a command that is typed: arguments, folder, environment, three streams and an exit status of its own, and
nothing that another one has done. The one that is forked only imports: it has no threads and no numbers of its own.
"""

import atexit
import gc
import importlib
import io
import json
import os
import runpy
import signal
import socket
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

PATIENCE = 600  # seconds until a command has hung, on a machine however busy


class Starter:
    """Starts commands one after the other, with one environment."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        paths = {"PYTHONPATH": os.pathsep.join(sys.path)}
        self.process = subprocess.Popen(
            [sys.executable, str(Path(__file__))], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env={**environment, **paths},
        )  # fmt: skip

    def __enter__(self) -> "Starter":
        return self

    def __exit__(self, *_: object) -> None:
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()

    def run(
        self, words: Sequence[str | Path], folder: Path, given: bytes = b"", terminal: bool = False, **environment: str
    ) -> subprocess.CompletedProcess[str]:
        """`words` begin with the module; `given` is the standard input; `terminal`: as if a person looked on."""
        return self._run(words, folder, given, terminal, [environment])

    def run_ranks(
        self, words: Sequence[str | Path], folder: Path, count: int = 2
    ) -> subprocess.CompletedProcess[str]:  # fmt: skip
        """In so many processes that find each other, as those that torchrun starts; what they say is put together."""
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            known = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free.getsockname()[1]), "WORLD_SIZE": str(count)}
        ranks = [{**known, "RANK": str(rank), "LOCAL_RANK": str(rank)} for rank in range(count)]
        return self._run(words, folder, b"", False, ranks)

    def _run(
        self, words: Sequence[str | Path], folder: Path, given: bytes, terminal: bool,
        environments: Sequence[Mapping[str, str]],
    ) -> subprocess.CompletedProcess[str]:  # fmt: skip
        assert self.process.stdin is not None and self.process.stdout is not None
        command = [str(word) for word in words]
        with tempfile.TemporaryDirectory() as place:
            (Path(place) / "in").write_bytes(given)
            names = [("in", f"out-{number}", f"err-{number}") for number in range(len(environments))]
            asked = [{"words": command, "folder": str(folder), "streams": [f"{place}/{name}" for name in streams],
                      "terminal": terminal, "environment": dict(environment)}
                     for streams, environment in zip(names, environments, strict=True)]  # fmt: skip
            self.process.stdin.write(json.dumps(asked) + "\n")
            self.process.stdin.flush()
            answer = self.process.stdout.readline()
            assert answer, "the process that starts others has ended"
            said, complained = ("".join((Path(place) / streams[kind]).read_text(encoding="utf-8") for streams in names)
                                for kind in (1, 2))  # fmt: skip
        return subprocess.CompletedProcess(command, int(answer), said, complained)


class Shown(io.TextIOWrapper):
    """Standard output that takes itself for a terminal."""

    def isatty(self) -> bool:
        return True


def become(
    words: list[str], folder: str, streams: list[str], terminal: bool, environment: dict[str, str]
) -> NoReturn:  # fmt: skip
    """Turns this process into `python -m WORDS` in that folder."""
    signal.alarm(PATIENCE)
    os.chdir(folder)
    os.environ.update(environment)
    for number, path in enumerate(streams):
        opened = os.open(path, os.O_RDONLY if number == 0 else os.O_WRONLY | os.O_CREAT, 0o600)
        os.dup2(opened, number)
        os.close(opened)
    # New objects: the old ones may hold what was read ahead, and know what the streams were.
    sys.stdin = os.fdopen(0, encoding="utf-8", closefd=False)
    sys.stdout = os.fdopen(1, "w", encoding="utf-8", closefd=False)
    if terminal:
        sys.stdout = Shown(os.fdopen(1, "wb", closefd=False), encoding="utf-8")
    sys.stderr = os.fdopen(2, "w", encoding="utf-8", buffering=1, closefd=False)
    sys.argv = words
    status = run_module(words[0])
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)  # without taking apart, and so copying, all that was imported


def run_module(name: str) -> int:
    """Its exit status, told as the interpreter tells it."""
    try:
        runpy.run_module(name, run_name="__main__", alter_sys=True)
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            return end.code or 0
        print(end.code, file=sys.stderr)
        return 1
    except BaseException:
        traceback.print_exc()
        return 1
    return 0


def main() -> None:
    import_all()
    gc.freeze()  # else a collection in a fork would touch, and so copy, all that was imported
    for line in sys.stdin:
        asked: list[dict[str, Any]] = json.loads(line)
        children = []
        for one in asked:
            children.append(os.fork())
            if children[-1] == 0:
                become(**one)
        print(wait_for(children), flush=True)


def wait_for(children: list[int]) -> int:
    """The exit status of the first that fails, or 0; it ends the others, which might wait for it."""
    failed, left = 0, set(children)
    while left:
        child, status = os.wait()
        left.discard(child)
        if status and not failed:
            failed = os.waitstatus_to_exitcode(status)
            for other in left:
                os.kill(other, signal.SIGKILL)
    return failed


def import_all() -> None:
    """What commands import, and the reference need not be."""
    for name in ("torch", "torch._dynamo", "torch._inductor", "torch.distributed", "sympy", "rich.table",
                 "rich.progress", "pydantic.types", "pydantic.type_adapter", "bertsmith.cli.app", "bertsmith.loading",
                 "bertsmith.finetuning", "bertsmith.together", "bertsmith.pretraining", "bertsmith.checking",
                 "bertsmith.searching", "bertsmith.inspect", "bertsmith.inspection.attention"):  # fmt: skip
        importlib.import_module(name)


if __name__ == "__main__":
    main()
