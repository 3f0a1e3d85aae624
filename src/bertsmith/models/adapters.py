"""Adapters: what one task adds to a base model, a few MB in the layout that `peft` reads.

In: a base and a folder with adapter_model.safetensors. Out: a `Checkpoint` with that adapter's head, whose encoder is
the base's own memory; so any number of them may be resident on one base. A folder without adapter_config.json holds a
head alone, one of several on a shared encoder.
"""

import hashlib
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from bertsmith.errors import BertsmithError
from bertsmith.layers.config import HeadShape
from bertsmith.layers.disentangled import Distances
from bertsmith.layers.linear import Linear
from bertsmith.models.adapter_folders import find_base, find_encoder, find_members, is_adapter
from bertsmith.models.checkpoint import Checkpoint, load_checkpoint
from bertsmith.models.compact import read_compact
from bertsmith.models.family import FamilyHead
from bertsmith.models.files import (
    ADAPTER,
    ADAPTER_CONFIG,
    COMPACT_ADAPTER,
    TASK_FILE,
    read_json,
    read_noted,
    write_json,
    write_tensors,
)
from bertsmith.models.fitting import name_labels
from bertsmith.models.hub import name_of
from bertsmith.models.lora import check_usual, each_low, fill_lora, give_lora, lay_lora, name_targets
from bertsmith.models.names import names_of
from bertsmith.models.network import Network
from bertsmith.models.sentence import Sentence, adapt_sentence, read_sentence

PREFIX = "base_model.model."
TASK_TYPES = {"classify": "SEQ_CLS", "tag": "TOKEN_CLS", "span": "QUESTION_ANS"}


def open_checkpoint(folder: Path, dtype: torch.dtype = torch.float32) -> Checkpoint:
    """A model folder, a sentence-transformers one or an adapter, as one network."""
    if is_adapter(folder):
        return read_adapter(folder, open_checkpoint(find_base(folder), dtype))
    return load_checkpoint(find_encoder(folder), dtype)


def open_sentence(folder: Path) -> Sentence:
    """How a model folder or an adapter makes vectors."""
    return choose_sentence(folder, read_sentence(find_base(folder))) if is_adapter(folder) else read_sentence(folder)


def choose_sentence(folder: Path, base: Sentence) -> Sentence:
    """How an adapter makes vectors: as it learnt them; one that learnt something else does as its base."""
    path = folder / TASK_FILE
    trained = read_json(path) if path.exists() else {}
    settings = trained.get("settings")
    if trained.get("task") != "embed" or not isinstance(settings, dict):
        return base
    return adapt_sentence(base, settings, path)


def share_network(base: Network, shapes: Mapping[str, HeadShape]) -> Network:
    """A network with other heads on the very tensors of an encoder."""
    with torch.device("meta"):
        network = Network(base.config, dict(shapes))
    for name, module in base.named_modules():
        if name.startswith(("heads", "mix")) or ".low" in name:
            continue
        own = network.get_submodule(name)
        own._parameters.update(module._parameters)
        own._buffers.update(module._buffers)
        if isinstance(module, Linear):
            assert isinstance(own, Linear)
            own.packed = module.packed
        if isinstance(module, Distances):
            assert isinstance(own, Distances)
            own.kept = module.kept
    network.packed = base.packed
    return network.eval()


def read_adapter(folder: Path, base: Checkpoint, is_bare: bool = False) -> Checkpoint:
    """The base with this adapter and its head; the encoder's memory is shared. `is_bare`: with its head alone."""
    tensors, notes = _read(folder)
    settings = read_json(folder / ADAPTER_CONFIG) if (folder / ADAPTER_CONFIG).exists() else {}
    _check_base(folder, base, notes, settings)
    heads = _find_head(folder, base, tensors, notes, settings)
    if not any(head.suffix for head in heads.values()):
        tensors = {_bare(name, f"{base.family.prefix}."): tensor for name, tensor in tensors.items()}
    shapes = {name: head.shape(base.config, _outputs(name, head, tensors, base)) for name, head in heads.items()}
    network = share_network(base.network, shapes)
    checkpoint = Checkpoint(base.family, base.config, heads, network, _settings(folder, base, heads, shapes))
    _fill_heads(checkpoint, tensors, base, folder)
    if settings and not is_bare:
        check_usual(settings, folder / ADAPTER_CONFIG)
        lay_lora(checkpoint, tensors, _scale(settings, folder))
    if not is_bare:
        _refuse_surplus(checkpoint, tensors, base, folder)
    weight = base.network.embed.tokens.weight
    network.to(weight.device).requires_grad_(False)
    network.heads.to(weight.dtype)
    return checkpoint


