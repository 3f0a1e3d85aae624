"""A model folder becomes a network, and a network becomes a folder that others open.

In: a folder in the Hugging Face layout, or in that of the first TensorFlow release. Out: a `Checkpoint`: the network with
every head that is in there, its settings, and the names of the tensors that had no use.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ..errors import BertsmithError
from ..layers.config import Config
from . import bert, tensorflow
from .families import find_family
from .family import Family, FamilyHead
from .files import WEIGHTS, read_json, read_settings, read_tensors, write_json, write_tensors
from .names import canonical, fill, give, names_of, surplus
from .network import Network


@dataclass
class Checkpoint:
    family: Family
    config: Config
    heads: dict[str, FamilyHead]
    network: Network
    settings: dict[str, Any] = field(default_factory=dict)  # config.json as it was
    left_out: list[str] = field(default_factory=list)  # their tensors without use

    @property
    def labels(self) -> list[str]:
        """The names of a classifier's outputs, in order."""
        named = self.settings.get("id2label") or {}
        return [named[key] for key in sorted(named, key=int)]


def load_checkpoint(folder: Path, dtype: torch.dtype = torch.float32) -> Checkpoint:
    settings, tensors = _read(folder)
    family = find_family(settings.get("model_type"))
    config = family.config(settings)
    tensors = canonical(tensors, family.prefix)
    heads = find_heads(family, settings, tensors)
    shapes = {name: head.shape(config, _labels(family, head, tensors)) for name, head in heads.items()}
    with torch.device("meta"):
        network = Network(config, shapes)
    names = names_of(family, heads, network.names)
    fill(network, names, tensors, dtype)
    checkpoint = Checkpoint(family, config, heads, network.eval(), settings, surplus(family, names, tensors))
    _check_labels(checkpoint, folder)
    return checkpoint


def _read(folder: Path) -> tuple[dict[str, Any], dict[str, Tensor]]:
    original = folder / "bert_config.json"
    prefix = tensorflow.find_prefix(folder)
    if original.exists() and prefix and not (folder / WEIGHTS).exists():
        return {"model_type": "bert", **read_json(original)}, bert.from_tensorflow(tensorflow.read(prefix))
    return read_settings(folder), read_tensors(folder)


def find_heads(family: Family, settings: dict[str, Any], tensors: Mapping[str, Tensor]) -> dict[str, FamilyHead]:
    """The heads that the weights hold. Where several would fit the same tensors, config.json's class name decides."""
    named = str((settings.get("architectures") or [""])[0])
    suffix = named[named.find("For") :] if "For" in named else ""
    found: dict[str, FamilyHead] = {}
    for name, head in family.heads(settings).items():
        lacks = [tensor for tensor in _tensors(family, head) if tensor not in tensors]
        if head.suffix and head.suffix == suffix and lacks and suffix != "ForPreTraining":
            raise BertsmithError(f"config.json says {named}, but the weights lack {lacks[0]}.")
        rival = next((other for other, known in found.items() if _shares(known, head)), None)
        if lacks or (rival and head.suffix != suffix):
            continue
        if rival:
            del found[rival]
        found[name] = head
    return found


def _shares(one: FamilyHead, other: FamilyHead) -> bool:
    """Whether two heads claim the same output, or a bare pooler is part of the other."""
    if "out" in one.names and "out" in other.names:
        return one.names["out"] == other.names["out"]
    return not other.outputs and other.names.get("dense") == one.names.get("dense")


def _tensors(family: Family, head: FamilyHead) -> list[str]:
    """The tensors without which the head is not there."""
    names = {ours: theirs.replace("{}", family.prefix) for ours, theirs in head.names.items() if ours != "out.weight"}
    return [theirs if ours == "out.bias" else f"{theirs}.weight" for ours, theirs in names.items()]


def _labels(family: Family, head: FamilyHead, tensors: Mapping[str, Tensor]) -> int:
    return len(tensors[f"{head.names['out']}.weight"]) if "out" in head.names else 0


def _check_labels(checkpoint: Checkpoint, folder: Path) -> None:
    for name in ("classify", "tag"):
        if name in checkpoint.heads and checkpoint.labels:
            outputs = checkpoint.network.heads[name].shape.outputs
            if outputs != len(checkpoint.labels):
                raise BertsmithError(
                    f"{folder / 'config.json'} names {len(checkpoint.labels)} labels in id2label, "
                    f"but the classifier has {outputs} outputs."
                )


def save_checkpoint(checkpoint: Checkpoint, folder: Path) -> None:
    """Write config.json and model.safetensors as `transformers` opens them."""
    family, network = checkpoint.family, checkpoint.network
    tensors = give(network, names_of(family, checkpoint.heads, network.names))
    if not any(head.suffix for head in checkpoint.heads.values()):
        tensors = {name.removeprefix(f"{family.prefix}."): tensor for name, tensor in tensors.items()}
    settings = family.settings(checkpoint.config, checkpoint.settings)
    settings["architectures"] = [family.model_class(settings["model_type"]) + _suffix(checkpoint.heads)]
    settings["dtype"] = str(network.embed.tokens.weight.dtype).removeprefix("torch.")
    settings.pop("torch_dtype", None)
    write_json(folder / "config.json", settings)
    write_tensors(folder / WEIGHTS, tensors)


def _suffix(heads: Mapping[str, FamilyHead]) -> str:
    if "mask" in heads and "follows" in heads:
        return "ForPreTraining"
    return next((head.suffix for head in heads.values() if head.suffix), "Model")
