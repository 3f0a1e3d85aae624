"""The course of a pretraining: how the loss fell, and how much of the text that was held out is known.

In: the records of a run's log. Out: charts over steps and tokens, for the page; the two that matter as one picture,
which needs no page around it.
"""

from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from bertsmith.data.findings import counted
from bertsmith.evaluation.report.axes import TYPE, WIDTH, box, label, measure, shorten
from bertsmith.evaluation.report.charts import COLOURS, Series, draw_lines, explain
from bertsmith.evaluation.report.curves import (
    SMOOTH,
    Points,
    dev_points,
    draw_curves,
    draw_one,
    read_points,
    show_figure,
    smooth,
    thin,
)
from bertsmith.evaluation.report.facts import RunFacts
from bertsmith.evaluation.report.markup import spell_colours, tag
from bertsmith.evaluation.report.numbers import is_number, show_count, show_score
from bertsmith.evaluation.report.wording import name_run

LOSS, RIGHT = "_loss", "_accuracy"  # how the names of held-out scores end
OTHERS = ("step", "epoch", "loss", "rate", "norm", "skipped")  # in a record of the log, beside the losses
COLUMNS = 2
HEIGHT, MARGIN, GAP, HEAD, LEGEND = 260, 26, 34, 62, 48  # of the picture, in its parts
STYLE = """
text { fill: var(--ink); font: 12px system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", Arial, sans-serif; }
text.quiet { fill: var(--quiet); } text.strong { font-weight: 600; font-size: 15px; }
text.title { font-weight: 650; font-size: 20px; }
rect.paper { fill: var(--card); }
line.grid { stroke: var(--rule); } line.axis { stroke: var(--quiet); }
.c1 { color: var(--c1); } .c2 { color: var(--c2); } .c3 { color: var(--c3); }
.c4 { color: var(--c4); } .c5 { color: var(--c5); } .c6 { color: var(--c6); }
.curve { fill: none; stroke: currentColor; stroke-width: 2; stroke-linejoin: round; stroke-linecap: round; }
.curve.faint { stroke-width: 1; stroke-opacity: 0.32; }
.point { fill: var(--card); stroke: currentColor; stroke-width: 2; }
.swatch { fill: currentColor; }
"""


@dataclass(frozen=True)
class Chart:
    title: str
    series: list[Series]
    zero: bool = False

    @property
    def legend(self) -> list[tuple[str, int]]:
        return [(one.name, one.colour) for one in self.series if not one.faint]


def draw_course(facts: RunFacts) -> str:
    """The charts of any run; of a pretraining its own."""
    if not facts.tokens:
        return draw_curves(facts)
    steps, last = _steps(facts), _last(facts)
    figures = [
        show_figure(one.title, draw_lines(one.series, "step", last, zero=one.zero, tokens=facts.tokens),
                    explain(one.legend))
        for one in choose_charts(facts)
    ]  # fmt: skip
    norms = read_points(steps, "norm")
    figures.append(draw_one("Learning rate", last, thin(read_points(steps, "rate"))))
    figures.append(draw_one("Gradient norm", last, smooth(norms), thin(norms)))
    return tag("div", "".join(figures), {"class": "grid"}) if any(figures) else ""


def choose_charts(facts: RunFacts) -> list[Chart]:
    """The losses, and what is right of what was held out; those that have something to show."""
    steps = _steps(facts)
    tests = [record for record in facts.curves if record.get("metrics") and is_number(record.get("step"))]
    held_out = {name: dev_points(tests, name) for record in tests for name in record["metrics"]}
    losses = {name.removesuffix(LOSS): points for name, points in held_out.items() if name.endswith(LOSS)}
    shares = {name: points for name, points in held_out.items() if not name.endswith(LOSS)}
    right = [
        Series(_words(name.removesuffix(RIGHT)), points, number % COLOURS + 1, dots=True)
        for number, (name, points) in enumerate(shares.items())
    ]
    first, *others = _chart_losses(steps, losses)
    charts = [first, Chart("Held-out accuracy", right, zero=True), *others]
    return [one for one in charts if one.series]


