"""A small corpus whose words foretell each other, and pretraining runs on it of a second or two."""

import random
from pathlib import Path
from typing import Any

import corpus_texts

import bertsmith

SMALL: dict[str, Any] = {
    "depth": 2, "width": 32, "heads": 2, "inner": 64, "lengths": "32", "tokens": 512, "pass_tokens": 256, "rate": 5e-3,
    "log_every": 2,
}  # fmt: skip
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
