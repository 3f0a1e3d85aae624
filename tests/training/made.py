"""Small things to train on: a model folder with a made WordPiece vocabulary, tasks, rows of random ids."""

from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
from oracle import HEADS, SIZES, make_reference
from training.texts import BAD, GOOD, PLAIN

from bertsmith.tasks.catalog import find_task
from bertsmith.tasks.task import Row
from bertsmith.tasks.trained import TrainedTask
from bertsmith.text.loading import load_tokenizer

SQUARE = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
SMALL = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48}
LABELS = ["red", "green", "blue"]


def make_folder(folder: Path, head: str = "", dropout: float = 0.1, **settings: Any) -> Path:
    """A BERT of two layers that can read the texts below, saved by the reference."""
    folder.mkdir(parents=True, exist_ok=True)
    pieces = [*SQUARE, *GOOD, *BAD, *PLAIN, *"abcdefghijklmnopqrstuvwxyz0123456789?.,"]
    pieces += [f"##{letter}" for letter in "abcdefghijklmnopqrstuvwxyz0123456789"]
    (folder / "vocab.txt").write_text("\n".join(pieces) + "\n")
    transformers.BertTokenizer(str(folder / "vocab.txt")).save_pretrained(folder)
    drops = {"hidden_dropout_prob": dropout, "attention_probs_dropout_prob": dropout}
    sizes = {**SIZES, **SMALL, "vocab_size": len(pieces), "max_position_embeddings": 64}
    torch.manual_seed(0)  # the scale of fresh weights as the reference makes them: a model that learns
    model_class = getattr(transformers, f"Bert{HEADS[head]}")
    model_class(transformers.BertConfig(**{**sizes, **drops, **settings})).save_pretrained(folder)
    return folder


def make_task(folder: Path, name: str, **settings: Any) -> TrainedTask[Any, Any]:
    """A task with settings as training would settle them; its tokenizer is that of the folder."""
    known: dict[str, Any] = {"labels": LABELS, "truncate": "head", "length": None}
    if name == "classify":
        known["several"] = False
    elif name == "tag":
        known |= {"scheme": "plain", "label_scheme": "plain", "default": LABELS[0]}
    else:
        known |= {"labels": ["start", "end"], "truncate": "windows", "impossible": True, "threshold": 0.0}
    known |= settings
    return find_task(name)(load_tokenizer(folder), 64, known["truncate"], known)


def make_rows(task: str, count: int, seed: int = 0, kinds: int = 2, several: bool = False) -> list[list[Row]]:
    """Random ids in rows of unequal lengths, and gold: a class, tags at some places, a start and an end."""
    chance = np.random.default_rng(seed)
    found = []
    for _ in range(count):
        length = int(chance.integers(3, 20))
        ids, segments = chance.integers(5, 90, length), (np.arange(length) >= length // 2) * (kinds > 1)
        at: list[int] = []
        gold: Any = int(chance.integers(0, 3))
        if several:
            gold = chance.integers(0, 2, (1, 3)).astype(np.float32)
        if task == "tag":
            at = sorted(chance.choice(length, int(chance.integers(1, length)), replace=False).tolist())
            gold = chance.integers(0, 3, len(at))
            gold[0] = -1 if length % 5 == 0 else gold[0]
        elif task == "span":
            gold = np.sort(chance.integers(0, length, (1, 2)))
        found.append([Row(ids.tolist(), segments.astype(int).tolist(), at, gold=gold)])
    return found


def make_model(family: str, head: str, seed: int = 0, **settings: Any) -> Any:
    """A model of the reference with two layers and every parameter random."""
    own = {"dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 48} if family == "distilbert" else SMALL
    more = {} if head == "span" else {"num_labels": 3}
    return make_reference(family, head, seed, **own, **more, **settings)
