"""ModernBERT (arXiv 2412.13663): rotary positions, norms before, GeGLU, two local layers to a global one, no bias."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from bertsmith.errors import BertsmithError
from bertsmith.layers.config import Config
from bertsmith.models.family import Family, FamilyHead, Settings, activation, refuse

_LAYER = "layers.*."
NAMES: dict[str, str | tuple[str, ...]] = {
    "embed.tokens": "embeddings.tok_embeddings",
    "embed.norm": "embeddings.norm",
    "blocks.*.attention_norm": _LAYER + "attn_norm",
    "blocks.*.attention.qkv": _LAYER + "attn.Wqkv",
    "blocks.*.attention.out": _LAYER + "attn.Wo",
    "blocks.*.feed_norm": _LAYER + "mlp_norm",
    "blocks.*.feed.up": _LAYER + "mlp.Wi",
    "blocks.*.feed.down": _LAYER + "mlp.Wo",
    "final_norm": "final_norm",
}
HEAD = {"dense": "head.dense", "norm": "head.norm"}


def heads(settings: Settings) -> dict[str, FamilyHead]:
    first = FamilyHead(
        suffix="ForSequenceClassification",
        names={**HEAD, "out": "classifier"},
        reads="mean" if settings.get("classifier_pooling") == "mean" else "first",
        dense="width",
        activation=activation("classifier_activation", settings.get("classifier_activation", "gelu")),
        norm=True,
        bias=settings.get("classifier_bias", False),
        drops="head_dropout",
    )
    tokens = replace(first, reads="tokens")
    decoder = {**HEAD, "out.weight": "decoder.weight", "out.bias": "decoder.bias"}
    return {
        "mask": replace(tokens, suffix="ForMaskedLM", names=decoder, outputs="vocabulary", drops=""),
        "classify": first,
        "choose": replace(first, suffix="ForMultipleChoice"),
        "tag": replace(tokens, suffix="ForTokenClassification"),
        "span": replace(tokens, suffix="ForQuestionAnswering"),
    }


def read(settings: Settings) -> dict[str, Any]:
    refuse(settings, "decoder_bias", (True,), "only decoders with a bias are read")
    _check_rope({} if settings.get("rope_scaling") is None else settings["rope_scaling"])
    if settings.get("mlp_bias", False) != settings.get("attention_bias", False):
        raise BertsmithError("config.json has mlp_bias and attention_bias at odds, which no released ModernBERT has.")
    return {
        "window": settings.get("local_attention", 128) // 2,
        "global_every": _global_every(settings),
        "theta": _theta(settings, "full_attention", "global_rope_theta", 160_000.0),
        "local_theta": _theta(settings, "sliding_attention", "local_rope_theta", 10_000.0),
    }


def _global_every(settings: Settings) -> int:
    """Newer files spell each layer's kind out, older ones give the period."""
    kinds = settings.get("layer_types")
    if not kinds:
        return int(settings.get("global_attn_every_n_layers", 3))
    period = next((i for i, kind in enumerate(kinds) if i and kind == "full_attention"), len(kinds))
    if kinds != ["full_attention" if i % period == 0 else "sliding_attention" for i in range(len(kinds))]:
        raise BertsmithError("config.json has layer_types without a period; only one global in n is read.")
    return period


def _theta(settings: Settings, kind: str, old: str, default: float) -> float:
    rope = (settings.get("rope_parameters") or {}).get(kind) or {}
    _check_rope(rope)
    theta = rope.get("rope_theta") or settings.get(old) or default
    return float(theta)


def _check_rope(rope: Mapping[str, Any]) -> None:
    """`type` is the older name; whoever stretches positions to read longer texts has another one."""
    kind = rope.get("rope_type", rope.get("type", "default"))
    if kind != "default":
        raise BertsmithError(f"config.json has rope_type = {kind!r}; only the default rotation is read.")


def write(config: Config) -> Settings:
    return {
        "local_attention": 2 * config.window,
        "global_attn_every_n_layers": config.global_every,
        "global_rope_theta": config.theta,
        "local_rope_theta": config.local_theta,
        "mlp_bias": config.bias,
    }


FAMILY = Family(
    name="modernbert",
    class_name="ModernBert",
    prefix="model",
    fields={
        "vocabulary": "vocab_size",
        "width": "hidden_size",
        "depth": "num_hidden_layers",
        "heads": "num_attention_heads",
        "inner": "intermediate_size",
        "positions": "max_position_embeddings",
        "activation": "hidden_activation",
        "eps": "norm_eps",
        "bias": "attention_bias",
        "norm_bias": "norm_bias",
        "tied": "tie_word_embeddings",
        "dropout": "mlp_dropout",
        "attention_dropout": "attention_dropout",
        "head_dropout": "classifier_dropout",
    },
    names=NAMES,
    heads=heads,
    fixed={"position": "rotary", "segments": 0, "pre_norm": True, "gated": True},
    defaults={
        "vocabulary": 50368,
        "depth": 22,
        "inner": 1152,
        "positions": 8192,
        "eps": 1e-5,
        "bias": False,
        "norm_bias": False,
        "window": 64,
        "dropout": 0.0,
        "attention_dropout": 0.0,
        "head_dropout": 0.0,
        "global_every": 3,
        "theta": 160_000.0,
    },
    ignored={"decoder.weight": "tied to the word table", "{}.rotary_emb.*": "computed from the config"},
    read=read,
    write=write,
    fresh={"classifier_pooling": "mean"},  # as the released ones have it; no objective of theirs teaches [CLS] anything
    presets={
        "modernbert-base": {"depth": 22, "width": 768, "heads": 12, "inner": 1152},
        "modernbert-large": {"depth": 28, "width": 1024, "heads": 16, "inner": 2624},
    },
)
