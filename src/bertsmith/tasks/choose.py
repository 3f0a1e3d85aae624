"""Which of several choices goes with a prompt: the answer to a question, the end of a story.

In: `ChoiceExample`s, each with any number of choices. Out: a `Result` of `index, choice, score`, best first. Each row
is a prompt with one choice and has one score, and a softmax over the rows of an example compares them, so the order of
choices says nothing.
"""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from bertsmith.data.batch import Batch
from bertsmith.data.choices_data import choice_examples
from bertsmith.data.examples import ChoiceExample
from bertsmith.data.table import Table
from bertsmith.errors import BertsmithError
from bertsmith.tasks import measures
from bertsmith.tasks.calibration import softmax
from bertsmith.tasks.losses import Criterion
from bertsmith.tasks.measures import Array, Measure
from bertsmith.tasks.result import Result, check_finite
from bertsmith.tasks.task import Row, too_long
from bertsmith.tasks.texts import list_texts, pair_lists
from bertsmith.tasks.trained import MISTAKES, Settings, TrainedTask
from bertsmith.text.tokenizer import Tokenizer

RIGHT, WRONG = 0, -1  # the first of a row's two gold numbers; the second is its example's


class Choose(TrainedTask[ChoiceExample, Result]):
    """`settings`: labels (the output's name), truncate, length."""

    name = "choose"
    head = "choose"
    windows = False
    metric = "accuracy"
    roles: ClassVar[tuple[str, ...]] = ("prompt", "choices", "answer")
    required: ClassVar[tuple[str, ...]] = ("prompt", "answer")
    together: ClassVar[bool] = True
    classes: ClassVar[bool] = False

    def __init__(self, tokenizer: Tokenizer, limit: int, truncate: str, settings: Settings) -> None:
        super().__init__(tokenizer, limit, truncate, settings)
        self.refuse_windows()

    @classmethod
    def examples(
        cls, table: Table, columns: Mapping[str, str], choices: Mapping[str, Any], gold: bool = True
    ) -> list[ChoiceExample]:
        return choice_examples(table, columns, gold=gold)

    @classmethod
    def settle(cls, examples: Sequence[ChoiceExample], choices: Mapping[str, Any]) -> Settings:
        """`choices`: truncate, length."""
        given = {"truncate": choices.get("truncate") or cls.truncation, "length": choices.get("length")}
        return {"labels": ["choice"], **given}

    @classmethod
    def settings_from(cls, labels: Sequence[str], problem_type: str | None) -> Settings:
        """Whatever labels a config.json of others has: the head has one output, which they do not name."""
        return cls.settle([], {})

    def rows(self, examples: Sequence[ChoiceExample]) -> list[list[Row]]:
        """One row a choice."""
        prompts = [e.prompt for e in examples for _ in e.choices]
        choices = [choice for e in examples for choice in e.choices]
        cut = None if self.truncate == "error" else self.length
        encoded = self.tokenizer.encode_many(prompts, choices, length=cut, truncate=self.truncate if cut else "head")
        found, flat = [], iter(encoded)
        for number, example in enumerate(examples):
            rows = [Row(e.ids, e.segments, dropped=e.dropped) for e in (next(flat) for _ in example.choices)]
            longest = max(len(row.ids) for row in rows)
            if longest > self.length:
                raise too_long(longest, self.length, self.windows, example.where, "a choice with its prompt")
            for place, row in enumerate(rows):
                if example.right is not None:
                    row.gold = np.array([[RIGHT if place == example.right else WRONG, number]])
            found.append(rows)
        return found

    def gold(self, rows: Sequence[Any]) -> Array:
        """(rows, 2): whether a choice is right, and which rows of this pass are its example's, by a number."""
        gold = np.concatenate([row.gold for row in rows])
        gold[:, 1] = np.unique(gold[:, 1], return_inverse=True)[1]
        return gold

    def loss(self, scores: Tensor, gold: Tensor, batch: Batch, criterion: Criterion) -> Tensor:
        """Cross-entropy over the rows of an example; it stands at the row that is right, and the others cost 0.

        Each row's normaliser is a sum over a masked (rows, rows) table: of a fixed shape whatever the examples hold,
        and added up in one order, where scattered sums on a GPU are not the same twice.
        """
        is_right, group = gold[:, 0] == RIGHT, gold[:, 1]
        scores = torch.where(group >= 0, scores[:, 0].float(), 0.0)
        same = group[:, None] == group[None, :]
        whole = torch.where(same, scores[None, :], -torch.inf).logsumexp(dim=1)
        return torch.where(is_right, whole - scores, 0.0)

    def answer(self, example: ChoiceExample, rows: Sequence[Row], scores: Sequence[Tensor]) -> Result:
        chances = softmax(np.array([float(score[0, 0]) for score in scores]))
        check_finite(chances)
        answers = [
            {"index": int(i), "choice": example.choices[i], "score": float(chances[i])}
            for i in np.argsort(-chances, kind="stable")
        ]
        return Result(answers, truncated=sum(row.dropped for row in rows))

    def score(self, answers: Sequence[Result], examples: Sequence[ChoiceExample]) -> dict[str, Measure]:
        return {"accuracy": measures.mean(find_right(answers, examples))}

    def report(self, answers: Sequence[Result], examples: Sequence[ChoiceExample]) -> dict[str, Any]:
        """The wrong answers, the surest first."""
        wrong = np.flatnonzero(~find_right(answers, examples)).tolist()
        errors = [
            {"text": examples[i].prompt, "where": examples[i].where, "score": answers[i].answers[0]["score"],
             "predicted": answers[i].answers[0]["choice"], "gold": examples[i].choices[examples[i].right or 0]}
            for i in wrong
        ]  # fmt: skip
        return {"labels": [], "errors": sorted(errors, key=lambda error: -error["score"])[:MISTAKES]}


def find_right(answers: Sequence[Result], examples: Sequence[ChoiceExample]) -> Array:
    """Which examples got the right choice; one whose right choice is unknown cannot be scored."""
    unknown = next((e.where for e in examples if e.right is None), None)
    if unknown is not None:
        raise BertsmithError(f"{unknown or 'An example'} has no answer to score by; give one or take it out.")
    pairs = zip(answers, examples, strict=True)
    return np.array([result.answers[0]["index"] == example.right for result, example in pairs], dtype=bool)


def offer(prompt: Any, choices: Any) -> list[ChoiceExample]:
    """The examples of a request: a prompt with its choices, or several prompts with a list of choices each."""
    if isinstance(prompt, str):
        return [ChoiceExample(prompt, take_choices(choices))]
    pairs = pair_lists("choose", prompt, choices, ("prompt", "prompts"), "choices")
    return [ChoiceExample(one, take_choices(some)) for one, some in pairs]


def take_choices(given: Any) -> tuple[str, ...]:
    """The choices of a request: two or more, each another one."""
    choices = list_texts(given)
    if len(choices) < 2:
        raise BertsmithError(
            "one choice is no choice; give at least two." if choices else "there are no choices; give at least two."
        )
    twice = next((choice for i, choice in enumerate(choices) if choice in choices[:i]), None)
    if twice is not None:
        raise BertsmithError(f"the choice {twice!r} is there twice; give each once.")
    return tuple(choices)
