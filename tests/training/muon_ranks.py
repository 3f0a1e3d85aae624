"""Some steps of Muon with made gradients: alone, or in the processes that torchrun started, whole or in parts."""

import sys
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import nn

from bertsmith.training.devices import joined, leave, part_like, whole
from bertsmith.training.muon import Muon

# Fewer rows than processes, rows and matrices that do not divide by them, one matrix of its kind.
SHAPES = [(7, 5)] * 4 + [(2, 9)] * 2 + [(12, 6)] * 7 + [(6, 12)]
STEPS, RATE = 4, 0.05


def make_weights() -> nn.ParameterDict:
    chance = torch.Generator().manual_seed(0)
    named = {f"matrix {number}": shape for number, shape in enumerate(SHAPES)} | {"vector": (10,), "table": (8, 4)}
    return nn.ParameterDict({name: torch.randn(shape, generator=chance) for name, shape in named.items()})


def train(weights: nn.ParameterDict, rows: bool) -> dict[str, torch.Tensor]:
    """The weights and the first moments; gradients are the same numbers however the weights are held."""
    parted: dict[tuple[bool, int], list[nn.Parameter]] = {}
    for number, (name, parameter) in enumerate(weights.items()):  # the matrices are in two groups, as of two layers
        parted.setdefault((name.startswith("matrix"), number % 2), []).append(parameter)
    groups = [
        {"params": some, "muon": is_matrix, "weight_decay": 0.1, "share": 1.0, "layer": layer}
        for (is_matrix, layer), some in parted.items()
    ]
    optimizer = Muon(groups, rows=rows, lr=RATE, betas=(0.9, 0.95), eps=1e-8, fused=True)
    for step in range(STEPS):
        chance = torch.Generator().manual_seed(100 + step)
        for parameter in weights.values():
            parameter.grad = part_like(torch.randn(parameter.shape, generator=chance), parameter)
        optimizer.step()
    found = {name: whole(parameter.detach()) for name, parameter in weights.items()}
    moments = {f"mean of {name}": whole(optimizer.state[p]["exp_avg"]) for name, p in weights.items()}
    return {name: tensor.contiguous() for name, tensor in (found | moments).items()}


if __name__ == "__main__":
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    with joined(torch.device("cpu")) as ranks:
        for rows in (True, False):
            for spread in ("ddp", "fsdp"):
                weights = make_weights()
                if spread == "fsdp":
                    fully_shard(weights, mesh=init_device_mesh("cpu", (ranks.count,)))
                save_file(train(weights, rows), Path(sys.argv[1]) / f"{spread}-{rows}-{ranks.rank}.safetensors")
    leave()
