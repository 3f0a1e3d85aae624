"""The doctor for texts and pairs with classes.

In: TextExamples of train and dev. Out: facts and findings.
"""

from collections.abc import Hashable, Sequence
from typing import Any

from bertsmith.data.doctor_labels import (
    Labels,
    balance_facts,
    report_balance,
    report_blanks,
    report_nature,
    report_strays,
    report_typos,
)
from bertsmith.data.doctor_shared import (
    MOST,
    report_empty,
    report_overlap,
    report_repeats,
    report_signs,
    report_unknown,
)
from bertsmith.data.examples import TextExample
from bertsmith.data.findings import Diagnosis, counted, quoted
from bertsmith.data.labels import SEPARATORS

OTHER_SIGNS = ("/", "+", "&", " ")  # that part labels where nobody says so
HARDLY_ANY = 0.05  # of the examples with other than one label: slips in data that has one each


def examine_texts(
    diagnosis: Diagnosis, train: Sequence[TextExample], dev: Sequence[TextExample] | None, several: bool
) -> None:
    """All findings on texts and labels, and the facts of both sides."""
    sides = {"train": train} if dev is None else {"train": train, "dev": dev}
    labels = {}
    for side, examples in sides.items():
        report_empty(diagnosis, examples, [f"{e.text}{e.pair or ''}" for e in examples], side, "text")
        _report_half_empty(diagnosis, examples)
        report_signs(diagnosis, examples, [e.text if e.pair is None else f"{e.text}\n{e.pair}" for e in examples])
        known = [e for e in examples if e.labels is not None]
        report_unknown(diagnosis, [e for e in examples if e.labels is None], side, "a label")
        labels[side] = Labels.count(known, [e.labels or () for e in known])
        diagnosis.facts[side] |= _facts(examples, labels[side], several)
    full = [e for e in train if e.text.strip()]  # empty ones are told already, and are all the same
    golds = [frozenset(e.labels or ()) for e in full]
    report_repeats(diagnosis, full, [key(e) for e in full], golds, "text", "labels")
    if dev:
        report_overlap(diagnosis, [key(e) for e in train], dev, [key(e) for e in dev], "text")
    _report_labels(diagnosis, labels, several)


def _facts(examples: Sequence[TextExample], labels: Labels, several: bool) -> dict[str, Any]:
    facts = {"pairs": sum(e.pair is not None for e in examples), **balance_facts(labels)}
    if several:
        facts["labels_each"] = round(sum(labels.counts.values()) / max(len(examples), 1), 2)
        facts["without_labels"] = sum(not given for given in labels.of)
    return facts


def _report_labels(diagnosis: Diagnosis, labels: dict[str, Labels], several: bool) -> None:
    train, dev = labels["train"], labels.get("dev")
    if not train.counts:
        if several and train.examples:
            diagnosis.add("error", "no train example has any label: there is nothing to learn", train.examples[:1])
        return
    if report_nature(diagnosis, train):
        return
    _report_told(diagnosis, train)
    report_blanks(diagnosis, train)
    if several:
        _report_several(diagnosis, train)
        _report_joined(diagnosis, train, (*SEPARATORS, *OTHER_SIGNS), "name the sign with --separator")
    else:
        _report_joined(diagnosis, train, SEPARATORS, "give --several")
        report_balance(diagnosis, train)
    report_typos(diagnosis, train)
    if dev and dev.counts:
        report_strays(diagnosis, train, dev)


def _report_told(diagnosis: Diagnosis, labels: Labels) -> None:
    """Texts that are their own label: the same column twice, or names without a text."""
    rows = zip(labels.examples, labels.of, strict=True)
    told = [e for e, given in rows if isinstance(e, TextExample) and e.text.strip() in given]
    if told:
        most = len(told) > MOST * len(labels.examples)
        diagnosis.add("error" if most else "warning", f"the text is the label itself in {counted(len(told), 'example')}"
                      f"{': is one column used for both?' if most else ''}", told)  # fmt: skip


def _report_several(diagnosis: Diagnosis, labels: Labels) -> None:
    """With any number of labels a text, a label that all or almost no texts have teaches nothing."""
    total = len(labels.examples)
    odd = [example for example, given in zip(labels.examples, labels.of, strict=True) if len(given) != 1]
    if 0 < len(odd) < HARDLY_ANY * total:
        diagnosis.add("warning", f"only {counted(len(odd), 'example')} of {total:,} "
                      f"{'has' if len(odd) == 1 else 'have'} none or several labels: is one label each meant?",
                      odd)  # fmt: skip
    always = [label for label, count in labels.counts.items() if count == total]
    if always:
        all_same = len(always) == len(labels.counts)
        diagnosis.add("error" if all_same else "warning", f"every example has {quoted(always)}: nothing to learn there")
    else:
        report_balance(diagnosis, labels)


def _report_joined(diagnosis: Diagnosis, labels: Labels, signs: Sequence[str], advice: str) -> None:
    """Labels such as "4,27" that are made of other labels: several a text, read as one."""
    for sign in signs:
        joined = [label for label in labels.counts if sign in label]
        parts = {label: [part.strip() for part in label.split(sign)] for label in joined}
        made = [label for label in joined if all(part in labels.counts for part in parts[label])]
        if made and len(made) >= MOST * len(joined):
            diagnosis.add("warning", f'{counted(len(made), "label")} such as {quoted(made[:1])} '
                          f'{"is" if len(made) == 1 else "are"} made of other labels and "{sign}": '
                          f"if these are several labels a text, {advice}", labels.bearers(made))  # fmt: skip
            return


def key(example: TextExample) -> Hashable:
    """What makes two examples the same text."""
    return example.text.strip(), None if example.pair is None else example.pair.strip()


def _report_half_empty(diagnosis: Diagnosis, examples: Sequence[TextExample]) -> None:
    """Pairs of which one text is empty."""
    half = [e for e in examples if e.pair is not None and (not e.text.strip()) != (not e.pair.strip())]
    if half:
        diagnosis.add("warning", f"one text of the pair is empty in {counted(len(half), 'example')}", half)
