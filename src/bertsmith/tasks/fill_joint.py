"""Fill all masks of a text together: a beam search in which each is filled in the light of those before it.

In: a text's masks, and what was found for each alone. Out: the likeliest fillings; the chance of one is the product of
its steps, the chain rule in reading order.

What it may read is bounded, for each mask is another reading of the text. Masks have fewer beams the more they are: two
beams find nearly what ten do. Where even one beam, a mask at a time, is too much, a step fills several masks that are
far apart, as if they did not depend on each other.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from bertsmith.tasks.masks import MaskedText, Talk, ask_rows
from bertsmith.tasks.result import check_finite

BEAMS = 10  # kept at most, or `top_k` if that is more
READ = 4096  # tokens that may be read for ten answers, or as many as the rows of the text have: two seconds of one core
KEPT = 2**16  # ways to go on that a text may wait with: a wide search asks for its beams in blocks


@dataclass(frozen=True)
class Filling:
    """Of a search under way: the ids of the masks filled so far, in the order of its steps."""

    ids: tuple[int, ...] = ()
    log_chance: float = 0.0
    read: int = 0  # the row of this step that it goes on from


def fill_together(masked: MaskedText, alone: Sequence[Tensor], top_k: int) -> Talk:
    """The `top_k` likeliest fillings, their ids in reading order.

    `alone` has the likeliest pieces of each mask while all others are hidden, `top_k` or `BEAMS` at least.
    """
    steps, beams = plan_steps(masked, top_k)
    done: list[int] = []
    fillings = [Filling()]
    for step in steps:
        width = beams if step is not steps[-1] else max(beams, top_k)
        block = max(KEPT // (width * len(step)), 1)
        found: list[Filling] = []
        for start in range(0, len(fillings), block):
            some = fillings[start : start + block]
            scores = yield from _ask_step(masked, step, done, some, alone, width)
            found = _sort([*found, *_widen(some, scores, width)])[:width]
        fillings = found
        done += step
    order = sorted(range(len(done)), key=done.__getitem__)
    return [Filling(tuple(one.ids[place] for place in order), one.log_chance) for one in fillings[:top_k]]


def plan_steps(masked: MaskedText, top_k: int) -> tuple[list[range], int]:
    """The masks that each step fills, and how many beams there are."""
    masks, width = masked.masks, max(top_k, BEAMS)
    lengths = [len(window) for window in masked.windows]
    once = sum(lengths[window] for window in {mask.window for mask in masks})
    budget = max(READ, once) * width // BEAMS
    chain = sum(lengths[mask.window] for mask in masks[1:])  # for the first mask everything is read already
    if chain <= budget:
        return [range(number, number + 1) for number in range(len(masks))], min(width, budget // chain)
    count = 1 + budget // once
    return [range(first, len(masks), count) for first in range(count)], 1


def _ask_step(
    masked: MaskedText, step: range, done: list[int], fillings: list[Filling], alone: Sequence[Tensor], best: int
) -> Talk:
    """The likeliest pieces of each of the step's masks after each filling; a window that is as it was is known."""
    changed = {window for number in done for window in masked.masks[number].places}
    is_new = {number: masked.masks[number].window in changed for number in step}
    rows = [
        masked.row(masked.masks[number], dict(zip(done, filling.ids, strict=True)), best)
        for filling in fillings
        for number in step
        if is_new[number]
    ]
    scores = iter((yield from ask_rows(rows)) if rows else ())
    return [[next(scores) if is_new[number] else alone[number] for number in step] for _ in fillings]


def _widen(fillings: Sequence[Filling], scores: Sequence[Sequence[Tensor]], width: int) -> list[Filling]:
    """The likeliest ways to go on from these, among the likeliest pieces of each of a step's masks."""
    ways = [Filling(one.ids, one.log_chance, read) for read, one in enumerate(fillings)]
    for nth in range(len(scores[0])):
        ways = _go_on(ways, [scores[way.read][nth][:, :width] for way in ways], width)
    return ways


def _go_on(fillings: Sequence[Filling], scores: Sequence[Tensor], width: int) -> list[Filling]:
    kept = torch.stack(list(scores))  # (fillings, 2, pieces)
    check_finite(kept.numpy())
    starts = torch.tensor([one.log_chance for one in fillings], dtype=torch.double)
    totals = (starts[:, None] + kept[:, 0]).flatten()
    top = totals.topk(min(width, len(totals)))
    ids, size = kept[:, 1].flatten()[top.indices].long().tolist(), kept.shape[2]
    ways = zip(top.values.tolist(), top.indices.tolist(), ids, strict=True)
    grown = ((fillings[place // size], chance, id) for chance, place, id in ways)
    return _sort(Filling((*one.ids, id), chance, one.read) for one, chance, id in grown)


def _sort(fillings: Iterable[Filling]) -> list[Filling]:
    return sorted(fillings, key=lambda one: (-one.log_chance, one.ids))
