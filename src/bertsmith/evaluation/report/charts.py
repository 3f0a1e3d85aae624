"""Lines over steps, histograms, bars and the reliability diagram, as stand-alone SVG; numbers that cannot be drawn are
left out."""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from bertsmith.data.findings import counted
from bertsmith.evaluation.report.axes import WIDTH, Frame, Scale, box, dot, drawing, label, line, shorten, title
from bertsmith.evaluation.report.excerpts import cut_name
from bertsmith.evaluation.report.facts import Bin, Lengths, Metrics, Score
from bertsmith.evaluation.report.markup import escape, tag
from bertsmith.evaluation.report.numbers import is_number, show_number, show_score, show_share

LEFT, RIGHT, TOP, BOTTOM = 56, 20, 22, 42
STRIP = 240  # the width of an interval's mark in a table
ERRORS = ("ece", "_loss", "perplexity")  # how the names of metrics end that are better when they are less
COLOURS = 6  # classes c1 to c6 of the style sheet


@dataclass(frozen=True)
class Series:
    name: str
    points: Sequence[tuple[float, float]]
    colour: int = 1
    dots: bool = False  # few points, each measured: marks with their values
    faint: bool = False  # in the background of another


def draw_lines(
    series: Sequence[Series], name: str, last: float, best: float | None = None, height: int = 230, zero: bool = False,
    tokens: Sequence[tuple[float, float]] = (),
) -> str:  # fmt: skip
    """Lines over `name` (steps) from 0 to `last`; `best` is where the kept checkpoint stands.

    `tokens` are some (step, tokens seen by then), which are told above.
    """
    known = [[(x, y) for x, y in one.points if is_number(x) and is_number(y)] for one in series]
    flat = [point for points in known for point in points]
    # Strong lines set the height, so that one wild step in the background does not flatten all others.
    firm = [y for one, points in zip(series, known, strict=True) for _, y in points if not one.faint]
    across = Scale(0.0, max(last, 1.0), LEFT, WIDTH - RIGHT)
    top = TOP + 8 if tokens else TOP
    frame = Frame(across, Scale.around(firm or [y for _, y in flat], height - BOTTOM, top, zero=zero))
    parts = [frame.axes(name), frame.above("tokens", tokens) if tokens else ""]
    if is_number(best) and across.low <= best <= across.high:
        parts.append(_mark_best(frame, float(best)))
    for one in series:
        parts.append(_draw_line(one, frame))
    says = ", ".join(one.name for one in series if not one.faint) + f" over {name}"
    return drawing("".join(parts), WIDTH, height, says)


def _mark_best(frame: Frame, best: float) -> str:
    at = frame.x(best)
    right = at > (frame.x.start + frame.x.end) / 2
    words = label(
        at + (-5 if right else 5), frame.y.end - 8, f"best: step {best:,.0f}", "end" if right else "start", "strong"
    )
    return line(at, frame.y.start, at, frame.y.end - 16, "best") + words


def _draw_line(one: Series, frame: Frame) -> str:
    """A line, broken where a value is missing; a value that stands alone is a dot."""
    runs: list[list[tuple[float, float]]] = [[]]
    for x, y in one.points:
        if is_number(x) and is_number(y):
            runs[-1].append((x, y))
        elif runs[-1]:
            runs.append([])
    style = f"c{(one.colour - 1) % COLOURS + 1}"
    parts = []
    for run in runs:
        if len(run) > 1:
            path = "M" + "L".join(f"{frame.x(x):g} {frame.y(y):g}" for x, y in run)
            parts.append(tag("path", "", {"d": path, "class": f"curve {style}" + (" faint" if one.faint else "")}))
        if one.dots or (len(run) == 1 and not one.faint):
            hints = [(x, y, f"{one.name} {show_number(y)} at {x:,.0f}") for x, y in run]
            parts += [dot(frame.x(x), frame.y(y), 3, f"point {style}", hint) for x, y, hint in hints]
    return "".join(parts)


