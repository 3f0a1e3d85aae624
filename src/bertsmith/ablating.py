"""`bertsmith.inspect.ablate`: the score of a model on labelled data without each of its attention heads.

In: a loaded model and data as `evaluate` takes it. Out: a `HeadEffects`; the score is the one that `evaluate` gives.
"""

from collections.abc import Sequence
from typing import Any

from bertsmith.evaluating import find_kind, open_table, prepare
from bertsmith.inspection.ablation import HeadEffects, Tell, ablate_examples
from bertsmith.model import Model
from bertsmith.tasks.catalog import find_task
from bertsmith.training.choices import refuse_training, sort_choices


def ablate(
    model: Model, data: Any, *, task: str | None = None, heads: Sequence[Any] | str | None = None,
    format: str | None = None, tell: Tell | None = None, **settings: Any,
) -> HeadEffects:  # fmt: skip
    """How the main score on `data` changes when heads are cut: each alone, or all of `heads` ("3.5,2.1") together.

    `data`, `task`, `format` and `settings` (columns and the task's choices) are as in `bertsmith.evaluate`. Each change
    has the interval and p of a comparison with the whole model, example by example, and the number of other answers.
    `tell` hears how far it is, as ("heads", done, all).
    """
    choices, _, columns = sort_choices(settings)
    refuse_training(settings)
    kind = find_task(task or find_kind(model))
    home, made, examples = prepare(model, kind, open_table(data, format), columns, choices)
    return ablate_examples(home, made, examples, heads, tell)
