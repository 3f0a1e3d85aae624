"""AdamW over groups of parameters: by layer, and with or without weight decay; its state as named tensors."""

import re
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from bertsmith.models.network import Network
from bertsmith.training.settings import Training

MOMENTS = ("exp_avg", "exp_avg_sq", "step")


def layer_of(name: str, depth: int) -> int:
    """How far below the head a parameter stands: 0 the head, 1 the top layer, depth + 1 the embedding."""
    block = re.match(r"blocks\.(\d+)\.", name)
    if block:
        return depth - int(block[1])
    return depth + 1 if name.startswith("embed.") else 0


def parameter_groups(network: Network, settings: Training) -> list[dict[str, Any]]:
    """Biases and norms never decay (BERT's own list); `share` of the rate falls from layer to layer."""
    groups: dict[tuple[int, bool], list[nn.Parameter]] = {}
    depth = len(network.blocks)
    for name, parameter in network.named_parameters():
        if not parameter.requires_grad:  # of a frozen encoder
            continue
        decays = parameter.ndim > 1
        groups.setdefault((layer_of(name, depth), decays), []).append(parameter)
    return [
        {
            "params": parameters,
            "weight_decay": settings.weight_decay if decays else 0.0,
            "share": settings.layer_decay**layer,
            "layer": layer,
        }
        for (layer, decays), parameters in groups.items()
    ]


def make_optimizer(network: Network, settings: Training, capturable: bool = False) -> torch.optim.Optimizer:
    groups = parameter_groups(network, settings)
    if getattr(settings, "optimizer", "adamw") == "muon":
        return _make_muon(network, groups, settings)
    if capturable:  # a recorded step reads the rates on the device, all in one tensor
        rates = torch.zeros(len(groups), device=groups[0]["params"][0].device)
        for group, rate in zip(groups, rates.unbind(), strict=True):
            group["lr"] = rate
    return torch.optim.AdamW(
        groups,
        lr=settings.peak,
        betas=(settings.beta1, settings.beta2),
        eps=settings.eps,
        fused=True,
        capturable=capturable,
    )


def _make_muon(network: Network, groups: list[dict[str, Any]], settings: Any) -> torch.optim.Optimizer:
    """Muon for the matrices of the blocks: each group is one of those or none of them."""
    from bertsmith.training.muon import Muon

    matrices = {p for name, p in network.named_parameters() if name.startswith("blocks.") and p.ndim == 2}
    parted = []
    for group in groups:
        for is_matrix in (True, False):
            some = [p for p in group["params"] if (p in matrices) == is_matrix]
            parted += [{**group, "params": some, "muon": is_matrix}] if some else []
    betas = (settings.beta1, settings.beta2)
    return Muon(parted, momentum=settings.momentum, lr=settings.peak, betas=betas, eps=settings.eps, fused=True)


def set_rates(optimizer: torch.optim.Optimizer, rate: float) -> None:
    first = optimizer.param_groups[0]["lr"]
    shares = [group["share"] for group in optimizer.param_groups]
    if isinstance(first, Tensor):
        rates = first._base if first._base is not None else first
        rates.copy_(torch.tensor([rate * share for share in shares]), non_blocking=True)
        return
    for group, share in zip(optimizer.param_groups, shares, strict=True):
        group["lr"] = rate * share


def wake(optimizer: torch.optim.Optimizer, layers: int) -> None:
    """Let the head and so many layers from the top learn."""
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
    for parameter, name in names.items():
        if f"step.{name}" not in given:
            continue
        state = {m: given[f"{m}.{name}"].clone() for m in MOMENTS if f"{m}.{name}" in given}
        optimizer.state[parameter] = state


def named(network: Network) -> dict[nn.Parameter, str]:
    return {parameter: name for name, parameter in network.named_parameters()}
