"""DeBERTa-v2 and -v3 (arXiv 2006.03654, 2111.09543): no positions in the embedding, but distances in all attention."""

from dataclasses import replace
from typing import Any

from bertsmith.errors import BertsmithError
from bertsmith.layers.config import Config
from bertsmith.models import bert
from bertsmith.models.family import FamilyHead, Settings, activation, refuse, share

NAMES: dict[str, str | tuple[str, ...]] = {
    **bert.NAMES,
    "relative": "encoder.rel_embeddings",
    "relative.norm": "encoder.LayerNorm",
    "convolution": "encoder.conv.conv",
    "convolution.norm": "encoder.conv.LayerNorm",
    "blocks.*.attention.qkv": tuple(
        f"encoder.layer.*.attention.self.{part}_proj" for part in ("query", "key", "value")
    ),
}
# The head for masked tokens as Microsoft's own files have it; that of the reference computes the same.
OWN_MASK = {
    "dense": "lm_predictions.lm_head.dense",
    "norm": "lm_predictions.lm_head.LayerNorm",
    "out.bias": "lm_predictions.lm_head.bias",
}
# What all released ones have, and what it is where the settings are silent.
USUAL: dict[str, tuple[Any, Any]] = {
    "relative_attention": (True, False),
    "share_att_key": (True, False),
    "norm_rel_ebd": ("layer_norm", "none"),
    "conv_groups": (1, 1),
}


def heads(settings: Settings) -> dict[str, FamilyHead]:
    found = bert.heads(settings)
    mask = replace(found["mask"], others=OWN_MASK)
    if settings.get("legacy") is False:
        mask = replace(mask, names=OWN_MASK, others={ours: bert.MASK[ours] for ours in OWN_MASK})
    pooled = replace(
        found["classify"],
        names={"dense": "pooler.dense", "out": "classifier"},
        activation=activation("pooler_hidden_act", settings.get("pooler_hidden_act", "gelu")),
    )
    return {
        "mask": mask,
        "classify": pooled,
        "choose": replace(pooled, suffix="ForMultipleChoice"),
        "tag": replace(found["tag"], drops="dropout"),
        "span": found["span"],
    }


def read(settings: Settings) -> dict[str, Any]:
    for name, (value, silent) in USUAL.items():
        refuse({name: silent, **settings}, name, (value,), f"only {value!r} is read, as all released ones have it")
    kinds = settings.get("pos_att_type") or []
    kinds = kinds.lower().split("|") if isinstance(kinds, str) else kinds
    if sorted(str(kind).strip() for kind in kinds) != ["c2p", "p2c"]:
        raise BertsmithError(f"config.json has pos_att_type = {kinds!r}; only p2c and c2p together are read.")
    width, positions = settings.get("hidden_size", 1536), settings.get("max_position_embeddings", 512)
    same = "only the width of the encoder is read"
    refuse(settings, "embedding_size", (width, None), same)
    refuse(settings, "pooler_hidden_size", (width, None), same)
    refuse(settings, "attention_head_size", (width // settings.get("num_attention_heads", 24), None), same)
    refuse(settings, "max_relative_positions", (-1, 0, positions, None), "only max_position_embeddings is read for it")
    own, dropped = settings.get("cls_dropout"), settings.get("hidden_dropout_prob", 0.1)
    return {
        "head_dropout": share("cls_dropout", dropped if own is None else own),
        "position": "none" if settings.get("position_biased_input") is False else "learned",
        "buckets": max(0, settings.get("position_buckets", -1)),
        "kernel": settings.get("conv_kernel_size", 0),
        "kernel_activation": activation("conv_act", settings.get("conv_act", "tanh")),
        # The words' own table is all that the head of Microsoft's files has.
        **({"tied": True} if settings.get("legacy") is False else {}),
    }


def write(config: Config) -> Settings:
    found: Settings = {name: value for name, (value, silent) in USUAL.items() if value != silent}
    found |= {"pos_att_type": "p2c|c2p", "max_relative_positions": -1, "position_buckets": config.buckets or -1}
    found |= {"position_biased_input": config.position == "learned"}
    if config.kernel:
        found |= {"conv_kernel_size": config.kernel, "conv_act": config.kernel_activation}
    return found


_BASE = {"depth": 12, "width": 768, "heads": 12, "inner": 3072}

FAMILY = replace(
    bert.FAMILY,
    name="deberta-v2",
    class_name="DebertaV2",
    prefix="deberta",
    names=NAMES,
    heads=heads,
    fixed={"relative": "disentangled"},
    defaults={
        "vocabulary": 128100, "width": 1536, "depth": 24, "heads": 24, "inner": 6144, "segments": 0, "eps": 1e-7,
        "position": "none", "buckets": 256,
    },
    ignored={
        **bert.IGNORED,
        "{}.embeddings.position_embeddings.weight": "nothing adds it where position_biased_input is false",
        "{}.embeddings.*._weight": "kept beside a table by its makers' training (v3); others read `weight`",
        "lm_predictions.*": "the head for masked tokens, which is there under its other name",
        "cls.predictions.*": "the head for masked tokens, which is there under its other name",
        "mask_predictions.*": "tells replaced words (v3); only its makers' code says how",
    },
    read=read,
    write=write,
    presets={
        "deberta-v3-xsmall": {"depth": 12, "width": 384, "heads": 6, "inner": 1536},
        "deberta-v3-small": {**_BASE, "depth": 6},
        "deberta-v3-base": _BASE,
        "deberta-v3-large": {"depth": 24, "width": 1024, "heads": 16, "inner": 4096},
        "mdeberta-v3-base": {**_BASE, "vocabulary": 251000},
        "deberta-v2-xlarge": {"depth": 24, "width": 1536, "heads": 24, "inner": 6144, "kernel": 3,
                              "kernel_activation": "gelu"},
    },
)  # fmt: skip
