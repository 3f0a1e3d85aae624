"""Several heads on one encoder: fitted to a base model, written as an encoder with an adapter a head, opened again.

In: a checkpoint and, for each member by name, the kind of its head and its labels. Out: a checkpoint whose heads have
the members' names.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from torch import Tensor

from bertsmith.errors import BertsmithError
from bertsmith.layers.config import Config
from bertsmith.models.adapters import MEMBERS, read_members, share_network, write_member
from bertsmith.models.checkpoint import Checkpoint, load_checkpoint, save_checkpoint
from bertsmith.models.family import FamilyHead
from bertsmith.models.fitting import fit_head
from bertsmith.models.network import Network

OF_LABELS = ("id2label", "label2id", "problem_type")  # in config.json: of one head, so not of an encoder with several


@dataclass(frozen=True)
class Wanted:
    kind: str  # the family's name of the head
    labels: Sequence[str] = ()


@dataclass(frozen=True)
class Part:
    """A head as it stands on a network of its own."""

    head: FamilyHead
    outputs: int
    tensors: Mapping[str, Tensor]  # by the name behind `heads.NAME.`


def fit_members(
    checkpoint: Checkpoint, wanted: Mapping[str, Wanted], *, seed: int = 0, dropout: float | None = None
) -> tuple[Checkpoint, dict[str, str]]:
    """The encoder with a head for each member, taken over from the checkpoint where one fits; and where each is from.

    Each head is fitted as that of a single task would be, with a seed of its own.
    """
    parts, sentences = {}, {}
    for number, (name, want) in enumerate(wanted.items()):
        labels = checkpoint.labels if want.kind == "mask" else want.labels  # its outputs are the vocabulary
        fitted, sentences[name] = fit_head(checkpoint, want.kind, labels, seed=seed + number)
        if want.kind == "mask" and "mask" not in checkpoint.heads:
            sentences[name] = "a fresh head for masked tokens was put on the encoder."
        parts[name] = _part(fitted, want.kind)
    return _put_together(checkpoint, parts, dropout), sentences


def open_members(folder: Path, names: Sequence[str], dropout: float | None = None) -> Checkpoint:
    """What `write_members` wrote, as one network that can go on training.

    Its heads are in the order of the names, as they were: sums over parameters are rounded in their order.
    """
    base = load_checkpoint(folder)
    found = read_members(folder, base)
    parts = {}
    for name in names:
        if name not in found:
            raise BertsmithError(f"{folder} has no head of the member {name}; copy it again.")
        (kind,) = found[name].heads
        parts[name] = _part(found[name], kind)
    return _put_together(base, parts, dropout)


def write_members(checkpoint: Checkpoint, folder: Path) -> None:
    """The encoder as a model folder, and in `adapters` each head in a folder of its own."""
    settings = {key: value for key, value in checkpoint.settings.items() if key not in OF_LABELS}
    bare = share_network(checkpoint.network, {})
    folder.mkdir(parents=True, exist_ok=True)
    save_checkpoint(Checkpoint(checkpoint.family, checkpoint.config, {}, bare, settings), folder)
    for name in checkpoint.heads:
        write_member(checkpoint, name, folder / MEMBERS / name)


def _part(checkpoint: Checkpoint, kind: str) -> Part:
    network, start = checkpoint.network, f"heads.{kind}."
    tensors = {n.removeprefix(start): network.tensor(n).detach() for n in network.names if n.startswith(start)}
    outputs: int = network.heads[kind].shape.outputs  # type: ignore[assignment, union-attr]
    return Part(checkpoint.heads[kind], outputs, tensors)


def _put_together(base: Checkpoint, parts: Mapping[str, Part], dropout: float | None) -> Checkpoint:
    config: Config = base.config
    if dropout is not None:
        config = replace(config, dropout=dropout, attention_dropout=dropout, head_dropout=dropout)
    with torch.device("meta"):
        network = Network(config, {name: part.head.shape(config, part.outputs) for name, part in parts.items()})
    given = {f"heads.{name}.{key}": value for name, part in parts.items() for key, value in part.tensors.items()}
    state = {n: given[n] if n in given else base.network.tensor(n).detach() for n in network.names}
    # Copies: a part may be the very memory of the base's own head, and two members may have the same one.
    network.load_state_dict({name: tensor.clone() for name, tensor in state.items()}, strict=True, assign=True)
    network.float().requires_grad_(True)
    heads = {name: part.head for name, part in parts.items()}
    settings = {key: value for key, value in base.settings.items() if key not in OF_LABELS}
    return Checkpoint(base.family, config, heads, network, settings)
