"""What a head reads of a frozen encoder: its last layer, its last four, or a learned mix of all; then perhaps a BiLSTM.

In: the states after the embedding and after each layer. Out: one vector a token. `collect` has no parameters, so that
what it gives may be kept on disk; `forward` has all that learns.
"""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from bertsmith.data.batch import Batch
from bertsmith.errors import BertsmithError
from bertsmith.layers.config import Config
from bertsmith.layers.recurrent import Recurrent

LAYERS = ("last", "sum4", "concat4", "mix")


@dataclass(frozen=True)
class FeatureShape:
    layers: str
    recurrent: int = 0  # the width of one direction; 0: no BiLSTM

    @property
    def is_plain(self) -> bool:
        """Whether a head on these features is one on a plain encoder."""
        return self.layers == "last" and not self.recurrent


class LayerMix(nn.Module):
    def __init__(self, config: Config, shape: FeatureShape) -> None:
        super().__init__()
        self.shape = shape
        self.reach = {"last": 1, "sum4": 4, "concat4": 4, "mix": config.depth + 1}[shape.layers]  # states from the top
        if shape.layers in ("sum4", "concat4") and config.depth < 4:
            raise BertsmithError(
                f"features={shape.layers} reads the last four layers, but the model has {config.depth}; use mix."
            )
        # ELMo (arXiv 1802.05365, equation 1): a softmax over layers, and one scale for all.
        self.weights = nn.Parameter(torch.zeros(self.reach)) if shape.layers == "mix" else None
        self.scale = nn.Parameter(torch.ones(1)) if shape.layers == "mix" else None
        self.collected = config.width * (1 if shape.layers == "sum4" else self.reach)  # numbers a token that are kept
        self.width = config.width if shape.layers == "mix" else self.collected
        self.recurrent = None
        if shape.recurrent:
            self.recurrent = Recurrent(self.width, shape.recurrent, config.head_dropout)
            self.width = self.recurrent.width

    def collect(self, states: Iterable[Tensor]) -> Tensor:
        """The states of all layers in turn -> (tokens, collected)"""
        kept = deque(states, maxlen=self.reach)
        if self.shape.layers == "sum4":
            return torch.stack(list(kept)).sum(dim=0)
        return kept[0] if len(kept) == 1 else torch.cat(list(kept), dim=-1)

    def forward(self, collected: Tensor, batch: Batch) -> Tensor:
        """(tokens, collected) -> (tokens, width)"""
        x = collected
        if self.weights is not None and self.scale is not None:
            shares = (self.scale.float() * self.weights.float().softmax(dim=0)).to(x.dtype)
            x = (x.unflatten(1, (self.reach, -1)) * shares[:, None]).sum(dim=1)
        return x if self.recurrent is None else self.recurrent(x, batch)
