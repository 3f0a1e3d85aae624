"""Tiny bases of two families with a masked-token head, and adapters on them whose every number is random."""

import json
from pathlib import Path
from typing import Any

import torch
import transformers
from whole.tiny import pieces

from bertsmith.models.adapters import open_checkpoint, write_adapter
from bertsmith.models.fitting import fit_head
from bertsmith.models.lora import LoraShape, put_lora
from bertsmith.tasks.catalog import find_task

SIZES = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 48,
         "max_position_embeddings": 64, "initializer_range": 0.2}  # fmt: skip
HEADS = {"bert": "BertForPreTraining", "modernbert": "ModernBertForMaskedLM"}
TAGS = ["O", "B-PER", "I-PER", "B-LOC"]
# Name -> task, labels, whether it reads pairs.
ADAPTERS: dict[str, tuple[str, list[str], bool | None]] = {
    "mood": ("classify", ["bad", "good"], False),
    "nli": ("classify", ["contradiction", "entailment", "neutral"], True),
    "order": ("classify", ["follows", "does not follow"], True),
    "alike": ("regress", ["score"], True),
    "names": ("tag", TAGS, None),
    "answers": ("span", ["start", "end"], None),
}
VECTORS: tuple[str, list[str], bool | None] = ("embed", [], None)  # an adapter without a head
DEFAULTS = {"classify-pair": "nli", "zero-shot": "nli"}


def make_base(folder: Path, family: str, seed: int = 0) -> Path:
    folder.mkdir(parents=True)
    vocabulary = list(dict.fromkeys(pieces()))
    (folder / "vocab.txt").write_text("\n".join(vocabulary) + "\n")
    transformers.BertTokenizer(str(folder / "vocab.txt"), model_max_length=64).save_pretrained(folder)
    special = {f"{name}_token_id": vocabulary.index(piece) for name, piece in
               (("pad", "[PAD]"), ("cls", "[CLS]"), ("sep", "[SEP]"), ("bos", "[CLS]"), ("eos", "[SEP]"))}  # fmt: skip
    kind = getattr(transformers, HEADS[family])
    more = special if family == "modernbert" else {"pad_token_id": special["pad_token_id"]}
    torch.manual_seed(seed)
    model = kind(kind.config_class(vocab_size=len(vocabulary), **SIZES, **more))
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_((1.0 if "orm.weight" in name else 0.0) + 0.2 * torch.randn(parameter.shape))
    model.save_pretrained(folder)
    return folder


def make_adapter(base: Path, folder: Path, name: str, seed: int = 0) -> Path:
    task, labels, pairs = ADAPTERS.get(name, VECTORS)
    kind = find_task(task)
    fitted, _ = fit_head(open_checkpoint(base), kind.head, labels, seed=seed)
    put_lora(fitted, LoraShape(8), seed)
    generator = torch.Generator().manual_seed(seed + 1)
    with torch.no_grad():
        for part, parameter in fitted.network.named_parameters():
            if ".low.up" in part or part.startswith("heads."):
                parameter.normal_(0, 0.3, generator=generator)
    write_adapter(fitted, folder, base)
    settings: dict[str, Any] = kind.settings_from(labels, None)
    known = {**settings, **({} if pairs is None else {"pairs": pairs})}
    (folder / "bertsmith.json").write_text(json.dumps({"task": task, "settings": known}))
    return folder


def make_all(place: Path, family: str) -> tuple[Path, dict[str, Path]]:
    base = make_base(place / "base", family)
    return base, {name: make_adapter(base, place / name, name, seed) for seed, name in enumerate(ADAPTERS)}
