"""What wrong guesses of tokens cost, without ever holding the scores of all places at once.

In: hidden states, places in them and what stood there. Out: the sum of the costs and how many places it is over.
"""

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from bertsmith.data.batch import Batch
from bertsmith.models.network import Network

NONE = -100  # the gold of a place where nothing is asked
CHUNK = 16384  # places whose scores are held at once; 16384 x 30522 in float32 are 2 GB
COMPILED = 4  # times as many where scores are never held in full precision


def token_costs(
    network: Network, hidden: Tensor, batch: Batch, at: Tensor, gold: Tensor, z_loss: float = 0.0, chunk: int = CHUNK,
    head: str = "mask",
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """The cross-entropy of `gold`; `z_loss` times the squared log of the softmax's denominator keeps scores small.

    That is a means of training: a network that is only scored is not charged for it.
    """
    run = network.quick(_cost)
    is_compiled = run is not _cost
    z_loss = z_loss if network.training else 0.0

    def cost(hidden: Tensor, at: Tensor, gold: Tensor) -> Tensor:
        if is_compiled:
            mark_varying(at, gold)
        return run(network, hidden, batch, at, gold, z_loss, head)

    return sum_chunks(cost, hidden, (at, gold), chunk * (COMPILED if is_compiled else 1)), (gold >= 0).sum()


def mark_varying(*given: Tensor) -> None:
    """Tell the compiler that how many there are changes from step to step."""
    for each in given:
        torch._dynamo.mark_dynamic(each, 0)


def _cost(network: Network, hidden: Tensor, batch: Batch, at: Tensor, gold: Tensor, z_loss: float, head: str) -> Tensor:
    scores = network.score(hidden, batch, head, at).float()
    total = F.cross_entropy(scores, gold, ignore_index=NONE, reduction="sum")
    if z_loss:
        total = total + z_loss * torch.where(gold >= 0, scores.logsumexp(dim=-1).square(), 0.0).sum()
    return total


def sum_chunks(cost: Callable[..., Tensor], hidden: Tensor, along: tuple[Tensor, ...], chunk: int) -> Tensor:
    """`cost(hidden, *along)` over parts of at most `chunk` entries, each computed again in the backward pass."""
    if len(along[0]) <= chunk:
        return cost(hidden, *along)
    total = torch.zeros((), device=hidden.device)
    for part in zip(*(x.split(chunk) for x in along), strict=True):
        # No head of tokens draws at random, and fetching the generator's state would wait for the device.
        kept: Tensor = checkpoint(cost, hidden, *part, use_reentrant=False, preserve_rng_state=False)
        total = total + kept
    return total


def count_right(
    network: Network, hidden: Tensor, batch: Batch, at: Tensor, gold: Tensor, chunk: int = CHUNK
) -> tuple[Tensor, Tensor]:
    """At how many places the best score is that of `gold`, and how many there are."""
    right = torch.zeros((), device=hidden.device)
    with torch.no_grad():
        for some, wanted in zip(at.split(chunk), gold.split(chunk), strict=True):
            right = right + (network.score(hidden, batch, "mask", some).argmax(dim=-1) == wanted).sum()
    return right, (gold >= 0).sum()
