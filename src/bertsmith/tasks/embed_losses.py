"""What vectors of texts cost that should lie near each other, or far apart.

In: vectors of all texts of a step, (rows, width), and a table that says which row is what. Out: a cost for each row.
Shapes are fixed and nothing is fetched, so that a GPU can record it; rows that are filler cost nothing.
"""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor
from torch.nn import functional as F

ANCHOR, POSITIVE, NEGATIVE = 0, -1, -2  # the first number of a row where texts belong together; the filler's is -100


def contrast(vectors: Tensor, gold: Tensor, scale: float) -> Tensor:
    """In-batch negatives (InfoNCE; MultipleNegativesRankingLoss): cross-entropy of each anchor over all candidates.

    gold (rows, 4): what a row is, its example, the number of its text and of its anchor's. Candidates are the positives
    and negatives of all examples; one whose text is the positive of an equal anchor, or the anchor's own, is no
    negative.
    """
    role, example, text, anchor = gold.unbind(dim=1)
    near = scale * compare(vectors)  # (rows, rows)
    own = (role == POSITIVE)[None, :] & (example[:, None] == example[None, :])
    # By way of any row that is a positive of an equal anchor and has an equal text; a product of 0s and 1s counts them.
    same = (anchor[:, None] == anchor[None, :]) & (role == POSITIVE)[None, :]
    is_right = same.float() @ (text[:, None] == text[None, :]).float() > 0
    is_right = is_right | (text[None, :] == anchor[:, None])
    counts = ((role == POSITIVE) | (role == NEGATIVE))[None, :] & (own | ~is_right)
    is_anchor = role == ANCHOR
    itself = torch.eye(len(role), dtype=torch.bool, device=role.device)  # a row without candidates must not be empty
    counts = torch.where(is_anchor[:, None], counts, itself)
    whole = torch.where(counts, near, -torch.inf).logsumexp(dim=1)
    return torch.where(is_anchor, whole - torch.where(own, near, 0.0).sum(dim=1), 0.0)


def order(vectors: Tensor, gold: Tensor, scale: float) -> Tensor:
    """CoSENT: of two pairs, the one with the greater number should have the greater cosine.

    gold (rows, 2): the pair's number at the first of its two texts and NaN at the second, and its example. What all
    pairs cost together stands at each of them, so that the mean over them is the loss.
    """
    number, example = gold.unbind(dim=1)
    is_first = ~number.isnan()
    partner = is_first[:, None] & ~is_first[None, :] & (example[:, None] == example[None, :])
    cosine = scale * torch.where(partner, compare(vectors), 0.0).sum(dim=1)  # (rows,)
    missed = torch.where(number[:, None] > number[None, :], cosine[None, :] - cosine[:, None], -torch.inf)
    cost = torch.cat([missed.flatten(), missed.new_zeros(1)]).logsumexp(dim=0)
    return torch.where(is_first, cost, 0.0)


def compare(vectors: Tensor) -> Tensor:
    """The cosines of all rows with all, (rows, rows)."""
    units = F.normalize(vectors, dim=-1)
    return units @ units.T


def nest(
    cost: Callable[[Tensor, Tensor, float], Tensor], vectors: Tensor, gold: Tensor, scale: float, dims: Sequence[int]
) -> Tensor:
    """Matryoshka (arXiv 2205.13147): the mean of what the first numbers of the vectors cost, for each of `dims`."""
    is_there = (gold[:, -1] >= 0)[:, None]  # not of filler, whose vectors may be anything
    with torch.autocast(vectors.device.type, enabled=False):  # half precision cannot tell cosines near 1 apart
        vectors = torch.where(is_there, vectors.float(), 0.0)
        costs = [cost(vectors[:, :size], gold, scale) for size in dims or [vectors.shape[1]]]
    return torch.stack(costs).mean(dim=0)
