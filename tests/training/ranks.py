"""Runs the variants of one training, each in its own folder: alone, or in the processes that torchrun started."""

import os
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

import contextlib

import torch
from training.texts import make_texts

from bertsmith.finetuning import finetune
from bertsmith.together import finetune_together
from bertsmith.training.devices import leave
from bertsmith.training.study import TaskStudy

# A large eps: where a gradient is nothing but rounding, AdamW would make a step of it.
SAME: dict[str, Any] = {
    "batch": 8, "rate": 1e-3, "evaluate_every": 6, "log_every": 3, "max_steps": 12, "dropout": 0.0, "eps": 1e-5,
}  # fmt: skip
VARIANTS: dict[str, dict[str, Any]] = {
    "plain": {},
    "passes": {"batch_tokens": 50, "r_drop": 0.5, "class_weights": "balanced"},
    "waking": {"unfreeze": 0.3, "clip": 0.1},
    "lone": {"batch": 1},  # fewer rows than processes
}
MIXES = ("together", "round-robin")
LIMIT = 64  # tokens that the memory of a made device takes


def train(name: str, model: Path, out: Path, **more: Any) -> None:
    finetune(
        "classify", make_texts(100), make_texts(20, seed=1), out=out, model=model, device="cpu", threads=1,
        keep_checkpoints=True, **{**SAME, **VARIANTS.get(name, {}), **more},
    )  # fmt: skip


def train_mix(model: Path, out: Path, mixing: str) -> None:
    """Two tasks and masked tokens on one encoder."""
    texts = make_texts(60, seed=2)
    words = [{"words": one["text"].split(), "tags": [word[:1] for word in one["text"].split()]} for one in texts]
    finetune_together(
        {"mood": {"task": "classify", "train": make_texts(100), "dev": make_texts(20, seed=1)},
         "letters": {"task": "tag", "train": words[:40], "dev": words[40:], "weight": 0.3, "batch": 1},
         "words": {"task": "mask", "weight": 0.1}},
        out=out, model=model, device="cpu", threads=1, keep_checkpoints=True, mixing=mixing, check=False, **SAME,
    )  # fmt: skip


def run_short_of_memory(model: Path, out: Path, rank: str, **more: Any) -> None:
    """One process, by its number, has no memory for more than LIMIT tokens in a pass."""
    losses = TaskStudy.losses

    def fails(self: TaskStudy, network: Any, batch: Any, given: Any, part: str) -> Any:
        if len(batch.ids) > LIMIT and os.environ.get("RANK", "0") == rank:
            raise torch.OutOfMemoryError("a made one")
        return losses(self, network, batch, given, part)

    TaskStudy.losses = fails  # type: ignore[method-assign]
    try:
        train("plain", model, out, **more)
    finally:
        TaskStudy.losses = losses  # type: ignore[method-assign]


def run_with_a_failure(model: Path, out: Path, **more: Any) -> None:
    """All processes fail in the tenth step, and the same call goes on."""
    works = TaskStudy.works

    def fails(self: TaskStudy, step: int, *others: Any) -> Any:
        if step == 9:
            raise InterruptedError
        return works(self, step, *others)

    TaskStudy.works = fails  # type: ignore[method-assign]
    with contextlib.suppress(InterruptedError):
        train("plain", model, out, **more)
    TaskStudy.works = works  # type: ignore[method-assign]
    train("plain", model, out, **more)


if __name__ == "__main__":
    model, folder = Path(sys.argv[1]), Path(sys.argv[2])
    for name in VARIANTS:
        for spread in ("ddp", "fsdp"):
            train(name, model, folder / f"{name}-{spread}", spread=spread)
    for mixing in MIXES:
        train_mix(model, folder / f"{mixing}-ddp", mixing)
    # With a metric by name the model is scored before its first step.
    train("plain", model, folder / "named-fsdp", spread="fsdp", metric="macro_f1")
    run_with_a_failure(model, folder / "failed-fsdp", spread="fsdp", metric="macro_f1")
    run_short_of_memory(model, folder / "memory-ddp", rank="1", batch=16)
    leave()
