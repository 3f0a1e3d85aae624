"""The passes of a step and its end: forward and backward, then clipping and the optimizer.

`Passes` runs them one by one; on CUDA `RecordedPasses` (recorded.py) records each size once and replays it, which takes
the cost of launching some hundred kernels off the host.
"""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor
from torch.nn.utils import get_total_norm

from bertsmith.data.batch import Batch
from bertsmith.models.network import Network
from bertsmith.training.devices import Ranks, cast, seed_of, whole
from bertsmith.training.settings import Training
from bertsmith.training.study import Study, Work


class Passes:
    recorded = False
    settles = 2  # times that a pass is made until it is as quick as it gets

    def __init__(
        self, network: Network, study: Study, settings: Training, device: torch.device, precision: str, ranks: Ranks
    ) -> None:
        self.network, self.study, self.settings = network, study, settings
        self.device, self.precision, self.ranks = device, precision, ranks
        self.parameters = list(network.parameters())
        self.sharded = any(hasattr(parameter, "full_tensor") for parameter in self.parameters)
        # The one large gradient that a step fills in a few places: on a CPU it is kept (layers/embedding.py). Where a
        # head shares the table, that fills all of it anyway.
        is_shared = any(head.shape.tied for head in network.heads.values())  # type: ignore[union-attr]
        is_kept = device.type == "cpu" and not self.sharded and not is_shared
        self.table = network.embed.tokens.weight if is_kept else None
        network.embed.keeps_gradient = is_kept
        self.now = {name: torch.zeros((), device=device) for name in study.names}  # each loss in this step
        self.sums = {name: torch.zeros((), device=device) for name in study.names}  # and since the last report
        self.had = {name: torch.zeros((), device=device) for name in study.names}  # its weight in this step
        self.has: dict[str, float] = {}  # the same, known to the host; 0: this step has no such loss
        self.seen = {name: torch.zeros((), device=device) for name in study.names}  # the sum of those
        self.steps = torch.zeros((), device=device)
        self.norm = torch.zeros((), device=device)
        self.skipped = torch.zeros((), device=device)
        self.scaled = precision == "fp16"
        self.scale = torch.full((), 65536.0 if self.scaled else 1.0, device=device)
        self.unchanged = torch.zeros((), dtype=torch.int32, device=device)

    def run(self, works: Sequence[Work], step: int) -> None:
        """Gradients of all passes, each loss divided by what it was summed over in all passes and processes."""
        counts = self.ranks.total({name: sum(w.counts.get(name, 0.0) for w in works) for name in self.study.names})
        shares = {name: self._weight(name) / max(count, 1e-12) for name, count in counts.items()}
        self._clear()
        for name, count in counts.items():
            weight = works[0].weights.get(name, 1.0) if count > 0 else 0.0
            if weight != self.has.get(name):  # mostly it is as it was, and telling a device costs time
                self.has[name] = weight
                self.had[name].fill_(weight)
        passes = self.ranks.most(len(works)) if self.sharded else len(works)
        for number in range(passes):
            # The parts of sharded weights travel in each pass, so all processes make as many.
            work = works[min(number, len(works) - 1)]
            torch.manual_seed(work.seed if work.seed is not None else self._seed(step, number))
            counts_here = number < len(works)
            self._pass(work, {name: share * work.scales.get(name, 1.0) * counts_here for name, share in shares.items()})

    @property
    def fills(self) -> bool:
        """Whether what a step does not use has a gradient of 0. Processes that send gradients to each other must all
        have them, with or without rows of their own; and what a step leaves out is the same on one as on several."""
        return (self.ranks.count > 1 and not self.sharded) or len(self.study.names) > 1

    def _clear(self) -> None:
        for value in self.now.values():
            value.zero_()
        for parameter in self.parameters:
            if parameter is self.table and parameter.grad is not None:
                parameter.grad.zero_()
                continue
            is_filled = (self.fills or parameter is self.table) and parameter.requires_grad
            parameter.grad = torch.zeros_like(parameter) if is_filled else None

    def _seed(self, step: int, number: int) -> int:
        return seed_of(self.settings.seed, step, self.ranks.rank, number)

    def _weight(self, name: str) -> float:
        return self.study.weights.get(name, 1.0)

    def _pass(self, work: Work, shares: Mapping[str, float]) -> None:
        batch, given = work.on(self.device)
        self._descend(batch, given, shares, work)

    def _descend(
        self, batch: Batch, given: Mapping[str, Tensor], shares: Mapping[str, float | Tensor], work: Work
    ) -> None:
        """The gradient of this pass's share of the step's loss is added to those of the passes before."""
        with cast(self.precision, self.device):
            losses = self.study.losses(self.network, batch, given, work)
        total = torch.zeros((), device=self.device)
        for name, loss in losses.items():
            share = loss * shares[name]
            total = total + share
            self.now[name] += share.detach()
        (total * self.scale if self.scaled else total).backward()

    def finish(self, optimizer: torch.optim.Optimizer) -> None:
        """Clip and take the step; one whose gradient is not finite is left out."""
        grads = [parameter.grad for parameter in self.parameters if parameter.grad is not None]
        if self.sharded:
            share = float(self.ranks.count)  # sharding averages over the processes where a sum is wanted
        else:
            self.ranks.sum(grads)
            share = 1.0
        norm = whole(get_total_norm(grads)) * share / self.scale
        bad = (~norm.isfinite()).float()
        clip = self.settings.clip
        factor = share / self.scale * ((clip / (norm + 1e-6)).clamp(max=1.0) if clip else 1.0)
        self._scale(grads, factor)
        self._take(optimizer, bad)
        if self.scaled:
            torch._amp_update_scale_(self.scale, self.unchanged, bad, 2.0, 0.5, 2000)
        for name, value in self.now.items():
            self.sums[name] += value
            self.seen[name] += self.had[name]
        self.norm.copy_(norm)
        self.skipped += bad
        self.steps += 1

    def _scale(self, grads: Sequence[Tensor], factor: Tensor) -> None:
        if self.sharded or self.device.type == "cpu":
            number = factor.item()
            if number != 1.0:  # on a CPU a needless product of all gradients shows
                torch._foreach_mul_(list(grads), number)
        else:
            torch._foreach_mul_(list(grads), factor)

    def _take(self, optimizer: torch.optim.Optimizer, bad: Tensor) -> None:
        if self.sharded:
            if bad.item():
                return
        else:
            optimizer.found_inf = bad  # type: ignore[attr-defined]  # the fused step looks there and does nothing if set
        optimizer.step()

    def forget(self) -> None:
        """Something about the passes has changed: what was kept of them no longer holds."""

    def report(self) -> tuple[dict[str, float], float, int]:
        """The mean of each loss and the last norm since the last report, and how many steps were left out.

        A loss's mean is over the steps that had it, before its weight (where that changes, steps count by it). Where
        there are several, `loss` is what was minimised: their weighted sum, the mean over all steps.
        """
        names = sorted(self.sums)
        self.ranks.sum([self.sums[name] for name in names])
        sums = {name: self.sums[name].item() for name in names}
        found = {} if names == ["loss"] else {"loss": sum(sums.values()) / max(1.0, self.steps.item())}
        for name in names:
            if seen := self.seen[name].item():
                found[name] = sums[name] / (seen * self._weight(name))
        skipped = int(self.skipped.item())
        for tensor in (*self.sums.values(), *self.seen.values(), self.steps, self.skipped):
            tensor.zero_()
        return found, self.norm.item(), skipped

    def open_sums(self) -> dict[str, float]:
        """What the next report will be made of, as plain numbers, for a run that stops between two reports."""
        return {name: value.item() for name, value in self._open().items()}

    def set_open_sums(self, known: Mapping[str, float]) -> None:
        for name, tensor in self._open().items():
            tensor.fill_(known.get(name, 0.0))

    def _open(self) -> dict[str, Tensor]:
        seen = {f"steps of {name}": tensor for name, tensor in self.seen.items()}
        return {**self.sums, **seen, "steps": self.steps, "skipped": self.skipped}

    def scale_state(self) -> tuple[float, int]:
        return self.scale.item(), int(self.unchanged.item())

    def set_scale(self, scale: float, unchanged: int) -> None:
        if self.scaled:
            self.scale.fill_(scale)
            self.unchanged.fill_(unchanged)


def make_passes(
    network: Network, study: Study, settings: Training, device: torch.device, precision: str, ranks: Ranks
) -> Passes:
    half = precision != "fp32"  # the kernels for rows of different lengths are for half precision
    # Passes of pretraining are compiled too, and recorded by sizes that their objective knows.
    is_whole = not any(hasattr(parameter, "full_tensor") for parameter in network.parameters())
    can_twin = precision == "bf16" and is_whole and getattr(study, "can_twin", False)
    if any(isinstance(part, Network) and part.config.relative for part in network.modules()):
        return Passes(network, study, settings, device, precision, ranks)  # no kernel of ours adds distances
    if device.type == "cuda" and can_twin and torch.cuda.get_device_capability(device) >= (8, 0):
        from bertsmith.training.compiled import TwinPasses

        return TwinPasses(network, study, settings, device, precision, ranks)
    if device.type == "cuda" and settings.graphs and half and ranks.count == 1 and not settings.recompute:
        from bertsmith.training.recorded import RecordedPasses

        return RecordedPasses(network, study, settings, device, precision, ranks)
    return Passes(network, study, settings, device, precision, ranks)
