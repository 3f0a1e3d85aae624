"""Guess a word of a text, all of its pieces hidden: is the model's first guess the word that stood there?

In: places in texts. Out: whether the likeliest piece behind each mask, in one pass, is the word's own. A word that the
tokenizer does not know is never guessed: "unknown" is no word.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from bertsmith.data.batch import Batch
from bertsmith.models.network import Network
from bertsmith.tasks.hiding import HiddenText, need_mask
from bertsmith.tasks.likelihood import AT_ONCE
from bertsmith.tasks.masks import MaskRow
from bertsmith.tasks.task import Row, Task
from bertsmith.text.tokenizer import Tokenizer


@dataclass(frozen=True)
class WordPlace:
    text: HiddenText
    pieces: Sequence[int]


class GuessWord(Task[WordPlace, bool]):
    name = "guess"
    head = "mask"

    def __init__(self, tokenizer: Tokenizer, limit: int) -> None:
        super().__init__(tokenizer, limit, "windows")
        self.mask_id = need_mask(tokenizer)

    def rows(self, examples: Sequence[WordPlace]) -> list[list[Row]]:
        return [[example.text.hide(example.pieces, example.pieces, self.mask_id)] for example in examples]

    def scores(self, network: Network, batch: Batch, rows: Sequence[Row]) -> list[Tensor]:
        """For each hidden piece whether it is the likeliest."""
        asked = [row for row in rows if isinstance(row, MaskRow)]
        starts = batch.bounds[:-1].tolist()
        at = [start + place for start, row in zip(starts, asked, strict=True) for place in row.at]
        hidden = network(batch.wanting(torch.tensor(at, device=batch.ids.device)))
        wanted = [id for row in asked for id in row.wanted]
        found = list(self._likeliest(network, hidden, batch, at))
        right = torch.cat(found) == torch.tensor(wanted, device=hidden.device)
        return list(right.cpu().split([len(row.at) for row in asked]))

    def _likeliest(self, network: Network, hidden: Tensor, batch: Batch, at: Sequence[int]) -> Iterator[Tensor]:
        assert self.head is not None
        for start in range(0, len(at), AT_ONCE):
            some = torch.tensor(at[start : start + AT_ONCE], device=hidden.device)
            yield network.score(hidden, batch, self.head, some).argmax(dim=-1)

    def answer(self, example: WordPlace, rows: Sequence[Row], scores: Sequence[Tensor]) -> bool:
        return bool(scores[0].all()) and not any(map(example.text.is_unknown, example.pieces))
