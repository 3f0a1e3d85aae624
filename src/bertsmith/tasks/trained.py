"""A task that people train: how examples become gold, what a mistake costs, what is saved, how answers are scored.

The same object trains, evaluates, predicts and serves. Its `settings` are plain JSON and are saved with the model as
`bertsmith.json`: labels, thresholds, temperature, the length and the policy for long inputs. So a folder predicts as it
was scored.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from torch import Tensor

from bertsmith.data.batch import Batch
from bertsmith.data.table import Table
from bertsmith.models.network import Network
from bertsmith.tasks.losses import Criterion, diverge
from bertsmith.tasks.measures import Measure
from bertsmith.tasks.task import Answer, Example, Row, Task
from bertsmith.tasks.texts import take_count
from bertsmith.text.tokenizer import Tokenizer

Settings = dict[str, Any]
MISTAKES = 60  # as many as a report shows, those first that the model was surest of


class TrainedTask(Task[Example, Answer]):
    metric = ""  # of `score`: chooses the best checkpoint unless another is named
    truncation: ClassVar[str] = "head"  # the policy for long inputs unless another is named
    roles: ClassVar[tuple[str, ...]] = ()  # what a record may hold; the rules for columns are in data/columns.py
    required: ClassVar[tuple[str, ...]] = ()  # and what it must hold to train on
    problem: str | None = None  # the problem_type of config.json
    together: ClassVar[bool] = False  # whether the loss compares an example's rows, so that one pass must hold them all
    whole: ClassVar[bool] = False  # whether it compares all examples of a step, so that one pass must hold the step
    weighs: ClassVar[bool] = True  # whether gold numbers the labels, so that class weights can weigh them
    classes: ClassVar[bool] = True  # whether gold is classes: else weights, focal loss and smoothing have no meaning

    def __init__(self, tokenizer: Tokenizer, limit: int, truncate: str, settings: Settings) -> None:
        super().__init__(tokenizer, limit, truncate)
        self.settings = settings
        length = settings.get("length")
        self.length = limit if length is None else min(take_count("length", length), limit)  # of the rows it makes

    @classmethod
    def examples(
        cls, table: Table, columns: Mapping[str, str], choices: Mapping[str, Any], gold: bool = True
    ) -> list[Example]:
        """Examples of a table whose columns were found, role -> column; without `gold`, what is asked alone."""
        raise NotImplementedError

    @classmethod
    def settle(cls, examples: Sequence[Example], choices: Mapping[str, Any]) -> Settings:
        """The settings that training examples and the user's choices give: the labels in their order, …

        `choices` holds what was chosen (`training.choices.TaskChoices`), and as `source` the base model's folder.
        """
        raise NotImplementedError

    @classmethod
    def settings_from(cls, labels: Sequence[str], problem_type: str | None) -> Settings:
        """The settings of a folder made elsewhere, by the labels and the problem_type of its config.json."""
        raise NotImplementedError

    @property
    def labels(self) -> list[str]:
        """The names of the head's outputs, in order."""
        return list(self.settings["labels"])

    def loss(self, scores: Tensor, gold: Tensor, batch: Batch, criterion: Criterion) -> Tensor:
        """What each item costs, (n,); an item is a row or a labelled token.

        Filler costs 0: a negative number where gold counts, NaN where it measures (`losses.find_known`).
        """
        return criterion.choose(scores, gold)

    def diverge(self, one: Tensor, other: Tensor, batch: Batch) -> Tensor:
        """How far two readings of the same rows are apart, (n,)."""
        return diverge(one, other)

    def gold(self, rows: Sequence[Any]) -> "np.ndarray[Any, Any]":
        """The `gold` of rows as `loss` takes it: items stacked on the first axis."""
        return np.concatenate([np.atleast_1d(np.asarray(row.gold)) for row in rows])

    def tune(self, examples: Sequence[Example], rows: Sequence[Sequence[Row]], scores: Sequence[Sequence[Tensor]],
             choices: Mapping[str, Any]) -> Settings:  # fmt: skip
        """Settings to change in the light of the scores on development examples: thresholds, a temperature."""
        return {}

    def fold(self, network: Network) -> Settings:
        """Work into the trained network what a score needs after it, for other libraries; settings that change by it.

        `unfold` is its inverse, for a head that goes on training.
        """
        return {}

    def unfold(self, network: Network) -> None:
        """Nothing, where `fold` does nothing."""

    def dress(self, folder: Path) -> None:
        """Write what a model folder of this task has beside weights, config.json and tokenizer."""

    def tuned(self, changes: Settings) -> Self:
        """The same task with other settings."""
        made = type(self)(self.tokenizer, self.limit, self.truncate, {**self.settings, **changes})
        made.head = self.head  # of several tasks on one encoder, the one with its member's name
        return made

    def fewest(self, examples: Sequence[Example]) -> int:
        """From how many examples a step can teach anything."""
        return 1

    def brief(self) -> Self:
        """The same task with answers that hold no more than `score` and `report` look at."""
        return self

    def metrics(self, examples: Sequence[Example] = ()) -> list[str]:
        """The names that `score` may give of such examples, before there is an answer; a task of ours scores nothing
        to tell them."""
        return list(self.score([], []))

    def main_metric(self, chosen: str | None, found: Iterable[str]) -> str:
        """Of the metrics that examples gave: the chosen one, else the task's own; else the first, as pairs with a
        number have others than pairs without."""
        names = list(found)
        return next((name for name in (chosen, self.metric) if name in names), names[0])

    def report(self, answers: Sequence[Answer], examples: Sequence[Example]) -> dict[str, Any]:
        """What a run's report shows of these answers: fields of `evaluation.report.RunFacts`."""
        return {}

    def score(self, answers: Sequence[Answer], examples: Sequence[Example]) -> dict[str, Measure]:
        """Each metric of these answers, the main one first."""
        raise NotImplementedError
