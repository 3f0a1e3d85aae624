"""Rows to scores to answers, for every task: length-sorted batches within a budget of tokens, answers in order."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from bertsmith.data.batch import Array, Batch, plan_batches
from bertsmith.errors import BertsmithError
from bertsmith.models.network import Network
from bertsmith.tasks.task import Answer, Example, Row, Task

# Enough work to fill the machine; on a CPU a batch that stays in its caches is the fastest.
BUDGETS = {"cpu": 1024, "mps": 8192, "cuda": 65536}


@dataclass(frozen=True)
class Predictor:
    network: Network
    device: torch.device
    budget: int  # tokens in a batch
    keeps_grads: bool = False  # the network is in training: its weights may be parts that only no_grad can gather

    def predict(self, task: Task[Example, Answer], examples: Sequence[Example]) -> list[Answer]:
        """One answer an example. Tasks that ask again do so together, so that every round runs in full batches."""
        answers: dict[int, Answer] = {}
        talks = {i: task.talk(e, rows) for i, (e, rows) in enumerate(zip(examples, task.rows(examples), strict=True))}
        asked = {i: next(talk) for i, talk in talks.items()}
        while asked:
            scores = iter(self.run(task, [row for rows in asked.values() for row in rows]))
            again = {}
            for i, rows in asked.items():
                try:
                    again[i] = talks[i].send([next(scores) for _ in rows])
                except StopIteration as done:
                    answers[i] = done.value
            asked = again
        return [answers[i] for i in range(len(examples))]

    def run(self, task: Task[Any, Any], rows: Sequence[Row]) -> list[Tensor]:
        """The scores of each row, in the order of the rows."""
        found: dict[int, Tensor] = {}
        with self.reading():
            for chosen in plan_batches([len(row.ids) for row in rows], self.budget):
                found.update(zip(chosen, self._score(task, [rows[i] for i in chosen]), strict=True))
        return [found[i] for i in range(len(rows))]

    def reading(self) -> AbstractContextManager[None]:
        """In which the network is asked."""
        return torch.no_grad() if self.keeps_grads else torch.inference_mode()

    def _score(self, task: Task[Any, Any], rows: Sequence[Row]) -> list[Tensor]:
        """The scores of a batch."""

        def read(some: slice) -> list[Tensor]:
            mine = rows[some]
            batch = Batch.of([row.ids for row in mine], [row.segments for row in mine], self.device)
            return task.scores(self.network, batch, mine)

        return self.halve(read, [len(row.ids) for row in rows], slice(0, len(rows)))

    def halve(self, read: Callable[[slice], list[Tensor]], lengths: Sequence[int] | Array, rows: slice) -> list[Tensor]:
        """What `read` gives for these rows; for their halves where memory does not suffice for all of them."""
        try:
            return read(rows)
        except torch.OutOfMemoryError:
            if rows.stop - rows.start == 1:
                raise BertsmithError(
                    f"not enough memory on {self.device} for a row of {lengths[rows.start]:,} tokens; cut it shorter, "
                    f"or use another device."
                ) from None
        if self.device.type == "cuda":  # out here, where what the failed attempt held is free
            torch.cuda.empty_cache()
        middle = (rows.start + rows.stop) // 2
        halves = slice(rows.start, middle), slice(middle, rows.stop)
        return [score for half in halves for score in self.halve(read, lengths, half)]
