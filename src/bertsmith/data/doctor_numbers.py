"""The doctor for texts and pairs with a number.

In: NumberExamples of train and dev. Out: facts and findings: whether the numbers differ, which stand far from the rest.
"""

from collections import Counter
from collections.abc import Sequence
from statistics import fmean, pstdev, quantiles
from typing import Any

from bertsmith.data.doctor_shared import report_empty, report_overlap, report_repeats, report_signs, report_unknown
from bertsmith.data.examples import NumberExample
from bertsmith.data.findings import Diagnosis, Level, counted

FAR = 10  # times the middle half's width beyond it: a slip of the keyboard or another unit
ENOUGH_TO_JUDGE = 8  # examples
MOST_SHARE = 0.95  # of the examples with one and the same number


def examine_numbers(diagnosis: Diagnosis, train: Sequence[NumberExample], dev: Sequence[NumberExample] | None) -> None:
    """All findings on texts and numbers, and the facts of both sides."""
    sides = {"train": train} if dev is None else {"train": train, "dev": dev}
    for side, examples in sides.items():
        report_empty(diagnosis, examples, [f"{e.text}{e.pair or ''}" for e in examples], side, "text")
        report_signs(diagnosis, examples, [e.text if e.pair is None else f"{e.text}\n{e.pair}" for e in examples])
        report_unknown(diagnosis, [e for e in examples if e.number is None], side, "a number")
        known = [e for e in examples if e.number is not None]
        diagnosis.facts[side] |= {"pairs": sum(e.pair is not None for e in examples), **_facts(known)}
        if known:
            _report_spread(diagnosis, known, side)
    full = [e for e in train if e.text.strip()]
    report_repeats(diagnosis, full, [key(e) for e in full], [e.number for e in full], "text", "numbers")
    if dev:
        report_overlap(diagnosis, [key(e) for e in train], dev, [key(e) for e in dev], "text")
        _report_range(diagnosis, train, dev)


def key(example: NumberExample) -> tuple[str, str | None]:
    """What makes two examples the same text."""
    return example.text.strip(), None if example.pair is None else example.pair.strip()


def _numbers(examples: Sequence[NumberExample]) -> list[float]:
    return [e.number for e in examples if e.number is not None]


def _facts(examples: Sequence[NumberExample]) -> dict[str, Any]:
    numbers = _numbers(examples)
    if not numbers:
        return {}
    facts = {"least": min(numbers), "most": max(numbers), "mean": fmean(numbers), "spread": pstdev(numbers)}
    return {name: float(f"{value:.6g}") for name, value in facts.items()} | {"distinct": len(set(numbers))}


def _report_spread(diagnosis: Diagnosis, examples: Sequence[NumberExample], side: str) -> None:
    """The same number everywhere or almost everywhere, and numbers far from all others."""
    numbers = _numbers(examples)
    if len(set(numbers)) == 1:
        level: Level = "error" if side == "train" else "warning"
        why = "there is nothing to learn" if side == "train" else "no correlation can be measured"
        found = f"all {len(numbers):,} numbers of {side} are" if len(numbers) > 1 else f"the only number of {side} is"
        diagnosis.add(level, f"{found} {numbers[0]:g}: {why}", examples[:1])
        return
    if len(numbers) < ENOUGH_TO_JUDGE:
        return
    common, times = Counter(numbers).most_common(1)[0]
    if times >= MOST_SHARE * len(numbers):
        diagnosis.add("warning", f"{times:,} of {len(numbers):,} numbers of {side} are {common:g}")
        return
    low, _, high = quantiles(numbers, n=4, method="inclusive")
    reach = FAR * (high - low)
    far = [e for e in examples if e.number is not None and not low - reach <= e.number <= high + reach]
    if far and reach:
        far.sort(key=lambda e: -abs((e.number or 0.0) - low))
        diagnosis.add(
            "warning",
            f"{counted(len(far), 'number')} of {side} such as {far[0].number:g}, far from the others, of which half "
            f"lie between {low:g} and {high:g}: squared error would mostly serve {'it' if len(far) == 1 else 'them'}",
            far,
        )


def _report_range(diagnosis: Diagnosis, train: Sequence[NumberExample], dev: Sequence[NumberExample]) -> None:
    """Numbers of dev that lie outside what train shows, beyond a tenth of its range."""
    numbers = _numbers(train)
    if not numbers:
        return
    least, most = min(numbers), max(numbers)
    room = 0.1 * (most - least)
    outside = [e for e in dev if e.number is not None and not least - room <= e.number <= most + room]
    if outside:
        diagnosis.add(
            "warning",
            f"{counted(len(outside), 'dev number')} outside of {least:g} to {most:g}, which is all that train shows",
            outside,
        )
