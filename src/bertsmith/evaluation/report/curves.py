"""The course of the training: the records of the log as charts."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from bertsmith.evaluation.report.charts import COLOURS, Series, draw_lines, explain
from bertsmith.evaluation.report.facts import RunFacts
from bertsmith.evaluation.report.markup import escape, tag
from bertsmith.evaluation.report.numbers import is_number
from bertsmith.evaluation.report.wording import main_metrics

POINTS = 240  # as many as a chart can show
SMOOTH = 25  # parts of the run; a mean over each takes the noise of single batches away

Points = list[tuple[float, float]]


def draw_curves(facts: RunFacts) -> str:
    steps = [record for record in facts.curves if "split" not in record and is_number(record.get("step"))]
    tests = [record for record in facts.curves if record.get("metrics") and is_number(record.get("step"))]
    dev = {name: dev_points(tests, name) for record in tests for name in record["metrics"]}
    last = max([record["step"] for record in [*steps, *tests]], default=0)
    rates, norms = (read_points(steps, name) for name in ("rate", "norm"))
    figures = [
        _draw_loss(read_points(steps, "loss"), dev.pop("loss", []), last, facts.best_step),
        _draw_dev(dev, last, facts),
        draw_one("Learning rate", last, thin(rates)),
        draw_one("Gradient norm", last, smooth(norms), thin(norms)),
    ]
    shown = "".join(figures)
    return tag("div", shown, {"class": "grid"}) if shown else ""


def show_figure(name: str, picture: str, legend: str = "") -> str:
    return tag("figure", tag("figcaption", escape(name)) + legend + picture) + "\n"


def _number(value: Any) -> float:
    found = value.get("value") if isinstance(value, dict) else value
    return float(found) if is_number(found) else float("nan")


def dev_points(tests: Sequence[dict[str, Any]], name: str) -> Points:
    return [(record["step"], _number(record["metrics"][name])) for record in tests if name in record["metrics"]]


def read_points(steps: Sequence[dict[str, Any]], name: str) -> Points:
    return [(record["step"], _number(record[name])) for record in steps if name in record]


def _draw_loss(train: Points, dev: Points, last: float, best: int | None) -> str:
    series = [Series("train", smooth(train), 1)] if train else []
    if len(train) > 2 * SMOOTH:
        series.insert(0, Series("each batch", thin(train), 1, faint=True))
    if dev:
        series.append(Series("dev", dev, 2, dots=True))
    if not series:
        return ""
    legend = explain([(one.name, one.colour) for one in series if not one.faint]) if dev else ""
    return show_figure("Loss", draw_lines(series, "step", last, best), legend)


def _draw_dev(dev: dict[str, Points], last: float, facts: RunFacts) -> str:
    """The metrics on dev that share a scale with the main one, the main one first."""
    if facts.members:
        dev = {name: dev[name] for name in main_metrics(facts) if name in dev}
    main = next(iter(facts.main), next(iter(dev), ""))
    names = sorted(dev, key=lambda name: name != main)  # stable: the others keep their order
    large = {name: any(abs(y) > 1.5 for _, y in dev[name]) for name in names}
    names = [name for name in names if large[name] == large[names[0]]][:COLOURS]
    if not names:
        return ""
    series = [Series(name, dev[name], i + 1, dots=True) for i, name in enumerate(names)]
    legend = explain([(one.name, one.colour) for one in series])
    return show_figure("Scores on dev", draw_lines(series, "step", last, facts.best_step), legend)


def draw_one(name: str, last: float, points: Points, behind: Points | None = None) -> str:
    if not any(is_number(y) for _, y in points):
        return ""
    series = [Series(name, behind, 3, faint=True)] if behind and len(behind) > 2 * SMOOTH else []
    return show_figure(name, draw_lines([*series, Series(name, points, 3)], "step", last, height=180, zero=True))


def thin(points: Points, most: int = POINTS) -> Points:
    """As many as can be seen: means of neighbours, so that no spike is won or lost by chance."""
    if len(points) <= most:
        return list(points)
    edges = [round(i * len(points) / most) for i in range(most + 1)]
    return [_mean(points[low:high]) for low, high in pairwise(edges)]


def _mean(points: Points) -> tuple[float, float]:
    known = [float(y) for _, y in points if is_number(y)]
    # A stretch without one finite value is a gap in the line.
    return points[len(points) // 2][0], sum(known) / len(known) if known else float("nan")


def smooth(points: Points) -> Points:
    """A running mean over a twenty-fifth of the run; short runs stay as they are."""
    if len(points) <= 2 * SMOOTH:
        return list(points)
    reach = max(len(points) // (2 * SMOOTH), 1)
    known = [(i, float(y)) for i, (_, y) in enumerate(points) if is_number(y)]
    sums, counts = [0.0] * (len(points) + 1), [0] * (len(points) + 1)
    for i, y in known:
        sums[i + 1], counts[i + 1] = y, 1
    for i in range(len(points)):
        sums[i + 1] += sums[i]
        counts[i + 1] += counts[i]
    centres = sorted({round(i * (len(points) - 1) / (POINTS - 1)) for i in range(POINTS)})
    found = []
    for i in centres:
        low, high = max(i - reach, 0), min(i + reach + 1, len(points))
        n = counts[high] - counts[low] if is_number(points[i][1]) else 0
        found.append((points[i][0], (sums[high] - sums[low]) / n if n else float("nan")))
    return found
