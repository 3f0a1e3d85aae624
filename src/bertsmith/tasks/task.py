"""What a user asks: how a request becomes rows for the encoder, and its scores become an answer.

Most tasks ask the network once (`rows`, `scores`, `answer`); one that must look at its own scores and ask again
overrides `talk`. A task with a head that people train is a `TrainedTask` (trained.py).
"""

from collections.abc import Generator, Hashable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Generic, TypeVar

import torch
from torch import Tensor

from bertsmith.data.batch import Batch
from bertsmith.errors import BertsmithError
from bertsmith.models.network import Network
from bertsmith.text.encoding import Encoding
from bertsmith.text.tokenizer import Tokenizer

Example = TypeVar("Example")
Answer = TypeVar("Answer")
POLICIES = ("error", "head", "tail", "head+tail", "windows")


@dataclass
class Row:
    """One row of ids for the encoder; `at` names the tokens whose scores are wanted (none: all, or the row's)."""

    ids: Sequence[int]
    segments: Sequence[int]
    at: Sequence[int] = ()
    dropped: int = 0
    gold: Any = None  # what the scores should say, where it is known: a label's number, one for each of `at`, …


class Task(Generic[Example, Answer]):
    name = ""
    head: str | None = None  # of the network; None: the hidden states serve
    windows = True  # whether truncate="windows" has a meaning
    per_token = False  # whether the head's scores of all tokens are wanted, not one for the row or those of `Row.at`

    def __init__(self, tokenizer: Tokenizer, limit: int, truncate: str) -> None:
        self.tokenizer = tokenizer
        self.limit = limit  # the longest row the network takes
        self.truncate = truncate
        if truncate not in POLICIES:
            offered = POLICIES if self.windows else POLICIES[:-1]
            raise BertsmithError(f"truncate={truncate!r} is not a choice; use one of {', '.join(map(repr, offered))}.")

    def rows(self, examples: Sequence[Example]) -> list[list[Row]]:
        """The rows that each example becomes: one, or several windows."""
        raise NotImplementedError

    def read(self, network: Network, batch: Batch, at: Tensor | None) -> Tensor:
        """The head's scores, flat and on the device: for each token in `at`, or for each token or row of the batch."""
        assert self.head is not None
        hidden = network(batch.wanting(network.places(batch, self.head, at)))
        return network.score(hidden, batch, self.head, at)

    def scores(self, network: Network, batch: Batch, rows: Sequence[Row]) -> list[Tensor]:
        """What the network says to each row: its head at the wanted tokens."""
        starts = accumulate(batch.lengths, initial=0)
        at = [start + i for start, row in zip(starts, rows, strict=False) for i in row.at]
        found = self.read(network, batch, torch.tensor(at, device=batch.ids.device) if at else None)
        sizes = batch.lengths if self.per_token else [len(row.at) or 1 for row in rows]
        return list(found.float().cpu().split(list(sizes)))

    @property
    def alike(self) -> Hashable:
        """Equal for tasks whose `scores` may read each other's rows in one batch; here for those of one class."""
        kind = type(self)
        is_plain = kind.scores is Task.scores and kind.read is Task.read
        return (kind, self.head) if is_plain else id(self)

    def answer(self, example: Example, rows: Sequence[Row], scores: Sequence[Tensor]) -> Answer:
        raise NotImplementedError

    def talk(self, example: Example, rows: list[Row]) -> Generator[list[Row], list[Tensor], Answer]:
        """Yields rows, is sent their scores, and returns the answer."""
        scores = yield rows
        return self.answer(example, rows, scores)

    def encode_all(self, texts: Sequence[str], pairs: Sequence[str] | None = None) -> list[Encoding]:
        """One row each, cut as `truncate` says."""
        cut = None if self.truncate == "error" else self.limit
        rows = self.tokenizer.encode_many(texts, pairs, length=cut, truncate=self.truncate if cut else "head")
        longer = next((len(row) for row in rows if len(row) > self.limit), None)
        if longer is not None:
            raise too_long(longer, self.limit, self.windows)
        return rows

    def refuse_windows(self) -> None:
        if self.truncate == "windows":
            others = ", ".join(repr(policy) for policy in POLICIES[:-1])
            raise BertsmithError(f"{self.name} has no meaning for truncate='windows'; use one of {others}.")


def too_long(tokens: int, length: int, windows: bool, where: str = "", what: str = "the input") -> BertsmithError:
    """The error of truncate="error"; `windows`: whether the job can slide over a text instead."""
    ways = "'head', 'tail', 'head+tail' or 'windows'" if windows else "'head', 'tail' or 'head+tail'"
    return BertsmithError(
        f"{where}{': ' * bool(where)}{what} has {tokens:,} tokens but at most {length:,} fit; choose truncate={ways}, "
        f"or a shorter text."
    )
