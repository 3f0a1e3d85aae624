"""What the loop trains on: at each step the passes to make, and what a pass costs.

A `Study` is a task over its examples here, and a pretraining objective over a corpus elsewhere. Which rows a step holds
is a pure function of (seed, step), so that a run resumes from one number and is the same on one device or on eight.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal, Protocol

import numpy as np
import torch
from torch import Tensor

from bertsmith.data.batch import Batch, plan_batches, send
from bertsmith.errors import BertsmithError
from bertsmith.models.network import Network
from bertsmith.objectives.objective import Outline
from bertsmith.tasks.losses import Criterion, find_known
from bertsmith.tasks.task import Row
from bertsmith.tasks.trained import TrainedTask
from bertsmith.training.adversary import find_worst_step, resting
from bertsmith.training.settings import Training

Array = np.ndarray[Any, Any]
FILLER = -100  # the gold of an item that is none, where gold counts; where it measures, NaN


@dataclass(frozen=True)
class Given:
    """An array that a loss needs beside the batch: an entry for each row, for each token, or for some of them."""

    values: Array
    each: Literal["row", "token", "place"]
    filler: float  # what to put behind the last entry where an array must have a fixed size
    share: float = 1.0  # of places: at most this share of a pass's tokens, and one more a row


@dataclass(frozen=True)
class Work:
    """One pass through the network, still on the host."""

    ids: Array  # (tokens,)
    segments: Array
    lengths: tuple[int, ...]
    given: Mapping[str, Given]
    counts: Mapping[str, float]  # for each loss of this pass, how many items it is summed over
    part: str = ""  # of a study of several: whose losses these are
    seed: int | None = None  # of its random draws, whichever process makes it; None: they follow from its place
    facts: Mapping[str, float] = field(default_factory=dict)  # numbers that the host knows and the losses need
    scales: Mapping[str, float] = field(default_factory=dict)  # what each loss is multiplied by here; else by 1
    weights: Mapping[str, float] = field(default_factory=dict)  # in the scales: of losses whose weight changes
    outline: Outline | None = None  # of a pass whose losses look at no other fact: which may be made by one recording

    def on(self, device: torch.device) -> tuple[Batch, dict[str, Tensor]]:
        batch = Batch.of_flat(self.ids, self.segments, self.lengths, device)
        return batch, {name: send(given.values, device) for name, given in self.given.items()}


class Study(Protocol):
    examples: int
    names: Sequence[str]  # of the losses
    weights: Mapping[str, float]  # what each loss is multiplied by; those that are not named by 1

    def steps_an_epoch(self) -> int: ...

    def size(self, step: int) -> int:
        """How many examples a step holds."""

    def works(self, step: int, rank: int, ranks: int, budget: int) -> list[Work]:
        """The passes of one process in this step, each within a budget of tokens where a row allows it."""

    def losses(self, network: Network, batch: Batch, given: Mapping[str, Tensor], work: Work) -> dict[str, Tensor]:
        """The sum of each loss of a pass over its items: tensors only, of fixed shapes, so that a GPU can record it.

        Where it does, `work` is the pass that was recorded first: only its part may be looked at.
        """


@dataclass(frozen=True)
class LeanRow:
    """A row with arrays in place of lists; `at` is None where the head reads the row or all of its tokens."""

    ids: Array
    segments: Array
    at: Array | None
    gold: Any

    @classmethod
    def of(cls, row: Row) -> "LeanRow":
        # A row of a tagger may have no labelled word at all: its gold is an empty list of places.
        places = len(row.at) or (isinstance(row.gold, np.ndarray) and row.gold.shape == (0,))
        at = np.asarray(row.at, np.int64) if places else None
        return cls(np.asarray(row.ids, np.int64), np.asarray(row.segments, np.int64), at, row.gold)


class Drawn:
    """Examples that are drawn without replacement in each epoch."""

    names: Sequence[str] = ("loss",)
    weights: Mapping[str, float] = MappingProxyType({})
    examples: int
    settings: Training

    def steps_an_epoch(self) -> int:
        return -(-self.examples // self.settings.batch)

    def size(self, step: int) -> int:
        return len(self.chosen(step))

    def chosen(self, step: int) -> list[int]:
        """The examples of a step."""
        epoch, place = divmod(step, self.steps_an_epoch())
        order = self._order(epoch)
        return [int(i) for i in order[place * self.settings.batch : (place + 1) * self.settings.batch]]

    def _order(self, epoch: int) -> Array:
        if getattr(self, "_ordered", (None,))[0] != epoch:
            self._ordered = (epoch, np.random.default_rng([self.settings.seed, epoch]).permutation(self.examples))
        return self._ordered[1]


class TaskStudy(Drawn):
    """A task's examples."""

    def __init__(self, task: TrainedTask[Any, Any], rows: Sequence[Sequence[Row]], settings: Training) -> None:
        self.task, self.settings = task, settings
        self.whole = task.whole  # a step cannot be made in parts
        refuse_unfit(task, settings)
        self.rows = [[LeanRow.of(row) for row in some] for some in rows]
        self.examples = len(rows)
        self.criterion = Criterion(self._weights(), settings.focal, settings.smoothing)

    def works(self, step: int, rank: int, ranks: int, budget: int) -> list[Work]:
        if self.task.whole and ranks > 1:
            raise BertsmithError(
                f"the task {self.task.name} compares all examples of a step with each other, which several processes "
                f"cannot share; run it in one process, without torchrun."
            )
        units = [self.rows[i] for i in self.chosen(step)]  # what must not be parted
        if not self.task.together:
            units = [[row] for rows in units for row in rows]
        units.sort(key=_count_tokens, reverse=True)
        mine = units[rank::ranks]  # like lengths everywhere, so that no device waits long for another
        if self.task.whole:
            return [self._work([row for unit in units for row in unit])]
        if not mine:  # fewer rows than processes: one that costs nothing, as all of them must take part
            return [self._work(units[0][:1], is_filler=True)]
        plan = plan_batches([_count_tokens(unit) for unit in mine], budget)
        return [self._work([row for i in some for row in mine[i]]) for some in plan]

    def _work(self, rows: Sequence[LeanRow], is_filler: bool = False) -> Work:
        if self.task.together:  # the rows of a unit have other lengths than their neighbours
            rows = sorted(rows, key=lambda row: -len(row.ids))
        gold = self.task.gold(rows)
        filler = np.nan if np.issubdtype(gold.dtype, np.floating) else FILLER
        count = 0.0 if is_filler else self._count(gold)
        if is_filler:
            gold = np.full_like(gold, filler)
        return self._lay(rows, gold, filler, count)

    def _lay(self, rows: Sequence[LeanRow], gold: Array, filler: float, count: float) -> Work:
        return lay_end_to_end(rows, gold, filler, count)

    def _count(self, gold: Array) -> float:
        known = find_known(torch.from_numpy(gold)).numpy()
        if self.criterion.weights is None or gold.ndim > 1:
            return float(known.sum())
        return float(self.criterion.weights.cpu().numpy()[gold[known]].sum())

    def losses(
        self, network: Network, batch: Batch, given: Mapping[str, Tensor], work: Work | None = None
    ) -> dict[str, Tensor]:
        gold, at = given["gold"], given.get("at")
        if self.criterion.weights is not None and self.criterion.weights.device != gold.device:
            self.criterion = self.criterion.on(gold.device)  # once: a pass that is recorded cannot fetch from the host
        scores = self.task.read(network, batch, at)
        cost = self.task.loss(scores, gold, batch, self.criterion)
        if self.settings.r_drop:
            again = self.task.read(network, batch, at)
            cost = 0.5 * (cost + self.task.loss(again, gold, batch, self.criterion))
            known = find_known(gold)
            cost = cost + self.settings.r_drop * torch.where(known, self.task.diverge(scores, again, batch), 0.0)
        if self.settings.adversarial:
            apart = self.task.diverge(scores, self._read_moved(network, batch, at, scores.detach(), gold), batch)
            cost = cost + self.settings.adversarial * torch.where(find_known(gold), apart, 0.0)
        return {"loss": cost.sum()}

    def _read_moved(self, network: Network, batch: Batch, at: Tensor | None, scores: Tensor, gold: Tensor) -> Tensor:
        """What the network says of the texts where a small step takes it farthest from these scores."""

        def read(step: Tensor) -> Tensor:
            return self.task.read(network, batch.moved(step), at)

        def apart(step: Tensor) -> Tensor:
            return torch.where(find_known(gold), self.task.diverge(scores, read(step), batch), 0.0).sum()

        with resting(network):
            step = find_worst_step(batch, network.config.width, self.settings.adversarial_reach, apart)
        return read(step)

    def _weights(self) -> Tensor | None:
        """With `balanced`, what every label costs is the same in total."""
        if self.settings.class_weights == "none":
            return None
        gold = self.task.gold([row for rows in self.rows for row in rows])
        labels = len(self.task.labels)
        if gold.ndim > 1:
            there = gold.sum(axis=0)
            weights = (len(gold) - there) / np.maximum(there, 1)
            # One that is always there has nothing to be balanced with; a weight of 0 would keep it from being learnt.
            return torch.from_numpy(np.where(there < len(gold), weights, 1.0)).float()
        there = np.bincount(gold[gold >= 0], minlength=labels)
        return torch.from_numpy(there.sum() / (labels * np.maximum(there, 1))).float()


