"""SQuAD's official scoring: how right the text of an answer is, and the threshold below which an answer is given.

In: texts of answers and the examples with their gold. Out: measures as fractions (exact, f1, and their parts where
some questions have no answer). The rules are those of the two published scripts, evaluate-v1.1.py and evaluate-v2.0.py;
data in which a question without an answer occurs is scored by the second. They differ in what is empty once articles
and punctuation are gone: the second gives such texts F1 1 against each other and drops such gold beside fuller ones.
"""

import re
import string
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from bertsmith.data.examples import SpanExample
from bertsmith.errors import BertsmithError
from bertsmith.tasks.measures import Array, Measure, share

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_WITHOUT_PUNCTUATION = str.maketrans("", "", string.punctuation)  # ASCII only, as in the scripts


def normalise(text: str) -> str:
    """Lower case, without punctuation and English articles, single spaces."""
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_WITHOUT_PUNCTUATION)).split())


def overlap(answer: str, gold: str, empties_count: bool) -> float:
    """F1 over the words of two normalised texts; `empties_count`: two empty ones agree (2.0)."""
    words, wanted = answer.split(), gold.split()
    if empties_count and not (words and wanted):
        return float(words == wanted)
    same = sum((Counter(words) & Counter(wanted)).values())
    if not same:
        return 0.0
    precision, recall = same / len(words), same / len(wanted)
    return 2 * precision * recall / (precision + recall)


@dataclass(frozen=True)
class Scored:
    """What each example's answer is worth; all arrays (examples,)."""

    exact: Array
    f1: Array
    labelled: Array  # bool: the gold is known
    answerable: Array  # bool: the gold is an answer
    given: Array  # bool: the answer is not empty


def score_texts(texts: Sequence[str | None], examples: Sequence[SpanExample]) -> Scored:
    """Each text against the gold answer that suits it best; None (no prediction) is wrong whatever the gold is."""
    second = any(example.answers == () for example in examples)
    golds = [[normalise(answer) for answer, _ in example.answers or ()] for example in examples]
    if second:
        golds = [[gold for gold in some if gold] or [""] for some in golds]
    labelled = np.array([example.answers is not None for example in examples], bool)
    exact, f1 = np.zeros(len(examples)), np.zeros(len(examples))
    for i, (text, some) in enumerate(zip(texts, golds, strict=True)):
        if text is not None and labelled[i]:
            said = normalise(text)
            exact[i] = said in some
            f1[i] = max(overlap(said, gold, second) for gold in some)
    answerable = np.array([bool(example.answers) for example in examples], bool)
    return Scored(exact, f1, labelled, answerable, np.array([bool(text) for text in texts], bool))


def measure(scored: Scored) -> dict[str, Measure]:
    """F1 and exact match; where questions without an answer occur, also those of each of the two kinds."""
    found = {"f1": _mean(scored.f1, scored.labelled), "exact": _mean(scored.exact, scored.labelled)}
    parts = {"has_answer": scored.labelled & scored.answerable, "no_answer": scored.labelled & ~scored.answerable}
    if parts["no_answer"].any():
        for name, part in parts.items():
            if part.any():
                found[f"{name}_f1"], found[f"{name}_exact"] = _mean(scored.f1, part), _mean(scored.exact, part)
    return found


@dataclass(frozen=True)
class Threshold:
    """`at` is the official one: the no-answer score of the last answer given, 0.0 if none; `given` marks all those."""

    at: float
    given: Array  # bool (examples,)
    measure: Measure


def best_threshold(scored: Scored, worth: Array, no_answer: Array) -> Threshold:
    """How many answers to give, those with the least no-answer score first, so that the sum of `worth` is largest.

    `worth` is the exact or the f1 of every answer as if all were given. As in the script: the first best count wins,
    equal scores are taken in their order, one by one.
    """
    order = np.flatnonzero(scored.labelled)
    order = order[np.argsort(no_answer[order], kind="stable")]
    silent = (~scored.answerable).astype(float)  # without an answer a question that has none is right
    gains = np.where(scored.answerable, worth, -scored.given.astype(float))
    count = int(np.argmax(np.cumsum([silent[order].sum(), *gains[order]])))
    given = np.zeros(len(worth), bool)
    given[order[:count]] = True
    at = float(no_answer[order[count - 1]]) if count else 0.0
    return Threshold(at, given, _mean(silent + np.where(given, gains, 0.0), scored.labelled))


def score_predictions(
    predictions: Mapping[str, str], examples: Sequence[SpanExample], no_answer: Mapping[str, float] | None = None
) -> dict[str, Measure]:
    """The measures of predictions by question id; with no-answer scores also `best_exact` and `best_f1`."""
    scored = score_texts([predictions.get(example.id) for example in examples], examples)
    found = measure(scored)
    if no_answer is not None:
        for name, best in find_thresholds(scored, examples, no_answer).items():
            found[f"best_{name}"] = best.measure
    return found


def find_thresholds(
    scored: Scored, examples: Sequence[SpanExample], no_answer: Mapping[str, float]
) -> dict[str, Threshold]:
    """The best thresholds for `exact` and for `f1`, from no-answer scores by question id."""
    missing = next((example for example in examples if example.id not in no_answer), None)
    if missing is not None:
        raise BertsmithError(
            f'The no-answer scores lack question "{missing.id}"; give a score for every question, or none at all.'
        )
    scores = np.array([no_answer[example.id] for example in examples], float)
    return {name: best_threshold(scored, worth, scores) for name, worth in (("exact", scored.exact), ("f1", scored.f1))}


def _mean(values: Array, among: Array) -> Measure:
    """Over some of the examples; a sample that has missed all of them says nothing (nan), unless there are none."""
    nothing = np.nan if among.any() else 0.0

    def value(sums: Array) -> Array:
        return np.where(sums[..., 1] > 0, share(sums[..., 0], sums[..., 1]), nothing)

    counts = np.stack([np.where(among, values, 0.0), among.astype(float)], axis=1)
    return Measure(counts, value, among=int(among.sum()), is_share=True)
