"""Whether the second segment of a row follows the first: one question, with one or the other kind of wrong pair.

BERT's next sentence (arXiv 1810.04805, section 3.1) has a text from elsewhere as the second one; ALBERT's sentence
order (arXiv 1909.11942, section 3.1) the right two, swapped. Whoever makes the rows makes the pairs; the label is 0
where the second follows the first, in either family.
"""

from collections.abc import Mapping
from typing import Literal

import torch
from torch import Tensor
from torch.nn import functional as F

from bertsmith.data.batch import Batch
from bertsmith.layers.heads import Head
from bertsmith.models.network import Network
from bertsmith.objectives.costs import NONE
from bertsmith.objectives.objective import Objective, Summed

Kind = Literal["next", "order"]
_NAMES: dict[Kind, str] = {"next": "next_sentence", "order": "sentence_order"}


class SentencePair(Objective):
    name = "pair"
    heads = ("follows",)
    needs_pairs = True

    def __init__(self, kind: Kind = "next") -> None:
        self.kind = kind  # those who make the rows look here
        self.names = (_NAMES[kind],)

    def expect(self, tokens: int, rows: int, done: float) -> dict[str, float]:
        return {self.names[0]: rows}

    def places(self, network: Network, batch: Batch, given: Mapping[str, Tensor]) -> Tensor | None:
        head = network.heads["follows"]
        assert isinstance(head, Head)
        return batch.firsts if head.shape.reads == "first" else None

    def losses(self, network: Network, hidden: Tensor, batch: Batch, given: Mapping[str, Tensor]) -> Summed:
        pairs = given["pairs"]
        scores = network.score(hidden, batch, "follows").float()  # (rows, 2)
        cost = F.cross_entropy(scores, pairs, ignore_index=NONE, reduction="sum")
        return {self.names[0]: (cost, (pairs >= 0).sum())}

    def measures(self, network: Network, hidden: Tensor, batch: Batch, given: Mapping[str, Tensor]) -> Summed:
        with torch.no_grad():
            right = network.score(hidden, batch, "follows").argmax(dim=-1) == given["pairs"]
        return {f"{self.names[0]}_accuracy": (right.sum(), (given["pairs"] >= 0).sum())}
