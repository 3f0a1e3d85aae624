"""Texts to vectors, and texts to the hidden states of their tokens."""

from collections.abc import Sequence
from numbers import Integral
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from bertsmith.data.batch import Batch
from bertsmith.errors import BertsmithError
from bertsmith.layers.pooling import Pooling
from bertsmith.models.network import Network
from bertsmith.tasks.result import Vectors, check_finite
from bertsmith.tasks.task import Row, Task
from bertsmith.tasks.texts import is_iterable
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


def one_row_each(encodings: Sequence[Encoding]) -> list[list[Row]]:
    return [[Row(e.ids, e.segments, dropped=e.dropped)] for e in encodings]


class Embed(Task[str, Vectors]):
    """One vector a text. Windows: the mean of the windows' vectors, each weighted by its tokens."""

    name = "embed"

    def __init__(self, tokenizer: Tokenizer, limit: int, truncate: str, pooling: Pooling, normalize: bool) -> None:
        super().__init__(tokenizer, limit, truncate)
        self.pooling = pooling
        self.normalize = normalize

    def rows(self, examples: Sequence[str]) -> list[list[Row]]:
        if self.truncate != "windows":
            return one_row_each(self.tokenizer.encode_many(examples, length=self.limit, truncate=self.truncate))
        windows = [self.tokenizer.windows(text, length=self.limit, overlap=0) for text in examples]
        return [[Row(window.ids, window.segments) for window in text] for text in windows]

    def scores(self, network: Network, batch: Batch, rows: Sequence[Row]) -> list[Tensor]:
        return list(self.pooling(network(batch), batch, normalize=False).cpu())

    def answer(self, example: str, rows: Sequence[Row], scores: Sequence[Tensor]) -> Vectors:
        vector = scores[0].numpy()
        if len(rows) > 1:
            vector = np.average([score.numpy() for score in scores], axis=0, weights=[len(row.ids) for row in rows])
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
        return one_row_each(self.tokenizer.encode_many(examples, length=self.limit, truncate=self.truncate))

    def scores(self, network: Network, batch: Batch, rows: Sequence[Row]) -> list[Tensor]:
        if self.layers is None:
            return [row.float().cpu() for row in batch.split(network(batch))]
        kept = {i: x for i, x in enumerate(network.states(batch)) if i in self.layers}
        states = torch.stack([kept[i] for i in self.layers], dim=1)  # (tokens, layers, width)
        return [row.float().cpu().transpose(0, 1) for row in batch.split(states)]

    def answer(self, example: str, rows: Sequence[Row], scores: Sequence[Tensor]) -> Vectors:
        states = scores[0].numpy()
        check_finite(states)
        return Vectors(states, rows[0].dropped)
