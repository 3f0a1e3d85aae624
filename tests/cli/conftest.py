"""Two ways to run a command on the stub: in this process, and in a process of its own."""

import io
import json
import logging
import runpy
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

import bertsmith
from bertsmith.cli import main

STUB = Path(__file__).parent / "stub_main.py"


@dataclass
class Ran:
    status: int
    out: str
    err: str

    @property
    def records(self):
        return [json.loads(line) for line in self.out.splitlines()]


@pytest.fixture
def run(monkeypatch, capsys):
    """Runs `bertsmith *words` here; `stdin` is bytes."""
    monkeypatch.setattr(bertsmith, "load", runpy.run_path(str(STUB))["load"], raising=False)
    monkeypatch.setattr(logging.getLogger("bertsmith.cuts"), "disabled", False)  # and put back afterwards

    def run_words(*words, stdin=b"", model="stub"):
        monkeypatch.setattr(sys, "argv", ["bertsmith", *words])
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        monkeypatch.setenv("BERTSMITH_MODEL", model)
        with pytest.raises(SystemExit) as ended:
            main()
        captured = capsys.readouterr()
        return Ran(ended.value.code or 0, captured.out, captured.err)

    return run_words


@pytest.fixture
def start(monkeypatch):
    """Starts `bertsmith *words` in a process of its own, on the stub."""
    monkeypatch.setenv("BERTSMITH_MODEL", "stub")
    started = []

    def start_words(*words, **options):
        process = subprocess.Popen([sys.executable, str(STUB), *words], **options)
        started.append(process)
        return process

    yield start_words
    for process in started:
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout, process.stderr):
            if pipe:
                pipe.close()
