"""How far scores are from the gold: one number an item, with class weights, focal loss and label smoothing.

An item whose gold is filler (negative where gold counts, NaN where it measures) costs nothing. Numbers are computed in
full precision.
"""

from dataclasses import dataclass, replace

import torch
from torch import Tensor
from torch.nn import functional as F


@dataclass(frozen=True)
class Criterion:
    weights: Tensor | None = None  # (labels,) how much a mistake on each label counts
    focal: float = 0.0  # the exponent of arXiv 1708.02002: easy items count less
    smoothing: float = 0.0  # this share of the gold is spread over all labels

    def on(self, device: torch.device) -> "Criterion":
        """The same with its weights on a device."""
        return self if self.weights is None else replace(self, weights=self.weights.to(device))

    def choose(self, scores: Tensor, gold: Tensor) -> Tensor:
        """One of several: scores (n, labels), gold (n,) -> (n,)."""
        scores = scores.float()
        known = gold.clamp(min=0)
        cost = F.cross_entropy(scores, known, self.weights, reduction="none", label_smoothing=self.smoothing)
        if self.focal:
            right = scores.softmax(dim=-1).gather(1, known[:, None])[:, 0]
            cost = cost * (1 - right).clamp(min=1e-7) ** self.focal  # a power below 1 has no slope at 0
        return torch.where(gold >= 0, cost, 0.0)

    def several(self, scores: Tensor, gold: Tensor) -> Tensor:
        """Any number of several: scores and gold (n, labels), gold 0 or 1 -> (n,), the mean over the labels."""
        scores = scores.float()
        known = gold.nan_to_num(0.0)
        wanted = known * (1 - self.smoothing) + 0.5 * self.smoothing
        cost = F.binary_cross_entropy_with_logits(scores, wanted, pos_weight=self.weights, reduction="none")
        if self.focal:
            right = torch.where(known > 0.5, scores.sigmoid(), 1 - scores.sigmoid())
            cost = cost * (1 - right).clamp(min=1e-7) ** self.focal
        return torch.where(find_known(gold), cost.mean(dim=-1), 0.0)


def find_known(gold: Tensor) -> Tensor:
    """Which items are none of the filler, (n,): whole numbers of 0 and more, or measured ones that are numbers."""
    first = gold if gold.ndim == 1 else gold[:, 0]
    return ~first.isnan() if gold.is_floating_point() else first >= 0


def diverge(one: Tensor, other: Tensor) -> Tensor:
    """How far two distributions over the last axis are apart, both ways (R-Drop, arXiv 2106.14448): (n, k) -> (n,)."""
    p, q = one.float().log_softmax(dim=-1), other.float().log_softmax(dim=-1)
    return 0.5 * ((p.exp() - q.exp()) * (p - q)).nan_to_num(0.0).sum(dim=-1)
