"""An encoder to pretrain: a family's preset with random weights, or a trained one that learns on.

In: a preset's name and sizes or a checkpoint, the heads that pretraining asks for. Out: a `Checkpoint`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch

from bertsmith.errors import BertsmithError
from bertsmith.layers.config import Config
from bertsmith.models.checkpoint import Checkpoint
from bertsmith.models.families import find_preset
from bertsmith.models.family import PAIRS, Family, FamilyHead
from bertsmith.models.fitting import fresh_tensor
from bertsmith.models.network import Network

INTO_STREAM = ("attention.out.weight", "feed.down.weight")  # what adds to the residual stream


def make_fresh(
    preset: str, heads: Sequence[str], sizes: Mapping[str, Any], tokens: Mapping[str, int], seed: int = 0,
    changed: Mapping[str, int] | None = None, zero_outputs: bool = False, pairs: str = "",
) -> Checkpoint:  # fmt: skip
    """`sizes` replace fields of the preset's `Config`, and so do those `changed`, by which others are scaled.

    `tokens` are the ids that config.json names, by role. `zero_outputs`: at first no block adds anything to the stream.
    `pairs`: what is asked of two texts (`family.FOLLOWS`), if anything.
    """
    family, config = find_preset(preset)
    config = scale(_resize(config, sizes), changed or {})
    settings = {**family.fresh, **{key: value for key, value in _ids(tokens).items() if value is not None}}
    settings |= {PAIRS: pairs} if pairs else {}
    known = find_heads(family, heads, settings)
    # RoBERTa counts positions from behind its padding id: train with the ones that whoever opens the folder will use.
    first = family.config(family.settings(config, settings)).first_position
    config = replace(config, first_position=first)
    network = _build(config, known)
    _fill(network, config, seed, zero_outputs)
    return Checkpoint(family, config, known, network, settings)


def make_further(
    checkpoint: Checkpoint, heads: Sequence[str], seed: int, dropout: float | None, pairs: str = ""
) -> Checkpoint:
    """A trained encoder with these heads: its own where it has them, else fresh ones; `pairs` as in `make_fresh`."""
    labels = ("id2label", "label2id", "problem_type", PAIRS)  # of a head that is not kept, or learns something else
    settings = {key: value for key, value in checkpoint.settings.items() if key not in labels}
    settings |= {PAIRS: pairs} if pairs else {}
    known = find_heads(checkpoint.family, heads, settings)
    config = checkpoint.config
    if dropout is not None:
        config = replace(config, dropout=dropout, attention_dropout=dropout, head_dropout=dropout)
    network = _build(config, known)
    _fill(network, config, seed)
    origins = _find_origins(checkpoint, known)
    with torch.no_grad():
        for name in network.names:
            source = next((there + name.removeprefix(here) for here, there in origins if name.startswith(here)), name)
            if source in checkpoint.network.names:
                network.get_parameter(name).copy_(checkpoint.network.tensor(source))
    return Checkpoint(checkpoint.family, config, known, network, settings)


def find_heads(family: Family, heads: Sequence[str], settings: Mapping[str, Any]) -> dict[str, FamilyHead]:
    known = {name: head for name, head in family.heads(dict(settings)).items() if name in heads}
    missing = [name for name in heads if name not in known]
    if missing:
        told = f"the family {family.name} has no head for {missing[0]}"
        if missing[0] == "follows":
            raise BertsmithError(f"{told}, which next and order ask for; leave those out, or train a bert or albert.")
        raise BertsmithError(f"{told}; choose another recipe or preset.")
    return known


def scale(config: Config, changed: Mapping[str, int]) -> Config:
    """Another width keeps the size of a head and the share of the inner layer, unless these are given too."""
    given = dict(changed)
    if "width" in given:
        wanted = max(1, given["width"] * config.heads // config.width)
        parts = 2 if config.position == "rotary" and given["width"] % 2 == 0 else 1  # it turns pairs of numbers
        divisors = (heads for heads in range(wanted, 0, -1) if given["width"] % (heads * parts) == 0)
        given.setdefault("heads", next(divisors))
        given.setdefault("inner", max(8, round(config.inner * given["width"] / config.width / 8) * 8))
        if config.width != config.embed_width == given["width"]:
            given["embed_width"] = max(1, given["width"] // 2)  # ALBERT always projects its tables
    return _resize(config, given)


def _resize(config: Config, sizes: Mapping[str, Any]) -> Config:
    """What follows the width or the depth goes on doing so."""
    follow = {}
    if "width" in sizes and config.embed_width == config.width:
        follow["embed_width"] = sizes["width"]
    if "depth" in sizes and config.distinct == config.depth:
        follow["distinct"] = sizes["depth"]
    return replace(config, **{**follow, **sizes})


def _build(config: Config, heads: Mapping[str, FamilyHead]) -> Network:
    with torch.device("meta"):
        return Network(config, {name: head.shape(config, len(head.labels) or 1) for name, head in heads.items()})


def _find_origins(checkpoint: Checkpoint, heads: Mapping[str, FamilyHead]) -> list[tuple[str, str]]:
    """Where a head's layer is called the same on the other side in a head that is there: BERT's pooler."""
    return [
        (f"heads.{name}.{part}.", f"heads.{other}.{part}.")
        for name, head in heads.items() if name not in checkpoint.heads
        for part in ("dense", "norm") if part in head.names
        for other, there in checkpoint.heads.items() if there.names.get(part) == head.names[part]
    ]  # fmt: skip


def _fill(network: Network, config: Config, seed: int, zero_outputs: bool = False) -> None:
    """As BERT begins; where norms come first, what adds to the stream is the smaller the deeper it is (as in GPT-2)."""
    generator = torch.Generator().manual_seed(seed)
    state = {}
    for name in network.names:
        state[name] = fresh_tensor(name, network.tensor(name).shape, generator)
        if config.pre_norm and name.endswith(INTO_STREAM):
            state[name] = state[name] / (2 * config.depth) ** 0.5
        if zero_outputs and name.endswith(INTO_STREAM):
            state[name].zero_()
    network.load_state_dict(state, strict=True, assign=True)
    network.requires_grad_(True)


def _ids(tokens: Mapping[str, int]) -> dict[str, int | None]:
    """The special ids as config.json has them; those of ModernBERT and RoBERTa are looked at by other libraries."""
    return {
        "pad_token_id": tokens.get("pad"),
        "cls_token_id": tokens.get("cls"),
        "sep_token_id": tokens.get("sep"),
        "bos_token_id": tokens.get("cls"),
        "eos_token_id": tokens.get("sep"),
    }
