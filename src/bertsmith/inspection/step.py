"""One step of attention with every number: one word, one head, from the input vector to the weighted sum of values.

In: a model, a text, a layer, a head and a word. Out: `Step`: x, q, k, v, q·k, the same by √size with what its distance
adds, what is masked, softmax, each key's share of the sum, and the sum, as a picture, as JSON and as rows of a table.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import torch

from bertsmith.data.findings import counted
from bertsmith.errors import BertsmithError
from bertsmith.inspection.picture import Picture
from bertsmith.inspection.subject import Subject
from bertsmith.inspection.watching import Reading, Seen, watch
from bertsmith.inspection.words import Array, find_word

SHOWN = 24  # keys that are drawn: those with most weight
NAMED = 6  # further places of a word that are told
DIGITS = 7  # of each number in JSON, as many as float32 holds


def step(
    model: Subject, text: str | Sequence[int], *, layer: int, head: int, word: str | int, pair: str | None = None,
    piece: int = 0, causal: bool = False,
) -> "Step":  # fmt: skip
    """What one head of one layer computes for one word.

    Layers, heads, words and pieces count from 0, and -1 is the last. `word` is a word of the text or its number; of
    several alike the first is taken. Of a word in several pieces `piece` says which one asks, the first by default.
    `causal` lets a word see only itself and those before it.
    """
    config = model.checkpoint.config
    layer = take_index("layer", layer, config.depth, "in this model")
    head = take_index("head", head, config.heads, "in each layer")
    seen = watch(model, text, pair, causal=causal)
    reading = seen.reading
    found = find_word(reading.words, reading.pieces, word)
    which = take_index("piece", piece, len(found.places), "in that word")
    place = found.places[which]
    notes = tuple(_tell(reading, found.places, which, found.others))
    return _compute(seen, layer, head, place, _input(model, seen, layer)[place], notes)


def take_index(name: str, given: Any, count: int, where: str) -> int:
    """A whole number from 0, or from the end below it."""
    if isinstance(given, bool) or not isinstance(given, int | np.integer):
        raise BertsmithError(f"{name} is {given!r}; it must be a whole number from 0 to {count - 1}.")
    if not -count <= given < count:
        known = f"are {count:,} {name}s {where}, 0 to {count - 1} (-1 is the last)"
        raise BertsmithError(f"{name} is {given}, but there {known if count > 1 else f'is one {name} {where}, 0'}.")
    return int(given) % count


def _input(model: Subject, seen: Seen, layer: int) -> Array:
    """What the layer's attention reads, (pieces, width): the hidden states, normed where the norm comes first."""
    network = model.checkpoint.network
    if not network.config.pre_norm:
        return seen.hidden[layer]
    weight = network.embed.tokens.weight
    with torch.inference_mode():
        state = torch.from_numpy(seen.hidden[layer]).to(weight.device, weight.dtype)
        block: Any = network.order[layer]
        found: Array = block.attention_norm(state).float().cpu().numpy()
    return found


def _tell(reading: Reading, places: Sequence[int], which: int, others: Sequence[int]) -> list[str]:
    """What a reader should know about the choice that was made."""
    notes = []
    number = reading.words.of[places[0]]
    name = reading.pieces[places[0]] if number is None else reading.words.names[number]
    if len(places) > 1:
        spelt = " ".join(reading.pieces[place] for place in places)
        chosen = reading.pieces[places[which]]
        notes.append(f"“{name}” is {len(places)} pieces ({spelt}); the one that asks here is {chosen} (piece {which}).")
    if others:
        listed = ", ".join(map(str, others[:NAMED])) + (" …" if len(others) > NAMED else "")
        where = f"the other is word {listed}" if len(others) == 1 else f"the others are words {listed}"
        notes.append(f"“{name}” stands here {len(others) + 1} times; this is word {number}, {where}.")
    if reading.truncated:
        notes.append(f"The text was cut: {counted(reading.truncated, 'token')} did not fit and stayed out.")
    return notes


