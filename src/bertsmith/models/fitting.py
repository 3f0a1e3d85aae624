"""An encoder gets the head that a task trains: the one it has, if that fits, else a fresh one.

In: a checkpoint with whatever heads it came with. Out: a checkpoint with one head for these labels, and a sentence that
says where the head is from. A label that the model knows keeps what was learnt of it, whichever others stand beside it
now: RTE's "entailment" begins as MNLI's ended.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch

from bertsmith.errors import BertsmithError
from bertsmith.layers.mixing import FeatureShape
from bertsmith.models.checkpoint import Checkpoint
from bertsmith.models.network import Network

SPREAD = 0.02  # of fresh weights, as in BERT
# In config.json: what others make of a head's scores; the last two are of sentence-transformers' CrossEncoder.
OF_SCORES = ("problem_type", "sentence_transformers", "sbert_ce_default_activation_function")


def fit_head(
    checkpoint: Checkpoint,
    name: str | None,
    labels: Sequence[str],
    *,
    seed: int = 0,
    dropout: float | None = None,
    problem: str | None = None,
    features: FeatureShape | None = None,
) -> tuple[Checkpoint, str]:
    """`problem` is the problem_type of config.json; `dropout` replaces the encoder's own everywhere.

    `features` are what the head reads in place of the last hidden states.

    Without a name the encoder stays bare: its hidden states are what the task reads.
    """
    known = checkpoint.family.heads(checkpoint.settings)
    if name is not None and name not in known:
        raise BertsmithError(f"the family {checkpoint.family.name} has no head for {name}.")
    config = checkpoint.config
    if dropout is not None:
        config = replace(config, dropout=dropout, attention_dropout=dropout, head_dropout=dropout)
    bare = {"pool": checkpoint.heads["pool"]} if "pool" in checkpoint.heads else {}  # kept for those who look for it
    heads = bare if name is None else {name: known[name]}
    with torch.device("meta"):
        network = Network(config, {each: head.shape(config, len(labels)) for each, head in heads.items()}, features)
    if name is None:
        _fill(network, checkpoint, {f"heads.{pool}": f"heads.{pool}" for pool in heads}, seed)
        network.heads.requires_grad_(False)  # nothing that is trained reads it
        return Checkpoint(checkpoint.family, config, heads, network, dict(checkpoint.settings)), _say_bare(checkpoint)
    kept = keeps_head(checkpoint, name, labels, features)
    known_labels = find_known_labels(checkpoint, name, labels, features)
    _fill(network, checkpoint, _origins(checkpoint, name, kept, features), seed)
    if not kept:
        _carry_over(network, checkpoint, name, known_labels)
    fitted = Checkpoint(checkpoint.family, config, heads, network, name_labels(checkpoint.settings, labels, problem))
    return fitted, _say(checkpoint, name, labels, kept, known_labels, features)


def keeps_head(
    checkpoint: Checkpoint, name: str | None, labels: Sequence[str], features: FeatureShape | None = None
) -> bool:
    """Whether the checkpoint's own head goes on training; the outputs of some mean the same everywhere."""
    if checkpoint.network.features != features:  # it was made for another kind of input
        return False
    return name in checkpoint.heads and (name in ("span", "choose") or checkpoint.labels == list(labels))


def find_known_labels(
    checkpoint: Checkpoint, name: str, labels: Sequence[str], features: FeatureShape | None = None
) -> dict[int, int]:
    """Outputs for labels that the checkpoint's own head knows: the place here -> the place there."""
    if name not in checkpoint.heads or checkpoint.network.features != features:
        return {}
    there = {label: place for place, label in enumerate(checkpoint.labels)}
    return {place: there[label] for place, label in enumerate(labels) if label in there}


def _carry_over(network: Network, checkpoint: Checkpoint, name: str, places: Mapping[int, int]) -> None:
    """Copy the output layer's rows of known labels."""
    here, there = list(places), list(places.values())
    with torch.no_grad():
        for part in ("weight", "bias") if places else ():
            old = checkpoint.network.tensor(f"heads.{name}.out.{part}")
            network.tensor(f"heads.{name}.out.{part}")[here] = old[there].to(torch.float32)


