"""All attention of a model over one text: what each word looks at, in every layer and head.

In: a model and a text or a pair. Out: `Attention`: the weights as the model computes them, by pieces or merged into
words, with special tokens or without, from one sentence to the other; rollout; what each head does.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from bertsmith.errors import BertsmithError
from bertsmith.inspection.habits import Habits, Mask, study
from bertsmith.inspection.packing import pack
from bertsmith.inspection.picture import Picture
from bertsmith.inspection.step import take_index
from bertsmith.inspection.subject import Subject
from bertsmith.inspection.watching import Seen, watch
from bertsmith.inspection.words import Array, Words, find_word, merge_words

if TYPE_CHECKING:
    from bertsmith.inspection.attention_svg import AttentionAt


def attention(
    model: Subject, text: str | Sequence[int], pair: str | None = None, *, causal: bool = False, neurons: bool = False
) -> "Attention":
    """The attention of every layer and head over a text, a pair of texts or token ids.

    `causal` lets a word see only itself and those before it, as GPT reads. `neurons` keeps queries and keys too, for
    the view that shows a weight number by number.
    """
    seen = watch(model, text, pair, causal=causal)
    if neurons and seen.added is not None:
        family = model.checkpoint.config.family
        raise BertsmithError(f"in {family} distances add to each product of a query and a key; leave neurons out.")
    reading = seen.reading
    separator = model.tokenizer.sep_id
    return Attention(
        weigh(seen), tuple(reading.pieces), reading.words.of, tuple(reading.texts), tuple(reading.special),
        tuple(place for place, id in enumerate(reading.ids) if id == separator), np.stack(
            [seen.visible(layer) for layer in range(len(seen.windows))]
        ), causal, seen.windows, reading.truncated, reading.words.names, reading.sources,
        seen.turned_queries if neurons else None, seen.turned_keys if neurons else None,
    )  # fmt: skip


def weigh(seen: Seen) -> Array:
    """softmax(q k' / √size) over the keys that each query may see, (layers, heads, pieces, pieces).

    Where distances count, they add to the scores.
    """
    found = seen.turned_queries @ seen.turned_keys.swapaxes(-1, -2)
    found *= np.float32(seen.divisor**-0.5)
    if seen.added is not None:
        found += seen.added
    for layer, scores in enumerate(found):
        scores[:, ~seen.visible(layer)] = -np.inf
        scores -= scores.max(axis=-1, keepdims=True)
        np.exp(scores, out=scores)
        scores /= scores.sum(axis=-1, keepdims=True)
    weights: Array = found
    return weights


def roll_out(weights: Array) -> Array:
    """How much of each input token is in each last state, (pieces, pieces), if attention were all that mixes them.

    Heads count alike, and half of each state is what it was before (Abnar & Zuidema 2020, section 3).
    """
    count = weights.shape[-1]
    found = np.eye(count, dtype=np.float32)
    for layer in weights:
        found = (0.5 * layer.mean(axis=0) + 0.5 * np.eye(count, dtype=np.float32)) @ found
    return found


@dataclass(frozen=True, eq=False)
class Attention(Picture):
    kind: ClassVar[str] = "attention"

    weights: Array  # (layers, heads, n, n): from each query (row) to each key (column)
    pieces: tuple[str, ...]
    words: tuple[int | None, ...]  # the word of each piece; None for special tokens
    segments: tuple[int, ...]  # 0 or 1: the text that each piece is of
    special: tuple[bool, ...]
    separators: tuple[int, ...]
    visible: Mask  # (layers, n, n)
    causal: bool
    windows: tuple[int, ...]  # of each layer: neighbours seen to each side; 0: all
    truncated: int  # tokens that did not fit
    names: tuple[str, ...]  # the words' texts
    sources: tuple[str, ...]  # the texts
    queries: Array | None = None  # (layers, heads, n, size), where they were asked for; turned by rotary positions
    keys: Array | None = None
    rolled: Array | None = None  # rollout, where it was worked out from other weights than these

    @property
    def title(self) -> str:  # type: ignore[override]
        text = " ".join(" / ".join(self.sources).split())
        return f"Attention: {text[:80]}{'…' * (len(text) > 80)}"

    @property
    def layers(self) -> int:
        return self.weights.shape[0]

    @property
    def head_count(self) -> int:
        return self.weights.shape[1]

    @cached_property
    def rollout(self) -> Array:
        """(n, n): how much of each input is in each last state (Abnar & Zuidema 2020)."""
        return roll_out(self.weights) if self.rolled is None else self.rolled

    @cached_property
    def habits(self) -> Habits:
        return study(self.weights, self.visible, self.words, self.separators)

    @property
    def entropy(self) -> Array:
        """(layers, heads), in bits, the mean over the queries."""
        return self.habits.entropy

    @property
    def distance(self) -> Array:
        """(layers, heads): how many places away a head looks, the mean over the queries."""
        return self.habits.distance

    def by_words(self) -> "Attention":
        """The same with the pieces of a word as one: sums over keys, means over queries, so that rows sum to 1."""
        groups = Words(self.words, self.names).units()
        firsts = [places[0] for places in groups]
        grouped = merge_words(self.visible.astype(np.float32), groups) > 0
        labels = [
            self.pieces[place] if self.words[place] is None else self.names[self.words[place] or 0] for place in firsts
        ]
        return replace(
            self, weights=merge_words(self.weights, groups), pieces=tuple(labels), visible=grouped,
            words=tuple(self.words[place] for place in firsts), segments=tuple(self.segments[p] for p in firsts),
            special=tuple(self.special[p] for p in firsts), queries=None, keys=None,
            separators=tuple(unit for unit, place in enumerate(firsts) if place in self.separators),
            rolled=merge_words(self.rollout, groups),
        )  # fmt: skip

    def without_specials(self, *, renormalize: bool = False) -> "Attention":
        """The same without special tokens; what went to them is missing from the rows, or with `renormalize` not."""
        kept = [place for place, is_special in enumerate(self.special) if not is_special]
        weights, rolled = _keep(self.weights, kept), _keep(self.rollout, kept)
        if renormalize:
            weights, rolled = _normalize(weights), _normalize(rolled)
        return replace(
            self, weights=weights, rolled=rolled, visible=_keep(self.visible, kept), separators=(),
            pieces=tuple(self.pieces[p] for p in kept), words=tuple(self.words[p] for p in kept),
            segments=tuple(self.segments[p] for p in kept), special=(False,) * len(kept),
            queries=None if self.queries is None else self.queries[:, :, kept],
            keys=None if self.keys is None else self.keys[:, :, kept],
        )  # fmt: skip

    def places(self, segment: int) -> list[int]:
        """Where the pieces of one of the two texts stand."""
        found = [place for place, one in enumerate(self.segments) if one == segment]
        if not found:
            raise BertsmithError(f"segment is {segment!r}, but this row has {sorted(set(self.segments))}; give a pair.")
        return found

    def between(self, queries: int, keys: int, *, renormalize: bool = False) -> Array:
        """(layers, heads, n of one text, n of the other): what text `queries` (0 or 1) looks at in text `keys`."""
        found: Array = self.weights[:, :, self.places(queries)][..., self.places(keys)]
        return _normalize(found) if renormalize else found

    def heads(self) -> list[dict[str, Any]]:
        """A row a head: what it does by name, the share of its weight that goes there, and all numbers behind it."""
        habits = self.habits
        return [
            {
                "layer": layer, "head": head, "habit": habits.names[layer][head],
                "share": float(habits.named[layer, head]) or None,
                "entropy": float(habits.entropy[layer, head]), "distance": float(habits.distance[layer, head]),
                **{kind: _or_none(share[layer, head]) for kind, share in habits.shares.items()},
            }
            for layer in range(self.layers) for head in range(self.head_count)
        ]  # fmt: skip

    def data(self) -> dict[str, Any]:
        habits = self.habits
        return {
            "title": self.title, "pieces": list(self.pieces), "words": list(self.words),
            "segments": list(self.segments), "special": list(self.special), "layers": self.layers,
            "heads": self.head_count, "causal": self.causal, "windows": list(self.windows),
            "weights": pack(self.weights),
            "queries": None if self.queries is None else pack(self.queries, encoding="float16"),
            "keys": None if self.keys is None else pack(self.keys, encoding="float16"),
            "entropy": _round(habits.entropy), "distance": _round(habits.distance),
            "habits": [
                [{"name": name, "share": round(float(share), 4)} for name, share in zip(names, shares, strict=True)]
                for names, shares in zip(habits.names, habits.named, strict=True)
            ],
            "rollout": pack(self.rollout[None]), "truncated": self.truncated,
            "names": list(self.names),
        }  # fmt: skip

    def at(self, layer: int, head: int | None = None, word: str | int | None = None) -> "AttentionAt":
        """One layer, the mean of its heads or one of them: lines as .svg, and as .html the page opened there.

        All count from 0, and -1 is the last. With a `word`, its text or its number, only what that one looks at.
        """
        from bertsmith.inspection.attention_svg import AttentionAt

        layer = take_index("layer", layer, self.layers, "in this model")
        head = None if head is None else take_index("head", head, self.head_count, "in each layer")
        places = None if word is None else find_word(Words(self.words, self.names), self.pieces, word).places
        return AttentionAt(self, layer, head, places)

    def svg(self) -> str:
        """Every head as a small square of its weights: layers downwards, heads to the right."""
        from bertsmith.inspection.attention_drawing import draw_heads

        return draw_heads(self)


def _keep(square: Any, kept: list[int]) -> Any:
    """Of (…, n, n) the rows and columns that stay."""
    return square[..., kept, :][..., kept]


def _normalize(weights: Array) -> Array:
    """Rows that sum to 1; one with no weight at all stays so."""
    sums = weights.sum(axis=-1, keepdims=True)
    found: Array = np.divide(weights, sums, out=np.zeros_like(weights), where=sums > 0)
    return found


def _round(values: Array) -> list[list[float]]:
    return [[round(float(value), 4) for value in row] for row in values]


def _or_none(value: np.float32) -> float | None:
    return None if np.isnan(value) else float(value)
