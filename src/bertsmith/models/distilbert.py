"""DistilBERT (arXiv 1910.01108): half of BERT's layers, without segments and pooler."""

from dataclasses import replace

from bertsmith.models import bert
from bertsmith.models.family import FamilyHead, Settings

_LAYER = "transformer.layer.*."
NAMES: dict[str, str | tuple[str, ...]] = {
    "embed.tokens": "embeddings.word_embeddings",
    "embed.positions": "embeddings.position_embeddings",
    "embed.norm": "embeddings.LayerNorm",
    "blocks.*.attention.qkv": tuple(_LAYER + "attention." + part for part in ("q_lin", "k_lin", "v_lin")),
    "blocks.*.attention.out": _LAYER + "attention.out_lin",
    "blocks.*.attention_norm": _LAYER + "sa_layer_norm",
    "blocks.*.feed.up": _LAYER + "ffn.lin1",
    "blocks.*.feed.down": _LAYER + "ffn.lin2",
    "blocks.*.feed_norm": _LAYER + "output_layer_norm",
}
MASK = {
    "dense": "vocab_transform",
    "norm": "vocab_layer_norm",
    "out.weight": "vocab_projector.weight",
    "out.bias": "vocab_projector.bias",
}


def heads(settings: Settings) -> dict[str, FamilyHead]:
    found = bert.heads(settings)
    pooled = replace(found["classify"], names={"dense": "pre_classifier", "out": "classifier"}, activation="relu")
    return {
        "mask": replace(found["mask"], names=MASK),
        "classify": pooled,
        "choose": replace(pooled, suffix="ForMultipleChoice"),
        "tag": replace(found["tag"], drops="dropout"),
        "span": found["span"],
    }


def read(settings: Settings) -> dict[str, object]:
    """BERT's refusals alone: what a head drops has a name of its own here, which is among the fields."""
    bert.read(settings)
    return {}


FAMILY = replace(
    bert.FAMILY,
    name="distilbert",
    class_name="DistilBert",
    prefix="distilbert",
    fields={
        "vocabulary": "vocab_size",
        "width": "dim",
        "depth": "n_layers",
        "heads": "n_heads",
        "inner": "hidden_dim",
        "positions": "max_position_embeddings",
        "activation": "activation",
        "tied": "tie_word_embeddings",
        "dropout": "dropout",
        "attention_dropout": "attention_dropout",
        "head_dropout": "seq_classif_dropout",
    },
    names=NAMES,
    heads=heads,
    fixed={"segments": 0, "eps": 1e-12},
    defaults={"vocabulary": 30522, "depth": 6, "head_dropout": 0.2},
    read=read,
    ignored={
        "{}.embeddings.position_ids": "a buffer that counts from 0",
        "vocab_projector.weight": "tied to the word table",
    },
    presets={
        "distilbert-base": {"depth": 6, "width": 768, "heads": 12, "inner": 3072},
        "distilbert-base-cased": {"depth": 6, "width": 768, "heads": 12, "inner": 3072, "vocabulary": 28996},
    },
)
