"""One step of attention as a sheet to show: a row a key, a column a stage, the sum below. In: a `Step`. Out: SVG."""

from typing import TYPE_CHECKING

import numpy as np

from bertsmith.evaluation.report.axes import box, label, line, shorten, title
from bertsmith.evaluation.report.markup import tag
from bertsmith.inspection.drawing import LESS, MORE, cells, heading, name_some, stand_alone
from bertsmith.inspection.words import Array

if TYPE_CHECKING:
    from bertsmith.inspection.step import Step

# Where the columns begin and how wide they are.
WORD, KEY, DOT, SCALED = (24, 108), (144, 190), (348, 66), (424, 66)
SOFT, VALUE, SHARE = (510, 140), (668, 190), (876, 190)
WIDTH, ROW, CELL = 1096, 27, 17


def draw_step(step: "Step") -> str:
    counted = f"layer {step.layer} of {step.layers} and head {step.head} of {step.heads}, counted from 0"
    under = f"{counted}; {step.size} numbers a vector"
    parts = [heading(shorten(step.title, WIDTH - 260, 20), under), _explain(WIDTH - 24)]
    y = 92
    query, turned = step.query, step.turned_query
    length = f"{len(step.x)} numbers, length {np.linalg.norm(step.x):.2f}"
    parts.append(_vector(y, f"x of “{step.name}”", step.x, SOFT[0] - KEY[0] - 14, length))
    y += ROW
    parts.append(_vector(y, "query q", query, KEY[1], "= Wq x + b: what the word looks for"))
    if turned is not None:
        y += ROW
        parts.append(_vector(y, "q, turned", turned, KEY[1], f"by its position, {step.place} (rotary)"))
    y += ROW + 40
    parts.append(_heads(step, y))
    y += 14
    parts.append(_rows(step, y))
    y += len(step.shown) * ROW + 4
    parts.append(_sum(step, y))
    y += ROW + 30
    for note in _notes(step):
        parts.append(label(24, y, shorten(note, WIDTH - 48), "start", "quiet"))
        y += 20
    return stand_alone("".join(parts), WIDTH, y + 4, step.title)


def _vector(y: float, name: str, values: Array, width: float, under: str) -> str:
    shown = cells(KEY[0], y, width, CELL, values, None, name_some(values, 8))
    words = label(WORD[0] + WORD[1], y + 13, shorten(name, WORD[1]), "end", "strong")
    return words + shown + label(KEY[0] + width + 12, y + 13, under, "start", "quiet")


def _heads(step: "Step", y: float) -> str:
    """The names of the columns, and above them what is done there."""
    keys = "key k" if step.turned_keys is None else "key k, turned"
    divisor, _, added = step.by.partition(" ")  # both on one line would run into the column before
    columns = (
        (KEY, keys, "what each word offers", "start"),
        (DOT, "q · k", "how alike", "end"),
        (SCALED, f"÷ {divisor}", added or "scaled", "end"),
        (SOFT, "softmax", "shares of 1", "start"),
        (VALUE, "value v", "what it has to give", "start"),
        (SHARE, "share × value", "what it gives", "start"),
    )
    parts = []
    for number, ((x, wide), name, under, anchor) in enumerate(columns, 1):
        at = x if anchor == "start" else x + wide
        parts.append(label(at, y - 17, f"{number}  {name}", anchor, "strong"))
        parts.append(label(at, y - 1, under, anchor, "quiet", 11.5))
    return "".join(parts) + line(WORD[0], y + 8, WIDTH - 24, y + 8, "rule")


def _rows(step: "Step", top: float) -> str:
    keys = step.keys if step.turned_keys is None else step.turned_keys
    kinds = {"k": keys, "v": step.values, "share": step.contributions}
    most = {kind: float(np.abs(vectors).max()) for kind, vectors in kinds.items()}
    return "".join(_row(step, place, top + row * ROW, keys, most) for row, place in enumerate(step.shown))


