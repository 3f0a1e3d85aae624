"""What watches the loss of pretraining: when it breaks out, the run goes back and on with other rows.

In: the loss of each record of the log. Out: nothing, or a loop that stands at its last checkpoint again and whose study
leaves the rows of the bad stretch out; after a few such times in one place, an error.

The rule: a loss is bad when it is not finite, or when it is above the median of the last 32 of its kind by more than
`guard` times their spread. The spread is 1.4826 times the median distance from that median (a standard deviation, were
they normal), and at least a twentieth of it, so that 8 spreads are 40 % of the loss or more. Before there are 16 of a
kind, only what is not finite is bad. Records are of one kind while rows have one length and the same losses are asked
for; a mask rate that moves does so slowly, and the median with it.

The rows of all steps from some way before the bad record on are replaced: 20 steps, or those of two records, the first
time, four times as many the second and sixteen times the third, but none before the checkpoint. What was decided is
kept in `Progress`. Up to there the run takes the very steps it took, so that it is the same run whichever checkpoint
older than that it went back to.
"""

import math
from collections.abc import Mapping
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from bertsmith.errors import BertsmithError
from bertsmith.models.checkpoint import load_checkpoint
from bertsmith.models.network import Network
from bertsmith.training.devices import part_like
from bertsmith.training.progress import Progress
from bertsmith.training.study import Study

if TYPE_CHECKING:
    from bertsmith.training.loop import Loop

FEWEST, MOST = 16, 32  # losses that are compared with
DEVIATION = 1.4826  # of a normal distribution, in median distances
LEAST = 0.05  # of the median: the smallest spread
TRIES = 3  # in one place
REACH, FURTHER = 20, 4  # steps before the bad record whose rows are left out, and how many times more the next time


class Guard:
    """With a `bound` of 0 it is off: a loss that is not a number ends the run."""

    def __init__(self, bound: float, precision: str) -> None:
        self.bound = bound
        self.overflows = precision == "fp16"  # there it is usual that a step is left out
        self.beginning: dict[str, Tensor] = {}  # the first weights, while there is no checkpoint

    def remember(self, loop: "Loop") -> None:
        if self.bound and not loop.progress.step:
            self.beginning = {name: part.detach().clone() for name, part in loop.network.named_parameters()}

    def find_trouble(self, progress: Progress, losses: Mapping[str, float], study: Study) -> str:
        """What is wrong with the losses since the last record, if something is; else they are remembered."""
        if not all(map(math.isfinite, losses.values())):
            return "" if self.overflows else "is not a number"
        if not self.bound or "loss" not in losses:
            return ""
        loss, kind = losses["loss"], self._kind(progress, losses, study)
        if kind != progress.kind:
            progress.kind, progress.recent = kind, []
        if len(progress.recent) >= FEWEST:
            usual = median(progress.recent)
            spread = DEVIATION * median(abs(one - usual) for one in progress.recent)
            if loss > usual + self.bound * max(spread, LEAST * abs(usual)):
                return f"is {loss:.4g}, where {usual:.4g} was usual,"
        progress.recent = [*progress.recent, loss][-MOST:]
        if progress.step >= progress.clear:
            progress.tries = 0
        return ""

    def _kind(self, progress: Progress, losses: Mapping[str, float], study: Study) -> str:
        """Which records may be compared: with losses of the same names, over rows that do not change in between."""
        kind_at = getattr(study, "kind_at", lambda step: "")
        first, last = (kind_at(step) for step in (progress.logged, progress.step - 1))
        return " ".join([*losses, first, *([last] if last != first else [])])

    def go_back(self, loop: "Loop", trouble: str) -> None:
        """To the last checkpoint, or the beginning, of a loop whose last record was bad; the log tells of it."""
        bad, tries = loop.progress.step, loop.progress.tries + 1
        loop.folder.close_log()  # waits for a checkpoint that is being written
        loop.ranks.wait()
        last = loop.folder.find_last()
        if not self.bound or tries > TRIES or (last is None and not self.beginning):
            raise BertsmithError(self._give_up(loop, trouble, tries, last))
        step = 0 if last is None else int(last.name.partition("-")[2])
        reach = max(REACH, 2 * loop.settings.log_every) * FURTHER ** (tries - 1)
        start = max(step, bad - reach)
        study: Any = loop.study
        study.avoid(start, bad)
        detours = study.detours
        self._restore(loop, last)
        study.detours = loop.progress.detours = detours
        if loop.progress.logged != step:  # it was saved on an interrupt: what is bad may lie in the open record
            loop.passes.set_open_sums({})
        loop.progress.tries, loop.progress.clear = tries, bad + reach
        sentence = (
            f"the loss {trouble} at step {bad:,}: back to step {step:,}, and from step {start:,} on with other rows "
            f"({tries} of {TRIES} times that this is tried)."
        )
        if loop.ranks.is_first:
            loop.folder.log({"step": step, "went_back": {"from": bad, "other_rows": start, "why": sentence}})
        loop.tell("went_back", step, sentence)

    def _give_up(self, loop: "Loop", trouble: str, tries: int, last: Path | None) -> str:
        again = "" if tries == 1 else f", though the run went back {tries - 1} times and on with other rows"
        kept = ""
        if last is not None and self.bound:
            kept = f"; the last good checkpoint is kept in {last}, to go on from (model) with a lower rate"
        return (
            f"the loss {trouble} at step {loop.progress.step:,}{again}: the rate {loop.settings.peak:g} may be too "
            f"high, or the data holds what the model cannot read{kept}."
        )

    def _restore(self, loop: "Loop", last: Path | None) -> None:
        if last is None:
            parameters = dict(loop.network.named_parameters())
            with torch.no_grad():
                for name, part in self.beginning.items():
                    parameters[name].copy_(part)
            loop.progress = Progress(budget=loop.progress.budget)
        else:
            read_weights(last, loop.network)
        del loop.passes, loop.optimizer, loop.averages  # a device may have no room for two of each
        loop.prepare()
        loop.resume()


@torch.no_grad()
def read_weights(folder: Path, network: Network) -> None:
    """Those of a checkpoint into the network, and into networks within it, whose folders have their names."""
    stored = load_checkpoint(folder).network
    for name in network.names:
        parameter = network.get_parameter(name)
        parameter.copy_(part_like(stored.tensor(name).to(parameter.dtype), parameter))
    for name, part in network.named_children():
        if isinstance(part, Network):
            read_weights(folder / name, part)
