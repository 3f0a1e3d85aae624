"""LAMB (arXiv 1904.00962): AdamW whose step is as long, for each tensor, as the tensor's own size asks.

Adam's update plus decay is multiplied by the norm of the weights over its own norm, so that each layer changes by the
same share of itself: batches of tens of thousands of rows then bear high rates. Biases and norms, which have one
dimension, step as AdamW has them, as in Google's code for ALBERT and in NVIDIA's.
"""

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor


class Lamb(torch.optim.Optimizer):
    """`bounds` hold the norm of the weights, as the paper's φ may; by default, as in that code, it is free."""

    def __init__(
        self, groups: Sequence[dict[str, Any]], *, lr: float, betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-6, bounds: tuple[float, float] = (0.0, math.inf),
    ) -> None:  # fmt: skip
        super().__init__(groups, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": 0.0})
        self.bounds = bounds

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        bad = getattr(self, "found_inf", None)
        for group in self.param_groups:
            for is_scaled in (True, False):
                some = [p for p in group["params"] if p.grad is not None and (p.ndim > 1) == is_scaled]
                if some:
                    self._move(some, group, bad, is_scaled)

    def _move(self, parameters: list[Tensor], group: dict[str, Any], bad: Tensor | None, is_scaled: bool) -> None:
        """One step; nothing where the gradient is not finite, which the host need not wait to hear."""
        keep: Any = 1.0 if bad is None else 1.0 - bad
        updates = self._direct(parameters, group, bad, keep)
        if group["weight_decay"]:
            torch._foreach_add_(updates, parameters, alpha=group["weight_decay"])
        rate = -group["lr"] * keep
        if not is_scaled:
            torch._foreach_mul_(updates, rate)
        else:
            lengths = (rate * self._ratios(parameters, updates)).unbind()
            torch._foreach_mul_(updates, list(lengths))
        torch._foreach_add_(parameters, updates)

    def _direct(self, parameters: list[Tensor], group: dict[str, Any], bad: Tensor | None, keep: Any) -> list[Tensor]:
        """Adam's update, both moments freed of their start at 0."""
        beta1, beta2 = group["betas"]
        states = [self._state(p) for p in parameters]
        means, squares, steps = ([state[name] for state in states] for name in ("exp_avg", "exp_avg_sq", "step"))
        grads: list[Any] = [p.grad for p in parameters]
        powers = list(torch._foreach_mul(grads, grads))
        if bad is not None:  # a moment that goes to itself stays to the bit
            grads = [torch.where(bad > 0, mean, grad) for mean, grad in zip(means, grads, strict=True)]
            powers = [torch.where(bad > 0, square, power) for square, power in zip(squares, powers, strict=True)]
        torch._foreach_lerp_(means, grads, 1 - beta1)
        torch._foreach_lerp_(squares, powers, 1 - beta2)
        torch._foreach_add_(steps, [keep * torch.ones_like(step) for step in steps])
        done = torch.stack(steps).clamp(min=1)  # a first step that was left out is none
        below = torch._foreach_sqrt(squares)
        torch._foreach_div_(below, list((1 - beta2**done).sqrt().unbind()))
        torch._foreach_add_(below, group["eps"])
        torch._foreach_mul_(below, list((1 - beta1**done).unbind()))
        return list(torch._foreach_div(means, below))

    def _ratios(self, parameters: list[Tensor], updates: list[Tensor]) -> Tensor:
        """For each tensor how much longer its step is to be; weights that are all 0 leave it as it is."""
        weights, lengths = (torch.stack(list(torch._foreach_norm(some))) for some in (parameters, updates))
        held = weights.clamp(*self.bounds)
        return torch.where((held > 0) & (lengths > 0), held / lengths, torch.ones_like(held))

    def _state(self, parameter: Tensor) -> dict[str, Tensor]:
        state: dict[str, Tensor] = self.state[parameter]
        if "exp_avg" not in state:
            state |= {name: torch.zeros_like(parameter) for name in ("exp_avg", "exp_avg_sq")}
            state["step"] = torch.zeros((), device=parameter.device)
        return state
