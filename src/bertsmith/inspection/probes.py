"""Linear probes: a multinomial logistic regression on features that stay as they are.

In: features and the numbers of their classes. Out: weights, or what they say of other features. The cost is that of
scikit-learn's LogisticRegression with C=1 on standardized features: half the squared weights plus the sum of the cross
entropies. It is convex, starts at zero and is minimised by L-BFGS, so that the same features give the same probe.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

Array = np.ndarray[Any, Any]
ROUNDS = 300  # of L-BFGS at most


@dataclass(frozen=True)
class Standard:
    """Features less their mean, in units of their spread on the training side; one without spread is left at 0."""

    mean: Array
    spread: Array

    @classmethod
    def of(cls, features: Array) -> "Standard":
        mean, spread = features.mean(axis=0, dtype=np.float64), features.std(axis=0, dtype=np.float64)
        return cls(mean, np.where(spread > 1e-8, spread, np.inf))

    def __call__(self, features: Array) -> Array:
        return (features - self.mean) / self.spread


def fit(features: Array, classes: Array, count: int) -> tuple[Array, Array]:
    """features (items, width), classes (items,) -> weights (width, count) and biases (count,)"""
    x, y = torch.from_numpy(np.asarray(features, np.float64)), torch.from_numpy(classes)
    weights, bias = x.new_zeros(x.shape[1], count), x.new_zeros(count)

    def cost() -> Tensor:
        return 0.5 * weights.square().sum() + F.cross_entropy(x @ weights + bias, y, reduction="sum")

    _minimise(cost, [weights, bias])
    return weights.detach().numpy(), bias.detach().numpy()


def fit_mix(layers: Array, classes: Array, count: int) -> tuple[Array, Array, Array]:
    """layers (items, layers, width) -> the share of each layer, (layers,), weights and biases, learnt together.

    ELMo's mix (arXiv 1802.05365, equation 1): a softmax over the layers; its one scale is in the weights already. The
    logits of the shares are drawn to zero as the weights are, so that layers that are as good share alike.
    """
    x, y = torch.from_numpy(np.asarray(layers, np.float32)), torch.from_numpy(classes)
    logits = x.new_zeros(x.shape[1])
    weights, bias = x.new_zeros(x.shape[2], count), x.new_zeros(count)

    def cost() -> Tensor:
        mixed = torch.einsum("l,nlw->nw", logits.softmax(dim=0), x)
        penalty = 0.5 * (weights.square().sum() + logits.square().sum())
        return penalty + F.cross_entropy(mixed @ weights + bias, y, reduction="sum")

    _minimise(cost, [logits, weights, bias])
    return tuple(each.detach().numpy() for each in (logits.softmax(dim=0), weights, bias))  # type: ignore[return-value]


def _minimise(cost: Callable[[], Tensor], numbers: list[Tensor]) -> None:
    for each in numbers:
        each.requires_grad_()
    solver = torch.optim.LBFGS(numbers, max_iter=ROUNDS, tolerance_grad=1e-5, line_search_fn="strong_wolfe")

    def look() -> float:
        with torch.enable_grad():
            value = cost()
            for each, slope in zip(numbers, torch.autograd.grad(value, numbers), strict=True):
                each.grad = slope
        return float(value.detach())

    solver.step(look)