def draw_histogram(lengths: Lengths, name: str = "tokens", height: int = 200) -> str:
    """How long the examples are; what lies beyond the limit has another colour. Bins may widen: bars are alike."""
    edges, counts, limit = lengths["edges"], lengths["counts"], lengths.get("limit")
    widths = {round(high - low, 6) for low, high in pairwise(edges)}
    even = Scale(min(edges), max([*edges, limit or 0]), LEFT, WIDTH - RIGHT)
    across = even if len(widths) == 1 else Scale(0, len(edges) - 1, LEFT, WIDTH - RIGHT)
    starts = [even(edge) for edge in edges] if across is even else [across(i) for i in range(len(edges))]
    frame = Frame(across, Scale.around(counts, height - BOTTOM, TOP, zero=True))
    marks = None if across is even else list(zip(starts, map(show_number, edges), strict=True))
    parts = [frame.axes(name, 4, marks)]
    for i, (count, start) in enumerate(zip(counts, starts, strict=False)):
        top, wide = frame.y(count), max(starts[i + 1] - start - 1, 0.75)
        over = limit is not None and edges[i] >= limit
        hint = f"{show_number(edges[i])} to {show_number(edges[i + 1])} {name}: {counted(count, 'example')}"
        parts.append(box(start, top, wide, frame.y.start - top, "fill c2" if over else "fill c1", hint))
    if limit is not None:
        parts.append(_mark_limit(even(limit) if across is even else _between(edges, starts, limit), frame, limit))
    return drawing("".join(parts), WIDTH, height, f"histogram of {name}")


def _between(edges: Sequence[float], starts: Sequence[float], value: float) -> float:
    """Where a value stands among bars that are as wide as each other, whatever they hold."""
    i = min(max(bisect_right(edges, value) - 1, 0), len(edges) - 2)
    share = (value - edges[i]) / (edges[i + 1] - edges[i])
    return round(starts[i] + min(max(share, 0.0), 1.0) * (starts[i + 1] - starts[i]), 2)


def _mark_limit(at: float, frame: Frame, limit: int) -> str:
    anchor, shift = ("end", -5) if at > (LEFT + WIDTH) / 2 else ("start", 5)
    words = label(at + shift, TOP - 6, f"limit {limit:,}", anchor, "strong")
    return line(at, frame.y.start, at, TOP - 12, "best") + words


def draw_bars(rows: Mapping[str, Sequence[float]], names: Sequence[str], totals: Sequence[float]) -> str:
    """Horizontal bars, one of each split for a label: its share of the split."""
    thick, gap, gutter, room = (11 if len(names) > 1 else 14), 9, 134, 94
    largest = max(
        [value / (total or 1) for values in rows.values() for value, total in zip(values, totals, strict=True)]
    )
    across = Scale(0.0, largest or 1.0, gutter, WIDTH - room)
    step, parts = thick * len(names) + gap, []
    for row, (name, values) in enumerate(rows.items()):
        top = row * step + gap / 2
        shown = label(gutter - 8, top + thick * len(names) / 2 + 4, shorten(name, gutter - 8), "end")
        parts.append(tag("g", title(cut_name(name)) + shown))
        for i, (value, total) in enumerate(zip(values, totals, strict=True)):
            wide = max(across(value / (total or 1)) - gutter, 0.75 if value else 0)
            hint = f"{cut_name(name)}, {names[i]}: {value:,} of {total:,}"
            parts.append(box(gutter, top + i * thick, wide, thick - 1.5, f"fill c{i + 1}", hint))
            words = f"{value:,} · {show_share(value, total)}"
            parts.append(label(gutter + wide + 5, top + i * thick + thick / 2 + 3, words, "start", "quiet", 10.5))
    return drawing("".join(parts), WIDTH, len(rows) * step, "share of each label")


