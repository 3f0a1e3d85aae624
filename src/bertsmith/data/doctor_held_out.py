"""The doctor for the test set: what it shares with train and dev, and what train never taught.

In: the examples of all three sides of one kind. Out: facts and findings, by the rules that hold for dev.
"""

from collections.abc import Callable, Hashable, Sequence
from typing import Any

from bertsmith.data import doctor_choices, doctor_matches, doctor_numbers, doctor_spans, doctor_tags, doctor_texts
from bertsmith.data.doctor_labels import Labels, report_strays
from bertsmith.data.doctor_shared import report_empty, report_overlap, report_unknown
from bertsmith.data.findings import Diagnosis

# What makes two examples the same, and what one is called.
_KEYS: dict[str, tuple[Callable[[Any], Hashable], str]] = {
    "classify": (doctor_texts.key, "text"),
    "regress": (doctor_numbers.key, "text"),
    "choose": (doctor_choices.key, "prompt"),
    "embed": (doctor_matches.pair_key, "pair"),
    "rerank": (doctor_matches.query_key, "question"),
    "tag": (doctor_tags.key, "sentence"),
    "span": (doctor_spans.key, "question"),
}
_GOLDS = {"tag": ("tags", "tags"), "span": ("answers", "answers"), "regress": ("number", "a number")}
_GOLDS |= {"embed": ("pair", "a second text"), "rerank": ("gains", "a label")}
_GOLDS |= {"choose": ("right", "an answer"), "classify": ("labels", "a label")}


def examine_test(
    diagnosis: Diagnosis, train: Sequence[Any], dev: Sequence[Any] | None, test: Sequence[Any], kind: str
) -> None:
    """Findings on test examples, and their facts."""
    diagnosis.facts["test"] = {"examples": len(test)}
    key, noun = _KEYS[kind]
    report_empty(diagnosis, test, [_text(e) for e in test], "test", noun)
    field, wanted = _GOLDS[kind]
    report_unknown(diagnosis, [e for e in test if getattr(e, field) is None], "test", wanted)
    if not test:
        return
    keys = [key(e) for e in test]
    held = {"train": {key(e) for e in train}, "dev": {key(e) for e in dev or ()}}
    shared = {side: sum(one in seen for one in keys) for side, seen in held.items()}
    # Together where both hold some: dev may have been set apart of the very file that test repeats.
    holders = [side for side in held if shared[side]] or ["train"]
    seen = set().union(*(held[side] for side in holders))
    report_overlap(diagnosis, seen, test, keys, noun, "test", " or ".join(holders))
    diagnosis.facts["test"] |= {"overlap": shared["train"], "overlap_dev": shared["dev"]}
    if kind == "classify":
        _compare_labels(diagnosis, train, test)
    elif kind == "tag":
        doctor_tags.compare_types(diagnosis, train, test, "test")
    elif kind == "span":
        doctor_spans.compare_questions(diagnosis, train, test, "test")


def _text(example: Any) -> str:
    return getattr(example, "question", None) or f"{getattr(example, 'text', '')}{getattr(example, 'pair', None) or ''}"


def _compare_labels(diagnosis: Diagnosis, train: Sequence[Any], test: Sequence[Any]) -> None:
    known = [[e for e in side if e.labels is not None] for side in (train, test)]
    taught, asked = (Labels.count(side, [e.labels for e in side]) for side in known)
    if taught.counts and asked.counts:
        report_strays(diagnosis, taught, asked, side="test")
