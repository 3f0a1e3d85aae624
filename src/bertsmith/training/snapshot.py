"""Models as they stood at one moment, to be written while they learn on.

In: checkpoints whose networks learn. Out: checkpoints of the same make that do not, on the host; and, for any tensor, a
copy there. From a GPU it goes through pinned memory, which torch keeps for the next time.
"""

import copy
from collections.abc import Mapping, Sequence
from dataclasses import replace

import torch
from torch import Tensor, nn

from bertsmith.models.checkpoint import Checkpoint
from bertsmith.models.network import Network


def copy_to_host(tensors: Mapping[str, Tensor], homes: Mapping[str, Tensor] | None = None) -> dict[str, Tensor]:
    """Copies that nothing changes any more; the device has given all of them when this returns.

    `homes` are former copies by the same names, whose memory is taken again.
    """
    found = {name: _copy(tensor.detach(), (homes or {}).get(name)) for name, tensor in tensors.items()}
    if any(tensor.is_cuda for tensor in tensors.values()):
        torch.cuda.synchronize()
    return found


def _copy(tensor: Tensor, home: Tensor | None) -> Tensor:
    if home is None:
        home = torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=tensor.is_cuda)
    return home.copy_(tensor, non_blocking=tensor.is_cuda)


class Snapshot:
    """Twins of networks, without numbers until some are taken; made before the networks are compiled or cut up.

    Networks that share a parameter, as ELECTRA's two share their tables, have twins that share it.
    """

    def __init__(self, checkpoints: Sequence[Checkpoint]) -> None:
        self.networks = [checkpoint.network for checkpoint in checkpoints]
        memo: dict[int, object] = {}
        parameters = {id(p): p for network in self.networks for p in network.parameters()}
        for number, parameter in parameters.items():
            empty = torch.empty_like(parameter, device="meta")
            memo[number] = nn.Parameter(empty, requires_grad=False)
        self.checkpoints = [replace(one, network=copy.deepcopy(one.network, memo)) for one in checkpoints]
        self._homes: list[dict[str, Tensor]] = [{} for _ in checkpoints]

    def take(self) -> None:
        """The numbers of now. Those that were taken before are given up: whoever writes them must be done."""
        found: dict[int, Tensor] = {}  # shared parameters are copied once
        for number, network in enumerate(self.networks):
            fresh = {name: p for name, p in network.named_parameters() if id(p) not in found}
            self._homes[number] = copy_to_host(fresh, self._homes[number])
            found |= {id(p): nn.Parameter(self._homes[number][name], requires_grad=False) for name, p in fresh.items()}
            for name, parameter in network.named_parameters():
                _put(self.checkpoints[number].network, name, found[id(parameter)])


def _put(network: Network, name: str, tensor: Tensor) -> None:
    module, _, leaf = name.rpartition(".")
    network.get_submodule(module)._parameters[leaf] = tensor  # type: ignore[assignment]
