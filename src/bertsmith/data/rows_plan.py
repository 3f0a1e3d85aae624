"""Which passes a step of pretraining makes. In: a run's phases and steps, and how many tokens each holds. Out: passes.

    phases = [Phase(128, 0.9), Phase(512, 0.1)]
    plan = Plan(phases, steps=10_000, tokens_at=lambda step: 131_072, pass_tokens=16_384)
    passes = open_passes(corpus, phases, pass_tokens=16_384, seed=0)
    for one in plan.passes(step, rank, ranks):
        rows = passes[one.phase].rows_of(one.number)

A step's passes are numbered through over all processes, so the step holds the same rows for any number of them.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from bertsmith.data.pair_rows import PairRows
from bertsmith.data.rows_single import SingleRows
from bertsmith.data.rows_stream import Passes, Stream
from bertsmith.data.shards import Corpus
from bertsmith.errors import BertsmithError

RowKind = Literal["single", "next", "order"]


@dataclass(frozen=True)
class Phase:
    """A part of a run whose rows have at most `length` tokens."""

    length: int
    share: float = 1.0  # of the steps


class Pass(NamedTuple):
    phase: int
    number: int  # counted from the phase's first


class Plan:
    def __init__(self, phases: Sequence[Phase], steps: int, tokens_at: Callable[[int], int], pass_tokens: int) -> None:
        """`tokens_at` gives the size of each step, a multiple of `pass_tokens`; larger ones later on are a ramp."""
        shares = np.array([phase.share for phase in phases], float)
        if not len(shares) or (shares < 0).any() or not shares.sum() > 0:
            raise BertsmithError("the phases of a run need shares of its steps that are not negative, and not all 0.")
        sizes = np.array([tokens_at(step) for step in range(steps)], np.int64)
        odd = np.flatnonzero((sizes % pass_tokens != 0) | (sizes <= 0))
        if len(odd):
            raise BertsmithError(
                f"step {odd[0]} is to hold {sizes[odd[0]]:,} tokens, which is no multiple of the {pass_tokens:,} of a "
                f"pass; choose sizes that are."
            )
        self.phases, self.steps, self.pass_tokens = tuple(phases), steps, pass_tokens
        ends = np.rint(np.cumsum(shares) / shares.sum() * steps).astype(np.int64)
        self._begins = np.concatenate([[0], ends[:-1]])  # the first step of each phase
        self._done = np.concatenate([[0], np.cumsum(sizes // pass_tokens)])  # passes before each step

    def phase_at(self, step: int) -> int:
        """The number of the phase that a step lies in."""
        self._refuse_beyond(step)
        return int(np.searchsorted(self._begins, step, side="right")) - 1

    def passes(self, step: int, rank: int = 0, ranks: int = 1) -> list[Pass]:
        """What one of `ranks` processes does in this step; none at all where there are fewer passes than processes."""
        phase = self.phase_at(step)
        before = int(self._done[self._begins[phase]])
        first, behind = (int(self._done[at]) - before for at in (step, step + 1))
        return [Pass(phase, number) for number in range(first + rank, behind, ranks)]

    def _refuse_beyond(self, step: int) -> None:
        if not 0 <= step < self.steps:
            raise ValueError(f"step {step} is not one of the {self.steps} that were planned")


def open_stream(corpus: Corpus, length: int, kind: RowKind = "single", seed: int = 0, phase: int = 0) -> Stream:
    if kind == "single":
        return SingleRows(corpus, length, seed, phase)
    return PairRows(corpus, length, kind, seed, phase)


def open_passes(
    corpus: Corpus, phases: Sequence[Phase], pass_tokens: int, kind: RowKind = "single", seed: int = 0
) -> list[Passes]:
    """The passes of each phase. What they are made of is looked for when the first one is asked for."""
    streams = [open_stream(corpus, phase.length, kind, seed, number) for number, phase in enumerate(phases)]
    return [Passes(stream, pass_tokens) for stream in streams]
