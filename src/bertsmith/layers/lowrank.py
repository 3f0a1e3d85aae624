"""What an adapter adds to a linear layer: a product of two thin matrices (LoRA, arXiv 2106.09685).

A layer that stacks several of somebody's matrices (query, key and value) has a pair of its own for each of them, or for
some; so an adapter has the same numbers here as in a library that keeps them apart.
"""

import math

import torch
from torch import Tensor, nn


class LowRank(nn.Module):
    def __init__(self, inputs: int, outputs: int, parts: int, chosen: tuple[int, ...], rank: int, scale: float) -> None:
        super().__init__()
        self.parts, self.chosen, self.rank, self.scale = parts, chosen, rank, scale
        self.down = nn.Parameter(torch.empty(len(chosen), rank, inputs))  # A of each
        self.up = nn.Parameter(torch.empty(len(chosen), outputs // parts, rank))  # B of each

    def reset(self, generator: torch.Generator) -> None:
        """As `peft` begins: A as a fresh linear layer has it, B nothing, so that the sum is the base's own."""
        with torch.no_grad():
            bound = 1 / math.sqrt(self.down.shape[-1])
            self.down.uniform_(-bound, bound, generator=generator)
            self.up.zero_()

    def forward(self, x: Tensor) -> Tensor:
        """x (tokens, inputs) -> (tokens, outputs)"""
        down, up = self.down.to(x.dtype), self.up.to(x.dtype)
        thin = (x @ down.flatten(0, 1).T).unflatten(1, (len(self.chosen), self.rank))  # (tokens, chosen, rank)
        wide = [thin[:, place] @ (self.scale * up[place]).T for place in range(len(self.chosen))]
        if len(self.chosen) < self.parts:
            nothing = torch.zeros_like(wide[0])
            wide = [wide[self.chosen.index(part)] if part in self.chosen else nothing for part in range(self.parts)]
        return wide[0] if self.parts == 1 else torch.cat(wide, dim=1)

    def add_to(self, y: Tensor, x: Tensor) -> Tensor:
        """The same, added where the layer's own product stands: for inference, where writing it down first would cost
        more than computing it."""
        down, up = self.down.to(x.dtype), self.up.to(x.dtype)
        thin = (self.scale * (x @ down.flatten(0, 1).T)).unflatten(1, (len(self.chosen), self.rank))
        parts = y.unflatten(1, (self.parts, -1))
        for place, part in enumerate(self.chosen):
            parts[:, part].addmm_(thin[:, place], up[place].T)
        return y

    def dense(self) -> Tensor:
        """The matrix that is added, (outputs, inputs)."""
        whole = self.up.new_zeros(self.parts, self.up.shape[1], self.down.shape[2])
        whole[list(self.chosen)] = self.scale * (self.up @ self.down)
        return whole.flatten(0, 1)
