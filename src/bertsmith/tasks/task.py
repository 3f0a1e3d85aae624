"""What a user asks: how a request becomes rows for the encoder, and its scores become an answer.

A task is the same object for predicting, and later for training and scoring. Most ask the network once (`rows`,
`scores`, `answer`); one that must look at its own scores and ask again overrides `talk`.
"""

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import torch
from torch import Tensor

from bertsmith.data.batch import Batch
from bertsmith.errors import BertsmithError
from bertsmith.models.network import Network
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


class Task(Generic[Example, Answer]):
    name = ""
    head: str | None = None  # of the network; None: the hidden states serve

    def __init__(self, tokenizer: Tokenizer, limit: int, truncate: str) -> None:
        self.tokenizer = tokenizer
        self.limit = limit  # the longest row the network takes
        self.truncate = truncate
        if truncate not in POLICIES:
            raise BertsmithError(f"truncate={truncate!r} is not a choice; use one of {', '.join(map(repr, POLICIES))}.")

    def rows(self, examples: Sequence[Example]) -> list[list[Row]]:
        """The rows that each example becomes: one, or several windows."""
        raise NotImplementedError

    def scores(self, network: Network, batch: Batch, rows: Sequence[Row]) -> list[Tensor]:
        """What the network says to each row: its head at the wanted tokens."""
        assert self.head is not None
        at = [start + i for start, row in zip(batch.firsts.tolist(), rows, strict=True) for i in row.at]
        hidden = network(batch)
        found = network.score(hidden, batch, self.head, torch.tensor(at, device=hidden.device) if at else None)
        return list(found.float().cpu().split([len(row.at) or 1 for row in rows]))

    def answer(self, example: Example, rows: Sequence[Row], scores: Sequence[Tensor]) -> Answer:
        raise NotImplementedError

    def talk(self, example: Example, rows: list[Row]) -> Generator[list[Row], list[Tensor], Answer]:
        """Yields rows, is sent their scores, and returns the answer."""
        scores = yield rows
        return self.answer(example, rows, scores)

    def refuse_windows(self) -> None:
        if self.truncate == "windows":
            others = ", ".join(repr(policy) for policy in POLICIES[:-1])
            raise BertsmithError(f"{self.name} has no meaning for truncate='windows'; use one of {others}.")
