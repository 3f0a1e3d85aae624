"""The data doctor: looks at labelled examples before they cost a run.

In: train and dev examples of one kind, how long they are, how much a model reads. Out: a `Diagnosis` with facts and
findings, the errors first; `diagnose(…).stop()` refuses what would waste the run. Everything is one pass or a few.
"""

from collections.abc import Callable, Sequence
from typing import Any, Literal

from bertsmith.data.doctor_lengths import measure_lengths, report_lengths
from bertsmith.data.doctor_spans import examine_spans
from bertsmith.data.doctor_tags import examine_tags
from bertsmith.data.doctor_texts import examine_texts
from bertsmith.data.findings import Diagnosis

Kind = Literal["classify", "tag", "span"]
Lengths = Callable[[Sequence[Any]], Sequence[int]]
NOUNS = {
    "classify": ("text", "texts"),
    "tag": ("sentence", "sentences"),
    "span": ("question with its text", "questions with their texts"),
}
FEWEST = 20  # examples in train: a model learns nothing from fewer that a rule would not do


def diagnose(
    train: Sequence[Any],
    dev: Sequence[Any] | None,
    kind: Kind,
    *,
    lengths: Lengths | None,
    limit: int | None,
    several: bool = False,
) -> Diagnosis:
    """What is wrong with these examples and what is good to know.

    `lengths` gives the tokens of examples, those of the special tokens included; without it words are counted. `limit`
    is the longest row the model reads; `several` allows any number of labels a text.
    """
    diagnosis = Diagnosis(facts={"task": kind, "train": {"examples": len(train)}, "dev": None})
    if dev is not None:
        diagnosis.facts["dev"] = {"examples": len(dev)}
    if 0 < len(train) < FEWEST:
        diagnosis.add("warning", f"train has only {len(train)} example{'s' * (len(train) > 1)}", train[:1])
    if kind == "classify":
        examine_texts(diagnosis, train, dev, several)
    elif kind == "tag":
        examine_tags(diagnosis, train, dev)
    else:
        examine_spans(diagnosis, train, dev)
    for side, examples in (("train", train), ("dev", dev or ())):
        if examples:
            _examine_lengths(diagnosis, side, examples, kind, lengths, limit)
    return diagnosis.settle()


def _examine_lengths(
    diagnosis: Diagnosis, side: str, examples: Sequence[Any], kind: Kind, lengths: Lengths | None, limit: int | None
) -> None:
    unit = "tokens" if lengths else "words"
    measured = (lengths or count_words)(examples)
    facts = measure_lengths(measured, limit, unit)
    cuts = "would be cut"
    if kind == "span" and limit:
        cuts = "would be read in further windows"
        facts["windows_at_least"] = sum(-(-length // limit) for length in measured)
    diagnosis.facts[side]["lengths"] = facts
    report_lengths(diagnosis, examples, measured, facts, NOUNS[kind], cuts)


def count_words(examples: Sequence[Any]) -> list[int]:
    """The words of examples between white space: what can be said without a tokenizer."""
    counts = []
    for example in examples:
        if hasattr(example, "spans"):
            counts.append(len(example.spans))
        elif hasattr(example, "question"):
            counts.append(len(example.question.split()) + len(example.context.split()))
        else:
            counts.append(len(example.text.split()) + len((example.pair or "").split()))
    return counts
