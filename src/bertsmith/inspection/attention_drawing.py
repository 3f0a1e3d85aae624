"""All heads on one sheet, standing still: a small square of weights each. In: an `Attention`. Out: SVG."""

from typing import TYPE_CHECKING

import numpy as np

from bertsmith.data.findings import counted
from bertsmith.evaluation.report.axes import label, shorten
from bertsmith.inspection.drawing import cells, heading, stand_alone
from bertsmith.inspection.words import Array

if TYPE_CHECKING:
    from bertsmith.inspection.attention import Attention

LEFT, TOP, GAP = 84, 104, 12


def draw_heads(attention: "Attention") -> str:
    layers, heads, count = attention.weights.shape[:3]
    side = max(44, min(88, round(1000 / heads)))
    width = max(LEFT + heads * (side + GAP) + 24, 560)
    parts = [
        heading(
            shorten(attention.title, width - 40, 20),
            "a square a head: each row is a token and looks at the columns; the stronger the colour, the more",
        )
    ]
    for head in range(heads):
        parts.append(label(LEFT + head * (side + GAP) + side / 2, TOP - 10, f"head {head}", "middle", "quiet", 11))
    step = side + GAP + 12
    for layer in range(layers):
        y = TOP + layer * step
        parts.append(label(LEFT - 12, y + side / 2 + 4, f"layer {layer}", "end", "quiet", 11))
        for head in range(heads):
            x = LEFT + head * (side + GAP)
            name = attention.habits.names[layer][head]
            hint = f"layer {layer}, head {head}: {name}, entropy {attention.entropy[layer, head]:.2f} bits"
            # Roots, so that a weight spread over a hundred keys is still seen.
            parts.append(cells(x, y, side, side, np.sqrt(_thin(attention.weights[layer, head])), 1.0, hint))
            parts.append(label(x + side / 2, y + side + 12, name, "middle", "quiet", 9.5))
    height = TOP + layers * step + 16
    if attention.truncated:
        words = f"{counted(attention.truncated, 'token')} did not fit and stayed out"
        parts.append(label(24, height + 4, words, "start"))
        height += 24
    says = f"attention of {counted(layers, 'layer')} with {counted(heads, 'head')} over {counted(count, 'token')}"
    return stand_alone("".join(parts), width, height, says)


def _thin(weights: Array) -> Array:
    """At most about 100 cells to a side: a longer text is shown by the largest weight of each part."""
    step = -(-len(weights) // 100)
    if step == 1:
        return weights
    room = -len(weights) % step
    padded = np.pad(weights, ((0, room), (0, room)))
    count = len(padded) // step
    found: Array = padded.reshape(count, step, count, step).max(axis=(1, 3))
    return found
