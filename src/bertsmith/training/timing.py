"""How many steps a run takes: as many as were asked for, or as fit into some minutes.

The first passes are timed on a copy, so that nothing of the run depends on the clock; what follows from that is written
down, and from then on everything is a function of the step.
"""

import copy
import json
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from bertsmith.errors import BertsmithError
from bertsmith.models.files import read_json
from bertsmith.models.network import Network
from bertsmith.training.devices import Ranks, choose_precision
from bertsmith.training.optimizer import make_optimizer
from bertsmith.training.passes import Passes, make_passes
from bertsmith.training.preparing import Say
from bertsmith.training.pretraining import PretrainingStudy
from bertsmith.training.pretraining_settings import Pretraining

PLAN = "plan.json"
WARM, TIMED = 2, 6  # passes
MARGIN = 0.97  # of the minutes: evaluations and checkpoints take some
SAMPLED = 1000  # steps by which the mean one is estimated

MakeStudy = Callable[[Pretraining, int], PretrainingStudy]


@dataclass(frozen=True)
class Pace:
    """Seconds that a pass of each phase takes, and what comes once a step."""

    passes: tuple[float, ...]
    step: float

    def mean_step(self, training: Pretraining, size: int) -> float:
        """Seconds of the mean step of a run: the first ones may be smaller, the last ones have longer rows."""
        phases = training.phases()
        whole = sum(phase.share for phase in phases)
        ends = [sum(phase.share for phase in phases[: i + 1]) / whole for i in range(len(phases))]
        total = 0.0
        for step in range(SAMPLED):
            phase = next((i for i, end in enumerate(ends) if step / SAMPLED < end), len(ends) - 1)
            total += training.tokens_at(step, SAMPLED, size) // size * self.passes[phase] + self.step
        return total / SAMPLED


def plan_steps(
    folder: Path, training: Pretraining, minutes: float | None, make_study: MakeStudy, network: Network, ranks: Ranks,
    say: Say,
) -> int:  # fmt: skip
    """The steps of a run in `folder`; those that follow from minutes are read there when they are known."""
    if minutes is None:
        study = make_study(training, 1)
        return training.max_steps or max(1, round((training.epochs or 1.0) * study.steps_an_epoch()))
    path = folder / PLAN
    known = ranks.first_says(ranks.is_first and path.exists())
    if not known:
        begun = time.monotonic()
        pace, size = find_pace(training, make_study, network, ranks)
        seconds = pace.mean_step(training, size)
        left = 60 * minutes * MARGIN - (time.monotonic() - begun)
        if ranks.is_first:
            _write(path, max(1, int(left / seconds)), seconds, minutes)
    ranks.wait()
    plan = read_plan(path)
    if not known:
        say(f"a step takes {plan['seconds_a_step']:.3g} s: {plan['steps']:,} steps in {minutes:g} minutes.")
    return int(plan["steps"])


def read_plan(path: Path) -> dict[str, float]:
    plan = read_json(path)
    if not isinstance(plan.get("steps"), int) or plan["steps"] < 1:
        raise BertsmithError(f"{path} names no number of steps; start anew with --overwrite.")
    return plan


def _write(path: Path, steps: int, seconds: float, minutes: float) -> None:
    aside = path.with_name(f".{PLAN}.part")
    plan = {"steps": steps, "seconds_a_step": round(seconds, 6), "minutes": minutes}
    aside.write_text(json.dumps(plan) + "\n", encoding="utf-8")
    aside.replace(path)


def find_pace(training: Pretraining, make_study: MakeStudy, network: Network, ranks: Ranks) -> tuple[Pace, int]:
    """Measured on a copy of the network that is thrown away; a process makes one pass at a time."""
    twin = copy.deepcopy(network).train()
    seconds, ends, size = [], 0.0, 0
    for phase in training.phases():
        one = replace(training, lengths=str(phase.length), first_tokens=None)
        size = make_study(one, 1).pass_size
        study = make_study(replace(one, tokens=size * ranks.count, ramp=0.0), WARM + TIMED)
        own = study.objective.parts()
        study.objective.use_parts({name: twin.get_submodule(name) for name in own})
        try:
            taken, ends = _time(training, study, twin, ranks)
        finally:
            study.objective.use_parts(own)
        seconds.append(taken / ranks.count)
    return Pace(tuple(seconds), ends), size


def _time(training: Pretraining, study: PretrainingStudy, twin: Network, ranks: Ranks) -> tuple[float, float]:
    """Seconds of a pass and of the end of a step."""
    precision = choose_precision(training.precision, ranks.device)
    passes: Passes = make_passes(twin, study, training, ranks.device, precision, ranks)
    optimizer = make_optimizer(twin, training, passes.recorded)
    running = ending = 0.0
    for step in range(WARM + TIMED):
        begun = time.monotonic()
        passes.run(study.works(step, ranks.rank, ranks.count, 0), step)
        passes.report()  # waits for the device
        middle = time.monotonic()
        passes.finish(optimizer)
        passes.report()
        if step >= WARM:
            running, ending = running + middle - begun, ending + time.monotonic() - middle
    return running / TIMED, ending / TIMED
