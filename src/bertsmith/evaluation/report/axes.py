"""The paper that charts are drawn on: scales, axes with round numbers, texts that fit.

One user unit is one pixel at the size a chart is made for; colours and type come from the page's style sheet by class,
so that one drawing serves light, dark and print.
"""

import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from bertsmith.evaluation.report.markup import escape, tag, visible
from bertsmith.evaluation.report.numbers import is_number, round_steps, show_count, show_number

WIDTH = 440  # narrow enough that the type stays readable on a phone, wide enough for half a desk's screen
TYPE = 12


@dataclass(frozen=True)
class Scale:
    """Values from `low` to `high` to positions from `start` to `end`; what lies outside stays on the edge."""

    low: float
    high: float
    start: float
    end: float

    @classmethod
    def around(cls, values: Iterable[float], start: float, end: float, *, zero: bool = False) -> "Scale":
        """With round ends and, for a constant, room on both sides."""
        known = [float(value) for value in values if is_number(value)] or [0.0, 1.0]
        low, high = min(known), max(known)
        low = min(low, 0.0) if zero else low
        if high - low <= 1e-9 * max(abs(low), abs(high)):
            room = abs(high) * 0.1 or 1.0
            low, high = (low if zero and low == 0 else low - room), high + room
        steps = round_steps(low, high)
        step = steps[1] - steps[0] if len(steps) > 1 else high - low
        first = steps[0] if steps[0] <= low else steps[0] - step
        last = steps[-1] if steps[-1] >= high else steps[-1] + step
        return cls(min(first, low), max(last, high), start, end)

    def __call__(self, value: float) -> float:
        share = (value - self.low) / (self.high - self.low) if self.high > self.low else 0.5
        return round(self.start + min(max(share, 0.0), 1.0) * (self.end - self.start), 2)

    def steps(self, wanted: int = 5) -> list[float]:
        return round_steps(self.low, self.high, wanted)


@dataclass(frozen=True)
class Frame:
    """Where the values of a chart are drawn: `x` runs to the right, `y` upwards."""

    x: Scale
    y: Scale

    def axes(self, name: str, wanted: int = 5, marks: Sequence[tuple[float, str]] | None = None) -> str:
        """Lines and numbers of both axes; `name` says what x counts, `marks` (place, text) stand for its numbers."""
        parts = []
        for value in self.y.steps(wanted):
            at = self.y(value)
            parts.append(line(self.x.start, at, self.x.end, at, "grid"))
            parts.append(label(self.x.start - 7, at + 4, show_number(value), "end"))
        parts.append(line(self.x.start, self.y.start, self.x.end, self.y.start, "axis"))
        for at, text in [(self.x(v), show_number(v)) for v in self.x.steps()] if marks is None else marks:
            parts.append(line(at, self.y.start, at, self.y.start + 4, "axis"))
            parts.append(label(at, self.y.start + 17, text, "middle"))
        parts.append(label(self.x.end, self.y.start + 33, name, "end", "quiet"))
        return "".join(parts)

    def above(self, name: str, known: Sequence[tuple[float, float]]) -> str:
        """A second count at the numbers of x and at its end: `known` are some (x, count), a straight line between."""
        parts = [label(self.x.start - 7, self.y.end - 13, name, "end", "quiet")]
        places = [value for value in self.x.steps() if self.x(value) < self.x.end - TYPE * 4]
        for value in [*places, self.x.high]:
            found = interpolate(value, known)
            if found:  # nothing is no news
                parts.append(label(self.x(value), self.y.end - 13, show_count(found), "middle", "quiet"))
        return "".join(parts)


def interpolate(at: float, known: Sequence[tuple[float, float]]) -> float | None:
    """What lies there on the line through these points, which are in order; None beside them."""
    for (x1, y1), (x2, y2) in pairwise(known):
        if x1 <= at <= x2:
            return y1 + (y2 - y1) * (at - x1) / (x2 - x1) if x2 > x1 else y1
    return None


def drawing(inside: str, width: float, height: float, says: str, style: str = "chart") -> str:
    """`says` is what a screen reader tells of the picture."""
    size = {"viewBox": f"0 0 {width:g} {height:g}", "width": f"{width:g}", "height": f"{height:g}"}
    return tag("svg", inside, {**size, "class": style, "role": "img", "aria-label": says}) + "\n"


def line(x1: float, y1: float, x2: float, y2: float, style: str) -> str:
    return tag("line", "", {"x1": f"{x1:g}", "y1": f"{y1:g}", "x2": f"{x2:g}", "y2": f"{y2:g}", "class": style})


def box(
    x: float, y: float, width: float, height: float, style: str, hint: str = "", opacity: float | None = None
) -> str:
    place = {"x": f"{x:g}", "y": f"{y:g}", "width": f"{max(width, 0):g}", "height": f"{max(height, 0):g}"}
    shade = {"class": style, "fill-opacity": None if opacity is None else f"{opacity:.3g}"}
    return tag("rect", title(hint), {**place, **shade})


def dot(x: float, y: float, radius: float, style: str, hint: str = "") -> str:
    return tag("circle", title(hint), {"cx": f"{x:g}", "cy": f"{y:g}", "r": f"{radius:g}", "class": style})


def title(hint: str) -> str:
    """What a pointer that rests on a mark is shown."""
    return tag("title", escape(hint)) if hint else ""


def label(
    x: float, y: float, text: object, anchor: str = "start", style: str = "", size: float | None = None, turn: int = 0
) -> str:
    turned = f"rotate({turn} {x:g} {y:g})" if turn else None
    look = {"class": style or None, "font-size": None if size is None else f"{size:g}", "transform": turned}
    return tag("text", escape(text), {"x": f"{x:g}", "y": f"{y:g}", "text-anchor": anchor, **look})


def measure(text: str, size: float = TYPE) -> float:
    """About how wide a text is; without a font to ask, generous."""
    return sum(size * (1.02 if unicodedata.east_asian_width(c) in "WF" else 0.6) for c in text)


def wrap(text: object, width: float, size: float = TYPE) -> list[str]:
    """As many lines as it takes; a word that fits in none is shortened."""
    lines: list[str] = []
    for word in visible(text).split():
        longer = f"{lines[-1]} {word}" if lines else ""
        if longer and measure(longer, size) <= width:
            lines[-1] = longer
        else:
            lines.append(shorten(word, width, size))
    return lines


def shorten(text: object, width: float, size: float = TYPE) -> str:
    """One line that fits."""
    whole = " ".join(visible(text).split())
    if measure(whole, size) <= width:
        return whole
    kept = whole[: int(width / size * 2) + 1]
    while kept and measure(kept + "…", size) > width:
        kept = kept[:-1]
    return kept.rstrip() + "…"