def draw_reliability(bins: Sequence[Bin], before: Sequence[Bin] = ()) -> str:
    """How often the model is right (up) when it is so sure (across), against the diagonal; below, how many examples."""
    side, top, below = 250, 12, 54
    frame = Frame(Scale(0, 1, LEFT, WIDTH - RIGHT), Scale(0, 1, top + side, top))
    parts = [frame.axes("")]
    parts.append(line(frame.x(0), frame.y(0), frame.x(1), frame.y(1), "diagonal"))
    known = [b for b in bins if b["count"] and is_number(b["confidence"]) and is_number(b["accuracy"])]
    for b in known:
        at, hint = (
            frame.x(b["confidence"]),
            f"sure {b['confidence']:.3f}, right {b['accuracy']:.3f}, {counted(b['count'], 'example')}",
        )
        parts.append(line(at, frame.y(b["confidence"]), at, frame.y(b["accuracy"]), "gap"))
        parts.append(dot(at, frame.y(b["accuracy"]), 4.5, "point c1", hint))
    earlier = [(b["confidence"], b["accuracy"]) for b in before if b["count"]]
    parts.append(tag("g", _draw_line(Series("before", earlier, colour=2), frame), {"class": "earlier"}))
    parts.append(_draw_line(Series("after", [(b["confidence"], b["accuracy"]) for b in known]), frame))
    floor = top + side + 30 + below
    heights = Scale(0, max([b["count"] for b in known], default=1), 0, below)
    for b in known:
        tall = max(heights(b["count"]), 1)
        parts.append(
            box(frame.x(b["confidence"]) - 6, floor - tall, 12, tall, "fill c1 soft", counted(b["count"], "example"))
        )
    parts.append(line(LEFT, floor, WIDTH - RIGHT, floor, "axis"))
    parts.append(
        label(LEFT - 7, floor - below + 8, f"{int(heights.high):,}", "end") + label(LEFT - 7, floor + 4, "0", "end")
    )
    parts.append(label(WIDTH - RIGHT, floor + 17, "how sure the model was", "end", "quiet"))
    return drawing("".join(parts), WIDTH, floor + 24, "accuracy by confidence")


def span_scores(splits: Sequence[Metrics]) -> Scale:
    """One scale for the marks of all splits, as narrow as their values allow; what is better when less is no score."""
    kept = [score for metrics in splits for name, score in metrics.items() if not name.lower().endswith(ERRORS)]
    return Scale.around([value for score in kept for value in _ends(score)], 4, STRIP - 4)


def _ends(score: Score) -> list[float]:
    return [value for value in (score.get("value"), score.get("low"), score.get("high")) if is_number(value)]


def draw_interval(score: Score, scale: Scale) -> str:
    """A value and its interval as marks on a line; nothing where the scale does not reach."""
    value, ends = score.get("value"), _ends(score)
    if not is_number(value) or min(ends) < scale.low or max(ends) > scale.high:
        return ""
    wide = scale(max(ends)) - scale(min(ends))
    marks = box(scale(min(ends)), 5, wide, 8, "fill c1 soft") + box(scale(value) - 1.25, 2, 2.5, 14, "fill c1")
    says = f"{show_score(value)} between {show_score(scale.low)} and {show_score(scale.high)}"
    return drawing(line(4, 9, STRIP - 4, 9, "grid") + marks, STRIP, 18, says, "strip")


def draw_share(value: object) -> str:
    """A number between 0 and 1 as a short bar for a table's cell."""
    if not is_number(value):
        return ""
    wide = 100 * min(max(float(value), 0.0), 1.0)
    return drawing(box(0, 3, 100, 8, "track") + box(0, 3, wide, 8, "fill c1"), 100, 14, show_score(value), "strip")


def explain(names: Sequence[tuple[str, int]]) -> str:
    """The legend: a swatch of each colour with its name."""
    items = (tag("span", tag("i", "", {"class": f"swatch c{(c - 1) % COLOURS + 1}"}) + escape(n)) for n, c in names)
    return tag("p", "".join(items), {"class": "legend"})
