"""The data doctor's report on a terminal: facts, the balance of the labels, lengths, and what was found."""

import sys
from collections.abc import Iterator, Mapping
from typing import Any

from rich.console import Console
from rich.text import Text

from bertsmith.cli.output import SHOWN
from bertsmith.data.findings import LEVELS, Diagnosis, counted, share, shorten

LABELS_SHOWN = 12
BAR = 30  # characters of the longest bar
EIGHTHS = " ▏▎▍▌▋▊▉"
STYLES = {"error": "bold red", "warning": "yellow", "note": "cyan"}


def write_report(diagnosis: Diagnosis) -> None:
    """Prints the report; a terminal that has no bars gets question marks."""
    console = Console(file=sys.stdout, highlight=False)
    with console.capture() as captured:
        _compose(console, diagnosis)
    encoding = sys.stdout.encoding
    print(captured.get().encode(encoding, "replace").decode(encoding), end="")


def _compose(console: Console, diagnosis: Diagnosis) -> None:
    facts = diagnosis.facts
    console.print(Text(f"task: {facts['task']}" + (f", scheme {facts['scheme']}" if facts.get("scheme") else "")))
    for side in ("train", "dev"):
        if facts.get(side):
            for line in describe_side(side, facts[side]):
                console.print(Text(line.translate(SHOWN)), soft_wrap=True)
    console.print()
    if not diagnosis.findings:
        console.print(Text("nothing wrong was found", style="green"))
    for level in LEVELS:
        for finding in diagnosis.findings:
            if finding.level == level:
                sentence = finding.sentence.translate(SHOWN)
                console.print(Text.assemble((f"{level}: ", STYLES[level]), sentence), soft_wrap=True)
    counts = [counted(sum(f.level == level for f in diagnosis.findings), level) for level in LEVELS]
    console.print(Text(", ".join(counts), style="dim"))


def describe_side(side: str, facts: Mapping[str, Any]) -> Iterator[str]:
    """The lines about train or dev."""
    name = facts.get("name") or ""
    extra = [f"{facts[key]:,} {key}" for key in ("words", "contexts") if key in facts]
    yield ""
    yield f"{side}  {name}  " + ", ".join([counted(facts["examples"], "example"), *extra])
    if facts.get("roles"):
        yield "  columns  " + ", ".join(f"{role}: {column}" for role, column in facts["roles"].items())
    if facts.get("impossible"):
        yield f"  without answer  {facts['impossible']:,} ({share(facts['impossible'], facts['examples'])})"
    if "spread" in facts:
        yield f"  numbers  {facts['least']:g} to {facts['most']:g}, mean {facts['mean']:g}, spread {facts['spread']:g}"
    if "most_choices" in facts:
        yield f"  choices  {facts['least_choices']:,} to {facts['most_choices']:,} each"
    if facts.get("labels"):
        yield from draw_balance(facts["labels"])
    if facts.get("lengths"):
        yield from draw_lengths(facts["lengths"])


def draw_balance(labels: Mapping[str, int]) -> Iterator[str]:
    """A bar a label, the most frequent first."""
    shown = list(labels.items())[:LABELS_SHOWN]
    total, most = sum(labels.values()), max(labels.values())
    names = [shorten(label, 24) for label, _ in shown]
    width = max(map(len, names))
    yield f"  {counted(len(labels), 'label')}"
    for name, (_, count) in zip(names, shown, strict=True):
        yield f"    {name:<{width}}  {bar(count, most):<{BAR}}  {count:>9,}  {share(count, total):>7}"
    if len(labels) > LABELS_SHOWN:
        rest = total - sum(count for _, count in shown)
        yield f"    and {len(labels) - LABELS_SHOWN:,} more labels with {rest:,}"


def draw_lengths(facts: Mapping[str, Any]) -> Iterator[str]:
    """Percentiles, what would be cut, and a bar a range of lengths."""
    if not facts["total"]:
        return
    marks = ", ".join(f"{name} {facts[key]:,}" for name, key in
                      (("median", "p50"), ("95 %", "p95"), ("99 %", "p99"), ("longest", "most")))  # fmt: skip
    limit = facts.get("limit")
    cut = f"; {facts['cut']:,} longer than {limit:,}" if limit else ""
    yield f"  {facts['unit']}  {marks}{cut}"
    most = max(entry["count"] for entry in facts["histogram"])
    bars = facts["histogram"]
    first = next(i for i, entry in enumerate(bars) if entry["count"])
    for entry in bars[first:]:
        span = f"to {entry['to']:,}" if entry["to"] else f"from {entry['from']:,}"
        past = " ✂" if limit and entry["from"] > limit else ""
        yield f"    {span:>10}  {bar(entry['count'], most):<{BAR}}  {entry['count']:>9,}{past}"


def bar(count: int, most: int) -> str:
    """A bar of block characters, to an eighth of one; never nothing for something."""
    eighths = max(round(8 * BAR * count / most), 1 if count else 0) if most else 0
    return "█" * (eighths // 8) + EIGHTHS[eighths % 8].strip()
