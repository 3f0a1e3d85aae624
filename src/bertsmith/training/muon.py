"""Muon for the matrices of the blocks, AdamW for all else, as one optimizer.

Muon (Jordan et al. 2024) replaces the gradient's momentum by the nearest orthogonal matrix, so that every direction
learns at the same pace. Matrices of one shape are stacked and take a few batched products in bfloat16; processes share
them out, whether each holds all of the weights or a part of them. Updates have the size of AdamW's (arXiv 2502.16982),
so that both have one rate; with `rows` each row is brought to one size first (NorMuon, arXiv 2510.05491).
"""

from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch import Tensor

from bertsmith.training.devices import part_of, share_out

# An odd polynomial a step, each the best for the interval that the one before it leaves (Polar Express, arXiv
# 2505.16932, for singular values from 1e-3 of the norm on).
POLYNOMIALS = (
    (8.156554524902461, -22.48329292557795, 15.878769915207462),
    (4.042929935166739, -2.808917465908714, 0.5000178451051316),
    (3.8916678022926607, -2.772484153217685, 0.5060648178503393),
    (3.285753657755655, -2.3681294933425376, 0.46449024233003106),
    (2.3465413258596377, -1.7097828382687081, 0.42323551169305323),
)
SAFETY = 1.02  # the norm in bfloat16 may be a little too small, and the first polynomial grows beyond 1


def orthogonalize(matrices: Tensor) -> Tensor:
    """The nearest matrices whose singular values are all 1: (n, rows, columns) -> the same, in bfloat16."""
    x = matrices.bfloat16()
    is_tall = x.shape[-2] > x.shape[-1]
    x = x.mT if is_tall else x
    x = x / (x.norm(dim=(-2, -1), keepdim=True) * SAFETY + 1e-7)
    for a, b, c in POLYNOMIALS:
        square = x @ x.mT
        by = torch.baddbmm(square, square, square, beta=b, alpha=c)
        by.diagonal(dim1=-2, dim2=-1).add_(a)  # to add a times x to the product would copy x, which is larger
        x = by @ x
    return x.mT if is_tall else x


class Muon(torch.optim.Optimizer):
    """`groups` with `muon: True` hold matrices; the others are AdamW's. `state` is one for both."""

    def __init__(self, groups: Sequence[dict[str, Any]], *, momentum: float = 0.95, rows: bool = True, **adam: Any):
        matrices = [group for group in groups if group["muon"]]
        self.rest = torch.optim.AdamW([group for group in groups if not group["muon"]], **adam)
        super().__init__(matrices, {"lr": adam["lr"]})
        self.param_groups = [*self.param_groups, *self.rest.param_groups]  # the very dictionaries of both
        self.state = self.rest.state
        self.momentum, self.rows = momentum, rows
        self._stacks: dict[Any, Tensor] = {}  # the momenta of matrices that step alike, which `state` holds one by one

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        bad = getattr(self, "found_inf", None)
        if bad is not None:
            self.rest.found_inf = bad  # type: ignore[attr-defined]
        self.rest.step()
        for parameters, group in self._alike():
            self._turn(parameters, group, bad)

    def _alike(self) -> Iterable[tuple[list[Tensor], dict[str, Any]]]:
        """Matrices of one shape that step alike, of all layers: with a group that each of them could be in."""
        found: dict[Any, tuple[list[Tensor], dict[str, Any]]] = {}
        for group in self.param_groups:
            rate = group["share"] if isinstance(group["lr"], Tensor) else group["lr"]  # asking a device would wait
            for parameter in group["params"] if group.get("muon") else ():
                if parameter.grad is not None:
                    key = parameter.shape, rate, group["weight_decay"]
                    found.setdefault(key, ([], group))[0].append(parameter)
        return found.values()

    def _turn(self, parameters: list[Tensor], group: dict[str, Any], bad: Tensor | None) -> None:
        """One step of matrices of one shape; nothing where the gradient is not finite."""
        own = [part_of(p) for p in parameters]
        grads = torch.stack([part_of(p.grad) for p in parameters if p.grad is not None])
        mean = self._means(parameters)
        keep: Any = 1.0
        if bad is not None:
            keep = 1.0 - bad
            grads = torch.where(bad > 0, mean, grads)
        mean.lerp_(grads, 1 - self.momentum)
        if hasattr(parameters[0], "full_tensor"):
            torch._foreach_copy_([part_of(self._mean(p)) for p in parameters], list(mean.unbind()))
        # Nesterov's: as if the next gradient were like this one.
        update = share_out(grads.lerp_(mean, self.momentum).bfloat16(), self._direct, parameters[0])
        rate = group["lr"]
        scale = 0.2 * max(parameters[0].shape) ** 0.5
        torch._foreach_mul_(own, 1 - rate * group["weight_decay"] * keep)
        torch._foreach_add_(own, list(((-rate * scale * keep) * update).unbind()))

    def _direct(self, matrices: Tensor) -> Tensor:
        """Where each matrix goes, in full precision; with `rows`, all rows of it are of one size."""
        update = orthogonalize(matrices)
        if not self.rows:
            return update.float()
        sizes = torch.linalg.vector_norm(update, dim=-1, keepdim=True, dtype=torch.float32)  # (n, rows, 1)
        whole = sizes.square().mean(dim=-2, keepdim=True).sqrt()
        return update * (whole / (sizes + 1e-7))

    def _means(self, parameters: list[Tensor]) -> Tensor:
        """The momenta of these, one behind the other, so that one kernel moves them all; each one's state is a part."""
        means = [self._mean(parameter) for parameter in parameters]
        key = tuple(id(parameter) for parameter in parameters)
        stack = self._stacks.get(key)
        if stack is not None and all(part_of(mean)._base is stack for mean in means):
            return stack
        stack = self._stacks[key] = torch.stack([part_of(mean) for mean in means])
        if hasattr(parameters[0], "full_tensor"):  # of those that are cut up each keeps its own
            return stack
        for parameter, mean in zip(parameters, stack.unbind(), strict=True):
            self.state[parameter]["exp_avg"] = mean
        return stack

    def _mean(self, parameter: Tensor) -> Tensor:
        state = self.state[parameter]
        if "exp_avg" not in state:
            state["exp_avg"] = torch.zeros_like(parameter)
            state["step"] = torch.zeros((), device=parameter.device)
        found: Tensor = state["exp_avg"]
        return found
