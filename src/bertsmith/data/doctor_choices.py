"""The doctor for prompts with choices.

In: ChoiceExamples of train and dev. Out: facts and findings: choices that are empty or there twice, answers that always
stand at one place.
"""

from collections import Counter
from collections.abc import Sequence

from bertsmith.data.doctor_shared import report_empty, report_overlap, report_repeats, report_signs, report_unknown
from bertsmith.data.examples import ChoiceExample
from bertsmith.data.findings import Diagnosis, counted


def examine_choices(diagnosis: Diagnosis, train: Sequence[ChoiceExample], dev: Sequence[ChoiceExample] | None) -> None:
    """All findings on prompts and choices, and the facts of both sides."""
    sides = {"train": train} if dev is None else {"train": train, "dev": dev}
    for side, examples in sides.items():
        report_empty(diagnosis, examples, [e.prompt for e in examples], side, "prompt")
        report_signs(diagnosis, examples, ["\n".join([e.prompt, *e.choices]) for e in examples])
        report_unknown(diagnosis, [e for e in examples if e.right is None], side, "an answer")
        _report_choices(diagnosis, examples)
        counts = [len(e.choices) for e in examples]
        diagnosis.facts[side] |= {"least_choices": min(counts, default=0), "most_choices": max(counts, default=0)}
        places = Counter(str(e.right) for e in examples if e.right is not None)
        diagnosis.facts[side]["places"] = dict(sorted(places.items()))
    golds = [None if e.right is None else e.choices[e.right] for e in train]
    report_repeats(diagnosis, train, [key(e) for e in train], golds, "prompt and choices", "answers")
    if dev:
        report_overlap(diagnosis, [key(e) for e in train], dev, [key(e) for e in dev], "prompt")


def key(example: ChoiceExample) -> tuple[str, frozenset[str]]:
    """What makes two examples the same question, in whatever order its choices are."""
    return example.prompt.strip(), frozenset(choice.strip() for choice in example.choices)


def _report_choices(diagnosis: Diagnosis, examples: Sequence[ChoiceExample]) -> None:
    twice = [e for e in examples if len(set(e.choices)) < len(e.choices)]
    if twice:
        diagnosis.add("warning", f"the same choice twice in {counted(len(twice), 'example')}", twice)
    empty = [e for e in examples if not all(choice.strip() for choice in e.choices)]
    if empty:
        diagnosis.add("warning", f"an empty choice in {counted(len(empty), 'example')}", empty)
