"""A task that people train: how examples become gold, what a mistake costs, what is saved, how answers are scored.

The same object trains, evaluates, predicts and serves. Its `settings` are plain JSON and are saved with the model as
`bertsmith.json`: labels, thresholds, temperature, the length and the policy for long inputs. So a folder predicts as it
was scored.
"""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from torch import Tensor

from bertsmith.data.batch import Batch
from bertsmith.data.table import Table
from bertsmith.tasks.losses import Criterion, diverge
from bertsmith.tasks.measures import Measure
from bertsmith.tasks.task import Answer, Example, Row, Task
from bertsmith.text.tokenizer import Tokenizer

Settings = dict[str, Any]


class TrainedTask(Task[Example, Answer]):
    metric: ClassVar[str] = ""  # of `score`: chooses the best checkpoint unless another is named
    truncation: ClassVar[str] = "head"  # the policy for long inputs unless another is named
    roles: ClassVar[tuple[str, ...]] = ()  # what a record must or may hold; the columns' rules are in data/columns.py

    def __init__(self, tokenizer: Tokenizer, limit: int, truncate: str, settings: Settings) -> None:
        super().__init__(tokenizer, limit, truncate)
        self.settings = settings

    @classmethod
    def examples(cls, table: Table, columns: Mapping[str, str]) -> list[Example]:
        """Examples of a table; `columns` are the user's choices, role -> column."""
        raise NotImplementedError

    @classmethod
    def settle(cls, examples: Sequence[Example], choices: Mapping[str, Any]) -> Settings:
        """The settings that training examples and the user's choices give: the labels in their order, …"""
        raise NotImplementedError

    @property
    def labels(self) -> list[str]:
        """The names of the head's outputs, in order."""
        return list(self.settings["labels"])

    def loss(self, scores: Tensor, gold: Tensor, batch: Batch, criterion: Criterion) -> Tensor:
        """What each item costs, (n,); an item is a row or a labelled token; negative gold is filler and costs 0."""
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

    def score(self, answers: Sequence[Answer], examples: Sequence[Example]) -> dict[str, Measure]:
        """Each metric of these answers, the main one first."""
        raise NotImplementedError
