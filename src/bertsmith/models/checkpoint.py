"""A model folder becomes a network, and a network becomes a folder that others open.

In: a folder in the Hugging Face layout, or in that of the first TensorFlow release. Out: a `Checkpoint`: the network
with every head that is in there, its settings, and the names of the tensors that had no use.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from bertsmith.errors import BertsmithError
from bertsmith.layers.config import Config, HeadShape
from bertsmith.models import bert, tensorflow
from bertsmith.models.compact import read_weights
from bertsmith.models.families import find_family
from bertsmith.models.family import PAIRS, Family, FamilyHead
from bertsmith.models.featured import BLOCK, find_own_heads, own_names, read_features
from bertsmith.models.files import (
    WEIGHTS,
    has_tensors,
    read_json,
    read_settings,
    write_json,
    write_tensors,
)
from bertsmith.models.names import Names, adopt, canonical, fill, give, names_of, surplus
from bertsmith.models.network import Network

LARGEST = 10**8  # of any size in a config.json; the largest vocabularies have 10**6 rows
DEEPEST = 1000
# What CrossEncoder makes of one output, for which else it takes the sigmoid: no measure of a number that was learnt.
AS_IT_IS = {"activation_fn": "torch.nn.modules.linear.Identity"}


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
        return [str(named[key]) for key in sorted(named, key=int)]


def load_checkpoint(folder: Path, dtype: torch.dtype = torch.float32) -> Checkpoint:
    settings, tensors = _read(folder)
    family = find_family(settings.get("model_type"))
    tensors = canonical(tensors, family.prefix)
    config = make_config(family, settings, len(tensors))
    adopt(tensors, family.heads(settings).values())
    features = read_features(settings)
    if features is None:
        heads = find_heads(family, settings, tensors)
        labels = {name: _labels(head, tensors) for name, head in heads.items()}
    else:
        heads, labels = find_own_heads(family, settings, tensors)
    tensors.update({bias: tensors[own] for bias, own in _own_biases(heads).items() if own in tensors})
    config = _tie(config, family, heads, tensors)
    shapes = {name: head.shape(config, labels[name]) for name, head in heads.items()}
    with torch.device("meta"):
        network = Network(config, shapes, features)
    names = _names(family, heads, network)
    fill(network, names, tensors, dtype)
    checkpoint = Checkpoint(family, config, heads, network.eval(), settings, surplus(family, names, tensors))
    check_labels(checkpoint, shapes, folder)
    return checkpoint


def _names(family: Family, heads: Mapping[str, FamilyHead], network: Network) -> Names:
    if network.features is None:
        return names_of(family, heads, network.names)
    return own_names(family, network.names)


def _read(folder: Path) -> tuple[dict[str, Any], dict[str, Tensor]]:
    original = folder / "bert_config.json"
    prefix = tensorflow.find_prefix(folder) if original.exists() and not has_tensors(folder) else None
    if prefix:
        return {"model_type": "bert", **read_json(original)}, bert.from_tensorflow(tensorflow.read(prefix))
    return read_settings(folder), read_weights(folder)


def make_config(family: Family, settings: dict[str, Any], tensors: int) -> Config:
    """The encoder's description, refused before a network is built that no memory and no time would suffice for."""
    try:
        config = family.config(settings)
    except BertsmithError:
        raise
    except (TypeError, ValueError, AttributeError, LookupError, ArithmeticError) as error:
        raise BertsmithError(f"config.json has a setting of the wrong kind: {error}.") from error
    for name, value in vars(config).items():
        if isinstance(value, int | float) and not 0 <= value <= LARGEST:
            raise BertsmithError(f"config.json gives the model a {name} of {value}, which no model has.")
    if config.distinct > tensors or config.depth > DEEPEST:
        raise BertsmithError(
            f"config.json asks for {config.depth} layers, but the weights hold only {tensors} tensors."
        )
    if config.limit < 1 or not config.global_every or not config.theta or not config.local_theta:
        raise BertsmithError("config.json leaves no position that a token could have.")
    return config


def find_heads(family: Family, settings: dict[str, Any], tensors: Mapping[str, Tensor]) -> dict[str, FamilyHead]:
    """The heads that the weights hold. Where several would fit the same tensors, config.json's class name decides."""
    named, suffix = read_class(settings)
    found: dict[str, FamilyHead] = {}
    for name, head in family.heads(settings).items():
        lacks = [tensor for tensor in _tensors(family, head) if tensor not in tensors]
        if head.suffix and head.suffix == suffix and lacks and suffix != "ForPreTraining":
            raise BertsmithError(f"config.json says {named}, but the weights lack {lacks[0]}.")
        rival = next((other for other, known in found.items() if _shares(known, head)), None)
        if lacks or (rival and not (suffix and head.suffix == suffix)):
            continue
        if rival:
            del found[rival]
        found[name] = head
    return found


def read_class(settings: Mapping[str, Any]) -> tuple[str, str]:
    """The class that config.json names, and the end of it that says which head it has."""
    classes = settings.get("architectures")
    named = str(classes[0]) if isinstance(classes, list) and classes else ""
    return named, named[named.find("For") :] if "For" in named else ""


