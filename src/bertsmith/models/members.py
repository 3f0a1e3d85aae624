"""Several heads on one encoder: fitted to a base model, written as an encoder with an adapter a head, opened again.

In: a checkpoint and, for each member by name, the kind of its head and its labels. Out: a checkpoint whose heads have
the members' names.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import torch
from torch import Tensor

from bertsmith.errors import BertsmithError
from bertsmith.layers.config import Config
from bertsmith.models.adapter_folders import MEMBERS
from bertsmith.models.adapters import read_members, share_network, write_member
from bertsmith.models.checkpoint import Checkpoint, load_checkpoint, save_checkpoint
from bertsmith.models.family import FamilyHead
from bertsmith.models.fitting import find_known_labels, fit_head, keeps_head, list_some
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


@dataclass
class Heads:
    """What became of the heads that there were: a name, and behind it in brackets what there is to say."""

    kept: dict[str, str] = field(default_factory=dict)
    partly: dict[str, str] = field(default_factory=dict)
    anew: dict[str, str] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)

    def tell(self) -> str:
        parts = {"kept": self.kept, "kept for some labels": self.partly, "begun anew": self.anew,
                 "left out": self.left_out}  # fmt: skip
        told = {what: ", ".join(f"{name} ({more})" if more else name for name, more in some.items())
                for what, some in parts.items() if some}  # fmt: skip
        return f"Heads {'; '.join(f'{what}: {names}' for what, names in told.items())}."


def fit_members(
    checkpoint: Checkpoint,
    wanted: Mapping[str, Wanted],
    learnt: Mapping[str, Checkpoint] | None = None,
    *,
    seed: int = 0,
    dropout: float | None = None,
) -> tuple[Checkpoint, Heads]:
    """The encoder with a head for each member, and what became of the heads that there were.

    Each is fitted as that of a single task would be, with a seed of its own: to the head of the same name in `learnt`
    (`read_members`), or to that of the checkpoint.
    """
    learnt = learnt or {}
    parts, heads, used = {}, Heads(), {"pool"}
    for number, (name, want) in enumerate(wanted.items()):
        origin = learnt[name] if name in learnt and want.kind in learnt[name].heads else checkpoint
        labels = origin.labels if want.kind == "mask" else want.labels  # its outputs are the vocabulary
        fitted, _ = fit_head(origin, want.kind, labels, seed=seed + number)
        parts[name] = _part(fitted, want.kind)
        if _note(heads, name, origin, Wanted(want.kind, labels)) and origin is checkpoint:
            used.add(want.kind)
    left_out = [kind for kind in checkpoint.heads if kind not in used] + [name for name in learnt if name not in wanted]
    heads.left_out = dict.fromkeys(left_out, "")
    return _put_together(checkpoint, parts, dropout), heads


def _note(heads: Heads, name: str, origin: Checkpoint, want: Wanted) -> bool:
    """Put a member where it belongs; whether any output of its origin is kept."""
    known = [want.labels[place] for place in find_known_labels(origin, want.kind, want.labels)]
    if keeps_head(origin, want.kind, want.labels) or (known and len(known) == len(want.labels) == len(origin.labels)):
        heads.kept[name] = ""
    elif known:
        heads.partly[name] = list_some(known)
    else:
        was_other = want.kind in origin.heads and origin.network.features is None  # else it was for other features
        heads.anew[name] = f"other labels before: {list_some(origin.labels)}" if was_other else ""
    return name not in heads.anew


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
