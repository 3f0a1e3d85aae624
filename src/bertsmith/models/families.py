"""All families, found by the `model_type` that a config.json names, and all presets, found by name."""

from bertsmith.errors import BertsmithError
from bertsmith.layers.config import Config
from bertsmith.models import albert, bert, deberta, distilbert, electra, modernbert, mpnet, roberta
from bertsmith.models.family import Family

FAMILIES = [module.FAMILY for module in (bert, roberta, albert, distilbert, electra, modernbert, mpnet, deberta)]
BY_TYPE = {name: family for family in FAMILIES for name in (family.name, *family.relatives)}


def find_family(model_type: object) -> Family:
    if not isinstance(model_type, str) or model_type not in BY_TYPE:
        known = ", ".join(sorted(BY_TYPE))
        raise BertsmithError(f"config.json has model_type = {model_type!r}; the families read here are {known}.")
    return BY_TYPE[model_type]


def find_preset(name: str) -> tuple[Family, Config]:
    for family in FAMILIES:
        if name in family.presets:
            return family, family.preset(name)
    known = ", ".join(preset for family in FAMILIES for preset in family.presets)
    raise BertsmithError(f"there is no preset {name!r}; the presets are {known}.")
