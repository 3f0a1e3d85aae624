"""Where a run stands, how fast it is, how it ended, and who may look on: what the loop tells others."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from bertsmith.errors import Stopped


@dataclass
class Progress:
    """Where a run stands; saved with each checkpoint."""

    step: int = 0
    evaluated: int = 0  # the step of the last evaluation
    best_step: int = 0
    best_value: float | None = None
    since_best: int = 0  # evaluations
    stopped: bool = False
    budget: int = 0
    skipped: int = 0  # steps whose gradient was not finite
    scale: tuple[float, int] = (65536.0, 0)  # of fp16 losses, and steps since it last changed
    since_log: dict[str, float] = field(default_factory=dict)  # what the next record of the log is made of
    logged: int = 0  # the step of the last record of the log
    # The guard's:
    kind: str = ""  # of the recent losses
    recent: list[float] = field(default_factory=list)
    tries: int = 0  # how often the run went back for the trouble it has now
    clear: int = 0  # the step at which that is behind it
    detours: list[list[int]] = field(default_factory=list)  # a step, and how many passes on the rows are from there


@dataclass
class Speed:
    """What training itself took, without evaluations and checkpoints."""

    seconds: float = 0.0
    tokens: int = 0
    examples: int = 0
    began: int = 0  # the step at which this process took the run up


@dataclass(frozen=True)
class Outcome:
    progress: Progress
    steps: int
    speed: Speed


class OutOfTime(Stopped):
    """All processes saved and stopped after the same step, as the run must end sooner than was planned."""


@dataclass
class Watcher:
    """What may look on; override what you need. Called in the first process only."""

    def started(self, step: int, steps: int) -> None: ...

    def stepped(self, step: int, record: Mapping[str, Any] | None, speed: Speed) -> None:
        """After each step, with the record that went into the log, if one did."""

    def went_back(self, step: int, sentence: str) -> None:
        """After the guard took the run back to this step, and why."""

    def evaluated(self, step: int, metrics: Mapping[str, float], is_best: bool) -> None: ...

    def finished(self, outcome: Outcome) -> None: ...
