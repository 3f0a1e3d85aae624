"""The parts of the report, each from the facts to HTML; a part without facts is the empty string."""

from typing import Any

from bertsmith.data.findings import counted
from bertsmith.evaluation.report.caveats import find_caveats
from bertsmith.evaluation.report.charts import (
    draw_bars,
    draw_histogram,
    draw_interval,
    draw_reliability,
    draw_share,
    explain,
    span_scores,
)
from bertsmith.evaluation.report.confused import KEPT, WHOLE
from bertsmith.evaluation.report.confusion import BESIDE, LIST_FROM, READABLE, draw_confusion, list_confusions
from bertsmith.evaluation.report.curves import show_figure
from bertsmith.evaluation.report.excerpts import cut_middle, cut_name
from bertsmith.evaluation.report.facts import RunFacts
from bertsmith.evaluation.report.markup import escape, isolate, table, tag
from bertsmith.evaluation.report.mistakes import FOLDED, list_mistakes
from bertsmith.evaluation.report.numbers import is_number, show_interval, show_number, show_score
from bertsmith.evaluation.report.wording import (
    MEMBER_HEAD,
    MEMBER_NUMBERS,
    describe_cutting,
    describe_members,
    describe_speed,
    flatten,
    main_metrics,
)

OPEN = 20  # rows of a long table or chart before the rest is folded away


def show_tiles(facts: RunFacts) -> str:
    """The headline: the main metric, large, and a few beside it."""
    tiles = []
    for name in choose_tiles(facts):
        score = facts.main[name]
        interval = show_interval(score.get("low"), score.get("high"), 3)
        under = tag("span", interval, {"class": "quiet n"}) if interval else ""
        value = tag("strong", show_score(score.get("value"), 3))
        tiles.append(tag("div", tag("span", escape(name)) + value + under))
    if not tiles:
        return ""
    alike = not facts.members and not facts.tokens  # all scores are of the same examples
    n = next((score["n"] for score in facts.main.values() if alike and score.get("n")), None)
    told = f"On {escape(facts.split)}" + (f", {counted(n, 'example')}" if n else "")
    level = (
        f"; the range is the {100 * facts.level:g} % interval" if any("low" in s for s in facts.main.values()) else ""
    )
    return tag("div", "".join(tiles), {"class": "tiles"}) + tag("p", told + level + ".", {"class": "quiet"})


def choose_tiles(facts: RunFacts) -> list[str]:
    """The metric that chose, then those that say the most; with one label a text micro_f1 is the accuracy again."""
    names, first = list(facts.main), [facts.settings.get("metric")]
    if facts.members:
        names = main_metrics(facts)
    if facts.task == "classify" and "accuracy" in names:
        first += ["accuracy", "f1", "matthews"] if "f1" in names else ["accuracy"]
        names = [name for name in names if name != "micro_f1"] + ["micro_f1"]
    return [name for name in dict.fromkeys([*first, *names]) if name in facts.main][:4]


def show_scores(facts: RunFacts) -> str:
    """All metrics of all splits."""
    parts = []
    scale = span_scores(list(facts.metrics.values()))
    ends = tag(
        "span", f"<span>{show_number(scale.low)}</span><span>{show_number(scale.high)}</span>", {"class": "ends"}
    )
    for split, metrics in facts.metrics.items():
        rows = [
            [escape(name), show_score(score.get("value")), show_interval(score.get("low"), score.get("high")),
             f"{score['n']:,}" if score.get("n") is not None else "", draw_interval(score, scale)]
            for name, score in metrics.items()
        ]  # fmt: skip
        head = ["Metric", "Value", f"{100 * facts.level:g} % interval", "Examples", ends]
        parts += [tag("h3", escape(split)) + table(head, rows, {1, 2, 3})] if rows else []
    return "".join(parts)


def show_members(facts: RunFacts) -> str:
    """The tasks of a mix, a row each."""
    rows = [[escape(cell) for cell in row] for row in describe_members(facts)]
    return table(list(MEMBER_HEAD), rows, set(MEMBER_NUMBERS)) if rows else ""


def show_caveats(facts: RunFacts) -> str:
    found = find_caveats(facts)
    return tag("ul", "".join(tag("li", escape(sentence)) + "\n" for sentence in found)) if found else ""


def show_confusion(facts: RunFacts) -> str:
    confusion = facts.confusion
    if not confusion or not confusion["labels"]:
        return ""
    n = len(confusion["labels"])
    pairs = list_confusions(confusion, 25 if n > READABLE else 10) if n >= LIST_FROM else ""
    if n > READABLE:
        told = f"{n} labels are too many for a map; these are taken for each other most."
        told += f" So are those in metrics.json, {KEPT:,} pairs at most." * (n > WHOLE)
        return tag("p", told) + pairs
    legend = explain([("right", 1), ("taken for another", 2)])
    note = tag(
        "p",
        "Numbers are examples; the stronger the colour, the larger the share of the gold label.",
        {"class": "quiet"},
    )
    picture = tag("div", legend + tag("div", draw_confusion(confusion), {"class": "scroll"}) + note)
    listed = tag("div", tag("h3", "Confused most") + pairs) if pairs else ""
    return tag("div", picture + listed, {"class": "grid uneven" if listed and n <= BESIDE else "stack"})


