"""The optimizer over groups of parameters, each with its share of the rate and its decay; its state by names."""

import re
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from bertsmith.data.batch import send
from bertsmith.errors import BertsmithError
from bertsmith.models.network import Network
from bertsmith.training.devices import part_like
from bertsmith.training.settings import Training

MOMENTS = ("exp_avg", "exp_avg_sq", "step", "average")  # the last is averaging.py's


def layer_of(name: str, depth: int) -> int:
    """How far below the head a parameter stands: 0 the head, 1 the top layer, depth + 1 the embedding and what all
    layers are told of distances."""
    block = re.match(r"blocks\.(\d+)\.", name)
    if block:
        return depth - int(block[1])
    return depth + 1 if name.startswith(("embed.", "relative.", "convolution.")) else 0


def parameter_groups(network: Network, settings: Training) -> list[dict[str, Any]]:
    """Biases and norms never decay (BERT's own list); `share` of the rate falls from layer to layer.

    Layers have groups of their own only where they differ: the host pays for each group in each step.
    """
    groups: dict[tuple[int, bool, float], list[nn.Parameter]] = {}
    depth = len(network.blocks)
    differ = settings.layer_decay != 1.0 or settings.unfreeze > 0
    for name, parameter in network.named_parameters():
        if not parameter.requires_grad:  # of a frozen encoder
            continue
        decays = parameter.ndim > 1
        layer = layer_of(name, depth) if differ else 0
        groups.setdefault((layer, decays, own_share(name, settings)), []).append(parameter)
    return [
        {
            "params": parameters,
            "weight_decay": settings.weight_decay if decays else 0.0,
            "share": settings.layer_decay**layer * own,
            "layer": layer,
        }
        for (layer, decays, own), parameters in groups.items()
    ]


def own_share(name: str, settings: Training) -> float:
    """Of the rate, where pretraining sets the embedding or the heads apart; a generator's go with the rest."""
    setting = {"embed": "embedding_rate", "heads": "head_rate", "judge": "head_rate"}.get(name.partition(".")[0])
    return getattr(settings, setting, 1.0) if setting else 1.0


def make_optimizer(network: Network, settings: Training, capturable: bool = False) -> torch.optim.Optimizer:
    """One that is `capturable` may be recorded: it reads its rates on the device."""
    groups = parameter_groups(network, settings)
    kind = settings.optimizer
    betas = (settings.beta1, settings.beta2)
    adam: dict[str, Any] = {"lr": settings.peak, "betas": betas, "eps": settings.eps}
    if kind == "lamb":
        made = _make_lamb(groups, adam)
    else:
        adam |= {"fused": True, "capturable": capturable}
        made = _make_muon(network, groups, settings, adam) if kind == "muon" else torch.optim.AdamW(groups, **adam)
    if capturable:
        rates = torch.zeros(len(made.param_groups), device=groups[0]["params"][0].device)
        for group, rate in zip(made.param_groups, rates.unbind(), strict=True):
            group["lr"] = rate
    return made


def _make_muon(
    network: Network, groups: list[dict[str, Any]], settings: Any, adam: dict[str, Any]
) -> torch.optim.Optimizer:
    """Muon for the matrices of the blocks: each group is one of those or none of them."""
    from bertsmith.training.muon import Muon

    adam_rate = getattr(settings, "adam_rate", None)
    matrices = {p for name, p in network.named_parameters() if name.startswith("blocks.") and p.ndim == 2}
    parted = []
    for group in groups:
        for is_matrix in (True, False):
            some = [p for p in group["params"] if (p in matrices) == is_matrix]
            parted += [{**group, "params": some, "muon": is_matrix}] if some else []
            if some and not is_matrix and adam_rate is not None:
                parted[-1]["share"] *= adam_rate / settings.peak
    return Muon(parted, momentum=settings.momentum, **adam)


def _make_lamb(groups: list[dict[str, Any]], adam: dict[str, Any]) -> torch.optim.Optimizer:
    from bertsmith.training.lamb import Lamb

    if any(hasattr(parameter, "full_tensor") for group in groups for parameter in group["params"]):
        raise BertsmithError("LAMB measures whole tensors, which fsdp cuts up; use spread ddp, or optimizer adamw.")
    return Lamb(groups, **adam)


def set_rates(optimizer: torch.optim.Optimizer, rate: float) -> None:
    first = optimizer.param_groups[0]["lr"]
    shares = [group["share"] for group in optimizer.param_groups]
    if isinstance(first, Tensor):
        rates = first._base if first._base is not None else first
        rates.copy_(send(np.asarray([rate * share for share in shares], np.float32), rates.device))
        return
    for group, share in zip(optimizer.param_groups, shares, strict=True):
        group["lr"] = rate * share


def wake(optimizer: torch.optim.Optimizer, layers: int) -> None:
    """Let the head and so many layers from the top learn; where no head does, as of vectors, the top layer at once."""
    layers = max(layers, min(group["layer"] for group in optimizer.param_groups))
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            parameter.requires_grad_(group["layer"] <= layers)


def give_state(optimizer: torch.optim.Optimizer, names: Mapping[nn.Parameter, str]) -> dict[str, Tensor]:
    """The moments as `exp_avg.NAME`, …; a parameter that never learned has none."""
    found = {}
    for parameter, name in names.items():
        for moment in MOMENTS if parameter in optimizer.state else ():
            if moment in optimizer.state[parameter]:  # Muon has no second one
                found[f"{moment}.{name}"] = optimizer.state[parameter][moment].detach()
    return found


def take_state(
    optimizer: torch.optim.Optimizer, names: Mapping[nn.Parameter, str], given: Mapping[str, Tensor]
) -> None:
    """Whole tensors, as `give_state` names them; each goes where its parameter is, or its part of it."""
    for parameter, name in names.items():
        if f"step.{name}" not in given:
            continue
        known = {moment: given[f"{moment}.{name}"].clone() for moment in MOMENTS if f"{moment}.{name}" in given}
        optimizer.state[parameter] = {
            moment: part_like(tensor, parameter) if tensor.ndim else tensor.to(parameter.device)
            for moment, tensor in known.items()
        }


def named(network: Network) -> dict[nn.Parameter, str]:
    return {parameter: name for name, parameter in network.named_parameters()}
