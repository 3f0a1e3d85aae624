"""A running mean of the weights (EMA): training moves the plain ones, evaluations and the final model see the mean.

In: an optimizer after each step. Out: the mean of each parameter in the optimizer's state, as `average`, so that it is
in every checkpoint; and a place where network and mean have changed their numbers.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from bertsmith.errors import BertsmithError

NAME = "average"


class Averages:
    """With a `decay` of 0 there are none, and everything here does nothing.

    Early weights would weigh on the mean for long: step t keeps (1 + t) / (10 + t) of it, until that is `decay`.
    """

    def __init__(self, optimizer: torch.optim.Optimizer, decay: float) -> None:
        self.optimizer, self.decay = optimizer, decay
        parameters = [p for group in optimizer.param_groups for p in group["params"]]
        if decay and any(hasattr(p, "full_tensor") for p in parameters):
            raise BertsmithError("average needs whole weights, which fsdp cuts up; use spread ddp, or leave it out.")

    @torch.no_grad()
    def move(self, step: int) -> None:
        """After step `step`, counted from 0; the same in all processes, as their weights are."""
        if not self.decay:
            return
        known = []
        for parameter, state in self.optimizer.state.items():
            if NAME in state:
                known.append(parameter)
            else:  # not before its first step: AdamW takes a state that is not empty for its own
                state[NAME] = parameter.detach().clone()
        if known:
            means = [self.optimizer.state[parameter][NAME] for parameter in known]
            keeps = min(self.decay, (1 + step) / (10 + step))
            torch._foreach_lerp_(means, known, 1 - keeps)

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """Inside, the network has the means."""
        self.swap()
        try:
            yield
        finally:
            self.swap()

    def swap(self) -> None:
        """Network and means change their numbers without a copy; twice, nothing has changed to the bit."""
        for parameter, state in self.optimizer.state.items() if self.decay else ():
            if NAME in state:
                parameter.data, state[NAME] = state[NAME], parameter.data
