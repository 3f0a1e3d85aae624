"""Two ways to run a command on the stub: in this process, and in a process of its own."""

import json
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
def real(monkeypatch, capsys):
    """Runs `bertsmith *words` here, on real models."""
    import torch

    threads = torch.get_num_threads()
    monkeypatch.setattr(logging.getLogger("bertsmith.cuts"), "disabled", False)
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)  # as where it is not installed
    monkeypatch.delenv("BERTSMITH_MODEL", raising=False)
    yield lambda *words, stdin=b"": run_here(monkeypatch, capsys, words, stdin)
    torch.set_num_threads(threads)


@pytest.fixture(scope="session")
def place(tmp_path_factory):
    """A folder with a tiny encoder, data for each task, and a model fine-tuned on each."""
    from whole import tiny

    folder = tmp_path_factory.mktemp("place")
    tiny.make_encoder(folder / "encoder")
    rows = [f"{record['text']},{record['label']}" for record in tiny.reviews()]
    (folder / "reviews.csv").write_text("\n".join(["review,mood", *rows]) + "\n")
    (folder / "train.conll").write_text(tiny.as_conll(tiny.sentences()))
    (folder / "squad.json").write_text(json.dumps(tiny.questions(impossible=True)))
    pairs = [json.dumps(record) for record in tiny.comparisons()]
    (folder / "pairs.jsonl").write_text("\n".join(pairs) + "\n")
    sources = {"reviews.csv": "classify", "train.conll": "tag", "squad.json": "span", "pairs.jsonl": "classify"}
    for name, task in sources.items():
        bertsmith.finetune(
            task, folder / name, model=folder / "encoder", out=folder / Path(name).stem, threads=1, epochs=8, rate=3e-3,
        )  # fmt: skip
    return folder


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