def lay_end_to_end(rows: Sequence[LeanRow], gold: Array, filler: float, count: float, share: float = 1.0) -> Work:
    """The pass over these rows; `gold` has an entry for each of their places, or for each row where they name none."""
    lengths = tuple(len(row.ids) for row in rows)
    given = {"gold": Given(gold, "place" if rows[0].at is not None else "row", filler, share)}
    if rows[0].at is not None:
        starts = np.cumsum(lengths) - lengths
        at = np.concatenate([row.at + start for row, start in zip(rows, starts, strict=True) if row.at is not None])
        given["at"] = Given(at, "place", 0, share)
    ids, segments = np.concatenate([r.ids for r in rows]), np.concatenate([r.segments for r in rows])
    return Work(ids, segments, lengths, given, {"loss": count})


def refuse_unfit(task: TrainedTask[Any, Any], settings: Training) -> None:
    """What was chosen for training and has no meaning for this task."""
    asked = {"class_weights": settings.class_weights != "none", "focal": settings.focal,
             "smoothing": settings.smoothing}  # fmt: skip
    unfit = [name for name, is_on in asked.items() if is_on and not task.classes]
    unfit += ["class_weights"] if asked["class_weights"] and not task.weighs else []
    twice = [name for name in ("r_drop", "adversarial") if getattr(settings, name)]
    unfit += twice if task.together or task.whole else []
    unfit += ["features"] if settings.features != "none" and task.head is None else []  # nothing would learn
    if unfit:
        raise BertsmithError(f"{unfit[0]} has no meaning for the task {task.name}; leave it out.")
    asked = {"recompute": settings.recompute, "layer_decay": settings.layer_decay != 1.0,
             "adversarial": settings.adversarial, "spread": settings.spread == "fsdp"}  # fmt: skip
    idle = [name for name, is_on in asked.items() if is_on and settings.features != "none"]
    if idle:
        raise BertsmithError(f"{idle[0]} has no meaning where the encoder does not learn (features); leave it out.")


def _count_tokens(rows: Sequence[LeanRow]) -> int:
    return sum(len(row.ids) for row in rows)
