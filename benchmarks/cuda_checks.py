"""What only a GPU can show of training: recorded steps against plain ones, every setting once, resume, little memory.

    python benchmarks/cuda_checks.py --data DIR [--model FOLDER]

DIR holds glue/CoLA and glue/STS-B, choice/commonsenseqa_v1.0 and slots/snips as distributed. Prints a line a run; ends
with status 1 if a check fails.
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
from origins import find_model

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
    "adversarial": {"adversarial": 1.0, "dropout": 0.0},
    "adversarial, half": {"adversarial": 1.0, "dropout": 0.0, "precision": "fp16"},
    "weights": {"focal": 2.0, "smoothing": 0.1, "class_weights": "balanced"},
    "several passes": {"batch_tokens": 256},
    "adapter": {"lora": 8, "rate": 1e-3},
    "features": {"features": "mix", "rate": 5e-3},
    "features, lstm": {"features": "concat4", "recurrent": 64, "rate": 2e-3},
}
# Every kind of gold that a recorded pass lays out: numbers, groups of rows, a step that is one pass, words.
TASKS: dict[str, dict[str, Any]] = {
    "regress": {"task": "regress", "train": "glue/STS-B/train.tsv", "dev": "glue/STS-B/dev.tsv"},
    "choose": {
        "task": "choose",
        "train": "choice/commonsenseqa_v1.0/train_rand_split.jsonl",
        "dev": "choice/commonsenseqa_v1.0/dev_rand_split.jsonl",
    },
    "embed": {"task": "embed", "train": "glue/STS-B/train.tsv", "dev": "glue/STS-B/dev.tsv"},
    "tag": {"task": "tag", "train": "slots/snips/train", "dev": "slots/snips/dev"},
    "tag, adapter": {"task": "tag", "train": "slots/snips/train", "dev": "slots/snips/dev", "lora": 8},
    "tag, features": {"task": "tag", "train": "slots/snips/train", "dev": "slots/snips/dev", "features": "mix"},
}


class Stop(Watcher):
    """Ctrl-C in the middle."""

    def stepped(self, step: int, record: Any, speed: Any) -> None:
        if step == 37:
            raise KeyboardInterrupt


def list_losses(log: list[str]) -> list[float]:
    return [json.loads(line)["loss"] for line in log if '"loss"' in line]


def compare(name: str, plain: list[float], recorded: list[float]) -> tuple[str, bool]:
    """Filler changes the shape of a head's products, and so the last bits of bf16: a step is equal to rounding only."""
    first, last = (abs(plain[place] - recorded[place]) / abs(plain[place]) for place in (0, -1))
    told = f"{name}: a recorded run begins as a plain one (off by {first:.1e}) and ends there (off by {last:.1e})"
    return told, first < 1e-3 and last < 0.02


class Checks:
    def __init__(self, data: Path, model: Path | None, folder: Path) -> None:
        self.data = data
        self.given = {"train": "glue/CoLA/train.tsv", "dev": "glue/CoLA/dev.tsv", "model": model, "task": "classify"}
        self.folder = folder
        self.failed: list[str] = []

    def run(self, name: str, **settings: Any) -> list[str]:
        """The lines of the run's log."""
        out, start = self.folder / name, time.perf_counter()
        given = {**self.given, **STEPS, **settings}
        given |= {side: self.data / given[side] for side in ("train", "dev")}
        run = bertsmith.finetune(out=out, device="cuda", keep_checkpoints=True, check=False, **given)
        log = (out / "log.jsonl").read_text().splitlines()
        losses = list_losses(log)
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

    def mix(self) -> None:
        """Two tasks and masked words on one encoder."""
        logs: list[list[float]] = []
        for name, graphs in (("mix, plain", False), ("mix", True)):
            sides = {side: self.data / f"slots/snips/{side}" for side in ("train", "dev")}
            members = {"intent": {"task": "classify", "label": "intent", **sides}, "slots": {"task": "tag", **sides},
                       "words": {"task": "mask", "weight": 0.1}}  # fmt: skip
            start = time.perf_counter()
            bertsmith.finetune_together(
                members, model=self.given["model"], out=self.folder / name, device="cuda", dropout=0.0, graphs=graphs,
                **{**STEPS, "log_every": 1},
            )  # fmt: skip
            logs.append(list_losses((self.folder / name / "log.jsonl").read_text().splitlines()))
            print(f"{name:16} {time.perf_counter() - start:5.1f} s", flush=True)
        self.expect(*compare("several tasks", *logs))

    def settings(self) -> None:
        logs = {name: self.run(name, **settings) for name, settings in SETTINGS.items()}
        self.expect("a recorded run is bit-equal to a plain one", logs["recorded"] == logs["plain"])
        first = [list_losses(logs[name])[0] for name in ("recorded", "full precision")]
        self.expect("bf16 begins within 1e-3 of full precision", abs(first[0] - first[1]) < 1e-3)
        for name, settings in TASKS.items():
            settings = {**settings, "dropout": 0.0, "log_every": 1}
            plain = list_losses(self.run(f"{name}, plain", graphs=False, **settings))
            recorded = list_losses(self.run(name, **settings))
            self.expect(*compare(name, plain, recorded))

    def rest(self) -> None:
        self.mix()
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
    parser.add_argument("--data", type=Path, help="folder with the datasets named above")
    parser.add_argument("--model", type=Path)
    parser.add_argument("--rest", action="store_true", help="only mixes, resuming and memory")
    options = parser.parse_args()
    if options.data is None or not torch.cuda.is_available():
        sys.exit("give --data DIR on a machine with a CUDA device." if options.data else 0)
    with tempfile.TemporaryDirectory() as folder:
        checks = Checks(options.data, options.model or find_model(), Path(folder))
        if not options.rest:
            checks.settings()
        checks.rest()
    sys.exit(1 if checks.failed else 0)


if __name__ == "__main__":
    main()