def _row(step: "Step", place: int, y: float, keys: Array, most: dict[str, float]) -> str:
    piece, weight, is_masked = step.pieces[place], float(step.weights[place]), bool(step.masked[place])
    base, quiet = y + 18, "quiet" if is_masked else ""
    parts = []
    if place == step.place:
        parts.append(box(WORD[0] - 8, y + 2, WIDTH - 2 * WORD[0] + 16, ROW - 2, "track"))
    style = quiet or ("strong" if place == step.place else "")
    parts.append(label(WORD[0] + WORD[1], base, shorten(piece, WORD[1]), "end", style))
    told = f"key of {piece}: {name_some(keys[place], 8)}"
    parts.append(cells(KEY[0], y + 5, KEY[1], CELL, keys[place], most["k"], told))
    parts.append(label(DOT[0] + DOT[1], base, _number(step.dots[place]), "end", quiet))
    parts.append(label(SCALED[0] + SCALED[1], base, "−∞" if is_masked else _number(step.scaled[place]), "end", quiet))
    if is_masked:
        parts.append(label(SOFT[0], base, f"masked: {step.reason(place)}", "start", "quiet", 11.5))
    else:
        long = (SOFT[1] - 48) * weight
        parts.append(box(SOFT[0], y + 6, SOFT[1] - 48, CELL - 2, "track"))
        parts.append(box(SOFT[0], y + 6, max(long, 0.75), CELL - 2, "fill c1", f"{piece}: {weight:.6f}"))
        parts.append(label(SOFT[0] + SOFT[1], base, f"{weight:.3f}", "end"))
    values, given = step.values[place], step.contributions[place]
    parts.append(cells(VALUE[0], y + 5, VALUE[1], CELL, values, most["v"], f"value of {piece}: {name_some(values, 8)}"))
    parts.append(cells(SHARE[0], y + 5, SHARE[1], CELL, given, most["share"], f"{piece} gives {name_some(given, 8)}"))
    return "".join(parts)


def _sum(step: "Step", y: float) -> str:
    parts = [line(SHARE[0], y, SHARE[0] + SHARE[1], y, "axis")]
    parts.append(label(SHARE[0] - 14, y + 21, f"7  sum: what head {step.head} tells “{step.name}”", "end", "strong"))
    parts.append(cells(SHARE[0], y + 8, SHARE[1], CELL, step.result, None, name_some(step.result, 8)))
    return "".join(parts)


def _notes(step: "Step") -> list[str]:
    seen = f"The other {step.heads - 1} heads do the same with matrices of their own; " if step.heads > 2 else ""
    seen = "The other head does the same with matrices of its own; " if step.heads == 2 else seen
    mask = []
    if step.causal:
        mask.append("Read as GPT reads: a word sees only itself and those before it.")
    if step.window:
        mask.append(f"A local layer: a token sees {step.window} neighbours to each side.")
    last = f"{seen}Wo mixes the sums of all heads into one vector of {len(step.x)} numbers."
    return [*([step.left_out + "."] if step.left_out else []), *mask, *step.notes, last]


def _explain(right: float) -> str:
    """What the colours mean."""
    steps, wide = 9, 14
    x = right - steps * wide - 54
    parts = [label(x - 8, 36, "below 0", "end", "quiet", 11.5)]
    parts.append(label(right - 46, 36, "above 0", "start", "quiet", 11.5))
    for i in range(steps):
        value = (i - steps // 2) / (steps // 2)
        colour = MORE if value > 0 else LESS
        look = {"fill": f"rgb{colour}", "fill-opacity": f"{abs(value):g}", "x": f"{x + i * wide:g}", "y": "26"}
        parts.append(tag("rect", title(f"{value:+.2f} of the largest"), {**look, "width": str(wide), "height": "13"}))
    parts.append(label(x + steps * wide / 2, 54, "0", "middle", "quiet", 11.5))
    return "".join(parts)


def _number(value: float) -> str:
    return f"{value:.3f}".replace("-", "−")