def _chart_losses(steps: list[dict[str, Any]], losses: dict[str, Points]) -> list[Chart]:
    """A chart for each loss, in training and on held-out text; where there are several, their sum is no news."""
    learned = (name for record in steps for name, value in record.items() if name not in OTHERS and is_number(value))
    names = list(dict.fromkeys([*losses, *learned]))  # what a stage of the run alone asked is not held out
    if len(names) < 2:
        return [Chart("Loss", _series(read_points(steps, "loss"), *losses.values()))]
    return [Chart(f"Loss, {_words(name)}", _series(read_points(steps, name), losses.get(name))) for name in names]


def _series(train: Points, held_out: Points | None = None) -> list[Series]:
    found = [Series("each record", thin(train), 1, faint=True)] if len(train) > 2 * SMOOTH else []
    found += [Series("in training", smooth(train), 1)] if train else []
    return [*found, *([Series("held out", held_out, 2, dots=True)] if held_out else [])]


def draw_picture(facts: RunFacts) -> str:
    """The charts side by side under the run's name; "" where there is nothing to draw."""
    charts = choose_charts(facts) if facts.tokens else []
    if not charts:
        return ""
    columns, each = min(COLUMNS, len(charts)), LEGEND + HEIGHT + MARGIN
    width = 2 * MARGIN + columns * WIDTH + (columns - 1) * GAP
    height = HEAD + -(-len(charts) // columns) * each
    parts = [tag("style", _colours() + STYLE), box(0, 0, width, height, "paper")]
    parts.append(label(MARGIN, 32, shorten(name_run(facts), width - 2 * MARGIN, 20), style="title"))
    parts.append(label(MARGIN, 53, shorten(_summary(facts), width - 2 * MARGIN), style="quiet"))
    for number, chart in enumerate(charts):
        left, top = MARGIN + number % columns * (WIDTH + GAP), HEAD + number // columns * each
        drawn = draw_lines(chart.series, "step", _last(facts), zero=chart.zero, height=HEIGHT, tokens=facts.tokens)
        parts.append(label(left, top + 22, chart.title, style="strong") + _explain(chart, left, top + 42))
        parts.append(tag("g", drawn, {"transform": f"translate({left} {top + LEGEND})"}))
    size = {"viewBox": f"0 0 {width} {height}", "width": f"{width}", "height": f"{height}"}
    says = f"{name_run(facts)}: {' and '.join(one.title.lower() for one in charts)} over steps"
    whole = {"xmlns": "http://www.w3.org/2000/svg", **size, "role": "img", "aria-label": says}
    return spell_colours(tag("svg", "\n".join(parts), whole) + "\n", _colours())


def _explain(chart: Chart, left: float, at: float) -> str:
    parts = []
    for name, colour in chart.legend:
        parts.append(box(left, at - 10, 11, 11, f"swatch c{colour}") + label(left + 17, at, name, style="quiet"))
        left += 17 + measure(name, TYPE) + 14
    return "".join(parts)


def _colours() -> str:
    """The page's own, for light and dark."""
    style = files("bertsmith.evaluation.report").joinpath("report.css").read_text(encoding="utf-8")
    return style.partition("* {")[0]


def _summary(facts: RunFacts) -> str:
    scores = {_words(name): score for name, score in facts.main.items() if not name.endswith(LOSS)}
    shown = [f"{name} {show_score(score.get('value'), 3)}" for name, score in scores.items()]
    (step, tokens), speed = facts.tokens[-1], facts.speed.get("tokens_per_second")
    shown.append(f"{show_count(tokens)} tokens in {counted(step, 'step')}")
    return " · ".join([*shown, *([f"{show_count(speed)} tokens/s"] if is_number(speed) else [])])


def _words(name: str) -> str:
    return name.replace("pseudo_", "pseudo-").replace("_", " ")


def _steps(facts: RunFacts) -> list[dict[str, Any]]:
    return [record for record in facts.curves if "split" not in record and is_number(record.get("step"))]


def _last(facts: RunFacts) -> float:
    return float(max([record["step"] for record in facts.curves if is_number(record.get("step"))], default=0))
