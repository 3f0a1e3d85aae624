"""How much each word vector adds to one number of a network: integrated gradients, gradient × input, occlusion.

In: an `Aim`, a baseline. Out: a number a piece. Integrated gradients (Sundararajan et al. 2017, arXiv 1703.01365) go
straight from the baseline's word vectors to the row's own; the numbers of all pieces add up to the difference of the
two scores, which is checked each time. The integral is by Gauss and Legendre's rule, as captum's is.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from bertsmith.data.batch import Batch
from bertsmith.errors import BertsmithError
from bertsmith.inspection.aims import Aim
from bertsmith.inspection.replica import WordTable, replicate, unpack
from bertsmith.models.network import Network
from bertsmith.text.tokenizer import Tokenizer

Array = np.ndarray[Any, Any]
Tell = Callable[[str, int, int], None]  # of what how many are done, and of how many
BASELINES = ("mask", "pad", "zero")
CLOSE = 0.01  # of the difference that the numbers of all pieces may miss it by
FIRST, MOST = 16, 1024  # steps of the integral: those to begin with, and where doubling them ends
ROOM = 4096  # most tokens in a pass that keeps what its gradient needs: about a megabyte each in a BERT of 12 layers


@dataclass(frozen=True)
class Found:
    """What a method says; only integrated gradients promise a sum."""

    pieces: Array  # (pieces,) float64
    units: Array  # (units,): words and special tokens
    steps: int = 0
    missed: float | None = None  # by how much the sum misses the difference of the scores, as a share of it


class Scorer:
    """The number of an aim as a function of its row's word vectors."""

    def __init__(self, network: Network, aim: Aim, device: torch.device, budget: int, tell: Tell | None = None) -> None:
        """`network` is one of `open_network`; `budget` is the predictor's; `tell` hears how far a method is."""
        assert isinstance(network.embed.tokens, WordTable)
        self.network, self.aim, self.device, self.table = network, aim, device, network.embed.tokens
        self.ids = torch.tensor(list(aim.row.ids), device=device)
        self.room = max(1, min(budget // 4, ROOM) // len(aim.row.ids))  # rows in a pass
        self.tell: Tell = tell or (lambda what, done, total: None)

    def look_up(self, ids: Tensor) -> Tensor:
        self.table.given = None
        vectors: Tensor = self.table(ids)
        return vectors

    def __call__(self, vectors: Tensor) -> Tensor:
        """(rows, length, width) -> (rows,)"""
        count, row = len(vectors), self.aim.row
        batch = Batch.of([row.ids] * count, [row.segments] * count, self.device)
        self.table.given = vectors.flatten(0, 1)
        return torch.stack(self.aim.read(self.network, batch))

    def measure(self, vectors: Tensor) -> Array:
        """The numbers of rows whose gradients nobody asks for."""
        with torch.no_grad():
            found = [self(some) for some in vectors.split(self.room)]
        return torch.cat(found).double().cpu().numpy()

    def slope(self, vectors: Tensor) -> Tensor:
        """The gradient of each row's number in its vectors, (rows, length, width)."""
        vectors = vectors.detach().requires_grad_()
        with torch.enable_grad():
            (found,) = torch.autograd.grad(self(vectors).sum(), vectors)
        return found


def open_network(network: Network) -> Network:
    """A replica through which gradients pass, and whose word vectors can be given."""
    made = unpack(replicate(network))
    made.embed.tokens = WordTable(made.embed.tokens)  # type: ignore[assignment]  # it is read as the table is
    return made


def choose_baseline(name: str | None, tokenizer: Tokenizer) -> str:
    """The one that was named, or the first that the tokenizer has."""
    ids = {"mask": tokenizer.mask_id, "pad": tokenizer.pad_id, "zero": 0}
    if name is None:
        return next(each for each in BASELINES if ids[each] is not None)
    if name not in ids:
        raise BertsmithError(f"baseline={name!r} is not a choice; use one of {', '.join(BASELINES)}.")
    if ids[name] is None:
        raise BertsmithError(f"this model's tokenizer has no {name} token; use the baseline 'zero'.")
    return name


def find_content(aim: Aim) -> Array:
    """(pieces,) bool: what a baseline takes away; special tokens stay, and masks, which are the question."""
    mask = aim.task.tokenizer.mask_id
    marks = zip(aim.encoding.sequences, aim.row.ids, strict=True)
    return np.array([sequence is not None and id != mask for sequence, id in marks], dtype=bool)


def lay_baseline(scorer: Scorer, name: str) -> tuple[Tensor, Tensor]:
    """The word vectors of the row, and those of its baseline, (length, width) each."""
    tokenizer, content = scorer.aim.task.tokenizer, torch.from_numpy(find_content(scorer.aim)).to(scorer.device)
    given = scorer.look_up(scorer.ids)
    if name == "zero":
        return given, given.masked_fill(content[:, None], 0.0)
    stand_in = tokenizer.mask_id if name == "mask" else tokenizer.pad_id
    assert stand_in is not None
    return given, scorer.look_up(scorer.ids.masked_fill(content, stand_in))


def integrate(scorer: Scorer, given: Tensor, base: Tensor, steps: int) -> Array:
    """Integrated gradients with so many steps, (pieces,)."""
    nodes, weights = np.polynomial.legendre.leggauss(steps)  # on -1 to 1
    places = torch.tensor((nodes + 1) / 2, dtype=given.dtype, device=given.device)[:, None, None]
    shares = torch.tensor(weights / 2, dtype=torch.float64, device="cpu")
    mean = torch.zeros(given.shape, dtype=torch.float64)
    for start in range(0, steps, scorer.room):
        here = slice(start, start + scorer.room)
        slopes = scorer.slope(base + places[here] * (given - base))
        mean += torch.einsum("k,klw->lw", shares[here], slopes.cpu().double())
        scorer.tell("steps of the integral", min(start + scorer.room, steps), steps)
    return np.asarray((mean * (given - base).cpu().double()).sum(dim=-1).numpy())


def integrate_well(
    scorer: Scorer, given: Tensor, base: Tensor, difference: float, steps: int | None
) -> tuple[Array, int, float]:
    """The numbers, their steps, and how far they miss; without `steps`, doubled until the sum is close or enough."""
    count = steps or FIRST
    while True:
        found = integrate(scorer, given, base, count)
        missed = abs(float(found.sum()) - difference) / max(abs(difference), 1e-6)
        if steps is not None or missed <= CLOSE or count >= MOST:
            return found, count, missed
        count *= 2


def multiply(scorer: Scorer, given: Tensor) -> Array:
    """Gradient × input: the slope at the row itself along its own vectors, (pieces,)."""
    slope = scorer.slope(given[None])[0]
    return np.asarray((slope.cpu().double() * given.cpu().double()).sum(dim=-1).numpy())


def occlude(
    scorer: Scorer,
    given: Tensor,
    base: Tensor,
    score: float,
    units: Sequence[Sequence[int]],
    what: str = "pieces hidden",
) -> Array:
    """By how much the number falls when the places of each unit are as in the baseline, (units,).

    `what` the units are is told on the way.
    """
    found: list[Array] = []
    done = 0
    for rows in _each_hidden(given, base, units, scorer.room):
        found.append(scorer.measure(rows))
        done += len(rows)
        scorer.tell(what, done, len(units))
    moves = (given != base).any(dim=-1).cpu().numpy()
    is_hidden = np.array([moves[list(places)].any() for places in units])  # else nothing but rounding differs
    return np.where(is_hidden, score - np.concatenate(found), 0.0)


def _each_hidden(given: Tensor, base: Tensor, units: Sequence[Sequence[int]], room: int) -> Iterator[Tensor]:
    for start in range(0, len(units), room):
        some = units[start : start + room]
        rows = given.repeat(len(some), 1, 1)
        for row, places in zip(rows, some, strict=True):
            row[list(places)] = base[list(places)]
        yield rows
