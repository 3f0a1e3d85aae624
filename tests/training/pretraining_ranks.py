"""Pretrains in some ways, each in its own folder: alone, or in the processes that torchrun started.

Given CORPUS FOLDER it trains VARIANTS, and stops some of them. Given CORPUS FOLDER spread it trains all that can be
asked, whole and in parts (SPREAD), stops some, and goes on with those that another process has stopped in FOLDER.
"""

import contextlib
import sys
from functools import partialmethod
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from pretraining_made import pretrain

from bertsmith.objectives.masked_tokens import MaskedTokens
from bertsmith.training.devices import leave
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
ASKED: dict[str, dict[str, Any]] = {
    "masked": {"recipe": "roberta", "preset": "bert-base"},
    "next": {"recipe": "bert", "clip": 0.5},
    "order": {"recipe": "albert", "optimizer": "adamw"},  # all layers have the same weights
    "causal": {"recipe": "bert", "asks": "causal+masked", "causal_share": 0.5},
    "replaced": {"recipe": "electra", "heads": 4, "tokens": 768},
    "aside": {"recipe": "bert", "asks": "masked:0.4,replaced:0.6", "stay_hidden": 0.25, "tokens": 768},
    "distilled": {"recipe": "bert", "asks": "distilled", "teacher": "teacher"},
    "muon": {"recipe": "smith", "tokens": 768},
    "distances": {"recipe": "roberta", "preset": "deberta-v2-xlarge", "recompute": True},
    "few": {"recipe": "smith", "tokens": 256, "recompute": True},  # a pass for two processes
}
SPREAD = {
    f"{name}-{spread}": {**asked, "spread": spread} for name, asked in ASKED.items() for spread in ("ddp", "fsdp")
}
CHUNKED = ("masked-fsdp", "replaced-fsdp", "distilled-fsdp")
STOPPED = ("masked-ddp", "replaced-fsdp", "aside-fsdp", "muon-ddp", "muon-fsdp")


def train(corpus: Path, out: Path, name: str) -> None:
    """A teacher lies beside the corpus."""
    chosen = (VARIANTS | SPREAD)[name]
    chosen = {key: str(corpus.parent / value) if key == "teacher" else value for key, value in chosen.items()}
    pretrain(corpus, out, **{**SAME, **chosen})


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


def train_in_chunks(corpus: Path, out: Path, name: str) -> None:
    """Sixteen places are scored at once: which places a process has tells how often its heads are asked."""
    make = MaskedTokens.__init__
    MaskedTokens.__init__ = partialmethod(make, chunk=16)  # type: ignore[assignment,method-assign]
    train(corpus, out, name)
    MaskedTokens.__init__ = make  # type: ignore[method-assign]


def train_variants(corpus: Path, folder: Path) -> None:
    for name in VARIANTS:
        train(corpus, folder / name, name)
    for name in ("pairs", "electra", "parts"):
        stop(corpus, folder / f"{name}-stopped", name)


def train_spread(corpus: Path, folder: Path) -> None:
    for name in SPREAD:
        train(corpus, folder / name, name)
    for name in CHUNKED:
        train_in_chunks(corpus, folder / f"{name}-chunked", name)
    for name in STOPPED:
        train(corpus, folder / f"{name}-begun-alone", name)
        stop(corpus, folder / f"{name}-stopped", name)
        stop(corpus, folder / f"{name}-again", name)
        train(corpus, folder / f"{name}-again", name)


if __name__ == "__main__":
    (train_spread if sys.argv[3:] == ["spread"] else train_variants)(Path(sys.argv[1]), Path(sys.argv[2]))
    leave()
