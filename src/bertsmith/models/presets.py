"""Every preset with its sizes, counted rather than typed."""

from typing import Any

import torch

from bertsmith.models.families import FAMILIES
from bertsmith.models.network import Network


def models_table() -> list[dict[str, Any]]:
    """Every preset with its sizes; parameters are counted on a network without memory, with its pretraining heads."""
    rows = []
    for family in FAMILIES:
        for name in family.presets:
            config = family.preset(name)
            wanted = ("replaced",) if family.name == "electra" and "generator" not in name else ("mask", "follows")
            heads = {h: head for h, head in family.heads({}).items() if h in wanted}
            with torch.device("meta"):
                network = Network(config, {h: s.shape(config, 1 if h == "replaced" else 2) for h, s in heads.items()})
            rows.append(
                {
                    "family": family.name,
                    "preset": name,
                    "depth": config.depth,
                    "width": config.width,
                    "heads": config.heads,
                    "inner": config.inner,
                    "vocabulary": config.vocabulary,
                    "positions": config.limit,
                    "parameters": network.parameter_count,
                }
            )
    return rows
