"""Which tokens are hidden: units in the order of a random number, as long as they fit.

In: for each token its unit and that unit's random number. Out: places, as many as the host expects, and which of them
hold a token that was chosen; a unit is chosen as a whole or not at all.
"""

import torch
from torch import Tensor

from bertsmith.data.batch import Batch

Choice = tuple[Tensor, Tensor]  # (places,) indices in ascending order, and which of them were chosen


def choose(units: Tensor, scores: Tensor, ordinary: Tensor, count: int, asked: Tensor | None = None) -> Choice:
    """`count` tokens of the whole batch; the last unit is left out where it would exceed that.

    `asked` (1,): so many of them are chosen, which only the device needs to know.
    """
    order = torch.argsort(torch.where(ordinary, scores, 2.0), stable=True)  # stable: equal scores mix no units
    at = order[:count]
    chosen = ordinary[at]
    if asked is not None:
        behind = units[order[asked.clamp(max=len(order) - 1)]]
        fits = (units[at] != behind) | (asked >= len(order))
        chosen = chosen & fits & (torch.arange(len(at), device=at.device) < asked)
    elif count < len(order):
        chosen = chosen & (units[at] != units[order[count : count + 1]])  # a slice: one number would be fetched
    return _ascending(at, chosen)


def choose_in_rows(batch: Batch, units: Tensor, scores: Tensor, ordinary: Tensor, rate: float, count: int) -> Choice:
    """This share of each row, whatever the others are, at least a token; in all, at most `count`."""
    order = torch.argsort(torch.where(ordinary, scores, 2.0), stable=True)
    order = order[torch.argsort(batch.owners[order], stable=True)]  # row by row: a token's place is still in its row
    free = scores.new_zeros(len(batch.lengths)).index_add(0, batch.owners, ordinary.to(scores.dtype))
    wanted = (rate * free).round().clamp(min=1).minimum(free).long()[batch.owners]
    place = torch.arange(len(order), device=order.device)
    after = (place - batch.positions + wanted).clamp(max=len(order) - 1)  # where the first stands that is not wanted
    fits = (units[order] != units[order[after]]) | (wanted >= batch.counts[:, 0][batch.owners])
    chosen = (batch.positions < wanted) & ordinary[order] & fits
    picked = torch.argsort(~chosen, stable=True)[:count]
    return _ascending(order[picked], chosen[picked])


def _ascending(at: Tensor, chosen: Tensor) -> Choice:
    at, order = at.sort()  # neighbours are read together
    return at, chosen[order]
