"""How many steps a run takes: as many as were asked for, or as fit into some minutes.

The first steps are timed on a copy, so that nothing of the run depends on the clock; what follows from that is written
down, and from then on everything is a function of the step.
"""

import copy
import json
import time
from collections.abc import Callable
from dataclasses import replace

from bertsmith.models.files import read_json
from bertsmith.models.network import Network
from bertsmith.training.devices import Ranks, choose_precision
from bertsmith.training.folder import RunFolder
from bertsmith.training.optimizer import make_optimizer
from bertsmith.training.passes import make_passes
from bertsmith.training.preparing import Say
from bertsmith.training.pretraining import Pretraining, PretrainingStudy

PLAN = "plan.json"
WARM, TIMED = 2, 6  # steps
MARGIN = 0.97  # of the minutes: evaluations and checkpoints take some


def plan_steps(
    folder: RunFolder, training: Pretraining, minutes: float | None,
    make_study: Callable[[Pretraining, int], PretrainingStudy], network: Network, ranks: Ranks, say: Say,
) -> int:  # fmt: skip
    if minutes is None:
        study = make_study(training, 1)
        return training.max_steps or max(1, round((training.epochs or 1.0) * study.steps_an_epoch()))
    path = folder.path / PLAN
    known = ranks.first_says(ranks.is_first and path.exists())
    if not known:
        seconds = time_step(training, make_study(replace(training, first_tokens=None), WARM + TIMED), network, ranks)
        if ranks.is_first:
            steps = max(1, int(60 * minutes * MARGIN / seconds))
            aside = path.with_name(f".{PLAN}.part")
            aside.write_text(json.dumps({"steps": steps, "seconds_a_step": seconds, "minutes": minutes}) + "\n")
            aside.replace(path)
            say(f"a step takes {seconds:.3g} s: {steps:,} steps in {minutes:g} minutes.")
    ranks.wait()
    return int(read_json(path)["steps"])


def time_step(training: Pretraining, study: PretrainingStudy, network: Network, ranks: Ranks) -> float:
    """Seconds of a step of full size, on a copy of the network that is thrown away."""
    twin = copy.deepcopy(network).train()
    device = ranks.device
    passes = make_passes(twin, study, training, device, choose_precision(training.precision, device), ranks)
    optimizer = make_optimizer(twin, training, passes.recorded)
    for step in range(WARM + TIMED):
        if step == WARM:
            passes.report()  # waits for the device
            begun = time.monotonic()
        passes.run(study.works(step, ranks.rank, ranks.count, 0), step)
        passes.finish(optimizer)
    passes.report()
    return (time.monotonic() - begun) / TIMED


