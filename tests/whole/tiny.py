"""A tiny pretrained encoder for roads that cross folders: two layers and a made vocabulary, saved by the reference."""

from pathlib import Path

import torch
import transformers
from tasks.made import LETTERS, PUNCTUATION, SQUARE

WORDS = (
    "the a an of is are was were in at on to and not very it this that who what where when film plot cast song book "
    "good bad fine dull great poor happy sad river town paris london oslo rome ann bob cyd dan eve lives works runs "
    "through sees met from sport news science match goal win vote law party star cell atom wave"
)


def pieces() -> list[str]:
    return [*SQUARE, *PUNCTUATION.split(), *LETTERS, *(f"##{letter}" for letter in LETTERS), *"0123456789",
            *(f"##{digit}" for digit in "0123456789"), *(word for word in WORDS.split() if len(word) > 1)]  # fmt: skip


def make_encoder(folder: Path, head: str = "Model", limit: int = 64, seed: int = 0, **settings: object) -> Path:
    """A folder as `transformers` writes it; with a head such as "ForSequenceClassification", one that predicts."""
    folder.mkdir(parents=True, exist_ok=True)
    vocabulary = list(dict.fromkeys(pieces()))
    (folder / "vocab.txt").write_text("\n".join(vocabulary) + "\n")
    transformers.BertTokenizer(str(folder / "vocab.txt"), model_max_length=limit).save_pretrained(folder)
    config = transformers.BertConfig(
        vocab_size=len(vocabulary), hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64,
        max_position_embeddings=limit, initializer_range=0.1, **settings,
    )  # fmt: skip
    torch.manual_seed(seed)
    getattr(transformers, f"Bert{head}")(config).save_pretrained(folder)
    return folder
