"""One layer or one head of attention: lines between two columns of words, standing still, or the page opened there.

In: an `Attention`, a layer and perhaps a head. Out: a `Picture` of it.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from bertsmith.data.findings import counted
from bertsmith.evaluation.report.axes import label, shorten
from bertsmith.evaluation.report.markup import escape, tag
from bertsmith.inspection.drawing import heading, stand_alone
from bertsmith.inspection.picture import Picture
from bertsmith.inspection.words import Array, Words

if TYPE_CHECKING:
    from bertsmith.inspection.attention import Attention

WIDTH, TOP, STEP = 680, 112, 22
LEFT, RIGHT = 210, 470  # where the columns of words end and begin
FAINT = 0.02  # weights below are left out, unless a word has none above
TOLD = 0.01  # shares of one word that are written beside what it looks at
MOST = 3000  # lines; more are a carpet, and a heavy file


@dataclass(frozen=True, eq=False)
class AttentionAt(Picture):
    """The attention of one layer: of one head, or the mean of all."""

    kind: ClassVar[str] = "attention"

    attention: "Attention"
    layer: int
    head: int | None = None
    asking: tuple[int, ...] | None = None  # the pieces of one word; None: all ask

    @property
    def title(self) -> str:  # type: ignore[override]
        if self.asking is None:
            return self.attention.title
        number = self.attention.words[self.asking[0]]
        name = self.attention.pieces[self.asking[0]] if number is None else self.attention.names[number]
        return f"What “{name}” looks at"

    @property
    def weights(self) -> Array:
        """(n, n): from each query (row) to each key (column)."""
        layer = self.attention.weights[self.layer]
        found: Array = layer.mean(axis=0) if self.head is None else layer[self.head]
        return found

    def data(self) -> dict[str, Any]:
        heads = list(range(self.attention.head_count)) if self.head is None else [self.head]
        start: dict[str, Any] = {"layer": self.layer, "chosen": heads}
        if self.asking is not None:
            start |= {"at": self.asking[0], "isKept": True}
            if len(self.asking) > 1:  # the whole word asks, not its first piece
                units = Words(self.attention.words, self.attention.names).units()
                start |= {"at": units.index(list(self.asking)), "merge": True}
        return {**self.attention.data(), "start": start}

    def looks_at(self) -> Array | None:
        """(n,): the shares of what the one word looks at, the mean over its pieces; None where all words ask."""
        return None if self.asking is None else np.asarray(self.weights[list(self.asking)].mean(axis=0))

    def describe(self) -> str:
        """Which layer and head it is and what that head does."""
        if self.head is None:
            return f"layer {self.layer}, the mean of {self.attention.head_count} heads"
        row = self.attention.heads()[self.layer * self.attention.head_count + self.head]
        habit = f"{row['habit']} {100 * row['share']:.0f} %" if row["share"] else row["habit"]
        return (
            f"layer {self.layer}, head {self.head}: {habit}, entropy {row['entropy']:.1f} bits, "
            f"{row['distance']:.1f} places away"
        )

    def svg(self) -> str:
        """A line from each word to what it looks at; the stronger, the more."""
        count = len(self.attention.pieces)
        asks = [self.asking is None or place in self.asking for place in range(count)]
        shares = self.looks_at()
        parts = [heading(shorten(self.title, WIDTH - 48, 20), self.describe())]
        parts.append(label(LEFT - 8, TOP - 14, "this token …", "end", "quiet", 12))
        parts.append(label(RIGHT + 8, TOP - 14, "… looks at", "start", "quiet", 12))
        lines = _draw_lines(self.weights, self.attention.pieces, np.array(asks))
        parts.append(tag("g", lines, {"style": "stroke: var(--c1); fill: none"}))
        for place, piece in enumerate(self.attention.pieces):
            style = "quiet" if self.attention.special[place] else ""
            y, name = TOP + (place + 0.5) * STEP + 4, shorten(piece, LEFT - 32)
            mine = style if self.asking is None else "strong" if asks[place] else "quiet"
            parts += [label(LEFT - 8, y, name, "end", mine), label(RIGHT + 8, y, name, "start", style)]
            if shares is not None and shares[place] >= TOLD:
                parts.append(label(WIDTH - 24, y, f"{100 * shares[place]:.0f} %", "end", "quiet"))
        height = TOP + count * STEP + 20
        if self.attention.truncated:
            words = f"{counted(self.attention.truncated, 'token')} did not fit and stayed out"
            parts.append(label(24, height + 4, words, "start", "quiet"))
            height += 24
        return stand_alone("".join(parts), WIDTH, height, f"attention, {self.describe()}, over {count} tokens")


def _draw_lines(weights: Array, pieces: tuple[str, ...], asks: Array) -> str:
    shown = (weights >= np.minimum(FAINT, weights.max(axis=1, keepdims=True))) & asks[:, None]
    if shown.sum() > MOST:
        shown &= weights >= np.partition(weights.reshape(-1), -MOST)[-MOST]
    places = np.argwhere(shown)
    order = np.argsort(weights[shown], kind="stable")  # the strongest on top
    bend = (RIGHT - LEFT) * 0.42
    lines = []
    for query, key in places[order]:
        weight, start, end = float(weights[query, key]), TOP + (query + 0.5) * STEP, TOP + (key + 0.5) * STEP
        hint = tag("title", escape(f"{pieces[query]} → {pieces[key]}: {100 * weight:.1f} %"))
        path = f"M{LEFT} {start:g}C{LEFT + bend:g} {start:g} {RIGHT - bend:g} {end:g} {RIGHT} {end:g}"
        look = {"stroke-opacity": f"{max(weight, 0.03):.3g}", "stroke-width": f"{0.8 + 2.2 * weight:.3g}"}
        lines.append(tag("path", hint, {"d": path, **look}))
    return "".join(lines)
