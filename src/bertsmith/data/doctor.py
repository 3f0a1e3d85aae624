"""The data doctor: looks at labelled examples before they cost a run.

In: train and dev examples of one kind, how long they are, how much a model reads. Out: a `Diagnosis` with facts and
findings, the errors first; `diagnose(…).stop()` refuses what would waste the run. Everything is one pass or a few.
"""

from collections.abc import Callable, Sequence
from typing import Any, Literal

from bertsmith.data.columns import Columns
from bertsmith.data.doctor_choices import examine_choices
from bertsmith.data.doctor_held_out import examine_test
from bertsmith.data.doctor_lengths import measure_lengths, report_lengths, report_tokenless
from bertsmith.data.doctor_matches import examine_pairs, examine_ranks
from bertsmith.data.doctor_numbers import examine_numbers
from bertsmith.data.doctor_spans import examine_spans
from bertsmith.data.doctor_tags import examine_tags
from bertsmith.data.doctor_texts import examine_texts
from bertsmith.data.findings import Diagnosis, Finding, counted, quoted
from bertsmith.data.table import Table

Kind = Literal["classify", "tag", "span", "regress", "choose", "embed", "rerank"]
Lengths = Callable[[Sequence[Any]], Sequence[int]]
NOUNS = {
    "classify": ("text", "texts"),
    "tag": ("sentence", "sentences"),
    "span": ("question with its text", "questions with their texts"),
    "regress": ("text", "texts"),
    "choose": ("prompt with a choice", "prompts with a choice"),
    "embed": ("text", "texts"),
    "rerank": ("query with a text", "queries with a text"),
}
CUTS = {"windows": "would be read in further windows", "error": "would not fit, which truncate='error' refuses"}
FEWEST = 20  # examples in train: a model learns nothing from fewer that a rule would not do


def diagnose(
    train: Sequence[Any],
    dev: Sequence[Any] | None,
    kind: Kind,
    *,
    lengths: Lengths | None,
    limit: int | None,
    several: bool = False,
    test: Sequence[Any] | None = None,
    policy: str | None = None,
    names: Sequence[str] | None = None,
) -> Diagnosis:
    """What is wrong with these examples and what is good to know.

    `lengths` gives the tokens of examples, those of the special tokens included; without it words are counted. `limit`
    is the longest row the model reads and `policy` what becomes of longer ones; `several` allows any number of labels a
    text, and `names` are those that a person gave to numbered labels or tags.
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
    elif kind == "embed":
        examine_pairs(diagnosis, train, dev)
    elif kind == "rerank":
        examine_ranks(diagnosis, train, dev)
    else:
        examine_spans(diagnosis, train, dev)
    for side, examples in (("train", train), ("dev", dev or ())):
        if examples:
            _examine_lengths(diagnosis, side, examples, kind, lengths, limit, policy)
    if test is not None:
        examine_test(diagnosis, train, dev, test, kind)
    _report_names(diagnosis, train, names, "tag" if kind == "tag" else "label")
    return diagnosis.settle()


def _report_names(diagnosis: Diagnosis, train: Sequence[Any], names: Sequence[str] | None, noun: str) -> None:
    """Names that were given but that no example bears."""
    used = {name for e in train for name in getattr(e, f"{noun}s", None) or ()}
    never = [name for name in names or () if name not in used]
    if names and never and train:
        diagnosis.add("note", f"{len(never):,} of the {counted(len(names), 'name')} given never "
                      f"{'occurs' if len(never) == 1 else 'occur'} as a {noun} in train: {quoted(never)}")  # fmt: skip


def _examine_lengths(
    diagnosis: Diagnosis, side: str, examples: Sequence[Any], kind: Kind, lengths: Lengths | None, limit: int | None,
    policy: str | None,
) -> None:  # fmt: skip
    unit = "tokens" if lengths else "words"
    measured = (lengths or count_words)(examples)
    facts = measure_lengths(measured, limit, unit)
    if lengths:
        report_tokenless(diagnosis, examples, measured, count_words(examples), lengths, NOUNS[kind])
    policy = policy or ("windows" if kind == "span" else "head")
    if kind == "span" and limit:
        facts["windows_at_least"] = sum(-(-length // limit) for length in measured)
    diagnosis.facts[side]["lengths"] = facts
    report_lengths(diagnosis, examples, measured, facts, NOUNS[kind], CUTS.get(policy, "would be cut"))


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
