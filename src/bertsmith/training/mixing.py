"""Several studies on one network: H = F + λG, all in each step or one a step.

In: a `Study` for each member, its weight λ, and how they are mixed. Out: a `Study`. Which member a step belongs to, and
which of its steps that is, are functions of (seed, step): an epoch is a shuffled list with every member's exact share.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, get_args

import numpy as np
from torch import Tensor

from bertsmith.data.batch import Batch
from bertsmith.errors import BertsmithError
from bertsmith.models.network import Network
from bertsmith.training.study import Study, Work

Mixing = Literal["together", "proportional", "temperature", "round-robin"]
MIXINGS: tuple[str, ...] = get_args(Mixing)
TEMPERATURE = 2.0
CHANCE = 7919  # beside the seed, so that the order of members has nothing to do with that of examples


def choose_mixing(asked: str | None, examples: Sequence[int]) -> str:
    """Without a choice: together where all tasks have as many examples, as two labels of the same texts do."""
    if asked is None:
        return "together" if len(set(examples)) == 1 else "proportional"
    if asked not in MIXINGS:
        raise BertsmithError(f"mixing is {asked!r}, which is not a choice; use one of {', '.join(MIXINGS)}.")
    return asked


def loss_name(member: str) -> str:
    """How a member's loss is called in the log."""
    return f"loss/{member}"


class MixStudy:
    """`leaders` are the members by whose examples an epoch is measured where all take part in each step."""

    def __init__(
        self, members: Mapping[str, Study], weights: Mapping[str, float], mixing: str, seed: int,
        temperature: float = TEMPERATURE, leaders: Sequence[str] = (),
    ) -> None:  # fmt: skip
        self.members, self.mixing, self.seed = dict(members), mixing, seed
        self.order = list(members)
        self.names: Sequence[str] = [loss_name(name) for name in self.order]
        self.weights: Mapping[str, float] = {loss_name(name): float(weights.get(name, 1.0)) for name in self.order}
        self.examples = sum(study.examples for study in members.values())
        epochs = [study.steps_an_epoch() for study in members.values()]
        if mixing == "together":
            self.epoch = max(members[name].steps_an_epoch() for name in leaders or self.order)
        else:
            self.epoch = sum(epochs)
        sizes = [study.examples ** (1 / temperature) for study in members.values()]
        self.turns = epochs if mixing == "proportional" else share_steps(sizes, self.epoch)  # of each in an epoch

    def steps_an_epoch(self) -> int:
        return self.epoch

    def size(self, step: int) -> int:
        return sum(self.members[name].size(own) for name, own in self.plan(step))

    def plan(self, step: int) -> list[tuple[str, int]]:
        """The members that take part in a step, each with the number of its own step."""
        if self.mixing == "together":
            return [(name, step) for name in self.order]
        if self.mixing == "round-robin":
            return [(self.order[step % len(self.order)], step // len(self.order))]
        epoch, place = divmod(step, self.epoch)
        order, own = self._shuffled(epoch)
        member = int(order[place])
        return [(self.order[member], epoch * self.turns[member] + int(own[place]))]

    def shares(self) -> dict[str, float]:
        """What part of the steps each member takes part in."""
        if self.mixing == "together":
            return dict.fromkeys(self.order, 1.0)
        if self.mixing == "round-robin":
            return dict.fromkeys(self.order, 1 / len(self.order))
        return {name: turns / self.epoch for name, turns in zip(self.order, self.turns, strict=True)}

    def works(self, step: int, rank: int, ranks: int, budget: int) -> list[Work]:
        return [
            replace(work, part=name, counts={loss_name(name): work.counts["loss"]})
            for name, own in self.plan(step)
            for work in self.members[name].works(own, rank, ranks, budget)
        ]

    def losses(self, network: Network, batch: Batch, given: Mapping[str, Tensor], work: Work) -> dict[str, Tensor]:
        return {loss_name(work.part): self.members[work.part].losses(network, batch, given, work)["loss"]}

    def _shuffled(self, epoch: int) -> tuple[Any, Any]:
        """The member of each step of an epoch, and how often it had its turn in this epoch before."""
        if getattr(self, "_kept", (None,))[0] != epoch:
            chance = np.random.default_rng([self.seed, CHANCE, epoch])
            order = chance.permutation(np.repeat(np.arange(len(self.order)), self.turns))
            own = np.zeros(len(order), np.int64)
            for member in range(len(self.order)):
                mine = np.flatnonzero(order == member)
                own[mine] = np.arange(len(mine))
            self._kept = (epoch, order, own)
        return self._kept[1], self._kept[2]


def share_steps(sizes: Sequence[float], steps: int) -> list[int]:
    """`steps` in whole numbers by these sizes, at least one each; what rounding leaves goes to the largest rests."""
    spare = steps - len(sizes)  # each has at least one step of its own, so there are as many as members
    exact = [max(0.0, steps * size / sum(sizes) - 1) for size in sizes]
    exact = [spare * part / max(sum(exact), 1e-12) for part in exact]
    found = [int(part) for part in exact]
    rests = sorted(range(len(sizes)), key=lambda i: (found[i] - exact[i], i))
    for i in rests[: spare - sum(found)]:
        found[i] += 1
    return [1 + part for part in found]
