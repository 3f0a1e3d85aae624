"""What a run's report shows of a classifier's answers: who is taken for whom, each label's scores, trust, mistakes.

In: answers, their examples and the task's settings. Out: plain JSON, the fields of `evaluation/report/facts.py`.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from bertsmith.data.examples import TextExample
from bertsmith.tasks.calibration import calibration_error, reliability
from bertsmith.tasks.classes import best_right, confidences, confusion, label_number, label_table
from bertsmith.tasks.measures import Array
from bertsmith.tasks.result import Result
from bertsmith.tasks.trained import MISTAKES


def report_classes(
    answers: Sequence[Result], examples: Sequence[TextExample], settings: Mapping[str, Any]
) -> dict[str, Any]:
    labels, several = settings["labels"], settings["several"]
    found: dict[str, Any] = {
        "several": several,
        "pairs": any(example.pair is not None for example in examples),
        "labels": labels,
        "per_label": label_table(answers, examples, labels, several),
        "errors": list_mistakes(answers, examples, labels, several),
    }
    if several:
        return found | {"thresholds": dict(zip(labels, settings.get("thresholds") or [0.5] * len(labels), strict=True))}
    found["confusion"] = {"labels": labels, "counts": confusion(answers, examples, labels).tolist()}
    return found | {"reliability": report_trust(answers, examples, settings)}


def report_trust(
    answers: Sequence[Result], examples: Sequence[TextExample], settings: Mapping[str, Any]
) -> dict[str, Any]:
    """The bins of the reliability diagram and the calibration error; with a temperature, also as it was without."""
    right, sure = best_right(answers, examples, settings["labels"]), confidences(answers)
    found: dict[str, Any] = {"bins": reliability(sure, right), "ece_after": calibration_error(sure, right).point}
    temperature = settings.get("temperature")
    if temperature:
        plain = _undo(answers, temperature)
        found |= {"before": reliability(plain, right), "ece_before": calibration_error(plain, right).point}
        found["temperature"] = temperature
    return found


def list_mistakes(
    answers: Sequence[Result], examples: Sequence[TextExample], labels: Sequence[str], several: bool
) -> list[dict[str, Any]]:
    """Wrong answers, the surest first: by the best label that should not be there; last where only some are missing."""
    found: list[tuple[float, dict[str, Any]]] = []
    for result, example in zip(answers, examples, strict=True):
        given = {answer["label"]: answer["score"] for answer in result.answers[: None if several else 1]}
        gold = [labels[label_number(label, labels)] for label in example.labels or ()]
        if set(given) == set(gold):
            continue
        score = max((score for label, score in given.items() if label not in gold), default=None)
        texts = {"text": example.text, "pair": example.pair, "where": example.where}
        said = (
            {"predicted": list(given), "gold": gold} if several else {"predicted": next(iter(given)), "gold": gold[0]}
        )
        found.append((score or 0.0, {"score": score, **texts, **said}))
    return [mistake for _, mistake in sorted(found, key=lambda each: -each[0])[:MISTAKES]]


def _undo(answers: Sequence[Result], temperature: float) -> Array:
    """The best answers' probabilities without the temperature: p^T, since p goes as e^(score / T), made to sum to 1."""
    powers = np.array([[answer["score"] for answer in result] for result in answers]) ** temperature
    return np.asarray(powers[:, 0] / powers.sum(axis=1))
