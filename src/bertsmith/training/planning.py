"""What a run would do and take, before anything of it is kept. In: a start. Out: sentences.

On a CPU a few small passes are made on a copy that is thrown away: they tell how long a run takes and how much memory.
On other devices plain matrix products are measured, which a run cannot beat.
"""

import copy
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import torch

from bertsmith.data.findings import counted
from bertsmith.data.shards import Corpus
from bertsmith.models.network import Network
from bertsmith.objectives.making import Made
from bertsmith.training.devices import Ranks, choose_precision
from bertsmith.training.flops import BOTH, count_flops
from bertsmith.training.passes import make_passes
from bertsmith.training.preparing import Say
from bertsmith.training.pretraining_settings import Pretraining
from bertsmith.training.pretraining_start import Start, make_study
from bertsmith.training.recipes import FEW_STEPS
from bertsmith.training.timing import MARGIN, SPENT, MakeStudy, Pace, Scoring, find_pace, plan_scoring
from bertsmith.training.utilization import measure_products
from bertsmith.training.watching import show_time

SAMPLED = 1000  # steps by which the tokens of many are estimated
BYTES = 16  # of a parameter in training: itself, its gradient and two moments, in full precision
READ_BYTES = 4  # of one that does not learn
PROCESS = 270 << 20  # bytes of torch and of this package
TRIED = 512  # tokens of a pass that is tried, unless rows are longer
PATIENCE = 30.0  # seconds, about: trying takes no longer
WITHOUT_END = 1e9  # seconds: what a run without minutes has
# What a pass keeps for the way back, against what a process grows by over some of them: gradients come to it, and what
# the allocator cannot give out again (measured: 1.5 to 1.8).
GROWTH = 1.65


@dataclass(frozen=True)
class Trial:
    pace: Pace
    size: int  # tokens of a pass that the pace is of
    kept: float  # bytes that a token leaves for the way back

    def learn(self, training: Pretraining, steps: int, size: int) -> float:
        """Seconds of a run of so many steps in passes of `size` tokens, which processes share as they are."""
        passes = tuple(tuple(seconds * size / self.size for seconds in each) for each in self.pace.passes)
        return replace(self.pace, passes=passes).predict(training, size, 0, steps, steps)

    def score(self, most: Scoring, left: float, size: int) -> float:
        """Seconds that a run spends on being scored, of those that it has; a pass that only reads is a third of one."""
        return plan_scoring(most, left, self.pace.passes[-1][-1] * size / self.size / BOTH, size)[1]


def tell_plan(start: Start, minutes: float | None, ranks: Ranks, say: Say, most: Scoring) -> None:
    """What would be done, before anything runs; `most` is what a run reads to be scored if it has the time."""
    config, training = start.checkpoint.config, start.recipe.training
    network, held = start.checkpoint.network, len(start.corpus.tokens)
    speed = measure_products(ranks.device, choose_precision(training.precision, ranks.device))
    flops = count_flops(start.made.objective, network, training.phases())
    trial = try_passes(start, ranks, flops / speed)
    most = replace(most, length=find_typical(start.held_out, most.length)) if most.length else most
    steps, long = tell_length(start, minutes, trial, most, flops, flops / speed / ranks.count)
    count = sum(parameter.numel() for parameter in network.parameters())
    beside = count_beside(network, start.made)
    taught = 0 if start.made.teacher is None else sum(p.numel() for p in start.made.teacher.parameters())
    facts = {
        "recipe": f"{start.recipe.name}, asks {start.recipe.asking.asks}",
        "encoder": f"{config.family}, {counted(config.depth, 'layer')} of {config.width}, "
        f"{counted(config.heads, 'head')}, {count - sum(beside.values()):,} parameters",
        "beside it": ", ".join(f"a {name} of {more:,} parameters" for name, more in beside.items()),
        "teacher": f"{taught:,} parameters, which do not learn" if taught else "",
        "corpus": f"{held:,} tokens in {counted(len(start.corpus), 'document')}, {len(start.held_out):,} more held out",
        "a step": f"{training.tokens:,} tokens in passes of {start.size:,}, rows of at most {training.lengths}",
        "how long": long,
        "optimizer": f"{training.optimizer}, rate {training.peak:g}, {training.schedule}",
        "memory": tell_memory(count * BYTES + taught * READ_BYTES, start.size, trial),
        "device": f"{ranks.count} × {ranks.device}, {choose_precision(training.precision, ranks.device)}",
    }  # fmt: skip
    for name, fact in facts.items():
        if fact:
            say(f"{name:>10}: {fact}")
    if steps < FEW_STEPS and not training.max_steps:
        before = "at most " if minutes and trial is None else ""
        told = f"{before}{counted(steps, 'step')}" if steps else "less than one step"
        say(f"{told} of {training.tokens:,} tokens is little to learn in; smaller ones make more of them (--tokens).")


