"""The uses of a word standing still: a map and a heat map of cosines for each of some layers."""

from typing import TYPE_CHECKING

import numpy as np

from bertsmith.evaluation.report.axes import box, dot, label, shorten, title, wrap
from bertsmith.evaluation.report.markup import tag
from bertsmith.inspection.drawing import cells, heading, stand_alone

if TYPE_CHECKING:
    from bertsmith.inspection.senses import Senses

COLOURS, PANELS, COLUMNS = 6, 7, 4
SIDE, GAP, MARGIN, HEAD = 196, 26, 24, 84
STYLE = """
.c1 { color: var(--c1); } .c2 { color: var(--c2); } .c3 { color: var(--c3); }
.c4 { color: var(--c4); } .c5 { color: var(--c5); } .c6 { color: var(--c6); }
.use { fill: currentColor; stroke: var(--card); stroke-width: 1.2; }
.use.found { fill: var(--card); stroke: currentColor; stroke-width: 1.8; } .swatch { fill: currentColor; }
"""


def draw_senses(senses: "Senses") -> str:
    panels = pick_panels(len(senses.layers))
    tall = 2 * SIDE + 52
    lines = -(-(len(panels) + 1) // COLUMNS)
    width = 2 * MARGIN + min(len(panels) + 1, COLUMNS) * (SIDE + GAP) - GAP
    height: float = HEAD + lines * (tall + GAP) - GAP + MARGIN
    found = len(senses.uses) - senses.given
    under = f"{senses.given} uses" + f" and {found} found" * (found > 0)
    under += "; above, the two main axes of their directions; below, the cosine of each two"
    parts = [tag("style", STYLE), heading(senses.title, wrap(under, width - 2 * MARGIN))]
    order = sort_uses(senses)
    for number, panel in enumerate(panels):
        x = MARGIN + number % COLUMNS * (SIDE + GAP)
        y = HEAD + number // COLUMNS * (tall + GAP)
        parts.append(_draw_panel(senses, panel, order, x, y))
    number = len(panels)
    top = HEAD + number // COLUMNS * (tall + GAP)
    explained, end = _explain(senses, MARGIN + number % COLUMNS * (SIDE + GAP), top)
    parts.append(explained)
    height = max(height, end + MARGIN)
    return stand_alone("".join(parts), width, height, f"{senses.title} at {len(panels)} layers")


def pick_panels(count: int) -> list[int]:
    """Which of so many layers are drawn: all, or some from the first to the last."""
    return sorted({round(i) for i in np.linspace(0, count - 1, min(count, PANELS))})


def sort_uses(senses: "Senses") -> list[int]:
    """The uses of one label together; those without one by their group at the last layer."""
    labels = {name: number for number, name in enumerate(senses.labels)}
    groups = senses.groups[-1]
    place = [
        (i >= senses.given, labels.get(use.label or "", len(labels)), 0 if labels else int(groups[i]), i)
        for i, use in enumerate(senses.uses)
    ]
    return [i for *_, i in sorted(place)]


def colour_of(senses: "Senses", i: int, layer: int) -> int:
    """1 to 6: of its label, or where none is known, of its group."""
    if senses.labels and i >= senses.given:  # found in a corpus: as the nearest of those given
        i = int(np.argmax(senses.cosines[layer, i, : senses.given]))
    label = senses.uses[i].label
    if senses.labels:
        return senses.labels.index(label) % COLOURS + 1 if label is not None else COLOURS
    return int(senses.groups[layer, i]) % COLOURS + 1


def _draw_panel(senses: "Senses", panel: int, order: list[int], x: float, y: float) -> str:
    likeness = senses.likeness()[panel]["all"]
    words = "" if likeness is None else f"cosine {likeness:.2f}"
    parts = [
        label(x, y + 6, f"layer {senses.layers[panel]}", style="strong"),
        label(x + SIDE, y + 6, words, "end", "quiet"),
        box(x, y + 16, SIDE, SIDE, "card"),
    ]
    places = senses.places[panel]
    # One scale for all layers: at the first ones the uses then lie on one spot, as they do in truth.
    reach = float(np.abs(senses.places).max()) or 1.0
    for i in order:
        across, up = places[i] / reach * (SIDE / 2 - 10)
        kind = f"use {'found ' * (i >= senses.given)}c{colour_of(senses, i, panel)}"
        parts.append(dot(x + SIDE / 2 + across, y + 16 + SIDE / 2 - up, 4.6, kind, senses.uses[i].text))
    low = lowest(senses)
    shown = (senses.cosines[panel][np.ix_(order, order)] - low) / (1 - low)
    parts.append(cells(x, y + SIDE + 28, SIDE, SIDE, shown, 1.0, f"cosines at layer {senses.layers[panel]}"))
    return "".join(parts)


def lowest(senses: "Senses") -> float:
    """The lower end of the colours: the least cosine of all layers, rounded down."""
    return min(float(np.floor(senses.cosines.min() * 20) / 20), 0.95)


def _explain(senses: "Senses", x: float, y: float) -> tuple[str, float]:
    """What the colours mean, and where that ends: the scale of the cosines stands below however many names."""
    if senses.labels:
        named = [(name, senses.labels.index(name) % COLOURS + 1) for name in senses.labels]
    else:
        named = [(f"group {number + 1}", number % COLOURS + 1) for number in range(int(senses.groups.max()) + 1)]
    parts, at = [], y + 30
    for name, colour in named:
        text = tag("g", title(name) + label(x + 18, at + 4, shorten(name, SIDE - 20, 13)))
        parts.append(dot(x + 6, at, 5, f"use c{colour}") + text)
        at += 22
    if len(senses.uses) > senses.given:
        words = "found" + ", as the nearest given" * bool(senses.labels)
        parts.append(dot(x + 6, at, 5, "use found c6") + label(x + 18, at + 4, words))
        at += 22
    low = lowest(senses)
    at = max(at, y + SIDE + 28)
    parts.append(cells(x, at, SIDE, 12, np.linspace(0, 1, 64)[None], 1.0, framed=False))
    parts.append(label(x, at + 28, f"cosine {low:g}", style="quiet"))
    parts.append(label(x + SIDE, at + 28, "1", "end", "quiet"))
    return "".join(parts), at + 28
