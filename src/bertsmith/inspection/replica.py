"""A network of one's own for one look: it shares the numbers of a loaded one, and may be changed without touching it.

In: a network that others may be using at the same time. Out: modules of its own on the same tensors, so that hooks and
stand-ins are put on it freely; on request with plain matrices in full precision, through which gradients pass.
"""

from copy import deepcopy
from itertools import chain
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from bertsmith.layers.linear import Linear
from bertsmith.models.network import Network


def replicate(network: Network) -> Network:
    """The same network in modules of its own; a layer that shares its block with others has one of its own here."""
    tensors = chain(network.parameters(), network.buffers(), _list_packed(network))
    shared: dict[int, Any] = {id(tensor): tensor for tensor in tensors}  # what is known already is not copied
    made = deepcopy(network, shared)
    made.compiled = None
    if network.config.distinct < network.config.depth:
        made.order = [deepcopy(block, {id(tensor): tensor for tensor in shared.values()}) for block in network.order]
    return made.eval()


def unpack(network: Network) -> Network:
    """Lays the matrices of a replica out plainly and in full precision: packed ones let no gradient through."""
    network.packed = False
    plain: dict[int, nn.Parameter] = {}  # layers that share a matrix go on to do so
    for module in chain(network.modules(), *(block.modules() for block in network.order)):
        if isinstance(module, Linear) and module.packed is not None:
            if id(module.packed) not in plain:
                plain[id(module.packed)] = nn.Parameter(module.packed.to_dense(), requires_grad=False)
            module.weight, module.packed = plain[id(module.packed)], None
        for name, parameter in module._parameters.items():
            if parameter is not None and parameter.dtype != torch.float32:
                module._parameters[name] = nn.Parameter(parameter.float(), requires_grad=False)
    return network


class WordTable(nn.Module):
    """Stands in for the table of words: gives the vectors it was told to give, whatever the ids."""

    def __init__(self, table: nn.Embedding) -> None:
        super().__init__()
        self.weight = table.weight  # a head that predicts words reads it
        self.given: Tensor | None = None

    def forward(self, ids: Tensor) -> Tensor:
        return F.embedding(ids, self.weight) if self.given is None else self.given


def _list_packed(network: Network) -> list[Tensor]:
    found = [module.packed for module in network.modules() if isinstance(module, Linear)]
    return [packed for packed in found if packed is not None]