def show_labels(facts: RunFacts) -> str:
    """Precision, recall and F1 of each label, the frequent ones first."""
    limits = facts.thresholds
    rows = []
    for one in sorted(facts.per_label, key=lambda row: -row["support"]):
        row = [
            isolate(cut_name(one["label"])),
            *(show_score(value, 3) for value in (one["precision"], one["recall"], one["f1"])),
        ]
        row += [draw_share(one["f1"]), f"{one['support']:,}"]
        rows.append(row + ([show_score(limits.get(one["label"]), 3)] if limits else []))
    head = ["Label", "Precision", "Recall", "F1", "", "Examples"] + (["Threshold"] if limits else [])
    return fold(rows, head, {1, 2, 3, 5, 6})


def show_thresholds(facts: RunFacts) -> str:
    """Those that no row of the table of labels shows."""
    known = {row["label"] for row in facts.per_label}
    rows = [
        [isolate(cut_name(name)), show_number(value) if is_number(value) else "–"]
        for name, value in facts.thresholds.items()
        if name not in known
    ]
    return fold(rows, ["", "Threshold"], {1}, "compact")


def fold(rows: list[list[str]], head: list[str], numbers: set[int], style: str = "") -> str:
    if not rows:
        return ""
    first, rest = rows[:OPEN], rows[OPEN:]
    more = tag("details", tag("summary", f"{len(rest)} more") + table(head, rest, numbers, style)) if rest else ""
    return table(head, first, numbers, style) + more


def show_reliability(facts: RunFacts) -> str:
    found = facts.reliability
    if not found or not any(one["count"] for one in found.get("bins", [])):
        return ""
    told = "On the dashed line a model that says 0.8 is right 8 times in 10; below it, it is too sure. "
    before, after, temperature = found.get("ece_before"), found.get("ece_after"), found.get("temperature")
    if is_number(temperature) and is_number(before) and is_number(after):
        told += f"Temperature {show_number(temperature)} took the calibration error (ECE) "
        told += f"from {show_score(before)} to {show_score(after)}."
    elif is_number(before) or is_number(after):
        told += f"The calibration error (ECE) is {show_score(after if is_number(after) else before)}."
    legend = explain([("as it answers", 1), ("before the temperature", 2)]) if found.get("before") else ""
    picture = tag("figure", draw_reliability(found["bins"], found.get("before", [])))
    return tag("div", picture + tag("div", tag("p", told) + legend), {"class": "grid"})


def show_errors(facts: RunFacts) -> str:
    if not facts.errors:
        return ""
    told = "Those the model was surest of come first: wrong labels in the data are often among them."
    if len(facts.errors) > FOLDED:
        told += f" {FOLDED} of {len(facts.errors):,} are shown."
    return tag("p", told) + list_mistakes(facts.task, facts.errors)


def show_lengths(facts: RunFacts) -> str:
    figures = []
    for split, one in facts.lengths.items():
        picture = draw_histogram(one) if one.get("counts") and len(one.get("edges", [])) > 1 else ""
        policy = f" The policy is {one['policy']}." if one.get("policy") else ""
        told = escape(describe_cutting(one) or f"All examples fit.{policy}")
        figures.append(show_figure(split, picture, tag("p", told, {"class": "quiet"})))
    return tag("div", "".join(figures), {"class": "grid"}) if figures else ""


def show_data(facts: RunFacts) -> str:
    """What the run was given: counts, findings of the check, class balance."""
    data = facts.data
    files, counts = data.get("files", {}), data.get("counts", {})
    splits = [
        [escape(name), f"{counts[name]:,}" if name in counts else "", isolate(files.get(name, ""))]
        for name in dict.fromkeys([*counts, *files])
    ]
    head = ["Split", "Examples", *(["From"] if files else [])]
    parts = [table(head, [row[: len(head)] for row in splits], {1}, "compact")] if splits else []
    marks = {"error": "Error", "warning": "Warning"}
    items = []
    for finding in data.get("findings", []):
        level = finding.get("level", "")
        told = tag("b", marks.get(level, "Note")) + " " + isolate(finding.get("sentence", ""))
        items.append(tag("li", told, {"class": f"finding {level}"}))
    parts += [tag("h3", "What the check found") + tag("ul", "".join(items), {"class": "plain"})] if items else []
    parts += [show_pairs(data["facts"])] if data.get("facts") else []
    return "".join(parts) + _show_balance(data.get("balance", {}))


def _show_balance(balance: dict[str, dict[str, int]]) -> str:
    names = list(balance)[:3]
    totals = [sum(balance[name].values()) for name in names]
    labels = {label: None for name in names for label in balance[name]}
    rows = {label: [balance[name].get(label, 0) for name in names] for label in labels}
    ordered = sorted(rows, key=lambda label: -rows[label][0])
    if not ordered:
        return ""
    first, rest = ({label: rows[label] for label in part} for part in (ordered[:OPEN], ordered[OPEN:]))
    legend = explain([(f"{name}, {total:,}", i + 1) for i, (name, total) in enumerate(zip(names, totals, strict=True))])
    more = tag("details", tag("summary", f"{len(rest)} more labels") + draw_bars(rest, names, totals)) if rest else ""
    return tag("h3", "Labels") + legend + draw_bars(first, names, totals) + more


def show_speed(facts: RunFacts) -> str:
    return show_pairs(describe_speed(facts)) if facts.speed else ""


def show_settings(facts: RunFacts) -> str:
    return show_pairs(facts.settings)


def show_command(facts: RunFacts) -> str:
    return tag("pre", tag("code", escape(facts.command))) if facts.command else ""


def show_pairs(values: dict[str, Any]) -> str:
    rows = [[escape(name), isolate(cut_middle(value, 2000, 500))] for name, value in flatten(values)]
    return table([], rows, (), "pairs") if rows else ""
