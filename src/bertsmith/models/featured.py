"""Folders of a head on features of several layers: the encoder as its family writes it, the rest under our own names.

No class of `transformers` has such a head. config.json says so: its `features` tell what the head reads, its class is
that of the bare encoder, and that is what others open. Nothing of the head has a name by which they would take it for
one of theirs.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from torch import Tensor

from bertsmith.errors import BertsmithError
from bertsmith.layers.mixing import LAYERS, FeatureShape
from bertsmith.models.family import Family, FamilyHead
from bertsmith.models.names import Names, names_of

BLOCK = "features"
OWN = "bertsmith."  # in front of the names of tensors
ENCODER = ("embed.", "relative.", "convolution.", "blocks.", "final_norm.")  # all that heads and `mix` are not
WIDEST = 65_536  # of a BiLSTM


def read_features(settings: Mapping[str, Any]) -> FeatureShape | None:
    """What config.json says of features; None for a plain model, as nearly all are."""
    block = settings.get(BLOCK)
    if not isinstance(block, dict) or "layers" not in block:
        return None
    layers, recurrent = block["layers"], block.get("recurrent", 0)
    if layers not in LAYERS:
        raise BertsmithError(f"config.json has features of layers = {layers!r}; known are {', '.join(LAYERS)}.")
    if isinstance(recurrent, bool) or not isinstance(recurrent, int) or not 0 <= recurrent <= WIDEST:
        raise BertsmithError(f"config.json has features with recurrent = {recurrent!r}; it must be 0 to {WIDEST:,}.")
    return FeatureShape(layers, recurrent)


def find_own_heads(
    family: Family, settings: dict[str, Any], tensors: Mapping[str, Tensor]
) -> tuple[dict[str, FamilyHead], dict[str, int]]:
    """The heads whose tensors are there under our names, and how many outputs each has."""
    known = family.heads(settings)
    outputs = {
        name: len(tensors[f"{OWN}heads.{name}.out.weight"])
        for name in known
        if tensors.get(f"{OWN}heads.{name}.out.weight") is not None and tensors[f"{OWN}heads.{name}.out.weight"].ndim
    }
    if not outputs:
        raise BertsmithError("config.json tells of features that a head reads, but the weights hold no such head.")
    return {name: known[name] for name in outputs}, outputs


def own_names(family: Family, parameters: Iterable[str]) -> Names:
    """The family's names for the encoder, ours for the rest."""
    parameters = list(parameters)
    found = names_of(family, {}, [name for name in parameters if name.startswith(ENCODER)])
    return {**found, **{name: (OWN + name,) for name in parameters if name not in found}}
