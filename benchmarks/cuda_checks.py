"""What only a GPU can show of training: recorded steps against plain ones, every setting once, resume, little memory.

    python benchmarks/cuda_checks.py --data DIR [--model FOLDER]

DIR holds glue/CoLA as distributed. Prints a line a run; ends with status 1 if a check fails.
"""

import argparse
import gc
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import torch

import bertsmith
from bertsmith.training.loop import Watcher

STEPS = {"max_steps": 60, "batch": 32, "rate": 1e-4, "seed": 3, "log_every": 10}
SETTINGS: dict[str, dict[str, Any]] = {
    "recorded": {"dropout": 0.0},
    "plain": {"dropout": 0.0, "graphs": False},
    "full precision": {"dropout": 0.0, "precision": "fp32"},
    "half precision": {"precision": "fp16"},
    "recompute": {"recompute": True},
    "unfreeze": {"unfreeze": 0.02},
    "layer decay": {"layer_decay": 0.8},
    "r-drop": {"r_drop": 1.0},
    "weights": {"focal": 2.0, "smoothing": 0.1, "class_weights": "balanced"},
    "several passes": {"batch_tokens": 256},
}


class Stop(Watcher):
    """Ctrl-C in the middle."""

    def stepped(self, step: int, record: Any, speed: Any) -> None:
        if step == 37:
            raise KeyboardInterrupt


class Checks:
    def __init__(self, data: Path, model: Path | None, folder: Path) -> None:
        self.given = {"train": data / "glue/CoLA/train.tsv", "dev": data / "glue/CoLA/dev.tsv", "model": model}
        self.folder = folder
        self.failed: list[str] = []

    def run(self, name: str, **settings: Any) -> list[str]:
        """The lines of the run's log."""
        out, start = self.folder / name, time.perf_counter()
        run = bertsmith.finetune(
            "classify", **self.given, out=out, device="cuda", keep_checkpoints=True, **{**STEPS, **settings}
        )
        log = (out / "log.jsonl").read_text().splitlines()
        losses = [json.loads(line)["loss"] for line in log if '"loss"' in line]
        gc.collect()
        left = torch.cuda.memory_allocated() / 2**20
        speed = run.outcome.speed.examples / run.outcome.speed.seconds
        print(f"{name:16} loss {losses[0]:.4f} -> {losses[-1]:.4f} {speed:8,.0f} examples/s {left:6.0f} MiB left "
              f"{time.perf_counter() - start:5.1f} s", flush=True)  # fmt: skip
        return log

    def expect(self, what: str, holds: bool) -> None:
        print(f"{'ok' if holds else 'FAILED':7} {what}", flush=True)
        if not holds:
            self.failed.append(what)

    def all(self) -> None:
        logs = {name: self.run(name, **settings) for name, settings in SETTINGS.items()}
        self.expect("a recorded run is bit-equal to a plain one", logs["recorded"] == logs["plain"])
        first = [json.loads(log[0])["loss"] for log in (logs["recorded"], logs["full precision"])]
        self.expect("bf16 begins within 1e-3 of full precision", abs(first[0] - first[1]) < 1e-3)
        whole = self.run("whole")
        try:
            self.run("interrupted", watchers=[Stop()])
        except bertsmith.BertsmithError as error:
            print(error)
        self.expect("a resumed run's log is bit-equal", self.run("interrupted") == whole)
        before = torch.cuda.memory_allocated()
        self.run("again")
        gc.collect()
        self.expect("a run leaves no memory behind", torch.cuda.memory_allocated() - before < 2**20)
        torch.cuda.empty_cache()
        room = (torch.cuda.memory_allocated() + 1.1e9) / torch.cuda.get_device_properties(0).total_memory
        torch.cuda.set_per_process_memory_fraction(room)
        self.run("little memory", batch=512, max_steps=12)
        last = max((self.folder / "little memory" / "checkpoints").glob("last-*"))
        self.expect("passes shrank to fit", json.loads((last / "state.json").read_text())["budget"] < 65536)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder with glue/CoLA")
    parser.add_argument("--model", type=Path)
    options = parser.parse_args()
    if options.data is None or not torch.cuda.is_available():
        sys.exit("give --data DIR on a machine with a CUDA device." if options.data else 0)
    with tempfile.TemporaryDirectory() as folder:
        checks = Checks(options.data, options.model, Path(folder))
        checks.all()
    sys.exit(1 if checks.failed else 0)


if __name__ == "__main__":
    main()
