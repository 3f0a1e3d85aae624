"""A run by minutes that turns out slower than its first passes were gets a shorter plan, so that it ends in time.

In: the steps as they go by, in the first process. Out: word that it is late, upon which the loop saves and stops in all
processes at once, and a smaller number of steps for plan.json. The run goes on from that checkpoint, and from then on
everything is a function of the step again.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from bertsmith.training import timing
from bertsmith.training.pretraining_settings import Pretraining
from bertsmith.training.progress import Speed, Watcher
from bertsmith.training.timing import FORWARD, Pace, read_plan, write_plan

CHECKS = (0.25, 0.5, 0.75, 0.9)  # shares of the steps: the clock is looked at when one of them is reached
RESERVE = 0.01  # of the minutes: what comes behind the last step takes some
WORTH = 0.01  # of the steps: fewer are not worth a new plan before the last look at the clock
SOON = 0.02  # of the steps: fewer tell no pace


class Deadline(Watcher):
    """May only shorten. `begun` is when the run began, on the clock of timing.py."""

    def __init__(self, path: Path, training: Pretraining, size: int, begun: float) -> None:
        self.path, self.training, self.size, self.begun = path, training, size, begun
        plan = read_plan(path)
        self.pace = Pace.of(plan)
        scoring = plan.get("scoring", {})
        self.seconds = 60 * plan["minutes"] * (1 - RESERVE) - scoring.get("at_end", 0.0)
        self.scored = scoring.get("evaluations", 0) * scoring.get("passes", 0) * FORWARD * self.pace.passes[-1][-1]
        self.shorter: int | None = None  # steps
        self.entered: int | None = None  # the step at which this process began
        self.is_cold = True  # until a step is made from there

    def started(self, step: int, steps: int) -> None:
        self.steps, self.shorter = steps, None
        self.entered = step if self.entered is None else self.entered
        self._begin(step, [round(share * steps) for share in CHECKS])

    def went_back(self, step: int, sentence: str) -> None:
        """The pace is measured anew, and looked at soon: what was lost took time."""
        soon = step + max(1, (self.steps - step) // 4)
        self._begin(step, [soon, *(round(share * self.steps) for share in CHECKS)])

    def stepped(self, step: int, record: Mapping[str, Any] | None, speed: Speed) -> None:
        """The first step from where a process begins is no pace: it compiles, and makes rows for many."""
        if self.is_cold:
            self.first, self.clock, self.is_cold = step, timing.now(), False

    def _begin(self, step: int, checks: Iterable[int]) -> None:
        self.first, self.clock, self.is_cold = step, timing.now(), True
        least = step + max(2, round(SOON * self.steps))
        self.checks = sorted({max(check, least) for check in checks if check > step})

    def is_late(self, step: int) -> bool:
        """Whether the run must be shortened after this step; several processes ask only every so often."""
        is_check = bool(self.checks) and step >= self.checks[0]
        if self.shorter is None and is_check and step < self.steps:
            self.checks = [check for check in self.checks if check > step]
            self._look(step)
        return self.shorter is not None

    def _look(self, step: int) -> None:
        now = timing.now()
        slower = (now - self.clock) / max(self._predict(self.first, step, self.steps), 1e-9)
        # What was done before this process began took the time that the plan gave it, evaluations with it.
        entered = self.entered or 0
        before = self._predict(0, entered, self.steps) + self.scored * entered / self.steps
        left = self.seconds - (now - self.begun) - before
        if slower * self._predict(step, self.steps, self.steps) > left:
            fitting = self._find_steps(step, left / max(slower, 1e-9))
            most = self.steps * (1 - WORTH) if self.checks else self.steps - 1
            self.shorter = fitting if fitting <= most else None

    def shorten(self) -> str:
        """Write the shorter plan down; a sentence says so."""
        assert self.shorter is not None
        plan = read_plan(self.path)
        write_plan(self.path, {**plan, "steps": self.shorter, "at_first": plan.get("at_first", plan["steps"])})
        told = f"steps are slower than the first ones were: {self.shorter:,} of them, not {self.steps:,}"
        return f"{told}, so that the run ends in time."

    def _predict(self, first: int, behind: int, steps: int) -> float:
        return self.pace.predict(self.training, self.size, first, behind, steps)

    def _find_steps(self, step: int, seconds: float) -> int:
        """The most steps whose rest, after this one, takes no longer."""
        low, high = step + 1, self.steps
        while low < high:
            middle = (low + high + 1) // 2
            if self._predict(step, middle, middle) <= seconds:
                low = middle
            else:
                high = middle - 1
        return low