def _shares(one: FamilyHead, other: FamilyHead) -> bool:
    """Whether two heads claim the same output, or a bare pooler is part of the other."""
    if "out" in one.names and "out" in other.names:
        return one.names["out"] == other.names["out"]
    return not other.outputs and other.names.get("dense") == one.names.get("dense")


def _tensors(family: Family, head: FamilyHead) -> list[str]:
    """The tensors without which the head is not there."""
    names = {ours: theirs.replace("{}", family.prefix) for ours, theirs in head.names.items() if ours != "out.weight"}
    return [theirs if ours == "out.bias" else f"{theirs}.weight" for ours, theirs in names.items()]


def _labels(head: FamilyHead, tensors: Mapping[str, Tensor]) -> int:
    return max([1, *tensors[f"{head.names['out']}.weight"].shape[:1]]) if "out" in head.names else 0


def _own_biases(heads: Mapping[str, FamilyHead]) -> dict[str, str]:
    """A bias of a masked-token head -> that of its output layer, which a tied model's file leaves out as a copy.

    The reference computes with the output layer's one, so where the two are not tied that one counts.
    """
    named = [head.names for head in heads.values() if "out.weight" in head.names]
    return {names["out.bias"]: names["out.weight"].removesuffix("weight") + "bias" for names in named}


def _tie(config: Config, family: Family, heads: Mapping[str, FamilyHead], tensors: dict[str, Tensor]) -> Config:
    """Of two tied matrices a file may hold either one. One that differs from the word table is the head's own whatever
    config.json says: the reference, too, computes with the numbers that are there."""
    words = f"{family.prefix}.{family.names['embed.tokens']}.weight"
    named = [head.names["out.weight"] for head in heads.values() if "out.weight" in head.names]
    for own in (tensors[name] for name in named if name in tensors and config.tied):
        there = tensors.setdefault(words, own)
        if own.shape == there.shape and not torch.equal(own, there):
            config = replace(config, tied=False)
    return config


def check_labels(checkpoint: Checkpoint, shapes: Mapping[str, HeadShape], folder: Path) -> None:
    named = checkpoint.settings.get("id2label") or {}
    if not isinstance(named, dict) or not all(str(key).isdecimal() for key in named):
        raise BertsmithError(
            f"{folder / 'config.json'} must name labels by their numbers in id2label, not {named!r:.80}."
        )
    for name in ("classify", "tag"):
        if name in checkpoint.heads and checkpoint.labels:
            numbers = {int(key) for key in named}
            nameless = next((number for number in range(len(named)) if number not in numbers), None)
            if nameless is not None:
                raise BertsmithError(
                    f"{folder / 'config.json'} names no label {nameless} in id2label, which counts from 0."
                )
            outputs = shapes[name].outputs
            if outputs != len(checkpoint.labels):
                raise BertsmithError(
                    f"{folder / 'config.json'} names {len(checkpoint.labels)} labels in id2label, "
                    f"but the classifier has {outputs} outputs."
                )


def save_checkpoint(checkpoint: Checkpoint, folder: Path) -> None:
    """Write config.json and model.safetensors as `transformers` opens them."""
    save_config(checkpoint, folder)
    save_weights(checkpoint, folder)


def save_weights(checkpoint: Checkpoint, folder: Path) -> None:
    family, network = checkpoint.family, checkpoint.network
    tensors = give(network, _names(family, checkpoint.heads, network))
    own_biases = {} if checkpoint.config.tied else _own_biases(checkpoint.heads)
    tensors.update({own: tensors[bias].clone() for bias, own in own_biases.items() if own != bias})
    if not any(head.suffix for head in checkpoint.heads.values()):
        tensors = {name.removeprefix(f"{family.prefix}."): tensor for name, tensor in tensors.items()}
    write_tensors(folder / WEIGHTS, tensors)


def save_config(checkpoint: Checkpoint, folder: Path) -> None:
    family, network = checkpoint.family, checkpoint.network
    settings = family.settings(checkpoint.config, checkpoint.settings)
    suffix = _suffix(checkpoint.heads) if network.features is None else "Model"
    settings["architectures"] = [family.model_class(settings["model_type"]) + suffix]
    settings.pop(BLOCK, None)
    if "follows" not in checkpoint.heads:
        settings.pop(PAIRS, None)
    if settings.get("problem_type") == "regression":
        settings.setdefault("sentence_transformers", AS_IT_IS)
    if network.features is not None:
        settings[BLOCK] = asdict(network.features)
    settings["dtype"] = str(network.dtype).removeprefix("torch.")
    settings.pop("torch_dtype", None)
    write_json(folder / "config.json", settings)


def _suffix(heads: Mapping[str, FamilyHead]) -> str:
    if "mask" in heads and "follows" in heads:
        return "ForPreTraining"
    return next((head.suffix for head in heads.values() if head.suffix), "Model")
