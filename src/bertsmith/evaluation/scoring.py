"""Examples to answers to scores, by the very path that predicts; what may be tuned on them is tuned on request."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from bertsmith.evaluation.intervals import interval
from bertsmith.tasks.measures import Measure
from bertsmith.tasks.predicting import Predictor
from bertsmith.tasks.task import Row
from bertsmith.tasks.trained import TrainedTask
from bertsmith.training.devices import cast, choose_precision


@dataclass
class Scored:
    task: TrainedTask[Any, Any]  # with what was tuned
    examples: Sequence[Any]
    rows: list[list[Row]]
    scores: list[list[Tensor]]
    answers: list[Any]
    measures: dict[str, Measure]

    def metrics(self) -> dict[str, dict[str, float]]:
        return with_intervals(self.measures, len(self.examples))


def with_intervals(measures: Mapping[str, Measure], examples: int) -> dict[str, dict[str, float]]:
    """Each metric with its interval and the examples that count in it, plain JSON."""
    found = {}
    for name, measure in measures.items():
        low, high = interval(measure)
        found[name] = {"value": measure.point, "low": low, "high": high}
        found[name]["n"] = examples if measure.among is None else measure.among
    return found


def score_examples(
    predictor: Predictor, task: TrainedTask[Any, Any], examples: Sequence[Any], tune: Mapping[str, Any] | None,
    precision: str = "fp32", rows: list[list[Row]] | None = None,
) -> Scored:  # fmt: skip
    """With `tune`, the choices by which thresholds and the like are set on these examples first.

    `rows` are those of the examples, where they were made already.
    """
    rows = task.rows(examples) if rows is None else rows
    with cast(choose_precision(precision, predictor.device), predictor.device):
        flat = iter(predictor.run(task, [row for some in rows for row in some]))
    scores = [[next(flat) for _ in some] for some in rows]
    if tune is not None:
        task = task.tuned(task.tune(examples, rows, scores, tune))
    brief = task.brief()
    answers = [brief.answer(*each) for each in zip(examples, rows, scores, strict=True)]
    return Scored(task, examples, rows, scores, answers, task.score(answers, examples))
