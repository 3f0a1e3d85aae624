"""The lens and compared masks standing still: a table of layers and pieces, bars of words beside each other."""

from typing import TYPE_CHECKING

from bertsmith.evaluation.report.axes import box, label, shorten, title, wrap
from bertsmith.evaluation.report.markup import tag
from bertsmith.inspection.drawing import heading, stand_alone

if TYPE_CHECKING:
    from bertsmith.inspection.lens import Lens
    from bertsmith.inspection.masks import Masks

LEFT, TOP, CELL, TALL, MARGIN = 92, 92, 84, 30, 24
PLACES = 32  # that one picture holds beside each other
BAR, ROW, NAME = 190, 24, 110


def draw_lens(lens: "Lens") -> str:
    """One row a layer, one column a piece; of a long text the columns around its mask, or its first ones."""
    count = len(lens.pieces)
    first = max(0, min((lens.masks or [0])[0] - PLACES // 2, count - PLACES))
    places = range(first, min(first + PLACES, count))
    width, height = LEFT + len(places) * CELL + MARGIN, TOP + (len(lens.layers) + 1) * TALL + MARGIN
    under = "the likeliest piece if the model had to answer there; the stronger the colour, the surer"
    under += f"; {len(places)} of {count} pieces" * (len(places) < count)
    parts = [heading(lens.title, wrap(under, max(width, 560) - 2 * MARGIN))]
    for column, place in enumerate(places):
        style = "strong" if place in lens.masks else "quiet"
        parts.append(label(LEFT + (column + 0.5) * CELL, TOP, shorten(lens.pieces[place], CELL - 6), "middle", style))
    for row, layer in enumerate(lens.layers):
        y = TOP + 12 + row * TALL
        parts.append(label(LEFT - 10, y + 19, f"layer {layer}", "end", "quiet"))
        parts += [_draw_cell(lens, row, place, LEFT + column * CELL, y) for column, place in enumerate(places)]
    return stand_alone("".join(parts), max(width, 560), height, lens.title)


def _draw_cell(lens: "Lens", row: int, place: int, x: float, y: float) -> str:
    found = lens.at(lens.layers[row], place)
    hint = f"{lens.pieces[place]}, layer {lens.layers[row]}: " + ", ".join(
        f"{one['token_str']} {one['score']:.3f}" for one in found
    )
    best = found[0]
    style = "on" if best["score"] > 0.55 else ""
    parts = [
        box(x + 1, y + 1, CELL - 2, TALL - 2, "track"),
        box(x + 1, y + 1, CELL - 2, TALL - 2, "fill c1", opacity=best["score"]),
        label(x + CELL / 2, y + 19, shorten(best["token_str"], CELL - 8, 13), "middle", style),
    ]
    return tag("g", title(hint) + "".join(parts))


def draw_masks(masks: "Masks") -> str:
    """A column of bars a variant, in the order of the first one's words."""
    count = len(masks.texts)
    width, top = MARGIN + NAME + count * (BAR + 70) + MARGIN, 84 + 20 * count
    height = top + 22 + len(masks.words) * ROW + MARGIN
    parts = [heading(masks.title, "the probability of each word, in each variant of the sentence")]
    for number, text in enumerate(masks.texts):
        line = f"{number + 1}  {text}"
        colour, room = f"c{number % 6 + 1}", max(width, 560) - 2 * MARGIN
        parts.append(label(MARGIN, 82 + 20 * number, shorten(line, room, 13), "start", colour))
        x = MARGIN + NAME + number * (BAR + 70)
        moved = f"{number + 1}" if not number else f"{number + 1} · {100 * masks.distances[number]:.0f} % moved"
        parts.append(label(x, top + 6, moved, "start", "quiet"))
        for row, chance in enumerate(masks.chances[number].tolist()):
            y = top + 16 + row * ROW
            parts.append(box(x, y, BAR, ROW - 8, "track"))
            parts.append(box(x, y, BAR * chance, ROW - 8, f"fill {colour}", f"{masks.words[row]}: {chance:.4f}"))
            parts.append(label(x + BAR + 6, y + 12, f"{100 * chance:.1f} %", "start", "quiet"))
    for row, word in enumerate(masks.words):
        parts.append(label(MARGIN + NAME - 12, top + 28 + row * ROW, shorten(word, NAME - 14, 13), "end"))
    return stand_alone("".join(parts), max(width, 560), height, masks.title)
