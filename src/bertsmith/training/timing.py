"""How many steps a run takes: as many as were asked for, or as fit into some minutes.

The first passes are timed on a copy, so that nothing of the run depends on the clock; what follows from that is written
down, and from then on everything is a function of the step.
"""

import copy
import json
import math
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import accumulate, cycle, islice
from pathlib import Path
from typing import Any

import torch

from bertsmith.data.findings import counted
from bertsmith.errors import BertsmithError
from bertsmith.models.files import read_json
from bertsmith.models.network import Network
from bertsmith.training.devices import Ranks, choose_precision
from bertsmith.training.optimizer import make_optimizer
from bertsmith.training.passes import Passes, make_passes
from bertsmith.training.preparing import Say
from bertsmith.training.pretraining import PretrainingStudy
from bertsmith.training.pretraining_settings import Pretraining
from bertsmith.training.study import Work

PLAN = "plan.json"
TIMED = 6  # passes of each length of rows, spread over its part of the run, each made twice
ROUNDS = 5  # times that passes of one kind are made in a row, where that takes little: the middle one counts
SPENT = 0.03  # of the minutes, at most, on finding out how long a pass takes
MARGIN = 0.98  # of the minutes: evaluations and checkpoints take some
FORWARD = 0.5  # of a pass of training: one that only scores, which is not compiled, at most
SCORED, ASKED = 0.1, 0.02  # of the minutes, about, that evaluations take, and what is asked one token at a time
FEWEST = 64  # tokens that are asked for
SAMPLED = 1000  # steps by which the mean one is estimated

now = time.monotonic
MakeStudy = Callable[[Pretraining, int], PretrainingStudy]


