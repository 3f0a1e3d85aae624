"""Probes standing still: accuracy by layer with its interval, above control and majority; below, the learned mix.

In: `Probes.data()`. Out: SVG.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from bertsmith.evaluation.report.axes import Frame, Scale, box, dot, label, line
from bertsmith.evaluation.report.markup import tag
from bertsmith.inspection.drawing import heading, stand_alone

WIDTH, LEFT, RIGHT, TOP, TALL = 660.0, 66.0, 148.0, 92.0, 250.0
MIX = 96.0  # the height of the bars below


def draw_probes(data: Mapping[str, Any]) -> str:
    layers = data["layers"]
    count = len(layers)
    under = f"{data['train']:,} {data['items']} to learn from, {data['dev']:,} to test on, {len(data['labels'])} labels"
    across = Scale(-0.4, count - 0.6, LEFT, WIDTH - RIGHT)
    values = [each[key] for each in layers for key in ("low", "high", "control")]
    up = Scale.around([*values, data["majority"], data["mix"]["accuracy"]], TOP + TALL, TOP)
    frame = Frame(across, up)
    marks = [(across(n), str(n)) for n in range(count)]
    parts = [heading(f"What each layer knows: {data['task']}", under), _lay_axes(frame, marks)]
    probe, control = [each["accuracy"] for each in layers], [each["control"] for each in layers]
    parts += [_level(frame, data["majority"], "c5"), _level(frame, data["mix"]["accuracy"], "c3")]
    parts += [_draw_band(layers, frame), _draw_points(control, frame, "c6", "control")]
    parts.append(_draw_points(probe, frame, "c1", "probe"))
    names = [("probe", probe[-1], "c1"), ("all, mixed", data["mix"]["accuracy"], "c3"), ("control", control[-1], "c6")]
    parts.append(_draw_names([*names, ("majority", data["majority"], "c5")], frame))
    parts.append(_draw_shares(data["mix"]["shares"], across, TOP + TALL + 70))
    return stand_alone("".join(parts), WIDTH, TOP + TALL + MIX + 84, f"accuracy of probes by layer, {data['task']}")


def _lay_axes(frame: Frame, marks: Sequence[tuple[float, str]]) -> str:
    parts = []
    for value in frame.y.steps():
        at = frame.y(value)
        parts.append(line(frame.x.start, at, frame.x.end, at, "rule"))
        parts.append(label(frame.x.start - 8, at + 4, f"{100 * value:.0f} %", "end", "quiet"))
    for at, text in marks:
        parts.append(label(at, frame.y.start + 18, text, "middle", "quiet"))
    parts.append(label(frame.x.end, frame.y.start + 36, "layer (0 is the embedding)", "end", "quiet"))
    return "".join(parts)


def _level(frame: Frame, value: float, colour: str) -> str:
    """A line across for a number that is no layer's."""
    at = frame.y(value)
    place = {"x1": f"{frame.x.start:g}", "x2": f"{frame.x.end:g}", "y1": f"{at:g}", "y2": f"{at:g}"}
    look = {"style": f"stroke: var(--{colour})", "stroke-width": "1.5", "stroke-dasharray": "4 4"}
    return tag("line", "", {**place, **look})


def _draw_names(names: Sequence[tuple[str, float, str]], frame: Frame) -> str:
    """What each line is, at its end; names that would touch stand below each other."""
    parts, free = [], 0.0
    for name, value, colour in sorted(names, key=lambda one: -one[1]):
        at = max(frame.y(value), free)
        free = at + 16
        parts.append(label(frame.x.end + 8, at + 4, f"{name} {100 * value:.1f} %", "start", f"strong {colour}", 12))
    return "".join(parts)


def _draw_band(layers: Sequence[Mapping[str, Any]], frame: Frame) -> str:
    """The intervals, as one band."""
    top = [f"{frame.x(n):g} {frame.y(each['high']):g}" for n, each in enumerate(layers)]
    bottom = [f"{frame.x(n):g} {frame.y(each['low']):g}" for n, each in enumerate(layers)]
    path = "M" + "L".join([*top, *bottom[::-1]]) + "Z"
    return tag("path", "", {"d": path, "class": "fill c1", "fill-opacity": "0.16"})


def _draw_points(values: Sequence[float], frame: Frame, colour: str, name: str) -> str:
    places = [(frame.x(n), frame.y(value)) for n, value in enumerate(values)]
    path = "M" + "L".join(f"{x:g} {y:g}" for x, y in places)
    stroke = f"stroke: var(--{colour})"
    parts = [tag("path", "", {"d": path, "fill": "none", "style": stroke, "stroke-width": "2"})]
    for n, ((x, y), value) in enumerate(zip(places, values, strict=True)):
        parts.append(dot(x, y, 3.5, f"fill {colour}", f"{name}, layer {n}: {100 * value:.2f} %"))
    return "".join(parts)


def _draw_shares(shares: Sequence[float], across: Scale, y: float) -> str:
    parts = [label(LEFT, y - 8, "share of each layer in a learned mix", "start", "quiet")]
    most, wide = max(shares), min(34.0, (across.end - across.start) / len(shares) * 0.66)
    for n, share in enumerate(shares):
        tall = (MIX - 34) * share / most
        parts.append(box(across(n) - wide / 2, y + MIX - tall - 10, wide, tall, "fill c3", f"layer {n}: {share:.3f}"))
        parts.append(label(across(n), y + MIX - tall - 15, f"{100 * share:.0f} %", "middle", "quiet", 10))
    return "".join(parts)
