"""RoBERTa (arXiv 1907.11692), XLM-R and CamemBERT: BERT whose positions start behind the padding id, without segments.

The segment table is still there, with one row for every token. The classifier brings its own dense layer.
"""

from dataclasses import replace

from bertsmith.models import bert
from bertsmith.models.family import FamilyHead, Settings

MASK = {
    "dense": "lm_head.dense",
    "norm": "lm_head.layer_norm",
    "out.weight": "lm_head.decoder.weight",
    "out.bias": "lm_head.bias",
}


def heads(settings: Settings) -> dict[str, FamilyHead]:
    found = bert.heads(settings)
    del found["follows"]
    found["mask"] = replace(found["mask"], names=MASK, activation="gelu")
    found["classify"] = replace(found["classify"], names={"dense": "classifier.dense", "out": "classifier.out_proj"})
    return found


def read(settings: Settings) -> dict[str, object]:
    padding = settings.get("pad_token_id", 1)
    return {**bert.read(settings), "first_position": (1 if padding is None else padding) + 1}


_BASE = {"depth": 12, "width": 768, "heads": 12, "inner": 3072, "positions": 514, "segments": 1}
_LARGE = {**_BASE, "depth": 24, "width": 1024, "heads": 16, "inner": 4096}

FAMILY = replace(
    bert.FAMILY,
    name="roberta",
    class_name="Roberta",
    prefix="roberta",
    heads=heads,
    defaults={"vocabulary": 50265, "first_position": 2},
    ignored={
        **{name: why for name, why in bert.IGNORED.items() if name.startswith("{}")},
        "lm_head.decoder.weight": "tied to the word table",
        "lm_head.decoder.bias": "a copy of lm_head.bias",
    },
    relatives={"xlm-roberta": "XLMRoberta", "camembert": "Camembert"},
    read=read,
    presets={
        "roberta-base": _BASE,
        "roberta-large": _LARGE,
        "xlm-roberta-base": {**_BASE, "vocabulary": 250002},
        "xlm-roberta-large": {**_LARGE, "vocabulary": 250002},
        "camembert-base": {**_BASE, "vocabulary": 32005},
    },
)
