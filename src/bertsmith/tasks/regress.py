"""A number for a text or a pair of texts: how alike they are, how many stars, what a thing costs.

In: `NumberExample`s. Out: a `Result` of one `score`. The head has one output and learns, by squared error, the number
less the training mean in units of their spread, so that prices and shares learn alike; at the end both are worked into
the output layer, and other libraries read the plain number from it.
"""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from bertsmith.data.batch import Batch
from bertsmith.data.examples import NumberExample
from bertsmith.data.numbers import number_examples
from bertsmith.data.table import Table
from bertsmith.errors import BertsmithError
from bertsmith.models.network import Network
from bertsmith.tasks import correlations
from bertsmith.tasks.losses import Criterion, find_known
from bertsmith.tasks.measures import Array, Measure
from bertsmith.tasks.result import Result, check_finite
from bertsmith.tasks.task import Row
from bertsmith.tasks.text_rows import lay_out, refuse_other, settle_pairs
from bertsmith.tasks.trained import MISTAKES, Settings, TrainedTask
from bertsmith.text.tokenizer import Tokenizer


class Regress(TrainedTask[NumberExample, Result]):
    """`settings`: labels (the output's name), truncate, length, where it is known pairs (whether it learnt from pairs
    of texts); while it trains mean and spread."""

    name = "regress"
    head = "classify"
    metric = "pearson"
    roles: ClassVar[tuple[str, ...]] = ("text", "pair", "label")
    required: ClassVar[tuple[str, ...]] = ("text", "label")
    classes: ClassVar[bool] = False
    problem = "regression"

    def __init__(self, tokenizer: Tokenizer, limit: int, truncate: str, settings: Settings) -> None:
        super().__init__(tokenizer, limit, truncate, settings)
        self.mean, self.spread = float(settings.get("mean", 0.0)), float(settings.get("spread", 1.0))

    @classmethod
    def examples(
        cls, table: Table, columns: Mapping[str, str], choices: Mapping[str, Any], gold: bool = True
    ) -> list[NumberExample]:
        return number_examples(table, columns, gold=gold)

    @classmethod
    def settle(cls, examples: Sequence[NumberExample], choices: Mapping[str, Any]) -> Settings:
        """`choices`: truncate, length."""
        numbers = np.array([e.number for e in examples if e.number is not None], dtype=np.float64)
        if not len(numbers):
            raise BertsmithError("no training example has a number, so there is nothing to learn; name its column.")
        with np.errstate(over="ignore", invalid="ignore"):  # of numbers that are too large, as is said below
            mean, spread = float(numbers.mean()), float(numbers.std())
        if not np.isfinite(spread) or numbers.min() == numbers.max():
            why = f"all {len(numbers):,} of train are {numbers[0]:g}" if np.isfinite(spread) else "they are too large"
            raise BertsmithError(f"the numbers cannot be learned, for {why}; choose another column, or correct them.")
        settings: Settings = {"labels": ["score"], "mean": mean, "spread": spread, **settle_pairs(examples)}
        return settings | {"truncate": choices.get("truncate") or cls.truncation, "length": choices.get("length")}

    @classmethod
    def settings_from(cls, labels: Sequence[str], problem_type: str | None) -> Settings:
        if problem_type == "regression" and len(labels) > 1:
            raise BertsmithError(f"This model gives {len(labels)} numbers for a text; heads that give one are read.")
        if len(labels) != 1 or problem_type not in ("regression", None):
            named = ", ".join(labels[:5]) + (" …" if len(labels) > 5 else "")
            raise BertsmithError(f"This model tells classes ({named}), not a number; use classify.")
        return {"labels": list(labels), "truncate": cls.truncation, "length": None}

    def rows(self, examples: Sequence[NumberExample]) -> list[list[Row]]:
        refuse_other(examples, self.settings)
        golds = [None if e.number is None else np.float32((e.number - self.mean) / self.spread) for e in examples]
        return lay_out(self.tokenizer, examples, golds, self.length, self.truncate, self.windows)

    def loss(self, scores: Tensor, gold: Tensor, batch: Batch, criterion: Criterion) -> Tensor:
        missed = scores[:, 0].float() - gold.nan_to_num(0.0)
        return torch.where(find_known(gold), missed.square(), 0.0)

    def diverge(self, one: Tensor, other: Tensor, batch: Batch) -> Tensor:
        return (one[:, 0].float() - other[:, 0].float()).square()

    def fold(self, network: Network) -> Settings:
        with torch.no_grad():
            out: Any = network.get_submodule(f"heads.{self.head}.out")
            out.weight.mul_(self.spread)
            out.bias.mul_(self.spread).add_(self.mean)
        return {"mean": 0.0, "spread": 1.0}

    def unfold(self, network: Network) -> None:
        with torch.no_grad():
            out: Any = network.get_submodule(f"heads.{self.head}.out")
            out.weight.div_(self.spread)
            out.bias.sub_(self.mean).div_(self.spread)

    def answer(self, example: NumberExample, rows: Sequence[Row], scores: Sequence[Tensor]) -> Result:
        """Of several windows the mean, weighted by their tokens."""
        windows = np.array([float(score[0, 0]) for score in scores])
        number = np.average(windows, weights=[len(row.ids) for row in rows]) * self.spread + self.mean
        check_finite(np.asarray(number))
        return Result([{"score": float(number)}], truncated=sum(row.dropped for row in rows))

    def score(self, answers: Sequence[Result], examples: Sequence[NumberExample]) -> dict[str, Measure]:
        found, gold = take_numbers(answers, examples)
        return {
            "pearson": correlations.pearson(found, gold),
            "spearman": correlations.spearman(found, gold),
            "mse": correlations.squared_error(found, gold),
            "mae": correlations.absolute_error(found, gold),
        }

    def report(self, answers: Sequence[Result], examples: Sequence[NumberExample]) -> dict[str, Any]:
        """The answers that are farthest off."""
        found, gold = take_numbers(answers, examples)
        order = np.argsort(-np.abs(found - gold), kind="stable")[:MISTAKES]
        errors = [
            {"text": examples[i].text, "pair": examples[i].pair, "where": examples[i].where,
             "predicted": f"{found[i]:.4g}", "gold": f"{gold[i]:.4g}"}
            for i in order
        ]  # fmt: skip
        return {"labels": [], "pairs": any(e.pair is not None for e in examples), "errors": errors}


def take_numbers(answers: Sequence[Result], examples: Sequence[NumberExample]) -> tuple[Array, Array]:
    """What was said and what is right; an example without a number cannot be scored."""
    unknown = next((e.where for e in examples if e.number is None), None)
    if unknown is not None:
        raise BertsmithError(f"{unknown or 'An example'} has no number to score by; give one or take it out.")
    found = np.array([result.answers[0]["score"] for result in answers], dtype=np.float64)
    return found, np.array([e.number for e in examples], dtype=np.float64)
