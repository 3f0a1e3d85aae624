"""The doctor for texts that belong together, and for queries with texts that answer them.

In: PairExamples or RankExamples of train and dev. Out: facts and findings: texts that are empty or there twice, numbers
that are all the same, queries that nothing answers.
"""

from collections.abc import Sequence
from typing import Any

from bertsmith.data.doctor_shared import report_empty, report_overlap, report_repeats, report_signs, report_unknown
from bertsmith.data.examples import PairExample, RankExample
from bertsmith.data.findings import Diagnosis, Level, counted


def examine_pairs(diagnosis: Diagnosis, train: Sequence[PairExample], dev: Sequence[PairExample] | None) -> None:
    """All findings on pairs, and the facts of both sides."""
    sides = {"train": train} if dev is None else {"train": train, "dev": dev}
    for side, examples in sides.items():
        report_empty(diagnosis, examples, [e.text if e.pair.strip() else "" for e in examples], side, "pair")
        report_signs(diagnosis, examples, ["\n".join([e.text, e.pair, *e.negatives]) for e in examples])
        same = [e for e in examples if e.text.strip() == e.pair.strip() and e.text.strip() and e.number is None]
        if same:
            diagnosis.add("warning", f"{counted(len(same), 'text')} of {side} with itself as its pair: that teaches "
                          "nothing", same)  # fmt: skip
        numbers = [e.number for e in examples if e.number is not None]
        diagnosis.facts[side] |= {"negatives": sum(len(e.negatives) for e in examples), "numbers": len(numbers)}
        _report_one_number(diagnosis, numbers, side)
    golds = [e.number for e in train]
    report_repeats(diagnosis, train, [pair_key(e) for e in train], golds, "pair", "numbers")
    if dev:
        report_overlap(diagnosis, [pair_key(e) for e in train], dev, [pair_key(e) for e in dev], "pair")


def examine_ranks(diagnosis: Diagnosis, train: Sequence[RankExample], dev: Sequence[RankExample] | None) -> None:
    """All findings on queries and their texts, and the facts of both sides."""
    sides = {"train": train} if dev is None else {"train": train, "dev": dev}
    for side, examples in sides.items():
        report_empty(diagnosis, examples, [e.query for e in examples], side, "question")
        report_signs(diagnosis, examples, ["\n".join([e.query, *e.texts]) for e in examples])
        report_unknown(diagnosis, [e for e in examples if e.gains is None], side, "a label")
        _report_texts(diagnosis, examples, side)
        gains = [gain for e in examples for gain in e.gains or ()]
        diagnosis.facts[side] |= {"texts": sum(len(e.texts) for e in examples), "labelled": len(gains)}
        _report_one_number(diagnosis, gains, side)
        _report_unanswered(diagnosis, examples, side)
    diagnosis.facts["train"] |= {"duplicates": 0, "conflicts": 0}
    if dev:
        report_overlap(diagnosis, [query_key(e) for e in train], dev, [query_key(e) for e in dev], "question")


def pair_key(example: PairExample) -> tuple[str, str]:
    """What makes two examples the same pair."""
    return example.text.strip(), example.pair.strip()


def query_key(example: RankExample) -> str:
    """What makes two examples the same query."""
    return example.query.strip()


def _report_one_number(diagnosis: Diagnosis, numbers: Sequence[Any], side: str) -> None:
    if len(set(numbers)) == 1 < len(numbers):
        level: Level = "error" if side == "train" else "warning"
        why = "there is nothing to learn" if side == "train" else "nothing can be measured"
        diagnosis.add(level, f"all {counted(len(numbers), 'label')} of {side} are {numbers[0]:g}: {why}")


def _report_texts(diagnosis: Diagnosis, examples: Sequence[RankExample], side: str) -> None:
    empty = [e for e in examples if not all(text.strip() for text in e.texts)]
    if empty:
        diagnosis.add("warning", f"an empty text for {counted(len(empty), 'query', 'queries')} of {side}", empty)
    told: list[RankExample] = []
    twice: list[RankExample] = []
    for example in examples:
        known: dict[str, set[float]] = {}
        for text, gain in zip(example.texts, example.gains or [0.0] * len(example.texts), strict=True):
            known.setdefault(text.strip(), set()).add(gain)
        twice += [example] * (len(known) < len(example.texts))
        told += [example] * any(len(gains) > 1 for gains in known.values())
    if told:
        size = f"{counted(len(told), 'query', 'queries')} of {side}"
        diagnosis.add("warning", f"a text with different labels for {size}: at most one can be right", told)
    elif twice:
        diagnosis.add("note", f"the same text twice for {counted(len(twice), 'query', 'queries')} of {side}", twice)


def _report_unanswered(diagnosis: Diagnosis, examples: Sequence[RankExample], side: str) -> None:
    least = min((gain for e in examples for gain in e.gains or ()), default=0.0)
    none = [e for e in examples if e.gains is not None and max(e.gains, default=least) <= least]
    if none and len(none) < len(examples):
        diagnosis.add("note", f"{counted(len(none), 'query', 'queries')} of {side} without a text that answers: they "
                      "teach, but cannot be scored", none)  # fmt: skip
