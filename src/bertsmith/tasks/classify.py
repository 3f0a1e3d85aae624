"""Which class a text or a pair of texts belongs to, or which of several labels it has.

In: `TextExample`s. Out: a `Result` of `label, score`, best first. One label an example is a softmax over the classes,
several labels are a sigmoid each, taken where they reach their threshold.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np
from torch import Tensor

from bertsmith.data.batch import Batch
from bertsmith.data.examples import TextExample
from bertsmith.data.labels import text_examples
from bertsmith.data.table import Table
from bertsmith.errors import BertsmithError
from bertsmith.tasks import calibration, measures
from bertsmith.tasks.class_report import report_classes
from bertsmith.tasks.classes import (
    choose_function,
    confidences,
    found_matrix,
    gold_matrix,
    label_number,
    positive_label,
    settle_labels,
    take_positive,
)
from bertsmith.tasks.losses import Criterion, diverge
from bertsmith.tasks.measures import Array, Measure
from bertsmith.tasks.result import Result, check_finite
from bertsmith.tasks.task import Row
from bertsmith.tasks.text_rows import lay_out, refuse_other, settle_pairs
from bertsmith.tasks.texts import take_count
from bertsmith.tasks.trained import Settings, TrainedTask
from bertsmith.text.tokenizer import Tokenizer


class Classify(TrainedTask[TextExample, Result]):
    """`settings`: labels, several, truncate, length, and where they are known, tuned or chosen pairs (whether it learnt
    from pairs of texts), thresholds, temperature."""

    name = "classify"
    head = "classify"
    metric = "accuracy"
    roles: ClassVar[tuple[str, ...]] = ("text", "pair", "label")
    required: ClassVar[tuple[str, ...]] = ("text", "label")

    def __init__(
        self, tokenizer: Tokenizer, limit: int, truncate: str, settings: Settings, top_k: int | None = None,
        raw: bool = False, apply: str | None = None,
    ) -> None:  # fmt: skip
        """`top_k`: this many labels, whatever their scores; None: all classes, or the labels over their thresholds.

        `raw`: the head's own numbers as scores; `apply`: "softmax" or "sigmoid" of them in place of the model's way.
        In both all labels are answers, as no threshold was meant for such scores.
        """
        super().__init__(tokenizer, limit, truncate, settings)
        self.top_k = None if top_k is None else take_count("top_k", top_k)
        self.raw, self.apply = raw, choose_function(apply, raw)
        self.several = bool(settings["several"])
        self.problem = f"{'multi' if self.several else 'single'}_label_classification"
        if self.several:
            self.metric = "micro_f1"

    @classmethod
    def examples(
        cls, table: Table, columns: Mapping[str, str], choices: Mapping[str, Any], gold: bool = True
    ) -> list[TextExample]:
        """`choices`: several, separator, label_names, as in data/labels.py."""
        several, separator, names = map(choices.get, ("several", "separator", "label_names"))
        return text_examples(table, columns, several=several, separator=separator, label_names=names, gold=gold)

    @classmethod
    def settle(cls, examples: Sequence[TextExample], choices: Mapping[str, Any]) -> Settings:
        """`choices`: several (True, False; None: as the examples are), truncate, length, thresholds, positive."""
        labels, several = settle_labels(examples, choices.get("several"))
        settings: Settings = {"labels": labels, "several": several}
        settings |= {"truncate": choices.get("truncate") or cls.truncation, "length": choices.get("length")}
        settings |= settle_pairs(examples)
        if choices.get("positive") is not None:
            settings["positive"] = take_positive(choices["positive"], labels, several)
        fixed = calibration.fixed_threshold(choices.get("thresholds"), several)
        if fixed is not None:
            settings["thresholds"] = [fixed] * len(labels)
        return settings

    @classmethod
    def settings_from(cls, labels: Sequence[str], problem_type: str | None) -> Settings:
        """The settings of a folder made elsewhere, by the labels and the problem_type of its config.json."""
        if problem_type == "regression" and len(labels) > 1:
            raise BertsmithError(f"This model gives {len(labels)} numbers for a text; heads that give one are read.")
        if problem_type == "regression":
            raise BertsmithError("This model gives a number (problem_type is regression), not a class; use score.")
        lone = len(labels) == 1  # its sigmoid is the answer, however low
        several = lone or problem_type == "multi_label_classification"
        settings: Settings = {"labels": list(labels), "several": several, "truncate": cls.truncation, "length": None}
        return settings | ({"thresholds": [0.0]} if lone else {})

    def rows(self, examples: Sequence[TextExample]) -> list[list[Row]]:
        refuse_other(examples, self.settings)
        golds = [self._gold(example) for example in examples]
        return lay_out(self.tokenizer, examples, golds, self.length, self.truncate, self.windows)

    def loss(self, scores: Tensor, gold: Tensor, batch: Batch, criterion: Criterion) -> Tensor:
        return criterion.several(scores, gold) if self.several else criterion.choose(scores, gold)

    def diverge(self, one: Tensor, other: Tensor, batch: Batch) -> Tensor:
        """Of several labels: how far the yes and no of each are apart, the mean over the labels as in the loss."""
        if not self.several:
            return diverge(one, other)
        one, other = one.float(), other.float()
        return 0.5 * ((one.sigmoid() - other.sigmoid()) * (one - other)).mean(dim=-1)

    def combine(self, rows: Sequence[Row], scores: Sequence[Tensor]) -> Array:
        """One score a label, (labels,), of one row or of several windows: the mean, weighted by their tokens.

        The softmax of mean scores is the normalised geometric mean of the windows' probabilities, and the sigmoid that
        of their odds: one window that is unsure does not outweigh one that is sure, and a short last one says little.
        """
        windows = np.stack([score[0].double().numpy() for score in scores])
        return np.asarray(np.average(windows, axis=0, weights=[len(row.ids) for row in rows]))

    def chances(self, scores: Array, temperature: float | None = None) -> Array:
        """The probabilities of combined scores, (…, labels)."""
        cooled = scores / (temperature or self.settings.get("temperature") or 1.0)
        alone = self.several if self.apply is None else self.apply == "sigmoid"
        return calibration.sigmoid(cooled) if alone else calibration.softmax(cooled)

    def answer(self, example: TextExample, rows: Sequence[Row], scores: Sequence[Tensor]) -> Result:
        combined = self.combine(rows, scores)
        chances = combined if self.raw else self.chances(combined)
        check_finite(chances)
        order = np.argsort(-chances, kind="stable")[: self.top_k]
        if self.several and self.top_k is None and not self.raw and self.apply is None:
            thresholds = np.asarray(self.settings.get("thresholds") or [0.5] * len(chances))
            order = order[chances[order] >= thresholds[order]]
        labels = self.settings["labels"]
        answers = [{"label": labels[i], "score": float(chances[i])} for i in order]
        return Result(answers, truncated=sum(row.dropped for row in rows))

    def tune(self, examples: Sequence[TextExample], rows: Sequence[Sequence[Row]],
             scores: Sequence[Sequence[Tensor]], choices: Mapping[str, Any]) -> Settings:  # fmt: skip
        """`choices`: calibrate (a temperature is fitted), thresholds ("one" for all labels, or "each" its own)."""
        if not examples:
            return {}
        gold = gold_matrix(examples, self.labels)
        combined = np.stack([self.combine(*each) for each in zip(rows, scores, strict=True)])
        found: Settings = {}
        if choices.get("calibrate"):
            found["temperature"] = calibration.fit_temperature(combined, gold, self.several)
        if self.several and calibration.fixed_threshold(choices.get("thresholds"), True) is None:
            chances = self.chances(combined, found.get("temperature"))
            found["thresholds"] = calibration.find_thresholds(chances, gold, each=choices.get("thresholds") == "each")
        return found

    def brief(self) -> Self:
        """The best class alone: of a thousand classes the others would be a thousand answers a text. What trust was
        before a temperature is told by all of them."""
        if self.several or self.settings.get("temperature") or self.top_k is not None:
            return self
        made = self.tuned({})
        made.top_k = 1
        return made

    def score(self, answers: Sequence[Result], examples: Sequence[TextExample]) -> dict[str, Measure]:
        labels = self.labels
        gold, found = gold_matrix(examples, labels), found_matrix(answers, labels, self.several)
        counts, same = measures.count_labels(gold, found), (gold == found).all(axis=1)
        values: dict[str, Callable[[Array], Array]] = {
            "micro_f1": measures.micro_f1,
            "macro_f1": measures.macro_f1_of_all(counts) if self.several else measures.macro_f1_present,
            "weighted_f1": measures.weighted_f1,
        }
        names = tuple(label.removeprefix("LABEL_") for label in labels)  # as `label_number` knows them
        scored = {name: Measure(counts, value, labels=names, is_share=True) for name, value in values.items()}
        if self.several:
            return {**scored, "subset_accuracy": measures.mean(same)}
        scored["matthews"] = Measure(counts, measures.matthews, labels=names)
        if len(labels) == 2:
            own = measures.of_label(counts, labels.index(self.positive))
            scored["f1"] = Measure(own, measures.micro_f1, is_share=True)
        return {
            "accuracy": measures.mean(same),
            **scored,
            "ece": calibration.calibration_error(confidences(answers), same),
        }

    @property
    def positive(self) -> str:
        """The label of two whose F1 is told."""
        return str(self.settings.get("positive") or self.labels[positive_label(self.labels)])

    def report(self, answers: Sequence[Result], examples: Sequence[TextExample]) -> dict[str, Any]:
        return report_classes(answers, examples, self.settings)

    def _gold(self, example: TextExample) -> Any:
        """A label's number, or for several (1, labels) of 0 and 1; None where it is unknown."""
        if example.labels is None:
            return None
        if self.several:
            return gold_matrix([example], self.settings["labels"]).astype(np.float32)
        if len(example.labels) != 1:
            found = f"{example.where or 'An example'} has {len(example.labels)} labels"
            raise BertsmithError(f"{found}, but this model gives one a text; correct it, or train with several labels.")
        return label_number(example.labels[0], self.settings["labels"], example.where)
