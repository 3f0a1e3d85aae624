"""A small corpus whose words foretell each other, runs of a second on it, and how to stop and compare them."""

import random
from pathlib import Path
from typing import Any

import corpus_texts
import safetensors.torch
import torch

import bertsmith
from bertsmith.training.loop import Watcher

SMALL: dict[str, Any] = {
    "depth": 2, "width": 32, "heads": 2, "inner": 64, "lengths": "32", "tokens": 512, "pass_tokens": 256, "rate": 5e-3,
    "log_every": 2,
}  # fmt: skip
STEPS = 12
SHORT = {"max_steps": STEPS, "evaluate_every": 4, "keep_checkpoints": True, "log_every": 3}
ROUND = corpus_texts.WORDS[:12]


def make_corpus(folder: Path, documents: int = 60, held_out: float = 0.15, kind: str = "wordpiece") -> Path:
    """Sentences that run through a dozen words in their order, from any of them on."""
    draw = random.Random(0)
    folder.mkdir(parents=True, exist_ok=True)
    texts = ["\n".join(_write(draw) for _ in range(draw.randint(3, 6))) for _ in range(documents)]
    (folder / "texts.txt").write_text("\n\n".join(texts) + "\n")
    make = corpus_texts.make_tokenizer if kind == "wordpiece" else corpus_texts.make_bytelevel
    bertsmith.build_corpus(
        folder / "texts.txt", make(folder / "tokenizer"), folder / "corpus", held_out=held_out, filters=False,
        duplicates=False, near_duplicates=False,
    )  # fmt: skip
    return folder / "corpus"


def _write(draw: random.Random) -> str:
    start, length = draw.randrange(len(ROUND)), draw.randint(5, 14)
    return " ".join(ROUND[(start + i) % len(ROUND)] for i in range(length)).capitalize() + "."


def pretrain(corpus: Path, out: Path, recipe: str = "bert", **more: Any) -> Any:
    return bertsmith.pretrain(corpus, out, recipe, device="cpu", threads=1, **{**SMALL, **more})


class Stop(Watcher):
    def __init__(self, step, error):
        self.step, self.error = step, error

    def stepped(self, step, record, speed):
        if step == self.step:
            raise self.error("a made mistake")


def assert_same(one, other):
    """The log, the model, the optimizer and the generator, to the byte."""
    assert (one / "log.jsonl").read_bytes() == (other / "log.jsonl").read_bytes()
    last = f"checkpoints/last-{STEPS:06d}"
    names = [f"{last}/model.safetensors", f"{last}/optimizer.safetensors", "model.safetensors"]
    names += [f"{last}/generator/model.safetensors"] if (one / last / "generator").exists() else []
    for name in names:
        ours, theirs = (safetensors.torch.load_file(run / name) for run in (one, other))
        assert ours.keys() == theirs.keys()
        assert [key for key in ours if not torch.equal(ours[key], theirs[key])] == [], name
