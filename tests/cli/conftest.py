"""Two ways to run a command on the stub: in this process, and in a process of its own."""

import logging
import runpy
import subprocess
import sys
from pathlib import Path

import pytest
from cli.running import run_here

import bertsmith

STUB = Path(__file__).parent / "stub_main.py"


@pytest.fixture
def run(monkeypatch, capsys):
    """Runs `bertsmith *words` here; `stdin` is bytes."""
    monkeypatch.setattr(bertsmith, "load", runpy.run_path(str(STUB))["load"], raising=False)
    monkeypatch.setattr(logging.getLogger("bertsmith.cuts"), "disabled", False)  # and put back afterwards

    def run_words(*words, stdin=b"", model="stub"):
        monkeypatch.setenv("BERTSMITH_MODEL", model)
        return run_here(monkeypatch, capsys, words, stdin)

    return run_words


@pytest.fixture
def start(monkeypatch):
    """Starts `bertsmith *words` in a process of its own, on the stub; `shell` is how it is called there."""
    monkeypatch.setenv("BERTSMITH_MODEL", "stub")
    started = []

    def start_words(*words, shell=None, **options):
        before = ["sh", "-c", shell, "sh"] if shell else []
        process = subprocess.Popen([*before, sys.executable, str(STUB), *words], **options)
        started.append(process)
        return process

    yield start_words
    for process in started:
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout, process.stderr):
            if pipe:
                pipe.close()
