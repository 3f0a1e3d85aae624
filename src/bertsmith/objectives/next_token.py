"""The next token (GPT): the encoder reads onward only, and says at each token what comes after it.

It uses the head of masked tokens, so that a network may begin with this and go on with those (arXiv 2507.00994).
"""

from collections.abc import Mapping

import torch
from torch import Tensor

from bertsmith.data.batch import Batch
from bertsmith.models.network import Network
from bertsmith.objectives.costs import CHUNK, NONE, count_right, token_costs
from bertsmith.objectives.lookup import Lookup, find_places, round_room
from bertsmith.objectives.objective import Asked, Objective, Outline, Summed, Vocabulary


class NextToken(Objective):
    name = "next"
    heads = ("mask",)
    alters = True
    names = ("next_token",)

    def __init__(self, vocabulary: Vocabulary, z_loss: float = 0.0, chunk: int = CHUNK) -> None:
        """Every ordinary token that is not a row's first is asked for; `chunk` of them are scored at once."""
        self.lookup, self.z_loss, self.chunk = Lookup(vocabulary), z_loss, chunk

    def expect(self, tokens: int, rows: int, done: float) -> dict[str, float]:
        return {"next_token": tokens}  # each row begins with a special token; where it does not, fewer

    def outline(self, tokens: int, rows: int, done: float) -> Outline:
        return self.name, round_room(tokens)

    def ask(self, batch: Batch, given: Mapping[str, Tensor], tokens: int, done: float) -> Asked:
        asked = ~self.lookup.on(batch.ids.device).special[batch.ids] & (batch.positions > 0)
        place = find_places(asked, round_room(tokens) if "asked" in given else tokens)
        gold = torch.where(asked[place], batch.ids[place], NONE)
        return Asked(batch.reading_onward(), {**given, "at": (place - 1).clamp(min=0), "gold": gold})

    def losses(self, network: Network, hidden: Tensor, batch: Batch, given: Mapping[str, Tensor]) -> Summed:
        at, gold = given["at"], given["gold"]
        return {"next_token": token_costs(network, hidden, batch, at, gold, self.z_loss, self.chunk)}

    def measures(self, network: Network, hidden: Tensor, batch: Batch, given: Mapping[str, Tensor]) -> Summed:
        return {"next_token_accuracy": count_right(network, hidden, batch, given["at"], given["gold"], self.chunk)}
