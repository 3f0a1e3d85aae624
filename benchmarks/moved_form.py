"""Moved tokens, for comparison: beside masked words, a few of the others trade places, and the network tells which.

    python benchmarks/moved_form.py pretrain --recipe moved --corpus CORPUS --minutes 8 --out DIR

After `install()` this process knows the question `moved`. It is meant to teach what replaced tokens teach (which words
do not belong where they stand; CoLA gains by it) without a generator: a pass costs what one of masked words costs, and
all hidden words stay asked for. Of the tokens that are not hidden so many are moved as make a quarter of the hidden
ones, each to where the next of them stood, half a line away on the average; as many more are asked about that stayed.
`near` lets neighbours trade places, which only their order tells. Without a measured lead it stays out of the package.
"""

import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from bertsmith.data.batch import Batch
from bertsmith.layers.heads import Head
from bertsmith.models.checkpoint import Checkpoint
from bertsmith.models.network import Network
from bertsmith.objectives import making, wording
from bertsmith.objectives.chance import Fresh
from bertsmith.objectives.lookup import find_places
from bertsmith.objectives.masked_tokens import MaskedTokens
from bertsmith.objectives.objective import Asked, Objective, Outline, Summed
from bertsmith.training import recipes

NAME = "moved"
SHARE = 4  # hidden tokens for one that is moved
NEAR = "near"
WEIGHTS = {"moved": 2.0, "moved-heavy": 10.0, NEAR: 10.0}  # recipe -> of the loss


