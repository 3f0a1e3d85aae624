"""ALBERT (arXiv 1909.11942): narrow tables projected up, one block applied again and again, the order of sentences."""

from dataclasses import replace

from bertsmith.errors import BertsmithError
from bertsmith.models import bert
from bertsmith.models.family import FamilyHead, Settings, name_pairs, refuse, share

_LAYER = "encoder.albert_layer_groups.*.albert_layers.0."
NAMES: dict[str, str | tuple[str, ...]] = {
    "embed.tokens": "embeddings.word_embeddings",
    "embed.positions": "embeddings.position_embeddings",
    "embed.segments": "embeddings.token_type_embeddings",
    "embed.norm": "embeddings.LayerNorm",
    "embed.project": "encoder.embedding_hidden_mapping_in",
    "blocks.*.attention.qkv": tuple(_LAYER + "attention." + part for part in ("query", "key", "value")),
    "blocks.*.attention.out": _LAYER + "attention.dense",
    "blocks.*.attention_norm": _LAYER + "attention.LayerNorm",
    "blocks.*.feed.up": _LAYER + "ffn",
    "blocks.*.feed.down": _LAYER + "ffn_output",
    "blocks.*.feed_norm": _LAYER + "full_layer_layer_norm",
}
MASK = {
    "dense": "predictions.dense",
    "norm": "predictions.LayerNorm",
    "out.weight": "predictions.decoder.weight",
    "out.bias": "predictions.bias",
}
POOLER = {"dense": "{}.pooler"}


def heads(settings: Settings) -> dict[str, FamilyHead]:
    found = bert.heads(settings)
    found["mask"] = replace(found["mask"], names=MASK)
    order, labels = {**POOLER, "out": "sop_classifier.classifier"}, name_pairs(settings, "order")
    found["follows"] = replace(found["follows"], suffix="ForPreTraining", names=order, labels=labels)
    for name in ("classify", "choose"):
        found[name] = replace(found[name], names={**POOLER, "out": "classifier"})
    found["pool"] = replace(found["pool"], names=POOLER)
    return found


def read(settings: Settings) -> dict[str, object]:
    refuse(settings, "inner_group_num", (1, None), "only groups of one layer are read")
    if settings.get("embedding_size", 128) == settings.get("hidden_size"):
        raise BertsmithError("config.json has embedding_size = hidden_size, which no released ALBERT has.")
    dropped = settings.get("classifier_dropout_prob", 0.1)
    return {**bert.read(settings), "head_dropout": share("classifier_dropout_prob", dropped)}


_SHARED = {"embed_width": 128, "distinct": 1, "depth": 12}

FAMILY = replace(
    bert.FAMILY,
    name="albert",
    class_name="Albert",
    prefix="albert",
    fields={**bert.FIELDS, "embed_width": "embedding_size", "distinct": "num_hidden_groups"},
    names=NAMES,
    heads=heads,
    defaults={
        "vocabulary": 30000,
        "embed_width": 128,
        "distinct": 1,
        "activation": "gelu_tanh",
        "dropout": 0.0,
        "attention_dropout": 0.0,
    },
    ignored={
        "{}.embeddings.position_ids": "a buffer that counts from 0",
        "{}.embeddings.token_type_ids": "a buffer of zeros",
        "predictions.decoder.weight": "tied to the word table",
        "predictions.decoder.bias": "a copy of predictions.bias",
    },
    read=read,
    presets={
        "albert-base": {**_SHARED, "width": 768, "heads": 12, "inner": 3072},
        "albert-large": {**_SHARED, "depth": 24, "width": 1024, "heads": 16, "inner": 4096},
        "albert-xlarge": {**_SHARED, "depth": 24, "width": 2048, "heads": 16, "inner": 8192},
        "albert-xxlarge": {**_SHARED, "width": 4096, "heads": 64, "inner": 16384},
    },
)
