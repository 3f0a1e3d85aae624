"""Low-rank adapters on an encoder: which matrices get one, and what `peft` calls their numbers.

In: a checkpoint and a shape. Out: the same checkpoint, whose base no longer learns and whose adapter does.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from bertsmith.errors import BertsmithError
from bertsmith.layers.linear import Linear
from bertsmith.layers.lowrank import LowRank
from bertsmith.models.checkpoint import Checkpoint
from bertsmith.models.names import names_of
from bertsmith.models.network import Network

# Which of a block's modules a word for targets means.
TARGETS = {
    "all": ("attention.qkv", "attention.out", "feed.up", "feed.down"),
    "attention": ("attention.qkv", "attention.out"),
    "query-value": ("attention.qkv",),
}
QUERY_VALUE = (0, 2)  # among query, key, value
# Settings of adapter_config.json that would change the numbers, and the only values read.
USUAL: dict[str, tuple[Any, ...]] = {
    "peft_type": ("LORA",),
    "bias": ("none", None),
    "fan_in_fan_out": (False, None),
    "use_dora": (False, None),
    "lora_bias": (False, None),
    "rank_pattern": ({}, None),
    "alpha_pattern": ({}, None),
    "layer_replication": (None,),
    "trainable_token_indices": (None,),
    "alora_invocation_tokens": (None,),
    # Others (pissa, olora, corda, loftq, lora_ga) take what an adapter begins with out of the base's own matrices, as
    # `peft` does again when it opens one.
    "init_lora_weights": (True, False, None, "gaussian", "orthogonal", "eva", "mica"),
}


@dataclass(frozen=True)
class LoraShape:
    rank: int
    alpha: float | None = None  # None: twice the rank
    targets: str = "all"

    @property
    def scale(self) -> float:
        return 2.0 if self.alpha is None else self.alpha / self.rank


def put_lora(checkpoint: Checkpoint, shape: LoraShape, seed: int) -> None:
    """Give the encoder's matrices fresh adapters that change nothing yet; the base stops learning, heads go on."""
    network = checkpoint.network
    for name, parameter in network.named_parameters():
        parameter.requires_grad_(name.startswith("heads."))
    generator = torch.Generator().manual_seed(seed)
    theirs = list_theirs(checkpoint)
    for module in theirs:
        if not module.endswith(TARGETS[shape.targets]):
            continue
        parts = len(theirs[module])
        chosen = tuple(range(parts)) if shape.targets != "query-value" else QUERY_VALUE
        if len(chosen) > parts:
            raise BertsmithError(
                f"the family {checkpoint.family.name} keeps query, key and value in one matrix; give "
                "lora_targets=attention or all."
            )
        low = put_low(network, module, parts, chosen, shape.rank, shape.scale)
        low.reset(generator)


def put_low(network: Network, module: str, parts: int, chosen: tuple[int, ...], rank: int, scale: float) -> LowRank:
    linear: Any = network.get_submodule(module)
    assert isinstance(linear, Linear)
    device = network.embed.tokens.weight.device
    outputs, inputs = linear.size
    linear.low = LowRank(inputs, outputs, parts, chosen, rank, scale).to(device)
    return linear.low


def list_theirs(checkpoint: Checkpoint) -> dict[str, tuple[str, ...]]:
    """Our linear modules in the blocks -> theirs that are stacked in it."""
    names = [name for name in checkpoint.network.names if name.startswith("blocks.") and name.endswith(".weight")]
    modules = checkpoint.network.get_submodule
    names = [name for name in names if isinstance(modules(name.removesuffix(".weight")), Linear)]
    found = names_of(checkpoint.family, {}, names)
    bare = not any(head.suffix for head in checkpoint.heads.values())
    prefix = f"{checkpoint.family.prefix}." if bare else ""
    return {
        ours.removesuffix(".weight"): tuple(name.removesuffix(".weight").removeprefix(prefix) for name in theirs)
        for ours, theirs in found.items()
    }


def each_low(checkpoint: Checkpoint) -> Iterator[tuple[str, LowRank, int]]:
    """Their module, ours, and its place there, for each pair of thin matrices."""
    for module, theirs in list_theirs(checkpoint).items():
        low = checkpoint.network.get_submodule(module).low
        if isinstance(low, LowRank):
            for place, part in enumerate(low.chosen):
                yield theirs[part], low, place


def give_lora(checkpoint: Checkpoint) -> dict[str, Tensor]:
    found = {}
    for name, low, place in each_low(checkpoint):
        found[f"{name}.lora_A.weight"] = low.down[place].detach().cpu().contiguous()
        found[f"{name}.lora_B.weight"] = low.up[place].detach().cpu().contiguous()
    return found


def lay_lora(checkpoint: Checkpoint, tensors: Mapping[str, Tensor], scale: float) -> None:
    """Put the adapters that these tensors hold on the network, and fill them."""
    theirs = list_theirs(checkpoint)
    for module, names in theirs.items():
        chosen = tuple(part for part, name in enumerate(names) if f"{name}.lora_A.weight" in tensors)
        if chosen:
            rank = len(tensors[f"{names[chosen[0]]}.lora_A.weight"])
            put_low(checkpoint.network, module, len(names), chosen, rank, scale)
    fill_lora(checkpoint, tensors)


def fill_lora(checkpoint: Checkpoint, tensors: Mapping[str, Tensor]) -> None:
    with torch.no_grad():
        for name, low, place in each_low(checkpoint):
            for kind, own in (("A", low.down), ("B", low.up)):
                tensor = tensors.get(f"{name}.lora_{kind}.weight")
                if tensor is None or tensor.shape != own[place].shape:
                    has = "is missing" if tensor is None else f"has the shape {list(tensor.shape)}"
                    raise BertsmithError(
                        f"the adapter's tensor {name}.lora_{kind}.weight {has}, but the base asks for "
                        f"{list(own[place].shape)}; it belongs to another base model."
                    )
                own[place].copy_(tensor)


def name_targets(checkpoint: Checkpoint) -> list[str]:
    """The ends of their modules' names that `peft` finds them by: all that stands behind the number of the layer."""
    found = {re.split(r"\.\d+\.", name)[-1] for name, _, _ in each_low(checkpoint)}
    return sorted(found)


def check_usual(settings: Mapping[str, Any], path: Any) -> None:
    for name, values in USUAL.items():
        if settings.get(name, values[0]) not in values:
            raise BertsmithError(f"{path} has {name} = {settings[name]!r}, which is not read here.")