def go_on_from(checkpoint: Checkpoint, folder: Path) -> None:
    """Give the fresh thin matrices of a network the numbers of an adapter, whatever head learns with them now."""
    settings, prefix = read_json(folder / ADAPTER_CONFIG), f"{checkpoint.family.prefix}."
    places = {name: low for name, low, _ in each_low(checkpoint)}
    # Under a head the encoder is a part with a name of its own; vectors have none.
    under = prefix if next(iter(places)).startswith(prefix) else ""
    tensors = {f"{under}{name.removeprefix(prefix)}": tensor for name, tensor in _read(folder)[0].items()}
    low, scale = next(iter(places.values())), _scale(settings, folder)
    if (low.rank, low.scale) != (settings["r"], scale):
        told = f"has rank {settings['r']} and alpha {scale * settings['r']:g}, and goes on as it is"
        raise BertsmithError(f"the adapter in {folder} {told}; give lora={settings['r']} and that lora_alpha.")
    if {f"{name}.lora_A.weight" for name in places} != {name for name in tensors if name.endswith("lora_A.weight")}:
        raise BertsmithError(
            f"the adapter in {folder} is one of other matrices than lora_targets says; give those that it was made "
            f"with (all, attention or query-value)."
        )
    check_usual(settings, folder / ADAPTER_CONFIG)
    fill_lora(checkpoint, tensors)


def take_adapter(checkpoint: Checkpoint, folder: Path) -> None:
    """Go on with the numbers of an adapter that this very run wrote."""
    tensors, _ = _read(folder)
    fill_lora(checkpoint, tensors)
    _fill_heads(checkpoint, tensors, checkpoint, folder)
    checkpoint.network.heads.requires_grad_(True)


def write_adapter(checkpoint: Checkpoint, folder: Path, base: Path) -> None:
    """adapter_model.safetensors and adapter_config.json, as `peft` has them."""
    # That for masked tokens is the base's own: `peft` would save it without the matrix that is the word table. A bare
    # encoder's pooler is, too: nothing that learns reads it.
    name = None if checkpoint.heads.keys() & {"mask", "pool"} else next(iter(checkpoint.heads), None)
    write_member(checkpoint, name, folder, give_lora(checkpoint))
    low: Any = next(m.low for m in checkpoint.network.modules() if isinstance(m, Linear) and m.low is not None)
    head = checkpoint.heads[name] if name else None
    theirs = [their for ours, their in head.names.items() if ours in ("dense", "norm", "out")] if head else []
    # A part of the bare model by its own name; of the head proper the whole, as `peft` saves that anyway.
    saved = {their.removeprefix("{}.") if "{}." in their else their.split(".")[0] for their in theirs}
    known = name_of(base)
    is_named = "/" in known and known != str(base)
    write_json(folder / ADAPTER_CONFIG, {
        "peft_type": "LORA",
        "task_type": TASK_TYPES.get(name or ""),
        "base_model_name_or_path": known if is_named else str(base.resolve()),
        "r": low.rank,
        "lora_alpha": low.scale * low.rank,
        "lora_dropout": 0.0,
        "bias": "none",
        "fan_in_fan_out": False,
        "inference_mode": True,
        "target_modules": name_targets(checkpoint),
        "modules_to_save": sorted(saved) or None,
    })  # fmt: skip


