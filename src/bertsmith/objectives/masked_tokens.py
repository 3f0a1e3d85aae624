"""Masked tokens on the device: some tokens of a batch are hidden, and the network says what they were.

After BERT (arXiv 1810.04805, section 3.1); whole words as in its later release, spans as in SpanBERT
(arXiv 1907.10529), phrases as in ERNIE (arXiv 1904.09223), a rate that falls as in arXiv 2305.15096, and static masks,
which are those of BERT, beside the dynamic ones of RoBERTa (arXiv 1907.11692).
"""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from bertsmith.data.batch import Batch
from bertsmith.errors import BertsmithError
from bertsmith.models.network import Network
from bertsmith.objectives.chance import Chance, Fixed, Fresh
from bertsmith.objectives.choosing import Choice, choose, choose_in_rows
from bertsmith.objectives.costs import CHUNK, NONE, count_right, token_costs
from bertsmith.objectives.lookup import Lookup, round_room
from bertsmith.objectives.objective import Asked, Objective, Outline, Summed, Vocabulary
from bertsmith.objectives.units import Phrases, find_starts, first_of_units, join_spans

Schedule = float | tuple[float, float]  # the same throughout, or from the first to the second in a straight line


class MaskedTokens(Objective):
    name = "masked"
    heads = ("mask",)
    alters = True
    names = ("masked",)

    def __init__(
        self, vocabulary: Vocabulary, rate: Schedule = 0.15, masked: float = 0.8, random: float = 0.1, *,
        whole_words: bool = False, spans: bool = False, phrases: Sequence[Sequence[int]] = (), static: bool = False,
        seed: int = 0, z_loss: float = 0.0, chunk: int = CHUNK,
    ) -> None:  # fmt: skip
        """Of the hidden tokens, `masked` become the mask and `random` any ordinary one; the rest stays as it is.

        `static`: what is hidden of a row is a function of its ids and the `seed`, at every step. `phrases` are
        sequences of ids that are hidden as a whole. `chunk` places are scored at once.
        """
        _check(rate, masked, random)
        if whole_words and vocabulary.begins is None:
            raise BertsmithError("whole words cannot be hidden: the tokenizer does not say which pieces begin a word.")
        self.vocabulary, self.lookup = vocabulary, Lookup(vocabulary)
        self.rate, self.masked, self.random = rate, masked, random
        self.whole_words, self.spans, self.static, self.seed = whole_words, spans, static, seed
        self.phrases = Phrases(phrases) if phrases else None
        self.z_loss, self.chunk = z_loss, chunk

    def expect(self, tokens: int, rows: int, done: float) -> dict[str, float]:
        return {"masked": self._count(tokens, done)}

    def outline(self, tokens: int, rows: int, done: float) -> Outline | None:
        if self.static and isinstance(self.rate, tuple):
            return None  # each row hides a share of its own tokens, which a recording would keep
        return self.name, self._room(tokens, rows, done)

    def count_hidden(self, tokens: int, done: float) -> int:
        return self._count(tokens, done)

    def ask(self, batch: Batch, given: Mapping[str, Tensor], tokens: int, done: float) -> Asked:
        chance = Fixed(batch, self.seed) if self.static else Fresh(batch)
        read, at, gold = self.hide(batch, chance, tokens, done, given.get("asked"))
        return Asked(batch.reading(read), {**given, "at": at, "gold": gold})

    def hide(
        self, batch: Batch, chance: Chance, tokens: int, done: float = 0.0, asked: Tensor | None = None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """The ids to read, the places asked for in ascending order, and what stood there."""
        units = self._units(batch, chance)
        at, chosen = self._choose(batch, units, chance, tokens, done, asked)
        there = batch.ids[at]
        # A span is masked, replaced or kept as a whole (SpanBERT, section 3.1); the pieces of a word each for itself.
        fate = chance.draw()[units if self.spans else slice(None)][at]
        put = self._put(there, fate, chance.draw()[at])
        read = batch.ids.scatter(0, at, torch.where(chosen, put, there))
        return read, at, torch.where(chosen, there, NONE)

    def places(self, network: Network, batch: Batch, given: Mapping[str, Tensor]) -> Tensor | None:
        return given["at"]

    def losses(self, network: Network, hidden: Tensor, batch: Batch, given: Mapping[str, Tensor]) -> Summed:
        at, gold = given["at"], given["gold"]
        return {"masked": token_costs(network, hidden, batch, at, gold, self.z_loss, self.chunk)}

    def measures(self, network: Network, hidden: Tensor, batch: Batch, given: Mapping[str, Tensor]) -> Summed:
        return {"masked_accuracy": count_right(network, hidden, batch, given["at"], given["gold"], self.chunk)}

    def _units(self, batch: Batch, chance: Chance) -> Tensor:
        """(tokens,): the first token of what each is hidden together with."""
        if not self.whole_words and not self.spans and self.phrases is None:
            return torch.arange(len(batch.ids), device=batch.ids.device)
        tables = self.lookup.on(batch.ids.device)
        starts = find_starts(batch, tables, self.whole_words, self.phrases)
        return first_of_units(join_spans(starts, batch, tables, chance) if self.spans else starts)

    def _choose(
        self, batch: Batch, units: Tensor, chance: Chance, tokens: int, done: float, asked: Tensor | None
    ) -> Choice:
        ordinary = ~self.lookup.on(batch.ids.device).special[batch.ids]
        scores = chance.draw()[units]
        rows = len(batch.lengths)
        most = self._most(tokens, rows, done) if asked is None else self._room(tokens, rows, done)
        if self.static:
            return choose_in_rows(batch, units, scores, ordinary, at_share(self.rate, done), most)
        return choose(units, scores, ordinary, most, asked)

    def _most(self, tokens: int, rows: int, done: float) -> int:
        """Places, at most."""
        if not self.static:
            return self._count(tokens, done)
        return min(tokens, int(at_share(self.rate, done) * tokens) + rows)  # each row rounds for itself

    def _room(self, tokens: int, rows: int, done: float) -> int:
        return round_room(self._most(tokens, rows, done))

    def _count(self, tokens: int, done: float) -> int:
        return min(tokens, max(1, round(at_share(self.rate, done) * tokens)))

    def _put(self, there: Tensor, fate: Tensor, chance: Tensor) -> Tensor:
        """What stands at the places afterwards."""
        ordinary = self.lookup.on(there.device).ordinary
        drawn = ordinary[(chance * len(ordinary)).long().clamp(max=len(ordinary) - 1)]
        put = torch.where(fate < self.masked + self.random, drawn, there)
        return torch.where(fate < self.masked, self.vocabulary.mask, put)


def at_share(schedule: Schedule, done: float) -> float:
    """The value of a schedule when this share of the run is over."""
    if isinstance(schedule, tuple):
        first, last = schedule
        return first + (last - first) * min(1.0, max(0.0, done))
    return schedule


def _check(rate: Schedule, masked: float, random: float) -> None:
    rates = rate if isinstance(rate, tuple) else (rate,)
    for name, value in (*(("rate", value) for value in rates), ("masked", masked), ("random", random)):
        if not 0 <= value <= 1 or (name == "rate" and not value):
            raise BertsmithError(f"{name} is {value}; it must be {'above' if name == 'rate' else 'from'} 0 to 1.")
    if masked + random > 1 + 1e-9:
        raise BertsmithError(f"masked and random are {masked} and {random}; together at most 1.")
