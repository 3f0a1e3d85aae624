"""Tiny encoders of the families with relative positions, with the files that their makers released."""

from pathlib import Path
from typing import Any

import torch
import transformers
from whole.tiny import pieces

SIZES = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64}
ANGLE = ["<s>", "<pad>", "</s>", "<unk>"]


def make_mpnet(folder: Path, head: str, seed: int = 0) -> Path:
    folder.mkdir(parents=True)
    plain = [piece for piece in dict.fromkeys(pieces()) if not piece.startswith("[")]
    vocabulary = [*ANGLE, *plain, "[UNK]", "<mask>"]
    (folder / "vocab.txt").write_text("\n".join(vocabulary) + "\n")
    config = transformers.MPNetConfig(
        vocab_size=len(vocabulary), max_position_embeddings=66, initializer_range=0.1, **SIZES
    )
    return save("MPNet", head, config, folder, seed)


def save(name: str, head: str, config: Any, folder: Path, seed: int) -> Path:
    torch.manual_seed(seed)
    model = getattr(transformers, f"{name}{head}")(config)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += 0.1 * torch.randn(parameter.shape)
    model.save_pretrained(folder)
    return folder


MAKERS = {"mpnet": make_mpnet}