def write_member(
    checkpoint: Checkpoint, head: str | None, folder: Path, more: Mapping[str, Tensor] | None = None
) -> None:
    """One head of a checkpoint, under the family's names, and what else an adapter has."""
    tensors = dict(more or {})
    notes = {"base": fingerprint(checkpoint.network)}
    if head is not None:
        known = checkpoint.family.heads(checkpoint.settings)
        notes["head"] = next(name for name, family_head in known.items() if family_head == checkpoint.heads[head])
        for ours, theirs in _head_names(checkpoint, head).items():
            tensors[theirs] = checkpoint.network.tensor(ours).detach().cpu().contiguous()
    folder.mkdir(parents=True, exist_ok=True)
    write_tensors(folder / ADAPTER, {PREFIX + name: tensor for name, tensor in tensors.items()}, notes)


def read_members(folder: Path, base: Checkpoint) -> dict[str, Checkpoint]:
    """The heads of a model that learnt several tasks, by the members' names."""
    return {place.name: read_adapter(place, base) for place in find_members(folder)}


def fingerprint(network: Network) -> str:
    """The same for the same encoder in float32 and in bfloat16: its norms and biases, and some of its word table."""
    digest = hashlib.sha256(repr(network.config.width).encode())
    for name, parameter in sorted(network.named_parameters()):
        if name.startswith(("heads.", "mix.")) or ".low." in name or parameter.ndim > 1:
            continue
        digest.update(name.encode() + _bits(parameter))
    digest.update(_bits(network.embed.tokens.weight[::61, ::7]))
    return digest.hexdigest()[:32]


def _bits(tensor: Tensor) -> bytes:
    return tensor.detach().to(torch.bfloat16).cpu().contiguous().view(torch.int16).numpy().tobytes()


