"""What a job's answer comes down to: for each row that it reads, the one raw number that made the answer.

In: a model, a job by its name and what the job is asked. Out: `Aim`s. A raw number is the head's own, before softmax,
sigmoid and temperature, since those let the scores of other answers in. To explain a job of one's own, make an `Aim`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from torch import Tensor

from bertsmith.data.batch import Batch
from bertsmith.errors import BertsmithError
from bertsmith.inspection.subject import Subject
from bertsmith.models.network import Network
from bertsmith.tasks.task import Row, Task
from bertsmith.tasks.trained import TrainedTask
from bertsmith.text.encoding import Encoding


@runtime_checkable
class Able(Subject, Protocol):
    """A subject that can be asked for jobs, as `bertsmith.Model` can."""

    def need(self, head: str, what: str = "do that", task: str = "", pairs: bool | None = None) -> Any: ...

    def task_settings(self, kind: type[TrainedTask[Any, Any]]) -> dict[str, Any]: ...


@dataclass(frozen=True)
class Aim:
    """One row, and the number of it that is explained."""

    name: str  # of what is read: "text", "prompt and choice"
    texts: tuple[str, ...]
    encoding: Encoding  # of the row, which knows the texts' words
    row: Row
    task: Task[Any, Any]
    number: Callable[[Tensor], Tensor]  # of the row's scores; a sum or a pick, so that gradients pass

    def read(self, network: Network, batch: Batch) -> list[Tensor]:
        """The number of each row of a batch that holds this row, or others as long, any number of times."""
        scores = self.task.scores(network, batch, [self.row] * len(batch.lengths))
        return [self.number(each) for each in scores]


@dataclass(frozen=True)
class Asked:
    """A job that was asked: whose network answers, what is explained, in words, and the aims."""

    job: str
    home: Subject
    target: str
    explained: str
    aims: list[Aim]


def see(home: Subject, task: Task[Any, Any], rows: Sequence[Row]) -> list[Tensor]:
    """The raw scores of rows, as they stand."""
    return home.predictor.run(task, rows)


def pick(target: Any, names: Sequence[str], what: str, scores: Tensor) -> int:
    """The number of the output that is explained: the one that was named, or the largest."""
    if target is None:
        return int(scores.argmax())
    if isinstance(target, str):
        if target in names:
            return list(names).index(target)
        target = int(target) if target.isdecimal() else target  # as a command line gives a number
    if isinstance(target, int) and not isinstance(target, bool) and 0 <= target < len(names):
        return target
    listed = ", ".join(map(repr, names[:8])) + (" …" if len(names) > 8 else "")
    raise BertsmithError(f"target={target!r} is no {what} here; use one of {listed}, or its number from 0.")
