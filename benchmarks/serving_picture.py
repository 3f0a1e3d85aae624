"""The curves of benchmarks/serving.py as one picture: the 99th percentile against the requests answered a second."""

from importlib.resources import files
from typing import Any

from bertsmith.evaluation.report.axes import WIDTH, box, label
from bertsmith.evaluation.report.charts import Series, draw_lines
from bertsmith.evaluation.report.markup import tag
from bertsmith.evaluation.report.pretraining_curves import STYLE

HEIGHT, HEAD, LINE, MARGIN = 300, 50, 20, 20
Row = dict[str, Any]


def draw_picture(rounds: dict[str, list[Row]], target: float) -> str:
    """The better round of each contestant; what takes more than three times the target stands at the upper edge."""
    kept = {name: max((run for run in runs if run.get("steps")), key=_reached, default=None)
            for name, runs in rounds.items()}  # fmt: skip
    most = 3000 * target
    series = [
        Series(name, [(step["throughput"], min(step["p99_ms"] or most, most)) for step in order(run["steps"])],
               colour, dots=True)
        for colour, (name, run) in enumerate(kept.items(), 1) if run is not None
    ]  # fmt: skip
    last = max((x for one in series for x, _ in one.points), default=1.0) * 1.05
    limit = Series(f"{1000 * target:.0f} ms", [(0.0, 1000 * target), (last, 1000 * target)], 6, faint=True)
    chart = draw_lines([*series, limit], "requests answered a second", last, height=HEIGHT, zero=True)
    width, height = WIDTH + 2 * MARGIN, HEAD + HEIGHT + LINE * (len(series) + 1) + MARGIN
    heading = label(MARGIN, 28, "How long 99 of 100 requests take, in ms", style="strong")
    parts = [box(0, 0, width, height, "paper"), heading]
    parts.append(tag("g", chart, {"transform": f"translate({MARGIN} {HEAD - 10})"}))
    for place, one in enumerate(series):
        y = HEAD + HEIGHT + LINE * (place + 0.5)
        parts.append(tag("g", box(MARGIN, y - 9, 12, 10, "swatch"), {"class": f"c{one.colour}"}))
        best = _reached(kept[one.name])
        parts.append(label(MARGIN + 20, y, f"{one.name}: {best:.0f} requests/s within {1000 * target:.0f} ms"))
    return _wrap("".join(parts), width, height)


def _reached(run: Row | None) -> float:
    return float(run["best"]["throughput"]) if run and run["best"] else 0.0


def order(steps: list[Row]) -> list[Row]:
    """By rate; of a rate that was tried twice the better try."""
    best: dict[float, Row] = {}
    for step in steps:
        known = best.get(step["rate"])
        if known is None or (step["p99_ms"] or 1e9) < (known["p99_ms"] or 1e9):
            best[step["rate"]] = step
    return [best[rate] for rate in sorted(best)]


def _wrap(inside: str, width: float, height: float) -> str:
    """With the report's colours, light and dark."""
    sheet = files("bertsmith.evaluation.report").joinpath("report.css").read_text(encoding="utf-8")
    colours = sheet.partition("* {")[0]
    size = {"viewBox": f"0 0 {width:g} {height:g}", "width": f"{width:g}", "height": f"{height:g}"}
    return tag("svg", tag("style", colours + STYLE) + inside, {"xmlns": "http://www.w3.org/2000/svg", **size}) + "\n"