def tell_length(
    start: Start, minutes: float | None, trial: Trial | None, most: Scoring, flops: float, fastest: float
) -> tuple[int, str]:
    """The steps, about, and a sentence; a token takes `fastest` seconds at least."""
    training, held = start.recipe.training, len(start.corpus.tokens)
    if minutes and trial is None:
        total = int(60 * minutes / fastest)
        told = f"{_minutes(minutes)}, the first passes tell how many steps: {total:,} tokens at most"
        return total // training.tokens, f"{told}, {flops:.2e} FLOP each"
    if minutes and trial is not None:
        left = 60 * minutes * MARGIN * (1 - SPENT)
        seconds = trial.learn(training, SAMPLED, start.size) / SAMPLED
        left -= trial.score(most.every(training.evaluate_every, left / seconds), left, start.size)
        steps = int(left / seconds)
        before = f"{_minutes(minutes)}, the first passes tell how many steps: about "
    else:
        steps = training.max_steps or training.steps_to_read((training.epochs or 1) * held)
        before = ""
    total = count_tokens(training, steps, start.size) if steps else 0
    told = f"{before}{counted(steps, 'step')}, {total:,} tokens, {total / held:.2f} epochs; "
    told += f"{flops * total:.2e} FLOP in matrix products"
    if trial is None:
        return steps, f"{told}, which alone take {show_time(fastest * total)} here"
    if not minutes:
        most = replace(most, evaluations=min(most.evaluations, steps)).every(training.evaluate_every, steps)
        scoring = trial.score(most, WITHOUT_END, start.size)
        learning = trial.learn(training, steps, start.size)
        told += f", about {show_time(learning)} to learn and {show_time(scoring)} to be scored here"
    return steps, told


def _minutes(minutes: float) -> str:
    return f"{minutes:g} minute{'s' * (minutes != 1)}"


def tell_memory(held: int, size: int, trial: Trial | None) -> str:
    told = f"{held / 2**20:,.0f} MiB for weights, gradients and the optimizer"
    if trial is None:
        return f"{told}; what a pass takes comes to it"
    return f"about {(PROCESS + held + GROWTH * trial.kept * size) / 2**20:,.0f} MiB, of which {told}"


def try_passes(start: Start, ranks: Ranks, fastest: float) -> Trial | None:
    """What small passes take; None where that would not be told of them, or would take long."""
    training, network = start.recipe.training, start.checkpoint.network
    size = max(training.longest, min(start.size, TRIED))
    least = 2 * size * fastest * (len(training.phases()) + 1)
    if ranks.device.type != "cpu" or ranks.first_says(least > PATIENCE):
        return None
    small = partial(make_study, replace(start, size=size))
    pace, _ = find_pace(training, small, network, ranks, PATIENCE / 12)
    return Trial(pace, size, count_kept(training, small, network, ranks, size) / size)


def count_kept(training: Pretraining, make: MakeStudy, network: Network, ranks: Ranks, size: int) -> float:
    """Bytes that a pass keeps for the way back, parameters aside: the most of its first and its last step."""
    twin, most = copy.deepcopy(network).train(), 0
    own = {parameter.untyped_storage().data_ptr() for parameter in twin.parameters()}
    study = make(replace(training, tokens=size * ranks.count, first_tokens=None, ramp=0.0), SAMPLED)
    precision = choose_precision(training.precision, ranks.device)
    with study.read_with(twin):
        passes = make_passes(twin, study, training, ranks.device, precision, ranks)
        for step in (0, SAMPLED - 1):
            kept: dict[int, int] = {}

            def keep(tensor: torch.Tensor, kept: dict[int, int] = kept) -> torch.Tensor:
                storage = tensor.untyped_storage()
                if storage.data_ptr() not in own:
                    kept[storage.data_ptr()] = storage.nbytes()
                return tensor

            with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
                passes.run(study.works(step, ranks.rank, ranks.count, 0), step)
            most = max(most, sum(kept.values()))
    return most


def find_typical(held_out: Corpus, length: int) -> int:
    """Tokens of the row in which a token of this text is asked for, on average."""
    sizes = np.minimum(np.diff(held_out.documents), length).astype(np.float64)
    return max(1, round(float((sizes**2).sum() / max(sizes.sum(), 1))))


def count_beside(network: Network, made: Made) -> dict[str, int]:
    """The parameters of what learns with a network and is no part of it; tables that they share are the network's."""
    own = [(name.partition(".")[0], parameter.numel()) for name, parameter in network.named_parameters()]
    return {part: sum(count for name, count in own if name == part) for part in made.objective.parts()}


def count_tokens(training: Pretraining, steps: int, size: int) -> int:
    """What these steps read, of which the first ones may be smaller; of very many steps by a sample of them."""
    count = min(steps, SAMPLED)
    some = (training.tokens_at(number * steps // count, steps, size) for number in range(count))
    return round(sum(some) / count * steps)
