"""Classes that a model never saw, judged by a model of natural-language inference (arXiv 1909.00161).

In: texts, and labels that become hypotheses ("This example is {}."). Out: a `Result` of `label, score`, best first: a
softmax over how far the text entails each hypothesis; with several labels a text, entailment against contradiction for
each. As in the zero-shot pipeline of `transformers`.
"""

from collections.abc import Sequence

import numpy as np
from torch import Tensor

from bertsmith.errors import BertsmithError
from bertsmith.tasks.calibration import sigmoid, softmax
from bertsmith.tasks.result import Result, check_finite
from bertsmith.tasks.task import Row, Task
from bertsmith.tasks.texts import is_iterable, list_texts, take_count
from bertsmith.text.tokenizer import Tokenizer

HYPOTHESIS = "This example is {}."
ENTAILS = ("entail",)
CONTRADICTS = ("contradict", "notentail")


class ZeroShot(Task[str, Result]):
    name = "classify"
    head = "classify"
    windows = False

    def __init__(
        self, tokenizer: Tokenizer, limit: int, truncate: str, outputs: Sequence[str], labels: Sequence[str],
        hypothesis: str = HYPOTHESIS, several: bool = False, top_k: int | None = None,
    ) -> None:  # fmt: skip
        """`outputs` are the names of the head's; `labels` those that a text may have."""
        super().__init__(tokenizer, limit, truncate)
        self.refuse_windows()
        self.labels = take_labels(labels)
        self.hypotheses = [fill_hypothesis(hypothesis, label) for label in self.labels]
        self.entails, self.contradicts = find_output(outputs, ENTAILS), find_output(outputs, CONTRADICTS)
        self.several = several or len(self.labels) == 1  # a lone label would always be certain
        self.top_k = None if top_k is None else take_count("top_k", top_k)

    def rows(self, examples: Sequence[str]) -> list[list[Row]]:
        """One row a label; of a long text so much is cut that the hypothesis, which is short, stands whole."""
        texts = [text for text in examples for _ in self.labels]
        encodings = self.encode_all(texts, self.hypotheses * len(examples))
        rows = [Row(e.ids, e.segments, dropped=e.dropped) for e in encodings]
        return [rows[start : start + len(self.labels)] for start in range(0, len(rows), len(self.labels))]

    def answer(self, example: str, rows: Sequence[Row], scores: Sequence[Tensor]) -> Result:
        found = np.stack([score[0].double().numpy() for score in scores])
        entailed = found[:, self.entails]
        chances = sigmoid(entailed - found[:, self.contradicts]) if self.several else softmax(entailed)
        check_finite(chances)
        order = np.argsort(-chances, kind="stable")[: self.top_k]
        answers = [{"label": self.labels[i], "score": float(chances[i])} for i in order]
        return Result(answers, truncated=max(row.dropped for row in rows))


def judges_labels(outputs: Sequence[str]) -> bool:
    """Whether a head with these outputs is one of natural-language inference."""
    return all(len(_find_outputs(outputs, starts)) == 1 for starts in (ENTAILS, CONTRADICTS))


def _find_outputs(outputs: Sequence[str], starts: Sequence[str]) -> list[int]:
    names = ["".join(filter(str.isalpha, name)).casefold() for name in outputs]
    return [number for number, name in enumerate(names) if name.startswith(tuple(starts))]


def find_output(outputs: Sequence[str], starts: Sequence[str]) -> int:
    """The number of the output whose name begins so, letters alone."""
    found = _find_outputs(outputs, starts)
    if len(found) != 1:
        raise BertsmithError(
            f"this model has no one label for {'entailment' if starts == ENTAILS else 'contradiction'} (its labels: "
            f"{', '.join(outputs[:8])}), so it cannot judge labels it never learnt; give a model trained on NLI."
        )
    return found[0]


def take_labels(labels: Sequence[str]) -> list[str]:
    """The labels to choose from: at least one, each a name of its own."""
    if isinstance(labels, str) or not is_iterable(labels):
        raise BertsmithError(f"labels must be a list, as in ['sport', 'politics'], not {labels!r:.60}.")
    found = [label.strip() for label in list_texts(labels)]
    if not found or "" in found:
        raise BertsmithError("labels must name one class or more, none of them empty.")
    twice = next((label for i, label in enumerate(found) if label in found[:i]), None)
    if twice is not None:
        raise BertsmithError(f"the label {twice!r} is there twice; give each once.")
    return found


def fill_hypothesis(hypothesis: str, label: str) -> str:
    if not isinstance(hypothesis, str) or hypothesis.count("{}") != 1:
        raise BertsmithError(f"hypothesis is {hypothesis!r}; it must hold {{}} once, the place of the label.")
    return hypothesis.replace("{}", label)