def _compute(seen: Seen, layer: int, head: int, place: int, x: Array, notes: tuple[str, ...]) -> "Step":
    at = (layer, head)
    q, k, v = seen.queries[at][place], seen.keys[at], seen.values[at]
    turned_q, turned_k = seen.turned_queries[at][place], seen.turned_keys[at]
    dots = turned_k @ turned_q
    scaled = dots * np.float32(seen.divisor**-0.5)
    scaled = scaled if seen.added is None else scaled + seen.added[at][place]
    visible = seen.visible(layer)[place]
    raised = np.where(visible, np.exp(scaled - scaled[visible].max()), 0)
    weights = (raised / raised.sum()).astype(np.float32)
    contributions = weights[:, None] * v
    return Step(
        seen.reading, layer, head, len(seen.queries), len(seen.queries[0]), place, x, q, k, v,
        turned_q if seen.is_turned else None, turned_k if seen.is_turned else None, dots, scaled, ~visible, weights,
        contributions, contributions.sum(axis=0), seen.causal, seen.windows[layer],
        f"√{seen.divisor}{'' if seen.added is None else ' + distance'}", notes,
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class Step(Picture):
    kind: ClassVar[str] = "step"

    reading: Reading
    layer: int
    head: int
    layers: int
    heads: int
    place: int  # of the piece that asks
    x: Array  # (width,): what the layer's attention reads of it
    query: Array  # (size,)
    keys: Array  # (pieces, size), as the next one
    values: Array
    turned_query: Array | None  # after rotary positions; None: the model has none
    turned_keys: Array | None
    dots: Array  # (pieces,): q · k, of the turned ones where they are turned
    scaled: Array  # (pieces,): the same by √size, and what the distance adds in families where it does
    masked: "np.ndarray[Any, np.dtype[np.bool_]]"  # (pieces,): the keys that this query may not see
    weights: Array  # (pieces,): softmax over the others
    contributions: Array  # (pieces, size): weight × value
    result: Array  # (size,): their sum
    causal: bool
    window: int  # neighbours seen to each side; 0: all
    by: str  # what scaling does: "√64", "√64 + distance"
    notes: tuple[str, ...]

    @property
    def pieces(self) -> list[str]:
        return self.reading.pieces

    @property
    def name(self) -> str:
        """Of the word that asks, or of its piece where it has several."""
        number = self.reading.words.of[self.place]
        if number is None or len(self.reading.words.pieces(number)) > 1:
            return self.pieces[self.place]
        return self.reading.words.names[number]

    @property
    def title(self) -> str:  # type: ignore[override]
        return f"What “{self.name}” takes from each word: layer {self.layer}, head {self.head}"

    @property
    def size(self) -> int:
        return len(self.query)

    @cached_property
    def shown(self) -> list[int]:
        """The keys that are drawn, in the order of the text: all, or those with most weight and the query itself."""
        if len(self.weights) <= SHOWN:
            return list(range(len(self.weights)))
        best = [int(place) for place in np.argsort(-self.weights, kind="stable") if place != self.place]
        return sorted([self.place, *best[: SHOWN - 1]])

    @property
    def left_out(self) -> str:
        """What is said of the keys that are not drawn."""
        count = len(self.weights) - len(self.shown)
        if not count:
            return ""
        rest = 1 - float(self.weights[self.shown].sum())
        share = f"{100 * max(rest, 0):.1f} % of the weight"
        if count == 1:
            return f"1 more key, which has {share}, is not drawn"
        return f"{count:,} more keys, which have {share} together, are not drawn"

    def reason(self, place: int) -> str:
        """Why a key is masked; nothing where it is not."""
        if not self.masked[place]:
            return ""
        return "comes later" if self.causal and place > self.place else f"over {self.window} away"

    def rows(self) -> list[dict[str, Any]]:
        """A row a key, for tables."""
        return [
            {
                "key": self.pieces[place], "place": place, "q·k": float(self.dots[place]),
                f"÷{self.by}": None if self.masked[place] else float(self.scaled[place]),
                "weight": float(self.weights[place]), "masked": self.reason(place),
            }
            for place in self.shown
        ]  # fmt: skip

    def data(self) -> dict[str, Any]:
        return {
            "title": self.title, "name": self.name, "pieces": self.pieces, "words": list(self.reading.words.of),
            "special": self.reading.special, "layer": self.layer, "head": self.head, "layers": self.layers,
            "heads": self.heads, "place": self.place, "size": self.size, "width": len(self.x), "causal": self.causal,
            "window": self.window, "by": self.by, "x": spell(self.x), "norm": float(np.linalg.norm(self.x)),
            "q": spell(self.query), "k": spell(self.keys), "v": spell(self.values),
            "turned_q": None if self.turned_query is None else spell(self.turned_query),
            "turned_k": None if self.turned_keys is None else spell(self.turned_keys),
            "dots": spell(self.dots), "scaled": spell(self.scaled), "masked": self.masked.tolist(),
            "reasons": [self.reason(place) for place in range(len(self.pieces))], "weights": spell(self.weights),
            "contributions": spell(self.contributions), "result": spell(self.result), "shown": self.shown,
            "left_out": self.left_out, "notes": list(self.notes), "truncated": self.reading.truncated,
        }  # fmt: skip

    def svg(self) -> str:
        from bertsmith.inspection.step_drawing import draw_step

        return draw_step(self)


def spell(values: Array) -> Any:
    """As JSON has them, with as many digits as mean something."""
    if values.ndim > 1:
        return [spell(row) for row in values]
    return [float(f"{value:.{DIGITS}g}") for value in values.tolist()]
