"""What a vocabulary says of each id, as tables on the device where the ids are.

In: a `Vocabulary`. Out: which ids are special, which are ordinary, and which begin a word, looked up without the host.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from bertsmith.data.batch import round_size
from bertsmith.errors import BertsmithError
from bertsmith.objectives.objective import Vocabulary


@dataclass(frozen=True)
class Tables:
    special: Tensor  # (size,) bool
    ordinary: Tensor  # the ids that are not special, in ascending order
    begins: Tensor  # (size,) bool: whether the piece begins a word


class Lookup:
    """The tables of one vocabulary, made once for each device that asks."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary
        size = vocabulary.size
        if outside := [id for id in (vocabulary.mask, *vocabulary.specials) if not 0 <= id < size]:
            raise BertsmithError(f"the special id {outside[0]} is outside a vocabulary of {size:,} ids.")
        special = torch.zeros(size, dtype=torch.bool)
        special[[vocabulary.mask, *vocabulary.specials]] = True
        if special.all():
            raise BertsmithError("every id of the vocabulary is special, so there is nothing to hide or to put in.")
        begins = torch.ones(size, dtype=torch.bool) if vocabulary.begins is None else vocabulary.begins.cpu()
        if begins.shape != (size,):
            raise BertsmithError(f"begins has {len(begins):,} entries for a vocabulary of {size:,} ids.")
        self.tables = Tables(special, (~special).nonzero()[:, 0], begins)
        self._made = {torch.device("cpu"): self.tables}

    def on(self, device: torch.device) -> Tables:
        if device not in self._made:
            here = self.tables
            self._made[device] = Tables(here.special.to(device), here.ordinary.to(device), here.begins.to(device))
        return self._made[device]


def round_room(places: int) -> int:
    """Places of a recorded pass: few sizes as their number falls over a run, of which a fortieth is wasted."""
    return round_size(places, 64, parts=16)


def find_places(wanted: Tensor, count: int) -> Tensor:
    """The first `count` indices where `wanted` (tokens,) is true, and others behind them should there be fewer."""
    return torch.argsort(~wanted, stable=True)[:count]
