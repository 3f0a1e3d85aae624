"""One command in this process: its words and its standard input in, its status and what it said out."""

import io
import json
import sys
from dataclasses import dataclass

import pytest

from bertsmith.cli import main


@dataclass
class Ran:
    status: int
    out: str
    err: str

    @property
    def records(self):
        return [json.loads(line) for line in self.out.splitlines()]


def run_here(monkeypatch, capsys, words, stdin=b""):
    """Runs `bertsmith *words`; `stdin` is bytes."""
    monkeypatch.setattr(sys, "argv", ["bertsmith", *map(str, words)])
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
    capsys.readouterr()
    with pytest.raises(SystemExit) as ended:
        main()
    captured = capsys.readouterr()
    return Ran(ended.value.code or 0, captured.out, captured.err)
