"""An encoder that nobody trained: a family's preset, changed as one likes, with random weights.

In: a preset's name, sizes, the heads that pretraining asks for. Out: a `Checkpoint`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch

from bertsmith.errors import BertsmithError
from bertsmith.layers.config import Config
from bertsmith.models.checkpoint import Checkpoint
from bertsmith.models.families import find_preset
from bertsmith.models.family import Family
from bertsmith.models.fitting import fresh_tensor
from bertsmith.models.network import Network

INTO_STREAM = ("attention.out.weight", "feed.down.weight")  # what adds to the residual stream


def make_fresh(
    preset: str, heads: Sequence[str], sizes: Mapping[str, Any], tokens: Mapping[str, int], seed: int = 0
) -> Checkpoint:
    """`sizes` replace fields of the preset's `Config`; `tokens` are the ids that config.json names, by role."""
    family, config = find_preset(preset)
    config = replace(config, **dict(sizes))
    if "width" in sizes and "embed_width" not in sizes and config.embed_width == find_preset(preset)[1].width:
        config = replace(config, embed_width=config.width)
    known = {name: head for name, head in family.heads({}).items() if name in heads}
    missing = [name for name in heads if name not in known]
    if missing:
        raise BertsmithError(f"the family {family.name} has no head for {missing[0]}; choose another recipe or preset.")
    with torch.device("meta"):
        outputs = {name: head.shape(config, len(head.labels) or 1) for name, head in known.items()}
        network = Network(config, outputs)
    _fill(network, config, seed)
    settings = {key: value for key, value in _ids(family, tokens).items() if value is not None}
    return Checkpoint(family, config, known, network, settings)


def _fill(network: Network, config: Config, seed: int) -> None:
    """As BERT begins; where norms come first, what adds to the stream is the smaller the deeper it is (as in GPT-2)."""
    generator = torch.Generator().manual_seed(seed)
    state = {}
    for name in network.names:
        state[name] = fresh_tensor(name, network.tensor(name).shape, generator)
        if config.pre_norm and name.endswith(INTO_STREAM):
            state[name] = state[name] / (2 * config.depth) ** 0.5
    network.load_state_dict(state, strict=True, assign=True)
    network.requires_grad_(True)


def _ids(family: Family, tokens: Mapping[str, int]) -> dict[str, int | None]:
    """The special ids as config.json has them; those of ModernBERT and RoBERTa are looked at by other libraries."""
    return {
        "pad_token_id": tokens.get("pad"),
        "cls_token_id": tokens.get("cls"),
        "sep_token_id": tokens.get("sep"),
        "bos_token_id": tokens.get("cls"),
        "eos_token_id": tokens.get("sep"),
    }