def _read(folder: Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    if (folder / ADAPTER).is_file():
        tensors, notes = read_noted(folder / ADAPTER)
    elif (folder / COMPACT_ADAPTER).is_file():
        tensors, notes = read_compact(folder / COMPACT_ADAPTER)
    else:
        raise BertsmithError(f"{folder} has no {ADAPTER}; give the folder of a saved adapter.")
    found = {name.removeprefix(PREFIX).replace(".modules_to_save.", "."): tensor for name, tensor in tensors.items()}
    return found, notes


def _check_base(folder: Path, base: Checkpoint, notes: Mapping[str, str], settings: Mapping[str, Any]) -> None:
    is_half = base.network.dtype == torch.float16  # rounded twice, it cannot be compared
    if "base" in notes and not is_half and notes["base"] != fingerprint(base.network):
        known = settings.get("base_model_name_or_path")
        raise BertsmithError(
            f"{folder} is an adapter for another base model: the encoder given here has other weights than the one "
            f"it was trained on{f'; its base is {known}' if known else ''}."
        )


def _find_head(
    folder: Path, base: Checkpoint, tensors: Mapping[str, Tensor], notes: Mapping[str, str], settings: Mapping[str, Any]
) -> dict[str, FamilyHead]:
    """The head that the adapter brings: by its own note, or by the kind of task that `peft` names.

    For masked tokens `peft` has none: with the encoder's names as they are under a head, that of the base stays.
    """
    known = base.family.heads(base.settings)
    kinds = {kind: head for head, kind in TASK_TYPES.items()}
    name = notes.get("head") or kinds.get(str(settings.get("task_type")))
    if name is None:
        if any(".lora_" not in tensor for tensor in tensors):
            raise BertsmithError(f"{folder / ADAPTER_CONFIG} does not say what its head is for (task_type).")
        is_under = any(tensor.startswith(f"{base.family.prefix}.") for tensor in tensors)
        return {each: head for each, head in base.heads.items() if is_under or each == "pool"}
    if name not in known:
        raise BertsmithError(f"{folder} has a head for {name}, which the family {base.family.name} does not have.")
    return {name: known[name]}


def _bare(name: str, prefix: str) -> str:
    """As a matrix of a bare encoder is called; its pooler, that older adapters have, keeps the name that heads have."""
    return name.removeprefix(prefix) if ".lora_" in name else name


def _outputs(name: str, head: FamilyHead, tensors: Mapping[str, Tensor], base: Checkpoint) -> int:
    """Of an output layer that the adapter did not train, those of the base's own."""
    out = tensors.get(f"{head.names.get('out')}.weight")
    if out is not None or name not in base.heads:
        return 0 if out is None else len(out)
    found: int = base.network.heads[name].shape.outputs  # type: ignore[assignment, union-attr]
    return found


def _head_names(checkpoint: Checkpoint, head: str) -> dict[str, str]:
    """Our parameters of a head -> their tensors."""
    own = [name for name in checkpoint.network.names if name.startswith(f"heads.{head}.")]
    names = names_of(checkpoint.family, {head: checkpoint.heads[head]}, own)
    return {ours: theirs[0] for ours, theirs in names.items()}


def _fill_heads(checkpoint: Checkpoint, tensors: Mapping[str, Tensor], base: Checkpoint, folder: Path) -> None:
    """A part that the adapter did not train (BERT's pooler, in `peft`) is the base's."""
    names = [(ours, theirs) for head in base.heads for ours, theirs in _head_names(base, head).items()]
    others = {theirs: ours for ours, theirs in names}
    for head in checkpoint.heads:
        for ours, theirs in _head_names(checkpoint, head).items():
            tensor = tensors.get(theirs)
            if tensor is None and theirs in others:
                tensor = base.network.tensor(others[theirs])
            module, _, leaf = ours.rpartition(".")
            owner = checkpoint.network.get_submodule(module)
            if tensor is None or tensor.shape != getattr(owner, leaf).shape:
                has = "is missing" if tensor is None else f"has the shape {list(tensor.shape)}"
                raise BertsmithError(
                    f"{folder / ADAPTER}: the tensor {theirs} {has}, but the base asks for "
                    f"{list(getattr(owner, leaf).shape)}; it belongs to another base model."
                )
            device = base.network.embed.tokens.weight.device
            owner._parameters[leaf] = torch.nn.Parameter(tensor.detach().to(device, copy=True))


def _settings(
    folder: Path, base: Checkpoint, heads: Mapping[str, FamilyHead], shapes: Mapping[str, HeadShape]
) -> dict[str, Any]:
    """The base's config.json with the labels of the adapter's task."""
    path = folder / TASK_FILE
    trained: dict[str, Any] = read_json(path).get("settings") or {} if path.exists() else {}
    outputs = next((shapes[name].outputs for name, head in heads.items() if head.outputs == "labels"), 0)
    labels = trained.get("labels") if isinstance(trained.get("labels"), list) else None
    problem = None
    if labels is None or len(labels) != outputs:
        is_base = len(base.labels) == outputs  # what they are asked is what the base was asked, too
        labels = base.labels if is_base else [f"LABEL_{number}" for number in range(outputs)]
        problem = base.settings.get("problem_type") if is_base else None
    return name_labels(base.settings, [str(label) for label in labels], problem)


def _scale(settings: Mapping[str, Any], folder: Path) -> float:
    rank, alpha = settings.get("r"), settings.get("lora_alpha")
    if not isinstance(rank, int) or not isinstance(alpha, int | float) or rank < 1:
        raise BertsmithError(f"{folder / ADAPTER_CONFIG} must give r and lora_alpha as numbers.")
    return float(alpha) / (rank**0.5 if settings.get("use_rslora") else rank)


def _refuse_surplus(checkpoint: Checkpoint, tensors: Mapping[str, Tensor], base: Checkpoint, folder: Path) -> None:
    """A number of the adapter that changed nothing would be a wrong answer in silence."""
    used = set(give_lora(checkpoint)).union(*(_head_names(checkpoint, head).values() for head in checkpoint.heads))
    unused = sorted(set(tensors) - used)
    if not unused:
        return
    there = {name for theirs in names_of(base.family, base.heads, base.network.names).values() for name in theirs}
    there |= {name.removeprefix(f"{base.family.prefix}.") for name in there}
    why = "for which the base has no place; it belongs to another base model"
    if {unused[0], re.sub(r"\.lora_.*", ".weight", unused[0])} & there:
        why = "and beside heads only what is for the matrices of layers is read; merge it into its base with peft"
    raise BertsmithError(f"{folder / ADAPTER} holds {unused[0]}, {why}.")
