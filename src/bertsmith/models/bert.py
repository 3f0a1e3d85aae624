"""BERT (arXiv 1810.04805): learned positions, two segments, norms after each residual, a tanh pooler on [CLS]."""

import re
from typing import Any

from torch import Tensor

from bertsmith.models.family import Family, FamilyHead, Settings, name_pairs, refuse, share

FIELDS = {
    "vocabulary": "vocab_size",
    "width": "hidden_size",
    "depth": "num_hidden_layers",
    "heads": "num_attention_heads",
    "inner": "intermediate_size",
    "positions": "max_position_embeddings",
    "segments": "type_vocab_size",
    "activation": "hidden_act",
    "eps": "layer_norm_eps",
    "tied": "tie_word_embeddings",
    "dropout": "hidden_dropout_prob",
    "attention_dropout": "attention_probs_dropout_prob",
}

_LAYER = "encoder.layer.*."
NAMES: dict[str, str | tuple[str, ...]] = {
    "embed.tokens": "embeddings.word_embeddings",
    "embed.positions": "embeddings.position_embeddings",
    "embed.segments": "embeddings.token_type_embeddings",
    "embed.norm": "embeddings.LayerNorm",
    "blocks.*.attention.qkv": tuple(_LAYER + "attention.self." + part for part in ("query", "key", "value")),
    "blocks.*.attention.out": _LAYER + "attention.output.dense",
    "blocks.*.attention_norm": _LAYER + "attention.output.LayerNorm",
    "blocks.*.feed.up": _LAYER + "intermediate.dense",
    "blocks.*.feed.down": _LAYER + "output.dense",
    "blocks.*.feed_norm": _LAYER + "output.LayerNorm",
}

MASK = {
    "dense": "cls.predictions.transform.dense",
    "norm": "cls.predictions.transform.LayerNorm",
    "out.weight": "cls.predictions.decoder.weight",
    "out.bias": "cls.predictions.bias",
}
POOLER = {"dense": "{}.pooler.dense"}

IGNORED = {
    "{}.embeddings.position_ids": "a buffer that counts from 0",
    "{}.embeddings.token_type_ids": "a buffer of zeros",
    "cls.predictions.decoder.weight": "tied to the word table",
    "cls.predictions.decoder.bias": "a copy of cls.predictions.bias",
}


def heads(settings: Settings) -> dict[str, FamilyHead]:
    pooled: Any = {"reads": "first", "dense": "width", "activation": "tanh"}
    classifier = {**POOLER, "out": "classifier"}
    return {
        "mask": FamilyHead("ForMaskedLM", MASK, dense="embed_width", norm=True, outputs="vocabulary"),
        "follows": FamilyHead(
            "ForNextSentencePrediction",
            {**POOLER, "out": "cls.seq_relationship"},
            labels=name_pairs(settings, "next"),
            **pooled,
        ),
        "classify": FamilyHead("ForSequenceClassification", classifier, **pooled, drops="head_dropout"),
        "choose": FamilyHead("ForMultipleChoice", classifier, **pooled, drops="head_dropout"),
        "tag": FamilyHead("ForTokenClassification", {"out": "classifier"}, drops="head_dropout"),
        "span": FamilyHead("ForQuestionAnswering", {"out": "qa_outputs"}),
        "pool": FamilyHead("", POOLER, outputs="", **pooled),
    }


def read(settings: Settings) -> dict[str, object]:
    refuse(settings, "position_embedding_type", ("absolute", None), "only absolute positions are read")
    refuse(settings, "is_decoder", (False, None), "only encoders are read")
    refuse(settings, "add_cross_attention", (False, None), "only encoders are read")
    own, dropped = settings.get("classifier_dropout"), settings.get("hidden_dropout_prob", 0.1)
    return {"head_dropout": share("classifier_dropout", dropped if own is None else own)}


def from_tensorflow(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """The first release's names and shapes (google-research/bert) brought to those of today."""
    found = {}
    for name, tensor in tensors.items():
        if re.search(r"adam_[mv]$|global_step$", name):
            continue
        name = re.sub(r"layer_(\d+)", r"layer.\1", name).replace("/", ".")
        if name.endswith(".kernel"):
            name, tensor = name.removesuffix("kernel") + "weight", tensor.T
        name = re.sub(r"_embeddings$", "_embeddings.weight", name)
        name = name.replace("cls.predictions.output_bias", "cls.predictions.bias")
        name = name.replace("seq_relationship.output_weights", "seq_relationship.weight")
        name = name.replace("seq_relationship.output_bias", "seq_relationship.bias")
        found[name] = tensor
    return found


FAMILY = Family(
    name="bert",
    class_name="Bert",
    prefix="bert",
    fields=FIELDS,
    names=NAMES,
    heads=heads,
    defaults={"vocabulary": 30522},
    ignored=IGNORED,
    read=read,
    presets={
        "bert-tiny": {"depth": 2, "width": 128, "heads": 2, "inner": 512},
        "bert-mini": {"depth": 4, "width": 256, "heads": 4, "inner": 1024},
        "bert-small": {"depth": 4, "width": 512, "heads": 8, "inner": 2048},
        "bert-medium": {"depth": 8, "width": 512, "heads": 8, "inner": 2048},
        "bert-base": {"depth": 12, "width": 768, "heads": 12, "inner": 3072},
        "bert-base-cased": {"depth": 12, "width": 768, "heads": 12, "inner": 3072, "vocabulary": 28996},
        "bert-base-multilingual": {"depth": 12, "width": 768, "heads": 12, "inner": 3072, "vocabulary": 119547},
        "bert-large": {"depth": 24, "width": 1024, "heads": 16, "inner": 4096},
        "minilm-l6-h384": {"depth": 6, "width": 384, "heads": 12, "inner": 1536},
        "minilm-l12-h384": {"depth": 12, "width": 384, "heads": 12, "inner": 1536},
    },
)