@dataclass(frozen=True)
class Pace:
    """Seconds that a pass of each phase takes, at one or more points spread over it, and what comes once a step.

    Processes share the passes of a step: each of `ranks` makes one at a time, so that many take as long as one.
    """

    passes: tuple[tuple[float, ...], ...]
    step: float
    ranks: int = 1

    @classmethod
    def of(cls, plan: Mapping[str, Any]) -> "Pace":
        """As a plan has it; an older one has a single number for a phase, and a pass's share of several processes."""
        each, ranks = plan["seconds_a_pass"], plan.get("ranks", 1)
        passes = tuple(tuple(found) if isinstance(found, list) else (found,) for found in each)
        return cls(passes, plan["apart"], ranks)

    def cost(self, training: Pretraining, size: int, step: int, steps: int) -> float:
        """Seconds of a step: the first ones may be smaller, the last ones have longer rows, and what is asked costs
        more or less."""
        done, taken = step / steps, self.passes[-1][-1]
        for (start, end), found in zip(parts_of(training), self.passes, strict=True):
            if done < end:
                taken = found[min(int((done - start) / (end - start) * len(found)), len(found) - 1)]
                break
        return -(-training.tokens_at(step, steps, size) // size // self.ranks) * taken + self.step

    def predict(self, training: Pretraining, size: int, first: int, behind: int, steps: int) -> float:
        """Seconds of these steps, by a sample of them."""
        count = min(SAMPLED, behind - first)
        some = (first + number * (behind - first) // count for number in range(count))
        return sum(self.cost(training, size, step, steps) for step in some) / max(1, count) * (behind - first)

    def mean_step(self, training: Pretraining, size: int) -> float:
        """Seconds of the mean step of a run."""
        return self.predict(training, size, 0, SAMPLED, SAMPLED) / SAMPLED


def parts_of(training: Pretraining) -> list[tuple[float, float]]:
    """Where each phase begins and ends, as shares of the run."""
    shares = [each.share for each in training.phases()]
    ends = [*accumulate(share / sum(shares) for share in shares)]
    return [*zip([0.0, *ends], ends, strict=False)]


@dataclass(frozen=True)
class Scoring:
    """What a run reads to be scored: passes in each of its evaluations, and tokens at its end that are asked alone."""

    evaluations: int = 0
    passes: int = 0
    samples: int = 0
    length: int = 0  # of a row with one such token
    at_end: float = 0.0  # seconds that those take

    def every(self, steps: int | None, of: float) -> "Scoring":
        """With the evaluations of a run of `of` steps where there is one after so many; None: as it is."""
        return self if steps is None else replace(self, evaluations=max(1, math.ceil(of / steps)))


def plan_scoring(most: Scoring | None, left: float, seconds: float, size: int) -> tuple[Scoring, float]:
    """As much of it as is a small part of the seconds that are left, and how many of them it takes.

    A pass that only reads takes `seconds`. There is always one in an evaluation, and half of the time is left to learn.
    """
    if most is None or not most.passes:
        return Scoring(), 0.0
    passes = max(1, min(most.passes, int(SCORED * left / (most.evaluations * seconds))))
    row = seconds * most.length / size
    samples = max(FEWEST, min(most.samples, int(ASKED * left / row)))
    at_end = min(samples * row, left / 4)
    spent = min(most.evaluations * passes * seconds, left / 4) + at_end
    return replace(most, passes=passes, samples=samples, at_end=at_end), spent


def read_scoring(folder: Path, most: Scoring) -> Scoring:
    """What was planned in `folder`; else all of it."""
    path = folder / PLAN
    return Scoring(**read_plan(path)["scoring"]) if path.exists() and "scoring" in read_plan(path) else most


def plan_steps(
    folder: Path, training: Pretraining, minutes: float | None, make_study: MakeStudy, network: Network, ranks: Ranks,
    say: Say, most: Scoring | None = None,
) -> int:  # fmt: skip
    """The steps of a run in `folder`; those that follow from minutes are read there when they are known.

    `most`: what the run would read to be scored if it had time enough.
    """
    if minutes is None:
        study = make_study(training, 1)
        return training.max_steps or training.steps_to_read((training.epochs or 1.0) * len(study.corpus.tokens))
    path = folder / PLAN
    known = ranks.first_says(ranks.is_first and path.exists())
    if not known:
        begun = now()
        pace, size = find_pace(training, make_study, network, ranks, 60 * minutes * SPENT)
        seconds = pace.mean_step(training, size)
        left = 60 * minutes * MARGIN - (now() - begun)
        most = most and most.every(training.evaluate_every, left / seconds)
        scoring, spent = plan_scoring(most, left, FORWARD * pace.passes[-1][-1], size)
        left -= spent
        if ranks.first_says(seconds > left):
            told = f"a step of {training.tokens:,} tokens takes {seconds:.3g} s, and of {60 * minutes:.3g} s timing "
            told += f"and scoring leave {max(0.0, left):.3g} s"
            raise BertsmithError(f"{told}; give fewer tokens a step (--tokens), or more minutes.")
        if ranks.is_first:
            facts = {"minutes": minutes, "seconds_a_step": seconds, "seconds_a_pass": pace.passes, "apart": pace.step}
            facts |= {"ranks": pace.ranks} if pace.ranks > 1 else {}
            write_plan(path, {"steps": max(1, int(left / seconds)), **facts, "scoring": asdict(scoring)})
    ranks.wait()
    plan = read_plan(path)
    if not known:
        told = f"{minutes:g} minute{'s' * (minutes != 1)}"
        say(f"a step takes {plan['seconds_a_step']:.3g} s: {counted(plan['steps'], 'step')} in {told}.")
    return int(plan["steps"])


def read_plan(path: Path) -> dict[str, Any]:
    plan = read_json(path)
    if not isinstance(plan.get("steps"), int) or plan["steps"] < 1:
        raise BertsmithError(f"{path} names no number of steps; start anew with --overwrite.")
    return plan


def write_plan(path: Path, plan: Mapping[str, Any]) -> None:
    aside = path.with_name(f".{PLAN}.part")
    aside.write_text(json.dumps(plan) + "\n", encoding="utf-8")
    aside.replace(path)


def find_pace(
    training: Pretraining, make_study: MakeStudy, network: Network, ranks: Ranks, most: float
) -> tuple[Pace, int]:
    """Measured on a copy of the network that is thrown away, in at most so many seconds where a pass allows it."""
    twin = copy.deepcopy(network).train()
    seconds, ends, size = [], 0.0, 0
    parts = parts_of(training)
    for phase, (start, end) in zip(training.phases(), parts, strict=True):
        one = replace(training, lengths=str(phase.length), first_tokens=None)
        size = make_study(one, 1).pass_size
        study = make_study(replace(one, tokens=size * ranks.count, ramp=0.0), SAMPLED)
        points = [start + (end - start) * (number + 0.5) / TIMED for number in range(TIMED)]
        own = study.objective.parts()
        study.objective.use_parts({name: twin.get_submodule(name) for name in own})
        try:
            timer = Timer(training, study, twin, ranks, most / len(parts))
            taken, ends = timer.time([min(int(SAMPLED * point), SAMPLED - 1) for point in points])
        except torch.OutOfMemoryError:
            told = f"not enough memory for a pass of {size:,} tokens"
            raise BertsmithError(f"{told}; give fewer (pass_tokens), --recompute, or a smaller encoder.") from None
        finally:
            study.objective.use_parts(own)
        seconds.append(tuple(taken))
    return Pace(tuple(seconds), ends, ranks.count), size


class Timer:
    """Passes of one length of rows, at some steps of a run."""

    def __init__(
        self, training: Pretraining, study: PretrainingStudy, twin: Network, ranks: Ranks, most: float
    ) -> None:
        self.study, self.ranks, self.most = study, ranks, most
        precision = choose_precision(training.precision, ranks.device)
        self.passes: Passes = make_passes(twin, study, training, ranks.device, precision, ranks)
        self.optimizer = make_optimizer(twin, training, self.passes.recorded)

    def time(self, steps: Sequence[int]) -> tuple[list[float], float]:
        """Seconds of a pass at each of these steps, and of the end of a step."""
        running, ending, kinds = self._time_each(steps)
        at_end = statistics.median(ending)
        spent, found = sum(running.values()) + sum(ending), list(dict.fromkeys(kinds.values()))
        if not self.ranks.first_says((2 + len(found)) * spent > self.most):
            both: dict[int, float] = {}
            for kind in found:
                mine = sorted(step for step in running if kinds[step] == kind)
                taken = self._time_row(mine[len(mine) // 2], self.most / len(found))
                both |= dict.fromkeys(mine, taken)
            # Of a row the end has the share that it had of one pass: no pass takes less than nothing, even where the
            # ends were slow when they were timed alone.
            at_end = min(taken * at_end / (running[step] + at_end) for step, taken in both.items())
            running = {step: taken - at_end for step, taken in both.items()}
        # A step that was not timed takes as long as the next one that asks the same.
        like = {step: [known for known in running if kinds[known] == kinds[step]] for step in steps}
        return [running[min(like[step], key=lambda known: abs(known - step))] for step in steps], at_end

    def _time_each(self, steps: Sequence[int]) -> tuple[dict[int, float], list[float], dict[int, tuple[str, ...]]]:
        """One by one: first one of each kind, then as many as there is time for, from the middle outwards."""
        running, ending = {}, []
        kinds = {step: tuple(sorted(self._make(step)[0].counts)) for step in steps}  # what it asks
        middle_one = len(steps) // 2
        places = sorted(range(len(steps)), key=lambda place: (place % 2, abs(place - middle_one)))
        order = [steps[place] for place in places]
        firsts = [next(step for step in order if kinds[step] == kind) for kind in dict.fromkeys(kinds.values())]
        for step in dict.fromkeys([*firsts, *order]):
            for _ in range(self.passes.settles):  # first it compiles what no pass before asked, or records it
                works = self._make(step)
                begun = now()
                self.passes.run(works, step)
                self.passes.report()  # waits for the device
                middle = now()
                self.passes.finish(self.optimizer)
                self.passes.report()
                end = now()
            running[step] = middle - begun
            ending.append(end - middle)
            is_late = len(running) >= len(firsts) and 2 * (sum(running.values()) + sum(ending)) > self.most
            if self.ranks.first_says(is_late):
                break
        return running, ending, kinds

    def _make(self, step: int) -> list[Work]:
        return self.study.works(step, self.ranks.rank, self.ranks.count, 0)

    def _time_row(self, first: int, most: float) -> float:
        """Seconds of a pass with its step's end, several in a row from this step on.

        A host that need not wait runs ahead of its device, and both together are quicker than one after the other. What
        happens once (memory is asked for, Python clears up) falls into one row, and the middle one does not show it.
        Steps from everywhere would not do: where rows are made by the hundred thousand, each had to wait for its own.
        """
        taken: list[float] = []
        there = range(first, min(first + TIMED, SAMPLED))  # behind the last there is none: these once more
        while len(taken) < ROUNDS:
            begun = now()
            for step in islice(cycle(there), TIMED):
                self.passes.run(self._make(step), step)
                self.passes.finish(self.optimizer)
            self.passes.report()
            taken.append((now() - begun) / TIMED)
            if self.ranks.first_says(TIMED * sum(taken) > most / 2):
                break
        return statistics.median(taken)
