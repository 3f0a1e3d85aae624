"""Texts to vectors, and texts to the hidden states of their tokens."""

from collections.abc import Hashable, Mapping, Sequence
from numbers import Integral
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from bertsmith.data.batch import Batch
from bertsmith.errors import BertsmithError
from bertsmith.layers.pooling import Pooling
from bertsmith.models.network import Network
from bertsmith.tasks.result import Result, Vectors, check_finite
from bertsmith.tasks.task import Row, Task
from bertsmith.tasks.texts import is_iterable, take_count
from bertsmith.tasks.token_ids import TokenIds, lay_ids
from bertsmith.text.encoding import Encoding
from bertsmith.text.tokenizer import Tokenizer


def choose_layers(layers: Sequence[int] | Literal["all"] | None, count: int) -> list[int] | None:
    """The numbers of these layers counted from 0; -1 is the last of the `count`, "all" is every one."""
    if layers is None or (isinstance(layers, str) and layers == "all"):
        return None if layers is None else list(range(count))
    given: list[Any] = list(layers) if is_iterable(layers) else []
    if not given or not all(isinstance(layer, Integral) and not isinstance(layer, bool) for layer in given):
        raise BertsmithError(f"layers={layers!r} is not a choice; give a list of numbers such as [-1], or 'all'.")
    numbers = [int(layer) for layer in given]
    if not all(-count <= layer < count for layer in numbers):
        raise BertsmithError(f"layers={numbers} names one that is not there; this model has 0 to {count - 1}.")
    return [layer % count for layer in numbers]


def dress_texts(texts: Sequence[str], before: str, lower: bool) -> list[str]:
    """Texts as a sentence-transformers folder wants them."""
    dressed = [before + text for text in texts]
    # Letter by letter, as sentence-transformers does: a whole word's final sigma would become another letter.
    return ["".join(map(str.lower, text)) for text in dressed] if lower else dressed


def dress_inputs(
    inputs: Sequence[str | TokenIds], before: str, lower: bool, tokenizer: Tokenizer
) -> list[str | TokenIds]:
    """Texts as a sentence-transformers folder wants them; `before` is put in front of ids as its own tokens."""
    dressed = iter(dress_texts([one for one in inputs if isinstance(one, str)], before, lower))
    if all(isinstance(one, str) for one in inputs):
        return list(dressed)
    words = tokenizer.encode(dress_texts([before], "", lower)[0].rstrip(), specials=False).ids if before else []
    return [next(dressed) if isinstance(one, str) else (*words, *one) for one in inputs]


def find_prompt(prompts: Mapping[str, str], names: Sequence[str]) -> str | None:
    """Some encoders were trained with words in front, others for queries than for passages; their folders say so."""
    return next((name for name in names if name in prompts), None)


def take_dims(dims: Any, width: int) -> int:
    """How many numbers of a vector are kept."""
    count = take_count("dims", dims)
    if count > width:
        raise BertsmithError(f"dims is {count:,}, but the vectors of this model have {width:,} numbers; give fewer.")
    return count


def rank_similar(vector: Vectors, others: Vectors, texts: Sequence[str], top_k: int | None = None) -> Result:
    """The texts by the cosine of their vectors with one of length 1, best first."""
    cosines = np.clip(np.asarray(others) @ np.asarray(vector), -1.0, 1.0)
    best = np.argsort(-cosines, kind="stable")[: None if top_k is None else take_count("top_k", top_k)]
    answers = [{"index": int(i), "text": texts[i], "score": float(cosines[i])} for i in best]
    return Result(answers, truncated=int(vector.truncated + sum(others.truncated)))


def one_row_each(encodings: Sequence[Encoding]) -> list[list[Row]]:
    return [[Row(e.ids, e.segments, dropped=e.dropped)] for e in encodings]


class Embed(Task[str | TokenIds, Vectors]):
    """One vector a text, given as it is or in token ids, or the first `dims` of its numbers.

    Windows: the mean of the windows' vectors, each weighted by its tokens.
    """

    name = "embed"

    def __init__(
        self, tokenizer: Tokenizer, limit: int, truncate: str, pooling: Pooling, normalize: bool,
        dims: int | None = None,
    ) -> None:  # fmt: skip
        super().__init__(tokenizer, limit, truncate)
        self.pooling = pooling
        self.normalize = normalize
        self.dims = dims

    def rows(self, examples: Sequence[str | TokenIds]) -> list[list[Row]]:
        texts = [example for example in examples if isinstance(example, str)]
        read = iter(self._read(texts))
        return [
            next(read) if isinstance(one, str) else lay_ids(self.tokenizer, one, self.limit, self.truncate)
            for one in examples
        ]

    def _read(self, texts: Sequence[str]) -> list[list[Row]]:
        if self.truncate != "windows":
            return one_row_each(self.encode_all(texts))
        windows = [self.tokenizer.windows(text, length=self.limit, overlap=0) for text in texts]
        return [[Row(window.ids, window.segments) for window in text] for text in windows]

    @property
    def alike(self) -> Hashable:
        return type(self), id(self.pooling)

    def scores(self, network: Network, batch: Batch, rows: Sequence[Row]) -> list[Tensor]:
        return list(self.pooling(network.encode(batch), batch, normalize=False).cpu())

    def answer(self, example: str | TokenIds, rows: Sequence[Row], scores: Sequence[Tensor]) -> Vectors:
        vector = scores[0].numpy()
        if len(rows) > 1:
            vector = np.average([score.numpy() for score in scores], axis=0, weights=[len(row.ids) for row in rows])
        vector = vector[: self.dims]
        if self.normalize:
            vector = vector / max(float(vector @ vector) ** 0.5, 1e-12)
        check_finite(vector)
        return Vectors(vector, rows[0].dropped)


class Hidden(Task[str, Vectors]):
    """The states of each token, (tokens, width), or of several layers, (layers, tokens, width)."""

    name = "hidden"
    windows = False

    def __init__(self, tokenizer: Tokenizer, limit: int, truncate: str, layers: Sequence[int] | None = None) -> None:
        super().__init__(tokenizer, limit, truncate)
        self.refuse_windows()
        self.layers = layers

    def rows(self, examples: Sequence[str]) -> list[list[Row]]:
        return one_row_each(self.encode_all(examples))

    @property
    def alike(self) -> Hashable:
        return type(self), None if self.layers is None else tuple(self.layers)

    def scores(self, network: Network, batch: Batch, rows: Sequence[Row]) -> list[Tensor]:
        if self.layers is None:
            return [row.float().cpu() for row in batch.split(network.encode(batch))]
        kept = {i: x for i, x in enumerate(network.states(batch)) if i in self.layers}
        states = torch.stack([kept[i] for i in self.layers], dim=1)  # (tokens, layers, width)
        return [row.float().cpu().transpose(0, 1) for row in batch.split(states)]

    def answer(self, example: str, rows: Sequence[Row], scores: Sequence[Tensor]) -> Vectors:
        states = scores[0].numpy()
        check_finite(states)
        return Vectors(states, rows[0].dropped)
