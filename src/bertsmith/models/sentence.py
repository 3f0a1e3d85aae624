"""sentence-transformers folders: `modules.json` says how token vectors become a sentence's vector.

In: a folder. Out: where its encoder lies, the `Pooling`, the longest input and the prompts; and the way back.
"""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ..errors import BertsmithError
from ..layers.pooling import DENSE_ACTIVATIONS, POOLINGS, DenseShape, Pooling
from .files import read_json, read_tensors, write_json, write_tensors

# Older folders name each mode by a switch.
SWITCHES = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt_len_tokens",
    "pooling_mode_weightedmean_tokens": "weightedmean",
    "pooling_mode_lasttoken": "lasttoken",
}


@dataclass
class Sentence:
    """How a folder wants its texts read and pooled; a plain folder gets the mean of its token vectors."""

    encoder: Path
    pooling: Pooling = field(default_factory=Pooling)
    limit: int | None = None
    prompts: dict[str, str] = field(default_factory=dict)
    default_prompt: str | None = None
    found: bool = False  # whether the folder is a sentence-transformers one


def read_sentence(folder: Path) -> Sentence:
    path = folder / "modules.json"
    if not path.exists():
        return Sentence(encoder=folder)
    modes: tuple[str, ...] = ()
    dense: list[tuple[DenseShape, dict[str, Tensor]]] = []
    encoder, normalize = folder, False
    for module in _modules(path):
        kind = module["type"].rpartition(".")[2]
        place = folder / module["path"]
        if kind == "Transformer":
            encoder = place
        elif kind == "Pooling":
            modes = _modes(place / "config.json")
        elif kind == "Dense":
            dense.append(_dense(place))
        elif kind == "Normalize":
            normalize = True
        elif kind != "Dropout":
            raise BertsmithError(f"{path} has a module of type {kind}; Transformer, Pooling, Dense and Normalize are read.")
    pooling = Pooling(modes or ("mean",), tuple(shape for shape, _ in dense), normalize)
    for layer, (_, tensors) in zip(pooling.dense, dense, strict=True):
        layer.load_state_dict(tensors)
    extra = _optional(folder / "config_sentence_transformers.json")
    return Sentence(
        encoder=encoder,
        pooling=pooling.eval(),
        limit=_limit(encoder),
        prompts=extra.get("prompts") or {},
        default_prompt=extra.get("default_prompt_name"),
        found=True,
    )


def _modules(path: Path) -> list[dict[str, str]]:
    try:
        modules = json.loads(path.read_text(encoding="utf-8"))
        return [{"type": str(m["type"]), "path": str(m["path"])} for m in modules]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise BertsmithError(f"{path} is not a list of modules with a type and a path each.") from error


def _optional(path: Path) -> dict[str, Any]:
    return read_json(path) if path.exists() else {}


def _limit(encoder: Path) -> int | None:
    found = _optional(encoder / "sentence_bert_config.json").get("max_seq_length")
    return found if isinstance(found, int) and found > 2 else None


def _modes(path: Path) -> tuple[str, ...]:
    settings = read_json(path)
    named = settings.get("pooling_mode")
    modes = tuple(named) if isinstance(named, list) else (named,) if named else ()
    modes = modes or tuple(mode for switch, mode in SWITCHES.items() if settings.get(switch))
    unknown = [mode for mode in modes if mode not in POOLINGS]
    if unknown:
        raise BertsmithError(f"{path} has the pooling {unknown[0]!r}; known are {', '.join(POOLINGS)}.")
    if settings.get("include_prompt") is False:
        raise BertsmithError(f"{path} leaves the prompt out of the pooling (include_prompt), which is not read here.")
    return modes


def _dense(place: Path) -> tuple[DenseShape, dict[str, Tensor]]:
    settings = read_json(place / "config.json")
    activation = str(settings.get("activation_function", "Tanh")).rpartition(".")[2]
    if activation not in DENSE_ACTIVATIONS:
        known = ", ".join(DENSE_ACTIVATIONS)
        raise BertsmithError(f"{place / 'config.json'} has activation_function {activation}; known are {known}.")
    tensors = {name.removeprefix("linear."): tensor.float() for name, tensor in read_tensors(place).items()}
    shape = DenseShape(
        inputs=settings.get("in_features", 0),
        outputs=settings.get("out_features", 0),
        bias=settings.get("bias", True),
        activation=activation,
    )
    expected = {"weight": [shape.outputs, shape.inputs], **({"bias": [shape.outputs]} if shape.bias else {})}
    if {name: list(tensor.shape) for name, tensor in tensors.items()} != expected:
        raise BertsmithError(f"the tensors in {place} do not fit its config.json (in_features, out_features, bias).")
    return shape, tensors


def write_sentence(sentence: Sentence, folder: Path) -> None:
    """The files around the encoder's own; that lies in `folder` itself."""
    modules = [("", "Transformer"), ("1_Pooling", "Pooling")]
    switches = {switch: mode in sentence.pooling.modes for switch, mode in SWITCHES.items()}
    shapes = sentence.pooling.shapes
    width = shapes[0].inputs // len(sentence.pooling.modes) if shapes else _width(folder)
    (folder / "1_Pooling").mkdir()
    write_json(folder / "1_Pooling/config.json", {"word_embedding_dimension": width, **switches})
    for shape, layer in zip(shapes, sentence.pooling.dense, strict=True):
        modules.append((f"{len(modules)}_Dense", "Dense"))
        place = folder / modules[-1][0]
        place.mkdir()
        write_json(place / "config.json", _dense_settings(shape))
        write_tensors(place / "model.safetensors", {f"linear.{n}": t.detach() for n, t in layer.state_dict().items()})
    if sentence.pooling.normalize:
        modules.append((f"{len(modules)}_Normalize", "Normalize"))
        (folder / modules[-1][0]).mkdir()
        write_json(folder / modules[-1][0] / "config.json", {})
    kinds = "sentence_transformers.models."
    write_json(
        folder / "modules.json",
        [{"idx": i, "name": str(i), "path": place, "type": kinds + kind} for i, (place, kind) in enumerate(modules)],
    )
    if sentence.limit:
        write_json(folder / "sentence_bert_config.json", {"max_seq_length": sentence.limit, "do_lower_case": False})
    extra = {"prompts": sentence.prompts, "default_prompt_name": sentence.default_prompt}
    write_json(folder / "config_sentence_transformers.json", extra)


def _width(folder: Path) -> int:
    settings = read_json(folder / "config.json")
    return int(settings.get("hidden_size") or settings["dim"])


def _dense_settings(shape: DenseShape) -> dict[str, Any]:
    home = "linear" if shape.activation == "Identity" else "activation"
    name = f"torch.nn.modules.{home}.{shape.activation}"
    return {"in_features": shape.inputs, "out_features": shape.outputs, "bias": shape.bias, "activation_function": name}
