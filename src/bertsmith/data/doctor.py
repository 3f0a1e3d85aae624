"""The data doctor: looks at labelled examples before they cost a run.

In: train and dev examples of one kind, how long they are, how much a model reads. Out: a `Diagnosis` with facts and
findings, the errors first; `diagnose(…).stop()` refuses what would waste the run. Everything is one pass or a few.
"""

from collections.abc import Callable, Sequence
from typing import Any, Literal

from bertsmith.data.columns import Columns
from bertsmith.data.doctor_choices import examine_choices
from bertsmith.data.doctor_lengths import measure_lengths, report_lengths
from bertsmith.data.doctor_numbers import examine_numbers
from bertsmith.data.doctor_spans import examine_spans
from bertsmith.data.doctor_tags import examine_tags
from bertsmith.data.doctor_texts import examine_texts
from bertsmith.data.findings import Diagnosis, Finding
from bertsmith.data.table import Table

Kind = Literal["classify", "tag", "span", "regress", "choose"]
Lengths = Callable[[Sequence[Any]], Sequence[int]]
NOUNS = {
    "classify": ("text", "texts"),
    "tag": ("sentence", "sentences"),
    "span": ("question with its text", "questions with their texts"),
    "regress": ("text", "texts"),
    "choose": ("prompt with a choice", "prompts with a choice"),
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
    elif kind == "regress":
        examine_numbers(diagnosis, train, dev)
    elif kind == "choose":
        examine_choices(diagnosis, train, dev)
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


def add_sources(diagnosis: Diagnosis, tables: Sequence[Table], found: Sequence[Columns]) -> None:
    """Adds to the facts where the data came from and which column had which role."""
    for side, table, columns in zip(("train", "dev"), tables, found, strict=False):
        own = {"name": table.name, "format": table.kind, "columns": list(table.columns), "roles": dict(columns)}
        diagnosis.facts[side] = {**own, **diagnosis.facts[side]}
    for sentence in dict.fromkeys(note for columns in found for note in columns.notes):
        diagnosis.findings.append(Finding("note", f"{sentence[:1].upper()}{sentence[1:]}."))