class MovedTokens(Objective):
    heads = ("mask",)
    alters = True

    def __init__(self, masking: MaskedTokens, weight: float, name: str) -> None:
        self.masking, self.weight, self.name = masking, weight, name
        self.names = ("masked", name)
        self.judge: Head | None = None

    def expect(self, tokens: int, rows: int, done: float) -> dict[str, float]:
        places = self.masking.expect(tokens, rows, done)["masked"]
        return {"masked": places, self.name: 2 * (places // SHARE)}

    def weights(self, done: float) -> dict[str, float]:
        return {self.name: self.weight}

    def outline(self, tokens: int, rows: int, done: float) -> Outline | None:
        found = self.masking.outline(tokens, rows, done)
        return found and (self.name, *found[1:])

    def count_hidden(self, tokens: int, done: float) -> int:
        return self.masking.count_hidden(tokens, done)

    def ask(self, batch: Batch, given: Mapping[str, Tensor], tokens: int, done: float) -> Asked:
        asked = self.masking.ask(batch, given, tokens, done)
        at, special = asked.given["at"], self.masking.lookup.on(batch.ids.device).special
        most = 2 * (len(at) // SHARE)
        count = given["asked"] // SHARE if "asked" in given else torch.full((1,), most // 2, device=at.device)
        hidden = torch.zeros_like(batch.ids, dtype=torch.bool).scatter(0, at, asked.given["gold"] >= 0)
        free = ~(special[batch.ids] | hidden)
        trade = trade_with_neighbours if self.name == NEAR else trade_along
        places, is_asked, put = trade(batch, free, most, count)
        ids = asked.batch.ids.scatter(0, places, put)
        ids = torch.where(free, ids, asked.batch.ids)
        judged, by_place = places.sort()
        told = {"judged": judged, "is_judged": is_asked[by_place], "moved": ids[judged] != batch.ids[judged]}
        return Asked(batch.reading(ids), {**asked.given, **told})

    def places(self, network: Network, batch: Batch, given: Mapping[str, Tensor]) -> Tensor | None:
        every = torch.cat([given["at"], given["judged"]])
        marks = torch.zeros(len(batch.ids), dtype=torch.bool, device=every.device).index_fill(0, every, True)
        return find_places(marks, len(every))

    def losses(self, network: Network, hidden: Tensor, batch: Batch, given: Mapping[str, Tensor]) -> Summed:
        cost = F.binary_cross_entropy_with_logits(
            self._judge(network, hidden, batch, given), given["moved"].float(), reduction="none"
        )
        found = self.masking.losses(network, hidden, batch, given)
        return {**found, self.name: (torch.where(given["is_judged"], cost, 0.0).sum(), given["is_judged"].sum())}

    def measures(self, network: Network, hidden: Tensor, batch: Batch, given: Mapping[str, Tensor]) -> Summed:
        with torch.no_grad():
            right = (self._judge(network, hidden, batch, given) > 0) == given["moved"]
        found = self.masking.measures(network, hidden, batch, given)
        return {**found, "moved_accuracy": ((right & given["is_judged"]).sum(), given["is_judged"].sum())}

    def parts(self) -> dict[str, nn.Module]:
        return {} if self.judge is None else {"judge": self.judge}

    def use_parts(self, parts: Mapping[str, nn.Module]) -> None:
        judge = parts["judge"]
        assert isinstance(judge, Head)
        self.judge = judge

    def _judge(self, network: Network, hidden: Tensor, batch: Batch, given: Mapping[str, Tensor]) -> Tensor:
        """Above 0 where it says that a token does not belong there."""
        assert self.judge is not None
        scores: Tensor = self.judge(hidden, batch, network.embed.tokens.weight, given["judged"])
        return scores[:, 0].float()


def trade_along(batch: Batch, free: Tensor, most: int, count: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """`count` of the free places give their tokens on to the next of them: the places that are looked at, which of them
    are asked about, and what stands there then."""
    order = torch.argsort(torch.where(free, Fresh(batch).draw(), 2.0), stable=True)[:most]
    rank = torch.arange(most, device=free.device)
    is_asked, is_moved = (free[order] & (rank < one) for one in (2 * count, count))
    # Those that move stand in the order of the text, behind them all others.
    by_text = torch.where(is_moved, order, len(batch.ids)).sort(stable=True).indices
    places, goes = order[by_text], is_moved[by_text]
    put = torch.where(goes & goes.roll(1), batch.ids[places.roll(1)], batch.ids[places])
    return places, is_asked[by_text], put


def trade_with_neighbours(batch: Batch, free: Tensor, most: int, count: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The same of half as many pairs of neighbours that trade places; specials stand between rows, so none leaves its
    own."""
    even = len(free) // 2 * 2
    drawn = Fresh(batch).draw()[:even:2]
    both = free[:even:2] & free[1:even:2]
    order = torch.argsort(torch.where(both, drawn, 2.0), stable=True)[: most // 2]
    rank = torch.arange(len(order), device=free.device)
    is_asked, is_moved = (both[order] & (rank < one) for one in (count, count // 2))
    places = torch.stack([2 * order, 2 * order + 1], 1)
    put = torch.where(is_moved[:, None], batch.ids[places.flip(1)], batch.ids[places])
    return places.flatten(), is_asked.repeat_interleave(2), put.flatten()


def find_moved(objective: Objective) -> Iterator[MovedTokens]:
    if isinstance(objective, MovedTokens):
        yield objective
    for each in getattr(objective, "objectives", ()):
        yield from find_moved(each)


def install() -> None:
    """Make the question and the recipes known to this process; others stay as they are."""
    if NAME in wording.HEADS:
        return
    for question in (NAME, NEAR):
        wording.HEADS[question] = ("mask",)
        wording.ALTERING = (*wording.ALTERING, question)
    smith = recipes.RECIPES["smith"]
    for name, weight in WEIGHTS.items():
        question = NEAR if name == NEAR else NAME
        asking = replace(smith.asking, asks=f"{question}:0.9,masked:0.1", replaced_weight=weight)
        recipes.RECIPES[name] = replace(smith, name=name, asking=asking)
    make, attach = making.Maker._make, making.Made.attach

    def make_one(self: making.Maker, question: str, *given: object) -> Objective:
        if question in (NAME, NEAR):
            return MovedTokens(self._mask(), self.asking.replaced_weight, question)
        return make(self, question, *given)  # type: ignore[arg-type]

    def attach_judge(self: making.Made, checkpoint: Checkpoint) -> None:
        for each in find_moved(self.objective):
            each.judge = making.make_judge(checkpoint.config)
            self.aside = {"judge": each.judge}
        attach(self, checkpoint)

    making.Maker._make, making.Made.attach = make_one, attach_judge  # type: ignore[method-assign,assignment]


if __name__ == "__main__":
    from bertsmith.cli import main

    install()
    if len(sys.argv) == 1:  # `make bench` calls every script
        print(__doc__)
    else:
        main()
