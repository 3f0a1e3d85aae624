"""Charts of the reports as one SVG file that stands alone. In: drawn charts, their titles and legends. Out: markup."""

from collections.abc import Sequence

from bertsmith.evaluation.report.axes import WIDTH, box, label
from bertsmith.evaluation.report.charts import Series
from bertsmith.evaluation.report.markup import tag
from bertsmith.inspection.drawing import stand_alone

MARGIN, HEAD, LINE, GAP = 24, 58, 19, 30
# What the reports' charts are drawn with, beyond what every still picture has.
CHART_STYLE = """
svg svg { font-size: 12px; background: none; }
line.grid { stroke: var(--rule); } line.best { stroke: var(--quiet); stroke-dasharray: 4 3; }
.c1 { color: var(--c1); } .c2 { color: var(--c2); } .c3 { color: var(--c3); }
.c4 { color: var(--c4); } .c5 { color: var(--c5); } .c6 { color: var(--c6); }
.curve { fill: none; stroke: currentColor; stroke-width: 2; stroke-linejoin: round; stroke-linecap: round; }
.curve.faint { stroke-width: 1; stroke-opacity: 0.32; }
.point { fill: var(--card); stroke: currentColor; stroke-width: 2; } .swatch { fill: currentColor; }
"""


def stack_charts(heading: str, charts: Sequence[tuple[str, str, str, Sequence[Series]]]) -> str:
    """(name, what it found, the chart, its series) each, one beneath the other."""
    parts = [tag("style", CHART_STYLE), label(MARGIN, 36, heading, style="title")]
    top = float(HEAD)
    for name, found, chart, series in charts:
        line = " · ".join(part for part in (name, found) if part)
        parts.append(label(MARGIN, top + 8, line, style="strong" if name else "quiet"))
        tall = float(chart.partition('height="')[2].partition('"')[0])
        parts.append(tag("g", chart, {"transform": f"translate({MARGIN} {top + 14:g})"}))
        top += 14 + tall
        for one in series:
            parts.append(tag("g", box(MARGIN, top - 3, 12, 10, "swatch"), {"class": f"c{one.colour}"}))
            parts.append(label(MARGIN + 20, top + 6, one.name))
            top += LINE
        top += GAP
    return stand_alone("".join(parts), WIDTH + 2 * MARGIN, top - GAP + MARGIN, heading)
