"""The rows of boxes that BERT's paper shows its input with, the real vectors in them. In: an `Input`. Out: SVG."""

from typing import TYPE_CHECKING

import numpy as np

from bertsmith.evaluation.report.axes import box, label, line, shorten
from bertsmith.evaluation.report.markup import tag
from bertsmith.inspection.drawing import cells, fold, heading, name_some, stand_alone
from bertsmith.inspection.words import Array

if TYPE_CHECKING:
    from bertsmith.inspection.inputs import Input

LEFT, COLUMN, GAP, ACROSS = 132, 92, 10, 9  # pieces in a line of boxes
NAMES, PATCH, BETWEEN = 20, 40, 22  # the height of a box's name, of its numbers, and of what stands between two boxes
MOST = 72  # pieces that are drawn
COLOURS = {"token": "c1", "segment": "c3", "position": "c4", "sum, normed": "c2", "widened": "c5"}


def draw_input(given: "Input") -> str:
    count = min(len(given.pieces), MOST)
    across = min(count, ACROSS)
    width = max(LEFT + across * (COLUMN + GAP) + 24, 760)
    width_of = given.token_vectors.shape[1]
    colours = "blue above 0, orange below; the largest 2 % have full colour"
    under = f"each box holds a vector of {width_of:,} numbers: {colours}"
    parts = [heading(shorten(given.title, width - 48, 20), under)]
    y = 84.0
    limits = {name: given.limit(vectors) for name, _, vectors in given.layers if vectors is not None}
    for start in range(0, count, across):
        block, height = _draw_block(given, start, min(start + across, count), y, limits)
        parts.append(block)
        y += height
    more = len(given.pieces) - count
    rest = "1 more piece is not drawn." if more == 1 else f"{more:,} more pieces are not drawn."
    for note in [*given.notes, *([rest] if more else [])]:
        parts.append(label(24, y + 4, shorten(note, width - 48), "start", "quiet"))
        y += 20
    return stand_alone("".join(parts), width, y + 8, given.title)


def _draw_block(given: "Input", start: int, stop: int, top: float, limits: dict[str, float]) -> tuple[str, float]:
    """The boxes of some pieces, one row a table; how high they are altogether."""
    parts, y = [], top + 16
    right = LEFT + (stop - start) * (COLUMN + GAP) - GAP
    for place in range(start, stop):
        middle = _across(place - start) + COLUMN / 2
        style = "quiet" if place >= len(given.pieces) - given.padding else "strong"
        parts.append(label(middle, y, shorten(given.pieces[place], COLUMN), "middle", style))
        parts.append(label(middle, y + 15, f"id {given.ids[place]}", "middle", "quiet", 11))
    y += 26
    for row, (name, says, vectors) in enumerate(given.layers):
        parts.append(label(24, y + 18, name, "start", "strong"))
        parts.append(label(24, y + 34, says, "start", "quiet", 11))
        if vectors is None:
            parts.append(box(LEFT, y, right - LEFT, NAMES + PATCH, "track"))
            does = "turns by it" if given.way == "rotary" else "compares distances"
            words = "no segments in this family" if name == "segment" else f"not added: each layer {does}"
            parts.append(label((LEFT + right) / 2, y + 35, words, "middle", "quiet"))
        else:
            parts += [
                _draw_box(given, name, vectors[place], place, _across(place - start), y, limits[name])
                for place in range(start, stop)
            ]
        y += NAMES + PATCH
        sign = _sign(given, row)
        if sign:
            middles = [_across(number) + COLUMN / 2 for number in range(stop - start)]
            parts += [label(middle, y + 16, sign, "middle", "quiet", 15) for middle in middles]
            y += BETWEEN
    y += 20
    if stop < min(len(given.pieces), MOST):
        parts.append(line(24, y - 6, _across(ACROSS), y - 6, "rule"))
    return "".join(parts), y - top


def _across(number: int) -> float:
    """Where a column begins."""
    return LEFT + number * (COLUMN + GAP)


def _sign(given: "Input", row: int) -> str:
    """What stands below a row of boxes: nothing where the family has none in the next."""
    if row < 2:
        return "+" if given.layers[row + 1][2] is not None else " "
    return "↓" if row < len(given.layers) - 1 else ""


def _draw_box(given: "Input", name: str, vector: Array, place: int, x: float, y: float, limit: float) -> str:
    is_padding = place >= len(given.pieces) - given.padding
    written = {
        "token": f"E {given.pieces[place]}",
        "segment": f"E {'AB'[given.segments[place]] if given.segments[place] < 2 else given.segments[place]}",
        "position": f"E {given.positions[place]}",
    }.get(name, f"x {given.pieces[place]}")
    colour = "track" if is_padding else f"fill {COLOURS[name]}"
    style = "quiet" if is_padding else "on"
    name_in_box = label(x + COLUMN / 2, y + 14.5, shorten(written, COLUMN - 8, 11.5), "middle", style, 11.5)
    hint = f"{given.pieces[place]}, {name}: {name_some(vector, 8)}; length {np.linalg.norm(vector):.3f}"
    shown = cells(x, y + NAMES, COLUMN, PATCH, fold(vector, _columns(len(vector))), limit, hint)
    shown = tag("g", shown, {"opacity": "0.45"}) if is_padding else shown
    return box(x, y, COLUMN, NAMES, colour) + name_in_box + shown


def _columns(count: int) -> int:
    """So many cells to a line that they are about square in a patch."""
    return max(1, round((count * COLUMN / PATCH) ** 0.5))
