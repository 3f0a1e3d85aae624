"""Classes by name and by number: their order, which is the positive one; answers and gold as arrays and tables.

In: answers (`label, score`, best first) and the examples they are for. Out: what measures and reports count.
"""

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from math import isfinite
from typing import Any

import numpy as np

from bertsmith.data.examples import TextExample
from bertsmith.errors import BertsmithError
from bertsmith.tasks.measures import Array, count_labels, tabulate
from bertsmith.tasks.result import Result

FUNCTIONS = ("softmax", "sigmoid")  # that make chances of a head's numbers
_YES = ("1", "yes", "y", "true", "t", "positive", "pos", "spam", "label_1")
_NOT = ("not", "no", "non", "un", "in")


def choose_function(apply: str | None, raw: bool) -> str | None:
    """What is made of a head's numbers; None: what the model learnt with."""
    if apply is not None and apply not in FUNCTIONS:
        raise BertsmithError(f"apply={apply!r} is not a choice; use one of {', '.join(map(repr, FUNCTIONS))}.")
    if apply is not None and raw:
        raise BertsmithError(f"raw scores are those before any function, so apply={apply!r} cannot be; leave one out.")
    return apply


def order_labels(labels: Iterable[str]) -> list[str]:
    """Each once: in the order of the numbers if all are numbers, else in that of the letters."""
    known = sorted(set(labels))
    try:
        numbers = {label: float(label) for label in known}
    except ValueError:
        return known
    return sorted(known, key=numbers.__getitem__) if all(map(isfinite, numbers.values())) else known  # "nan" is a word


def settle_labels(examples: Sequence[TextExample], several: bool | None) -> tuple[list[str], bool]:
    """The labels of examples in their order, and whether a text may have several: as chosen, or as the examples are."""
    for example in examples:
        count = -1 if example.labels is None else len(example.labels)
        if count < 0 or (count != 1 and several is False):
            found = "no label" if count < 1 else f"{count} labels where one is asked for"
            raise BertsmithError(f"{example.where or 'An example'} has {found}; correct or remove it.")
    several = several or any(len(example.labels or ()) != 1 for example in examples)
    labels = order_labels(label for example in examples for label in example.labels or ())
    if len(labels) < (1 if several else 2):
        found = f"all have the label {labels[0]!r}" if labels else "none has a label"
        raise BertsmithError(f"Of {len(examples):,} examples {found}; give examples of at least two classes.")
    return labels, several


def label_number(label: str, labels: Sequence[str], where: str = "") -> int:
    """The number of a label; `1` also finds `LABEL_1`, the name that Hugging Face gives to labels without one."""
    for name in (label, f"LABEL_{label}"):
        if name in labels:
            return labels.index(name)
    near = get_close_matches(label, labels, n=1)
    known = ", ".join(map(repr, labels[:10])) + (f" and {len(labels) - 10} more" if len(labels) > 10 else "")
    raise BertsmithError(
        f"{where + ': ' if where else ''}the label {label!r} is not one of the model's ({known}); "
        + (f"did you mean {near[0]!r}?" if near else "correct it, or train on examples that have it.")
    )


def positive_label(labels: Sequence[str]) -> int:
    """Of two labels the one whose F1 is meant by "the F1", a number.

    The one with a name like 1, yes, true, positive or spam; else the one that the other negates (`duplicate` of
    `not_duplicate`); else the second. It never depends on how many examples each has, so splits stay comparable.
    """
    names = [label.strip().lower() for label in labels]
    named = [name in _YES for name in names]
    if sum(named) == 1:
        return named.index(True)
    letters = ["".join(filter(str.isalnum, name)) for name in names]
    return 0 if letters[1] in {word + letters[0] for word in _NOT} else 1


def take_positive(given: str, labels: Sequence[str], several: bool) -> str:
    """The label of two that was chosen as the one whose F1 is told; where nothing would come of it, an error."""
    if several or len(labels) != 2:
        why = "these texts may have several labels" if several else f"there are {len(labels):,} labels here"
        raise BertsmithError(f"positive names the label of two whose F1 is told, but {why}; leave it out.")
    return labels[label_number(given, labels, "positive")]


def gold_matrix(examples: Sequence[TextExample], labels: Sequence[str]) -> Array:
    """Which labels each example has, (examples, labels)."""
    gold = np.zeros((len(examples), len(labels)), dtype=bool)
    for row, example in zip(gold, examples, strict=True):
        if example.labels is None:
            raise BertsmithError(f"{example.where or 'An example'} has no label, so it cannot be scored; give it one.")
        row[[label_number(label, labels, example.where) for label in example.labels]] = True
    return gold


def found_matrix(answers: Sequence[Result], labels: Sequence[str], several: bool) -> Array:
    """Which labels each answer gives, (answers, labels): the best one, or with several all that it names."""
    numbers = {label: number for number, label in enumerate(labels)}
    found = np.zeros((len(answers), len(labels)), dtype=bool)
    for row, result in zip(found, answers, strict=True):
        row[[numbers[answer["label"]] for answer in (result.answers if several else result.answers[:1])]] = True
    return found


def confidences(answers: Sequence[Result]) -> Array:
    """The probability of each best answer."""
    return np.array([result.answers[0]["score"] for result in answers], dtype=np.float64)


def best_right(answers: Sequence[Result], examples: Sequence[TextExample], labels: Sequence[str]) -> Array:
    """Whether each best answer is the gold, for one label an example."""
    return np.asarray((gold_matrix(examples, labels) & found_matrix(answers, labels, several=False)).any(axis=1))


def confusion(answers: Sequence[Result], examples: Sequence[TextExample], labels: Sequence[str]) -> Array:
    """How many examples of label i (row) were given label j (column), for one label an example."""
    rows, gold = np.nonzero(gold_matrix(examples, labels))
    found = found_matrix(answers, labels, several=False).argmax(axis=1)[rows]
    # Counted, as a product of whole numbers takes minutes where there are thousands of labels.
    counts = np.bincount(gold * len(labels) + found, minlength=len(labels) ** 2)
    return counts.reshape(len(labels), len(labels))


def label_table(
    answers: Sequence[Result], examples: Sequence[TextExample], labels: Sequence[str], several: bool = False
) -> list[dict[str, Any]]:
    """A row a label, as in `tabulate`."""
    counts = count_labels(gold_matrix(examples, labels), found_matrix(answers, labels, several))
    return tabulate(labels, counts.sum(axis=0))
