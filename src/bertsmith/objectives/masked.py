"""Masked tokens (BERT, arXiv 1810.04805, section 3.1): some tokens are hidden, and the network says what they were.

In: a row of ids and chance. Out: the row to read, the places that are asked for, and the ids that stood there.
"""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import numpy as np
from torch import Tensor
from torch.nn import functional as F

from bertsmith.data.batch import Batch
from bertsmith.errors import BertsmithError
from bertsmith.models.network import Network

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Masking:
    """How much is hidden, and how; what is neither masked nor random stays as it is, and is asked for too."""

    share: float = 0.15  # of the tokens that may be chosen, at least one of them
    masked: float = 0.8  # of the chosen: become the mask token
    random: float = 0.1  # of the chosen: become any other token

    def __post_init__(self) -> None:
        for name in ("share", "masked", "random"):
            if not 0 <= getattr(self, name) <= 1:
                raise BertsmithError(f"{name} is {getattr(self, name)}; it must be between 0 and 1.")
        if self.masked + self.random > 1 + 1e-9:
            raise BertsmithError(f"masked and random are {self.masked} and {self.random}; together at most 1.")


BERT = Masking()


def corrupt(
    ids: Array, specials: Collection[int], mask_id: int, vocabulary: int, generator: np.random.Generator,
    masking: Masking = BERT,
) -> tuple[Array, Array, Array]:  # fmt: skip
    """`ids` of one row -> (ids to read, places asked for in ascending order, the ids that stood there).

    `specials` are never chosen, and never put in a token's place. A row of specials alone asks for nothing.
    """
    known = np.unique(np.fromiter(specials, np.int64, len(specials)))
    free = np.flatnonzero(~np.isin(ids, known))
    count = min(len(free), max(1, round(masking.share * len(free)))) if masking.share else 0
    at = np.sort(generator.choice(free, count, replace=False)) if count else free[:0]
    gold, read, chance = ids[at], ids.copy(), generator.random(count)
    read[at[chance < masking.masked]] = mask_id
    swapped = at[(chance >= masking.masked) & (chance < masking.masked + masking.random)]
    read[swapped] = draw_ordinary(known, vocabulary, generator, len(swapped))
    return read, at, gold


def draw_ordinary(specials: Array, vocabulary: int, generator: np.random.Generator, count: int) -> Array:
    """Ids that are none of the `specials` (in ascending order), each as likely as another."""
    specials = specials[specials < vocabulary]
    drawn = generator.integers(0, max(1, vocabulary - len(specials)), count)
    # The n-th ordinary id is n plus the number of specials below it.
    skipped: Array = drawn + np.searchsorted(specials - np.arange(len(specials)), drawn, side="right")
    return skipped


def masked_loss(network: Network, batch: Batch, at: Tensor, gold: Tensor, head: str = "mask") -> Tensor:
    """The cross-entropy of what stood at each place, (places,); a place whose gold is negative costs nothing."""
    scores = network.score(network(batch), batch, head, at).float()
    return F.cross_entropy(scores, gold, ignore_index=-100, reduction="none")
