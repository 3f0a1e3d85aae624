"""An attribution standing still: the words shaded by what they add, their numbers below them, the strongest as bars.

In: `Attribution.data()`. Out: SVG.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from bertsmith.evaluation.report.axes import box, label, line, measure, shorten
from bertsmith.inspection.drawing import heading, stand_alone

WIDTH, MARGIN = 760.0, 24.0
LINE, TALL, TYPE = 52.0, 26.0, 14.0  # from one line of words to the next; a word's box; its type
BARS, BAR = 10, 20.0  # the strongest words; the height of each
NAMES = 150.0  # room for their names
DARK = 0.3  # of the largest value: on that much colour grey letters cannot be read


def draw_attribution(data: Mapping[str, Any]) -> str:
    parts = [heading(f"{data['job']}: {shorten(data['target'], 460, 20)}", shorten(data["explained"], 690))]
    y = 92.0
    for part in data["parts"]:
        for method, name in data["methods"].items():
            drawn, y = _draw_method(part, part["found"][method], f"{part['name']} · {name}", data["baseline"], y)
            parts.append(drawn)
    return stand_alone("".join(parts), WIDTH, y, f"attribution of {data['job']}, {data['explained']}")


def _draw_method(
    part: Mapping[str, Any], found: Mapping[str, Any], name: str, baseline: str, y: float
) -> tuple[str, float]:
    """One method's words and bars, and where the next begins."""
    values = found["units"]
    most = max((abs(value) for value in values), default=0.0) or 1.0
    parts = [label(MARGIN, y, name, "start", "strong")]
    parts.append(label(WIDTH - MARGIN, y, tell(part, found, baseline), "end", "quiet"))
    drawn, y = _draw_words(part["names"], part["sides"], values, most, y + 16)
    bars, y = _draw_bars(part["names"], values, y + 6)
    return "".join([*parts, drawn, bars]), y + 34


def tell(part: Mapping[str, Any], found: Mapping[str, Any], baseline: str) -> str:
    """The numbers that the words are to explain."""
    shown = f"score {part['score']:.3f}, of the {baseline} baseline {part['start']:.3f}"
    shown = shown if found["missed"] is None else f"{shown}; sum {found['sum']:+.3f}"
    return shown.replace("-", "−")


def _draw_words(
    names: Sequence[str], sides: Sequence[int | None], values: Sequence[float], most: float, y: float
) -> tuple[str, float]:
    """The words in lines, as a text runs."""
    parts, x = [], MARGIN
    for name, side, value in zip(names, sides, values, strict=True):
        shown = shorten(name, 220, TYPE) or "␣"
        wide = max(measure(shown, TYPE) + 10, 44.0)
        if x > MARGIN and x + wide > WIDTH - MARGIN:
            x, y = MARGIN, y + LINE
        number = show_signed(value)
        style = "fill c1" if value >= 0 else "fill c2"
        share = abs(value) / most
        parts.append(box(x, y, wide, TALL, style, f"{name}: {number}", 0.05 + 0.7 * share))
        kind = "quiet" if side is None and share < DARK else ""
        parts.append(label(x + wide / 2, y + 18, shown, "middle", kind, TYPE))
        parts.append(label(x + wide / 2, y + TALL + 13, number, "middle", "quiet", 10.5))
        x += wide + 4
    return "".join(parts), y + LINE


def _draw_bars(names: Sequence[str], values: Sequence[float], y: float) -> tuple[str, float]:
    """The strongest words, those that add to the right of the line and those that take to its left."""
    order = sorted(range(len(values)), key=lambda i: (-abs(values[i]), i))[:BARS]
    order = [i for i in order if values[i]]
    less, more = max(0.0, -min(values, default=0.0)), max(0.0, max(values, default=0.0))
    left, room = MARGIN + NAMES + 56 * (less > 0), WIDTH - 2 * MARGIN - NAMES - 56 * ((less > 0) + (more > 0))
    zero, scale = left + room * less / ((less + more) or 1.0), room / ((less + more) or 1.0)
    parts = []
    for row, i in enumerate(order):
        top, wide = y + row * BAR, scale * abs(values[i])
        style = "fill c1" if values[i] >= 0 else "fill c2"
        parts.append(label(MARGIN + NAMES - 8, top + 14, shorten(names[i], NAMES - 8, 13), "end"))
        parts.append(box(zero if values[i] >= 0 else zero - wide, top + 3, wide, BAR - 6, style))
        at, anchor = (zero + wide + 6, "start") if values[i] >= 0 else (zero - wide - 6, "end")
        parts.append(label(at, top + 14, show_signed(values[i]), anchor, "quiet", 11))
    end = y + len(order) * BAR
    return "".join([*parts, line(zero, y, zero, end, "axis") if order else ""]), end


def show_signed(value: float) -> str:
    """Three places and a sign; nothing at all is 0."""
    if not value:
        return "0"
    shown = f"{value:+.3f}" if abs(value) >= 0.0005 else f"{value:+.0e}".replace("e-0", "e-")
    return shown.replace("-", "−", 1) if value < 0 else shown