def _origins(checkpoint: Checkpoint, name: str, kept: bool, features: FeatureShape | None) -> dict[str, str]:
    """Where the head's parts are taken from, `heads.NAME.PART` -> the same of a head that is there.

    All of a head that is kept; else what lies below the output layer and has the same name on the other side: BERT's
    pooler, whichever head it was pretrained in, and the layer that ModernBERT's masked-token head begins with.
    """
    if kept:
        return {f"heads.{name}": f"heads.{name}"}
    if checkpoint.network.features != features:
        return {}
    theirs = checkpoint.family.heads(checkpoint.settings)[name].names
    return {
        f"heads.{name}.{part}": f"heads.{other}.{part}"
        for part in ("dense", "norm")
        for other, head in checkpoint.heads.items()
        if part in theirs and head.names.get(part) == theirs[part]
    }


def _fill(network: Network, checkpoint: Checkpoint, origins: Mapping[str, str], seed: int) -> None:
    """Give the network its tensors: the encoder's, those of the head that have an origin, and fresh ones."""
    old = {parameter: checkpoint.network.tensor(parameter).detach() for parameter in checkpoint.network.names}
    if checkpoint.network.features != network.features:
        old = {parameter: tensor for parameter, tensor in old.items() if not parameter.startswith("mix.")}
    generator = torch.Generator().manual_seed(seed)
    state = {}
    for parameter in network.names:
        source = old.get(_source(parameter, origins))
        shape = network.tensor(parameter).shape
        state[parameter] = fresh_tensor(parameter, shape, generator) if source is None else source.clone()
    network.load_state_dict(state, strict=True, assign=True)
    network.float().requires_grad_(True)


def _source(parameter: str, origins: Mapping[str, str]) -> str:
    if not parameter.startswith("heads."):
        return parameter
    found = (there + parameter.removeprefix(here) for here, there in origins.items() if f"{here}." in parameter)
    return next(found, "")


def fresh_tensor(parameter: str, shape: torch.Size, generator: torch.Generator) -> torch.Tensor:
    if parameter.endswith("norm.weight") or parameter == "mix.scale":
        return torch.ones(shape)
    if parameter.endswith(".bias") or parameter == "mix.weights":
        return torch.zeros(shape)
    if parameter.startswith("mix.recurrent."):  # as torch does; four gates lie on the first axis
        return (2 * torch.rand(shape, generator=generator) - 1) / (shape[0] // 4) ** 0.5
    return SPREAD * torch.randn(shape, generator=generator)


def name_labels(known: Mapping[str, Any], labels: Sequence[str], problem: str | None = None) -> dict[str, Any]:
    """A config.json with these labels in place of its own."""
    settings = {key: value for key, value in known.items() if key not in OF_SCORES}
    settings["id2label"] = {str(number): label for number, label in enumerate(labels)}
    settings["label2id"] = {label: number for number, label in enumerate(labels)}
    return {**settings, "problem_type": problem} if problem else settings


def _say(
    checkpoint: Checkpoint, name: str, labels: Sequence[str], kept: bool, known: Mapping[int, int],
    features: FeatureShape | None,
) -> str:  # fmt: skip
    if kept or len(known) == len(labels) == len(checkpoint.labels):
        return f"the model's own head for {name} goes on training."
    others = [head for head in checkpoint.heads if head != "pool"]
    if name in others and checkpoint.network.features == features:
        told = f"the model's head for {name} was trained for other labels ({list_some(checkpoint.labels)})"
        if not known:
            return f"{told}; its output layer is replaced."
        fresh = [label for place, label in enumerate(labels) if place not in known]
        rest = f", {list_some(fresh)} {'begin' if len(fresh) > 1 else 'begins'} anew" if fresh else ""
        return f"{told}; what it learnt of {list_some([labels[place] for place in known])} is kept{rest}."
    left = f"; its heads for {', '.join(others)} are left out" if others else ""
    outputs = f"{len(labels)} output{'s' * (len(labels) != 1)}"
    return f"a fresh head for {name} with {outputs} was put on the encoder{left}."


def list_some(labels: Sequence[str]) -> str:
    return ", ".join(labels[:5]) + (" …" if len(labels) > 5 else "")


def _say_bare(checkpoint: Checkpoint) -> str:
    others = [head for head in checkpoint.heads if head != "pool"]
    return f"the encoder trains without a head{'; those for ' + ', '.join(others) + ' are left out' if others else ''}."
