"""Heat maps of positions with their axes. In: a `Positions`. Out: SVG."""

from typing import TYPE_CHECKING

from bertsmith.evaluation.report.axes import label, line, shorten, wrap
from bertsmith.evaluation.report.numbers import round_steps
from bertsmith.inspection.drawing import cells, heading, stand_alone

if TYPE_CHECKING:
    from bertsmith.inspection.positions import Map, Positions

LEFT, TOP, SIDE, BETWEEN = 64, 118, 440, 84


def draw_positions(positions: "Positions") -> str:
    width = max(LEFT + len(positions.maps) * (SIDE + BETWEEN) - BETWEEN + 32, 620)
    parts = [heading(positions.title, wrap(positions.says, width - 48))]
    for number, one in enumerate(positions.maps):
        parts.append(_draw_map(one, LEFT + number * (SIDE + BETWEEN)))
    y = TOP + SIDE + 64
    key = "the colour is the number: blue up to 1, none at 0, orange down to −1"
    for note in (key, *positions.notes):
        parts.append(label(24, y, shorten(note, width - 48), "start", "quiet"))
        y += 20
    return stand_alone("".join(parts), width, y, positions.title)


def _draw_map(one: "Map", x: float) -> str:
    rows, columns = one.values.shape
    parts = [label(x, TOP - 14, one.name, "start", "strong")]
    parts.append(cells(x, TOP, SIDE, SIDE, one.values, 1.0, one.name))
    for value in round_steps(0, (columns - 1) * one.column_step, 4):
        at = x + (value / one.column_step + 0.5) / columns * SIDE
        parts.append(line(at, TOP + SIDE, at, TOP + SIDE + 4, "axis"))
        parts.append(label(at, TOP + SIDE + 18, f"{value:,.0f}", "middle", "", 11.5))
    for value in round_steps(0, (rows - 1) * one.row_step, 5):
        at = TOP + (value / one.row_step + 0.5) / rows * SIDE
        parts.append(line(x - 4, at, x, at, "axis"))
        parts.append(label(x - 8, at + 4, f"{value:,.0f}", "end", "", 11.5))
    parts.append(label(x + SIDE, TOP + SIDE + 36, one.columns, "end", "quiet"))
    parts.append(label(x - 44, TOP + SIDE / 2, one.rows, "middle", "quiet", None, -90))
    return "".join(parts)
