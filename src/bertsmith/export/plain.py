"""A plain folder: config.json, model.safetensors and the tokenizer's files, as `transformers` opens them.

In: a `Model`, of any form, with an adapter or without. Out: a folder in which an adapter is part of the weights.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Literal, get_args

import torch

from bertsmith.errors import BertsmithError
from bertsmith.keeping import write_model
from bertsmith.models.files import WEIGHTS, read_json, read_noted, write_json, write_tensors

if TYPE_CHECKING:
    from bertsmith.model import Model

PlainStore = Literal["fp32", "bf16", "fp16"]
DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}


def write_plain(model: "Model", folder: Path, store: str = "fp32") -> None:
    """Adapters are added to float32 weights, which are rounded afterwards, once."""
    if store not in get_args(PlainStore):
        raise BertsmithError(
            f"store={store!r} is not a choice for a folder that transformers opens; use one of "
            f"{', '.join(get_args(PlainStore))}."
        )
    refuse_features(model)
    write_model(model, folder)
    if DTYPES[store] != model.checkpoint.network.dtype:
        round_weights(folder, DTYPES[store])


def refuse_features(model: "Model") -> None:
    if model.checkpoint.network.features is not None:
        raise BertsmithError(
            f"the head of {model.folder} reads features of several layers, which others do not; its bare encoder can "
            "be written (--head embed)."
        )


def round_weights(folder: Path, dtype: torch.dtype) -> None:
    """The folder's weights in another precision."""
    tensors, _ = read_noted(folder / WEIGHTS)
    rounded = {name: tensor.to(dtype) for name, tensor in tensors.items()}
    lost = [name for name in rounded if not rounded[name].isfinite().all()]
    if lost:
        raise BertsmithError(f"the tensor {lost[0]} has numbers too large for {dtype}; use bf16.")
    settings = read_json(folder / "config.json")
    write_json(folder / "config.json", {**settings, "dtype": str(dtype).removeprefix("torch.")})
    write_tensors(folder / WEIGHTS, rounded)


def name_class(folder: Path) -> str:
    """The class of `transformers` that opens a folder, as its config.json says."""
    return str(read_json(folder / "config.json")["architectures"][0])
