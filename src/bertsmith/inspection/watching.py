"""One row on its way through an encoder: everything that its layers had in hand.

In: a model and a text, a pair of texts, or token ids. Out: `Seen`: the row in pieces and words, the hidden states
before and after each layer, and each layer's queries, keys and values, before and after rotary positions turn them. A
row that is longer than the model reads is cut, and `truncated` says by how many tokens.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from bertsmith.data.batch import Batch
from bertsmith.errors import BertsmithError
from bertsmith.inspection.subject import Subject
from bertsmith.inspection.words import Array, Words
from bertsmith.layers.position import turn, turns
from bertsmith.layers.relative import Offsets
from bertsmith.tasks.task import Row
from bertsmith.tasks.texts import is_iterable
from bertsmith.tasks.token_ids import lay_ids, take_ids
from bertsmith.text.tokenizer import Tokenizer


@dataclass(frozen=True)
class Reading:
    """A row as the encoder reads it."""

    ids: list[int]
    segments: list[int]  # as the encoder is told them: RoBERTa's are all 0
    pieces: list[str]
    offsets: list[tuple[int, int]]  # characters of its own text; (0, 0) for special tokens
    texts: list[int]  # 0 or 1: the text that a piece is of; a special token counts to the one before it
    special: list[bool]
    words: Words
    sources: tuple[str, ...]  # the texts themselves
    truncated: int = 0

    def __len__(self) -> int:
        return len(self.ids)


@dataclass(frozen=True)
class Seen:
    """What the layers had in hand, in full precision."""

    reading: Reading
    causal: bool
    windows: tuple[int, ...]  # of each layer: how many neighbours to each side a token sees; 0: all
    hidden: Array  # (layers + 1, pieces, width): the embedding, then each layer's output; the last one normed
    queries: Array  # (layers, heads, pieces, size), as the product gives them; these three alike
    keys: Array
    values: Array
    turned_queries: Array  # the same after rotary positions; the very same where a model has none
    turned_keys: Array
    divisor: int  # products of queries and keys are divided by its root: the size of a head, mostly
    added: Array | None  # (layers, heads, pieces, pieces): what distances then add; None: nothing

    @property
    def is_turned(self) -> bool:
        return self.turned_queries is not self.queries

    def visible(self, layer: int) -> "np.ndarray[Any, np.dtype[np.bool_]]":
        """(pieces, pieces): which keys each query may look at."""
        place = np.arange(len(self.reading))
        behind = place[:, None] - place
        seen = np.ones_like(behind, dtype=bool)
        if self.windows[layer]:
            seen &= np.abs(behind) <= self.windows[layer]
        return seen & (behind >= 0) if self.causal else seen


def read(subject: Subject, text: str | Sequence[int], pair: str | None = None) -> Reading:
    """A text, a pair or token ids as one row, cut at its end where it is too long."""
    tokenizer = subject.tokenizer
    if not isinstance(text, str):
        if isinstance(text, bytes | Mapping) or not is_iterable(text):
            raise BertsmithError(f"the text must be a string or a list of token ids, not {type(text).__name__}.")
        return _read_ids(subject, text, pair)
    for name, one in (("text", text), ("pair", pair)):
        if one is not None and not isinstance(one, str):
            raise BertsmithError(f"the {name} must be a string, not {type(one).__name__}.")
        if one is not None and not one.strip():
            raise BertsmithError(f"the {name} is empty; give at least one word to look at.")
    encoding = tokenizer.encode(text, pair, length=subject.limit, truncate="head")
    texts = [text] if pair is None else [text, pair]
    words = Words.of_encoding(encoding, texts)
    if not words.names:
        raise BertsmithError("the text has nothing that the tokenizer reads; give at least one word to look at.")
    special = [sequence is None for sequence in encoding.sequences]
    return Reading(
        encoding.ids, encoding.segments, encoding.pieces, encoding.offsets, _carry(encoding.sequences), special, words,
        tuple(texts), encoding.dropped,
    )  # fmt: skip


def _carry(sequences: Sequence[int | None]) -> list[int]:
    found: list[int] = []
    for sequence in sequences:
        found.append(sequence if sequence is not None else found[-1] if found else 0)
    return found


def _read_ids(subject: Subject, ids: Sequence[int], pair: str | None) -> Reading:
    """Ids have the words of the text that they spell, where that text has just these ids."""
    if pair is not None:
        raise BertsmithError("a pair goes with a text; token ids stand alone.")
    tokenizer = subject.tokenizer
    kept = take_ids(list(ids), tokenizer, "the text")
    spelt = tokenizer.decode(kept, skip_specials=False)
    if spelt.strip() and tokenizer.encode(spelt, specials=False).ids == list(kept):
        return read(subject, spelt)
    return _read_row(tokenizer, lay_ids(tokenizer, kept, subject.limit, "head")[0])


def _read_row(tokenizer: Tokenizer, row: Row) -> Reading:
    pieces = [tokenizer.piece(id) for id in row.ids]
    special = [id in tokenizer.special_ids for id in row.ids]
    count = len(pieces)
    words = Words.alone(pieces, special)
    sources = (tokenizer.decode(row.ids),)
    return Reading(
        list(row.ids), list(row.segments), pieces, [(0, 0)] * count, [0] * count, special, words, sources, row.dropped
    )


def watch(subject: Subject, text: str | Sequence[int], pair: str | None = None, *, causal: bool = False) -> Seen:
    """One pass of one row; `causal` lets a token see only itself and those before it, as GPT reads."""
    return watch_reading(subject, read(subject, text, pair), causal=causal)


def watch_reading(subject: Subject, reading: Reading, *, causal: bool = False) -> Seen:
    network, config = subject.checkpoint.network, subject.checkpoint.config
    batch = Batch.of([reading.ids], [reading.segments], subject.device).watching(True)
    batch = replace(batch, causal=causal)
    with torch.inference_mode():
        hidden = [_plain(state) for state in network.states(batch)]
        assert batch.watched is not None
        qkv = [tuple(part.unbind(1)) for part in batch.watched]  # of each layer three (pieces, heads, size)
        turned = [_turn(subject, batch, layer, q, k) for layer, (q, k, _) in enumerate(qkv)]
        queries, keys, values = (np.stack([_plain(one[part].transpose(0, 1)) for one in qkv]) for part in range(3))
        if config.position == "rotary":
            queries_turned, keys_turned = (
                np.stack([_plain(one[part].transpose(0, 1)) for one in turned]) for part in range(2)
            )
        else:
            queries_turned, keys_turned = queries, keys
        divisor, added = _weigh_distances(subject, batch, qkv)
    windows = tuple(config.window if config.is_local(layer) else 0 for layer in range(config.depth))
    return Seen(
        reading, causal, windows, np.stack(hidden), queries, keys, values, queries_turned, keys_turned, divisor, added
    )


def _weigh_distances(subject: Subject, batch: Batch, qkv: list[tuple[Tensor, ...]]) -> tuple[int, Array | None]:
    """What products are divided by, and what distances add to them."""
    network = subject.checkpoint.network
    if network.relative is None:
        return qkv[0][0].shape[-1], None
    offsets: Offsets = network.relative(batch)
    found = []
    for block, (q, k, _) in zip(network.order, qkv, strict=True):
        own = offsets.of(block.attention.qkv)  # type: ignore[union-attr, arg-type]
        found.append(own.add(q.transpose(0, 1)[None], k.transpose(0, 1)[None])[0])
    return offsets.divisor, np.stack([_plain(one) for one in found])


def _turn(subject: Subject, batch: Batch, layer: int, q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
    config = subject.checkpoint.config
    if config.position != "rotary":
        return q, k
    theta = config.local_theta if config.is_local(layer) else config.theta
    by = turns(batch.positions, theta, q.shape[-1])
    return turn(q, by), turn(k, by)


def _plain(tensor: Tensor) -> Array:
    found: Array = tensor.float().cpu().numpy()
    return found
