"""The small step of a text's vectors that changes what a model says of it most (SMART, arXiv 1911.03437).

In: a batch, and how far apart two readings of it are as a function of the step. Out: the step, which is a share of each
vector's own length: one power iteration from a random one, as in virtual adversarial training (arXiv 1605.07725).
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

from bertsmith.data.batch import Batch
from bertsmith.models.network import Network

ABOVE_UNDERFLOW = 1024.0  # of the slope only its direction counts: half precision would lose small ones on the way back


def find_worst_step(batch: Batch, width: int, reach: float, apart: Callable[[Tensor], Tensor]) -> Tensor:
    """(tokens, width), as `Batch.moved` takes it; `apart` gives one number for all rows. No gradient is left behind."""
    tokens = len(batch.ids)
    start = fit_to_rows(torch.randn(tokens, width, device=batch.ids.device), batch, reach).requires_grad_()
    with torch.enable_grad():
        (slope,) = torch.autograd.grad(apart(start) * ABOVE_UNDERFLOW, start)
    return fit_to_rows(slope.nan_to_num(0.0, 0.0, 0.0), batch, reach)


@contextmanager
def resting(network: Network) -> Iterator[None]:
    """Weights want no gradient meanwhile: their products are not made, and what those need is not kept.

    A compiled block would be compiled anew for that.
    """
    learns = [each for each in network.parameters() if each.requires_grad and network.compiled is None]
    for each in learns:
        each.requires_grad_(False)
    try:
        yield
    finally:
        for each in learns:
            each.requires_grad_(True)


def fit_to_rows(step: Tensor, batch: Batch, reach: float) -> Tensor:
    """The same direction for each row; over its tokens the root of the mean square of their lengths is `reach`."""
    squares = step.square().sum(dim=-1)
    means = squares.new_zeros(len(batch.lengths)).index_add(0, batch.owners, squares)[:, None] / batch.counts
    return reach * step * means.clamp(min=1e-30).rsqrt()[batch.owners]
