"""Objectives together and one after the other: themselves objectives.

`Sum(MaskedTokens(…), SentencePair())` is the original BERT: one pass of the encoder, both losses.
`Stages([(NextToken(…), 0.25), (MaskedTokens(…), 0.75)])` reads onward for the first quarter of the run.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

import torch
from torch import Tensor, nn

from bertsmith.data.batch import Batch
from bertsmith.errors import BertsmithError
from bertsmith.models.network import Network
from bertsmith.objectives.lookup import find_places
from bertsmith.objectives.masked_tokens import Schedule, at_share
from bertsmith.objectives.objective import Asked, Objective, Outline, Summed

Value = TypeVar("Value")


class Sum(Objective):
    """Several questions about one batch, read once; at most one of them may change what is read."""

    name = "sum"

    def __init__(self, *objectives: Objective, weights: Sequence[Schedule] | None = None) -> None:
        """`weights`: one for each objective, the same throughout or (first, last) in a straight line; else all 1."""
        if weights is not None and len(weights) != len(objectives):
            raise BertsmithError(f"there are {len(weights)} weights for {len(objectives)} objectives.")
        altering = [each.name for each in objectives if each.alters]
        if len(altering) > 1:
            raise BertsmithError(
                f"{' and '.join(altering)} cannot be asked of one batch: each changes what is read. Use stages."
            )
        _join(self, objectives)
        if len(self.names) < sum(len(each.names) for each in objectives):
            raise BertsmithError(f"two of the objectives have a loss of the same name: {', '.join(self.names)}.")
        self.alters = bool(altering)
        self.objectives, self.own_weights = objectives, weights or [1.0] * len(objectives)

    def expect(self, tokens: int, rows: int, done: float) -> dict[str, float]:
        return _merge(each.expect(tokens, rows, done) for each in self.objectives)

    def outline(self, tokens: int, rows: int, done: float) -> Outline | None:
        outlines = [each.outline(tokens, rows, done) for each in self.objectives]
        known = [one for one in outlines if one is not None]
        if len(known) < len(outlines):
            return None
        return "+".join(one[0] for one in known), *(size for one in known for size in one[1:])

    def count_hidden(self, tokens: int, done: float) -> int:
        return sum(each.count_hidden(tokens, done) for each in self.objectives)  # one of them hides, at most

    def weights(self, done: float) -> dict[str, float]:
        found = {}
        for each, own in zip(self.objectives, self.own_weights, strict=True):
            inner = each.weights(done)
            found.update({name: at_share(own, done) * inner.get(name, 1.0) for name in each.names})
        return found

    def ask(self, batch: Batch, given: Mapping[str, Tensor], tokens: int, done: float) -> Asked:
        # Those that only look see the batch before it is changed.
        for each in sorted(self.objectives, key=lambda each: each.alters):
            asked = each.ask(batch, given, tokens, done)
            batch, given = asked.batch, asked.given
        return Asked(batch, given)

    def places(self, network: Network, batch: Batch, given: Mapping[str, Tensor]) -> Tensor | None:
        found = [each.places(network, batch, given) for each in self.objectives]
        some = [places for places in found if places is not None]
        if len(some) < len(found):
            return None
        every = torch.cat(some)
        # Where fewer words are hidden than the host expects, any places fill up, those of the others among them.
        marks = torch.zeros(len(batch.ids), dtype=torch.bool, device=every.device).index_fill(0, every, True)
        return find_places(marks, len(every))

    def losses(self, network: Network, hidden: Tensor, batch: Batch, given: Mapping[str, Tensor]) -> Summed:
        return _merge(each.losses(network, hidden, batch, given) for each in self.objectives)

    def measures(self, network: Network, hidden: Tensor, batch: Batch, given: Mapping[str, Tensor]) -> Summed:
        return _merge(each.measures(network, hidden, batch, given) for each in self.objectives)

    def parts(self) -> dict[str, nn.Module]:
        return _merge(each.parts() for each in self.objectives)

    def use_parts(self, parts: Mapping[str, nn.Module]) -> None:
        for each in self.objectives:
            if each.parts():
                each.use_parts(parts)


class Stages(Objective):
    """One objective after another, each for its share of the run; each is told how much of the whole run is over."""

    name = "stages"
    alters = True

    def __init__(self, stages: Sequence[tuple[Objective, float]]) -> None:
        shares = [share for _, share in stages]
        if not shares or min(shares) <= 0 or abs(sum(shares) - 1) > 1e-6:
            raise BertsmithError(f"the shares of the stages are {shares}; each must be above 0, and their sum 1.")
        self.objectives, self.shares = [each for each, _ in stages], shares
        _join(self, self.objectives)

    def number(self, done: float) -> int:
        """Which stage it is when this share of the run is over."""
        end = 0.0
        for number, share in enumerate(self.shares[:-1]):
            end += share
            if done < end - 1e-9:
                return number
        return len(self.shares) - 1

    def now(self, done: float) -> Objective:
        return self.objectives[self.number(done)]

    def expect(self, tokens: int, rows: int, done: float) -> dict[str, float]:
        return self.now(done).expect(tokens, rows, done)

    def outline(self, tokens: int, rows: int, done: float) -> Outline | None:
        found = self.now(done).outline(tokens, rows, done)
        return found and (f"stage {self.number(done)} {found[0]}", *found[1:])

    def count_hidden(self, tokens: int, done: float) -> int:
        return self.now(done).count_hidden(tokens, done)

    def weights(self, done: float) -> dict[str, float]:
        return self.now(done).weights(done)

    def ask(self, batch: Batch, given: Mapping[str, Tensor], tokens: int, done: float) -> Asked:
        asked = self.now(done).ask(batch, given, tokens, done)
        # The key alone says who asked, which the host knows without looking into a tensor.
        return Asked(asked.batch, {**asked.given, f"stage {self.number(done)}": torch.empty(0)})

    def places(self, network: Network, batch: Batch, given: Mapping[str, Tensor]) -> Tensor | None:
        return self._asker(given).places(network, batch, given)

    def losses(self, network: Network, hidden: Tensor, batch: Batch, given: Mapping[str, Tensor]) -> Summed:
        return self._asker(given).losses(network, hidden, batch, given)

    def measures(self, network: Network, hidden: Tensor, batch: Batch, given: Mapping[str, Tensor]) -> Summed:
        return self._asker(given).measures(network, hidden, batch, given)

    def parts(self) -> dict[str, nn.Module]:
        return _merge(each.parts() for each in self.objectives)

    def use_parts(self, parts: Mapping[str, nn.Module]) -> None:
        for each in self.objectives:
            if each.parts():
                each.use_parts(parts)

    def _asker(self, given: Mapping[str, Tensor]) -> Objective:
        return next(each for number, each in enumerate(self.objectives) if f"stage {number}" in given)


def _join(whole: Objective, objectives: Sequence[Objective]) -> None:
    """What a network and its rows must have for all of them."""
    whole.heads = tuple(dict.fromkeys(head for each in objectives for head in each.heads))
    whole.names = tuple(dict.fromkeys(name for each in objectives for name in each.names))
    whole.needs_pairs = any(each.needs_pairs for each in objectives)


def _merge(found: Iterable[Mapping[str, Value]]) -> dict[str, Value]:
    return {name: value for some in found for name, value in some.items()}
