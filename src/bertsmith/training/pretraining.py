"""A corpus and an objective as a study: what the loop trains on when there are no labels.

In: rows of a corpus as passes of one size, an objective, settings. Out: a `Study`. Which rows a step holds, what is
hidden of them and every other draw is a function of (seed, step), the same for one process or eight.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from bertsmith.data.batch import Batch, room_of_rows
from bertsmith.data.rows import Rows
from bertsmith.data.rows_plan import Plan, RowKind, open_passes
from bertsmith.data.shards import Corpus
from bertsmith.errors import BertsmithError
from bertsmith.models.network import Network
from bertsmith.objectives.objective import Objective
from bertsmith.training.devices import seed_of
from bertsmith.training.pretraining_settings import Pretraining
from bertsmith.training.study import Given, Work

HELD_OUT = 64  # passes at most that an evaluation reads


class PretrainingStudy:
    """The steps of a run: `steps` of them, of `size` tokens a pass."""

    def __init__(
        self, corpus: Corpus, objective: Objective, settings: Pretraining, steps: int, size: int, kind: RowKind
    ) -> None:
        self.corpus, self.objective, self.settings = corpus, objective, settings
        self.names: Sequence[str] = objective.names
        phases = settings.phases()
        longest = max(phase.length for phase in phases)
        if size < longest:
            raise BertsmithError(f"a pass of {size} tokens cannot hold a row of {longest}; give more tokens.")
        self.plan = Plan(phases, steps, lambda step: settings.tokens_at(step, steps, size), size)
        self.passes = open_passes(corpus, phases, size, kind, settings.seed)
        self.steps, self.pass_size = steps, size
        self.examples = len(corpus)
        self._budget = 0  # what the loop gave last
        self._ahead: tuple[Any, list[Work]] = (None, [])  # the passes of one step, made already
        self.detours: list[list[int]] = []  # a step, and how many passes on the rows are from there
        # Those that never change are the loop's business; of others each pass tells it, as its log shows losses before
        # their weight.
        fixed = all(objective.weights(done / 100) == objective.weights(0.0) for done in range(101))
        self.weights: Mapping[str, float] = objective.weights(0.0) if fixed else {}
        self.has_fixed_weights = fixed
        self.can_twin = settings.compile

    def steps_an_epoch(self) -> int:
        """So many steps read as many tokens as the corpus has."""
        return self.settings.steps_to_read(len(self.corpus.tokens))

    def size(self, step: int) -> int:
        """Rows are not counted ahead: what a step holds is measured in tokens."""
        return len(self.plan.passes(step))

    def works(self, step: int, rank: int, ranks: int, budget: int) -> list[Work]:
        """A pass has the size that the plan gives it, whatever the budget: another would hide other words."""
        if self._budget and 0 < budget < self._budget:  # the loop halves it where a pass did not fit
            told = f"not enough memory for a pass of {self.pass_size:,} tokens"
            raise BertsmithError(f"{told}; give fewer (pass_tokens), --recompute, or a smaller encoder.")
        self._budget = budget
        key = (step, rank, ranks, self._further(step))
        works = self._ahead[1] if self._ahead[0] == key else self._make_works(step, rank, ranks)
        self._ahead = (key, works)
        return works

    def prepare(self, step: int, rank: int, ranks: int) -> list[Work]:
        """The passes of a step that comes next, which `works` will then give; none behind the last."""
        if step >= self.steps:
            return []
        self._ahead = ((step, rank, ranks, self._further(step)), self._make_works(step, rank, ranks))
        return self._ahead[1]

    def _make_works(self, step: int, rank: int, ranks: int) -> list[Work]:
        done = step / max(1, self.steps)
        mine = self.plan.passes(step, rank, ranks)
        if not mine:  # fewer passes than processes: one that costs nothing, as all of them must take part
            one = self.plan.passes(step)[0]
            number = one.number + self._further(step)
            return [self._work(self.passes[one.phase].rows_of(number), step, number, done, is_filler=True)]
        numbers = [(one.phase, one.number + self._further(step)) for one in mine]
        return [self._work(self.passes[phase].rows_of(number), step, number, done) for phase, number in numbers]

    def _further(self, step: int) -> int:
        """How many passes on the rows of a step are from those that were planned."""
        return next((further for start, further in reversed(self.detours) if start <= step), 0)

    def avoid(self, start: int, behind: int) -> None:
        """From step `start` on, read what lies behind all rows that the steps before `behind` have read."""
        read = sum(len(self.plan.passes(step)) for step in range(start, behind))
        known = [detour for detour in self.detours if detour[0] < start]
        self.detours = [*known, [start, self._further(behind - 1) + read]]

    def kind_at(self, step: int) -> str:
        """Losses of steps of one kind may be compared with each other."""
        return f"phase {self.plan.phase_at(step)}"

    def _work(self, rows: Rows, step: int, number: int, done: float, is_filler: bool = False) -> Work:
        expected = self.objective.expect(rows.ordinary, _count_rows(rows), done)
        counts = dict.fromkeys(expected, 0.0) if is_filler else expected
        weights = {} if self.has_fixed_weights else self.objective.weights(done)
        scales = {name: 0.0 if is_filler else weights.get(name, 1.0) * count for name, count in expected.items()}
        asked = self.objective.count_hidden(rows.ordinary, done)
        facts = {"ordinary": rows.ordinary, "done": done, "asked": asked}
        outline = self.objective.outline(rows.ordinary, room_of_rows(rows.lengths), done)
        given = {} if rows.pairs is None else {"pairs": Given(rows.pairs, "row", -100)}
        # By its number in the run, not by who makes it: the same words are hidden for any number of processes.
        seed = seed_of(self.settings.seed, step, 0, number)
        return Work(
            rows.ids, rows.segments, rows.lengths, given, counts, seed=seed, facts=facts, scales=scales,
            weights=weights, outline=outline,
        )  # fmt: skip

    @contextmanager
    def read_with(self, twin: Network) -> Iterator[None]:
        """Inside, what learns beside the network is what learns beside its twin."""
        own = self.objective.parts()
        self.objective.use_parts({name: twin.get_submodule(name) for name in own})
        try:
            yield
        finally:
            self.objective.use_parts(own)

    def losses(self, network: Network, batch: Batch, given: Mapping[str, Tensor], work: Work) -> dict[str, Tensor]:
        """The mean of each loss; it counts as many times as the host expected items, by which it divides in the end."""
        asked = self.objective.ask(batch, given, int(work.facts["ordinary"]), work.facts["done"])
        hidden = self.objective.read(network, asked)
        found = self.objective.losses(network, hidden, asked.batch, asked.given)
        return {name: total / count.clamp(min=1) for name, (total, count) in found.items()}


def _count_rows(rows: Rows) -> int:
    """Rows that a question about pairs is asked of, or all of them."""
    return len(rows.lengths) if rows.pairs is None else int((rows.pairs >= 0).sum())


@dataclass
class HeldOut:
    """What the network says of rows that it never learns from: each loss, each share of right answers."""

    study: PretrainingStudy
    network: Network
    device: torch.device
    precision: Any  # a context in which the network computes
    most: int = HELD_OUT  # passes

    def __call__(self) -> dict[str, float]:
        totals: dict[str, list[float]] = {}
        passes = self.study.passes[-1]
        with torch.no_grad(), torch.random.fork_rng(devices=[self.device] if self.device.type == "cuda" else []):
            for number in range(self.count):
                torch.manual_seed(seed_of(self.study.settings.seed, 0, 0, number))
                self._add(totals, passes.rows_of(number), number)
        found = {name: right / max(of, 1e-12) for name, (right, of) in totals.items()}
        losses = {f"{name}_loss": found.pop(name) for name in self.study.names if name in found}
        return {**found, **losses}  # what is right comes first: the loop takes more for better

    @property
    def count(self) -> int:
        """Passes in an evaluation."""
        return max(1, min(self.most, len(self.study.corpus.tokens) // self.study.pass_size))

    def _add(self, totals: dict[str, list[float]], rows: Rows, number: int) -> None:
        objective = self.study.objective
        work = self.study._work(rows, 0, number, 1.0)
        batch, given = work.on(self.device)
        with self.precision():
            asked = objective.ask(batch, given, rows.ordinary, 1.0)
            hidden = objective.read(self.network, asked)
            found = objective.losses(self.network, hidden, asked.batch, asked.given)
            found |= objective.measures(self.network, hidden, asked.batch, asked.given)
        for name, (total, count) in found.items():
            known = totals.setdefault(name, [0.0, 0.0])
            known[0] += float(total)
            known[1] += float(count)
