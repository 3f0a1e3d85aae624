"""Pretrains in some ways, each in its own folder: alone, or in the processes that torchrun started."""

import contextlib
import os
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from pretraining_made import pretrain

from bertsmith.training.pretraining import PretrainingStudy

# A large eps: where a gradient is nothing but rounding, AdamW would make a step of it.
SAME: dict[str, Any] = {
    "dropout": 0.0, "max_steps": 8, "evaluate_every": 4, "eps": 1e-4, "keep_checkpoints": True, "clip": 0.0,
}  # fmt: skip
VARIANTS: dict[str, dict[str, Any]] = {
    "pairs": {"recipe": "bert", "tokens": 768},  # three passes: one process has one more than the other
    "lone": {"recipe": "modernbert", "tokens": 256},  # a pass for two processes
    "electra": {"recipe": "electra", "heads": 4},
    "smith": {"recipe": "smith", "eps": 1e-8},
    "parts": {"recipe": "bert", "spread": "fsdp", "tokens": 768},
}


def train(corpus: Path, out: Path, name: str) -> None:
    pretrain(corpus, out, **{**SAME, **VARIANTS[name]})


def stop(corpus: Path, out: Path, name: str) -> None:
    """All processes fail in the seventh step; a checkpoint of the fourth is there."""
    works = PretrainingStudy.works

    def fails(self: PretrainingStudy, step: int, *others: Any) -> Any:
        if step == 6:
            raise InterruptedError
        return works(self, step, *others)

    PretrainingStudy.works = fails  # type: ignore[method-assign]
    with contextlib.suppress(InterruptedError):
        train(corpus, out, name)
    PretrainingStudy.works = works  # type: ignore[method-assign]


if __name__ == "__main__":
    for name in VARIANTS:
        train(Path(sys.argv[1]), Path(sys.argv[2]) / name, name)
    for name in ("pairs", "electra", "parts"):
        stop(Path(sys.argv[1]), Path(sys.argv[2]) / f"{name}-stopped", name)
    # Sharded weights that were stopped in the middle of a step have messages on their way, over which the library's
    # threads may abort when the interpreter takes itself down; all there was to do is done and written.
    sys.stdout.flush()
    os._exit(0)
