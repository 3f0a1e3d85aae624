"""ELECTRA (arXiv 2003.10555): BERT without a pooler; a discriminator that spots replaced tokens, a small generator."""

from dataclasses import replace

from bertsmith.models import bert
from bertsmith.models.family import FamilyHead, Settings, refuse

MASK = {
    "dense": "generator_predictions.dense",
    "norm": "generator_predictions.LayerNorm",
    "out.weight": "generator_lm_head.weight",
    "out.bias": "generator_lm_head.bias",
}
REPLACED = {"dense": "discriminator_predictions.dense", "out": "discriminator_predictions.dense_prediction"}


def heads(settings: Settings) -> dict[str, FamilyHead]:
    found = bert.heads(settings)
    pooled = replace(found["classify"], activation="gelu")
    return {
        "mask": replace(found["mask"], names=MASK, activation="gelu"),
        "replaced": FamilyHead("ForPreTraining", REPLACED, dense="width"),
        "classify": replace(pooled, names={"dense": "classifier.dense", "out": "classifier.out_proj"}),
        "choose": replace(
            pooled, suffix="ForMultipleChoice", names={"dense": "sequence_summary.summary", "out": "classifier"}
        ),
        "tag": found["tag"],
        "span": found["span"],
    }


def read(settings: Settings) -> dict[str, object]:
    refuse(settings, "summary_type", ("first", None), "only the first token is read as a summary")
    refuse(settings, "summary_activation", ("gelu", None), "only gelu is read as the summary's activation")
    return bert.read(settings)


_SMALL = {"embed_width": 128, "depth": 12, "width": 256, "heads": 4, "inner": 1024}

FAMILY = replace(
    bert.FAMILY,
    name="electra",
    class_name="Electra",
    prefix="electra",
    fields={**bert.FIELDS, "embed_width": "embedding_size"},
    names={**bert.NAMES, "embed.project": "embeddings_project"},
    heads=heads,
    defaults={"vocabulary": 30522, "embed_width": 128},
    ignored={
        **{name: why for name, why in bert.IGNORED.items() if name.startswith("{}")},
        "generator_lm_head.weight": "tied to the word table",
    },
    read=read,
    presets={
        "electra-small": _SMALL,
        "electra-small-generator": {**_SMALL, "width": 256, "heads": 4, "inner": 1024},
        "electra-base": {"embed_width": 768, "depth": 12, "width": 768, "heads": 12, "inner": 3072},
        "electra-base-generator": {"embed_width": 768, "depth": 12, "width": 256, "heads": 4, "inner": 1024},
        "electra-large": {"embed_width": 1024, "depth": 24, "width": 1024, "heads": 16, "inner": 4096},
        "electra-large-generator": {"embed_width": 1024, "depth": 24, "width": 256, "heads": 4, "inner": 1024},
    },
)
