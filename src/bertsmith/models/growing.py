"""A trained encoder gets rows for ids that it did not know. In: a checkpoint, what new ids were before. Out: the same
checkpoint, in which each new row begins as the mean of the rows of the old pieces that stood in its place."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import torch
from torch import Tensor, nn

from bertsmith.errors import BertsmithError
from bertsmith.layers.heads import Head
from bertsmith.models.checkpoint import Checkpoint


def grow_vocabulary(checkpoint: Checkpoint, cuts: Mapping[int, Sequence[int]]) -> None:
    """`cuts`: new id -> the old ids that its text was cut into. A published table may have spare rows for some."""
    if not cuts:
        return
    network, size = checkpoint.network, max(checkpoint.config.vocabulary, max(cuts) + 1)
    lacking = set(range(checkpoint.config.vocabulary, size)) - cuts.keys()
    if lacking:
        raise BertsmithError(f"the model has no row for id {min(lacking)}, and nothing to make one from.")
    checkpoint.config = network.config = replace(checkpoint.config, vocabulary=size)
    network.embed.tokens = nn.Embedding.from_pretrained(
        grow_rows(network.embed.tokens.weight, cuts, size), freeze=False
    )
    for name, head in checkpoint.heads.items():
        if head.outputs != "vocabulary":
            continue
        built = network.heads[name]
        assert isinstance(built, Head) and built.out is not None
        built.shape = replace(built.shape, outputs=size)
        if built.out.weight is not None:  # else it reads the embedding
            built.out.weight = nn.Parameter(grow_rows(built.out.weight, cuts, size))
        built.out.bias = nn.Parameter(grow_rows(built.out.bias, cuts, size))
    network.parameter_count = sum(parameter.numel() for parameter in network.parameters())


def grow_rows(rows: Tensor, cuts: Mapping[int, Sequence[int]], size: int) -> Tensor:
    """(vocabulary, …) -> (size, …)"""
    grown = torch.zeros(size, *rows.shape[1:], dtype=rows.dtype)
    grown[: len(rows)] = rows.detach()
    for id, parts in cuts.items():
        grown[id] = rows.detach()[list(parts)].float().mean(dim=0) if parts else rows.detach().float().mean(dim=0)
    return grown
