"""Passes for pretraining on a GPU: a copy of the network in half precision, each block compiled once for all layers.

Weights are kept in full precision and cast once a step, not at every use; states, too, stay in half precision, where
autocast keeps norms and residuals in full. Gradients come back into the full weights, which the optimizer moves.
"""

import copy
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from bertsmith.models.network import Network
from bertsmith.training.devices import Ranks
from bertsmith.training.passes import Passes
from bertsmith.training.settings import Training
from bertsmith.training.study import Study, Work

TYPES = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32}


def make_twin(network: Network, dtype: torch.dtype) -> Network:
    """The same network with its numbers in another type, and gradients of its own."""
    return copy.deepcopy(network).to(dtype)


class TwinPasses(Passes):
    """What `Passes` does, computed by the twin."""

    def __init__(
        self, network: Network, study: Study, settings: Training, device: torch.device, precision: str, ranks: Ranks,
        compiles: bool = True,
    ) -> None:  # fmt: skip
        super().__init__(network, study, settings, device, "fp32", ranks)  # no autocast: the twin is in its type
        self.full = network
        self.network = make_twin(network, TYPES[precision])
        self.halves: list[Any] = list(self.network.parameters())
        if compiles:
            self.network.compile_blocks()

    def run(self, works: Sequence[Work], step: int) -> None:
        self.network.train(self.full.training)
        super().run(works, step)

    def _clear(self) -> None:
        super()._clear()
        for half in self.halves:
            half.grad = None

    def _pass(self, work: Work, shares: Mapping[str, float]) -> None:
        super()._pass(work, shares)
        self._bring_home()

    def _bring_home(self) -> None:
        """Add the twin's gradients to the full ones, in full precision, so that many passes lose nothing."""
        fulls: list[Any] = self.parameters
        pairs = [(full, half) for full, half in zip(fulls, self.halves, strict=True) if half.grad is not None]
        fresh = [(full, half) for full, half in pairs if full.grad is None]
        for full, _ in fresh:
            full.grad = torch.empty_like(full)
        _copy([full.grad for full, _ in fresh], [half.grad for _, half in fresh])
        more = [(full.grad, half.grad.to(full.dtype)) for full, half in pairs if all(full is not f for f, _ in fresh)]
        if more:
            torch._foreach_add_([home for home, _ in more], [grad for _, grad in more])
        for half in self.halves:
            half.grad = None

    def finish(self, optimizer: torch.optim.Optimizer) -> None:
        super().finish(optimizer)
        _copy(self.halves, self.parameters)


@torch.no_grad()
def _copy(to: Sequence[Tensor], given: Sequence[Tensor]) -> None:
    if to:
        torch._foreach_copy_(list(to), list(given))
