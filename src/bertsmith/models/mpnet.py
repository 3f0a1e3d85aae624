"""MPNet (arXiv 2004.09297): RoBERTa's positions and heads, no segments, a bias by distance that all layers share."""

from dataclasses import replace

from bertsmith.models import bert, roberta
from bertsmith.models.family import FamilyHead, Settings, refuse

_LAYER = "encoder.layer.*."
NAMES: dict[str, str | tuple[str, ...]] = {
    **{ours: theirs for ours, theirs in bert.NAMES.items() if ours != "embed.segments"},
    "relative": "encoder.relative_attention_bias",
    "blocks.*.attention.qkv": tuple(_LAYER + "attention.attn." + part for part in "qkv"),
    "blocks.*.attention.out": _LAYER + "attention.attn.o",
    "blocks.*.attention_norm": _LAYER + "attention.LayerNorm",
}


def heads(settings: Settings) -> dict[str, FamilyHead]:
    found = roberta.heads(settings)
    return {name: found[name] for name in ("mask", "classify", "choose", "tag", "span", "pool")}


def read(settings: Settings) -> dict[str, object]:
    buckets = "the bias has 32 kinds of distances in every released MPNet"
    refuse(settings, "relative_attention_num_buckets", (32, None), buckets)
    # Others skip the id 1 when they count positions, whatever the settings say.
    padding = "an MPNet's padding has the id 1, behind which positions begin; take a tokenizer that has it there"
    refuse(settings, "pad_token_id", (1, None), f"{padding} (kind bpe or unigram)")
    return bert.read(settings)


FAMILY = replace(
    roberta.FAMILY,
    name="mpnet",
    class_name="MPNet",
    prefix="mpnet",
    fields={ours: theirs for ours, theirs in bert.FIELDS.items() if ours != "segments"},
    names=NAMES,
    heads=heads,
    fixed={"segments": 0, "first_position": 2, "relative": "bias"},
    defaults={"vocabulary": 30527},
    relatives={},
    read=read,
    presets={
        "mpnet-base": {"depth": 12, "width": 768, "heads": 12, "inner": 3072, "positions": 514},
    },
)
