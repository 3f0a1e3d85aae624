"""A two-layer BiLSTM over the rows of a batch, without padding: token vectors in, vectors that know their row out."""

from functools import lru_cache

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from bertsmith.data.batch import Batch
from bertsmith.layers.dropping import drop_out

DEPTH = 2  # as in the feature-based approach of the BERT paper (arXiv 1810.04805, section 5.3)


class Recurrent(nn.Module):
    def __init__(self, inputs: int, width: int, dropout: float) -> None:
        """`width` is that of one direction; the output has both."""
        super().__init__()
        self.width = 2 * width
        # One a layer: dropout inside of nn.LSTM keeps a state of its own on a GPU, and a resumed run would draw anew.
        self.layers = nn.ModuleList(
            nn.LSTM(inputs if layer == 0 else self.width, width, bidirectional=True) for layer in range(DEPTH)
        )
        self.dropout = dropout

    def forward(self, x: Tensor, batch: Batch) -> Tensor:
        """(tokens, inputs) -> (tokens, 2 * width)"""
        order, back, sizes = (torch.from_numpy(found) for found in _transpose(batch.lengths))
        x = x.index_select(0, order.to(x.device))  # all first tokens, then all second ones, …
        # In the type of the weights: rounding adds up over a row, and cuDNN has no kernels for bfloat16.
        with torch.autocast(x.device.type, enabled=False):
            x = x.to(next(self.parameters()).dtype)
            for number, layer in enumerate(self.layers):
                if number and self.dropout and self.training:
                    x = drop_out(x, self.dropout)
                x = layer(PackedSequence(x, sizes))[0].data
        return x.index_select(0, back.to(x.device))


@lru_cache(maxsize=256)
def _transpose(lengths: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Where the tokens in order of their places are in the rows, the way back, and how many rows have each place."""
    rows = np.asarray(lengths)
    rank = np.empty_like(rows)
    rank[np.argsort(-rows, kind="stable")] = np.arange(len(rows))  # the longest row first, as packed sequences want it
    owners = np.repeat(np.arange(len(rows)), rows)
    places = np.arange(len(owners)) - np.repeat(np.cumsum(rows) - rows, rows)
    order = np.lexsort((rank[owners], places))
    back = np.empty_like(order)
    back[order] = np.arange(len(order))
    return order, back, np.bincount(places)
