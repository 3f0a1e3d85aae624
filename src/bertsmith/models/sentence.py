"""sentence-transformers folders: `modules.json` says how token vectors become a sentence's vector.

In: a folder. Out: where its encoder lies, the `Pooling`, the longest input and the prompts; and the way back.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import Any

from torch import Tensor

from bertsmith.errors import BertsmithError
from bertsmith.layers.pooling import DENSE_ACTIVATIONS, POOLINGS, DenseShape, Pooling
from bertsmith.models.files import read_any_json, read_json, read_tensors, write_json, write_tensors

# Older folders name each mode by a switch.
SWITCHES = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt_len_tokens",
    "pooling_mode_weightedmean_tokens": "weightedmean",
    "pooling_mode_lasttoken": "lasttoken",
}


# Settings of a Dense module that would change its numbers, and the only values read.
DENSE_USUAL = {
    "use_residual": False,
    "module_input_name": "sentence_embedding",
    "module_output_name": "sentence_embedding",
}
# The same of the Transformer module: the token vectors that come out of the plain encoder.
READING_USUAL = {
    "transformer_task": "feature-extraction",
    "module_output_name": "token_embeddings",
    "processing_kwargs": {},
}
# What may stand behind what; each module reads the vector that the one before made.
ORDER = ("Transformer", "Pooling", "Dense", "Normalize")
_ORDER = ", ".join(ORDER)
# The files that the Transformer module's own settings have had.
KINDS = ("bert", "roberta", "distilbert", "camembert", "albert", "xlm-roberta")
READING = [f"sentence_{kind}_config.json" for kind in KINDS]
EXTRA = "config_sentence_transformers.json"


@dataclass
class Sentence:
    """How a folder wants its texts read and pooled; a plain folder gets the mean of its token vectors."""

    encoder: Path
    pooling: Pooling = field(default_factory=Pooling)
    limit: int | None = None
    prompts: dict[str, str] = field(default_factory=dict)
    default_prompt: str | None = None
    similarity: str | None = None  # how the vectors are meant to be compared
    lower: bool = False
    found: bool = False  # whether the folder is a sentence-transformers one


def read_sentence(folder: Path) -> Sentence:
    path = folder / "modules.json"
    if not os.path.lexists(path):
        return Sentence(encoder=folder)
    modules = _modules(path)
    places = {kind: place for kind, place in modules if kind != "Dense"}
    encoder = places["Transformer"]
    modes = _modes(places["Pooling"] / "config.json")
    dense = [_dense(place) for kind, place in modules if kind == "Dense"]
    pooling = Pooling(modes, tuple(shape for shape, _ in dense), "Normalize" in places)
    for layer, (_, tensors) in zip(pooling.dense, dense, strict=True):
        layer.load_state_dict(tensors)
    _check_widths(pooling, encoder)
    reading = _reading(encoder)
    extra = read_json(folder / EXTRA) if os.path.lexists(folder / EXTRA) else {}
    prompts, default = _prompts(extra, folder / EXTRA)
    return Sentence(
        encoder=encoder,
        pooling=pooling.eval(),
        limit=_limit(reading.get("max_seq_length")),
        lower=bool(reading.get("do_lower_case")),
        prompts=prompts,
        default_prompt=default,
        similarity=extra.get("similarity_fn_name"),
        found=True,
    )


def adapt_sentence(base: Sentence, settings: Mapping[str, Any], path: Path) -> Sentence:
    """How an adapter that learnt vectors makes them: as the settings in its file say, else as its base does."""
    own = replace(base, found=True, similarity="cosine")
    if "pooling" in settings:
        modes = tuple(settings["pooling"]) if isinstance(settings["pooling"], list) else (settings["pooling"],)
        _check_modes(modes, path)
        own.pooling = Pooling(modes, (), bool(settings.get("normalize"))).eval()
    if "prompts" in settings:
        named = {"prompts": settings["prompts"], "default_prompt_name": settings.get("default_prompt")}
        own.prompts, own.default_prompt = _prompts(named, path)
    own.lower = bool(settings.get("lower", base.lower))
    own.limit = settings.get("length", base.limit)
    if own.limit is not None and _limit(own.limit) is None:
        raise BertsmithError(f"{path} has the length {own.limit!r}; that is a number of tokens, 3 or more.")
    return own


def _modules(path: Path) -> list[tuple[str, Path]]:
    """The kind and the folder of each module that computes something, in the one order that is read here."""
    try:
        named = [(str(module["type"]), str(module["path"])) for module in read_any_json(path)]
    except (KeyError, TypeError) as error:
        raise BertsmithError(f"{path} is not a list of modules with a type and a path each.") from error
    found = []
    for name, place in named:
        library, _, kind = name.rpartition(".")
        if kind == "Dropout":
            continue
        if kind not in ORDER or library.partition(".")[0] != "sentence_transformers":
            raise BertsmithError(
                f"{path} has a module of type {name}; of sentence-transformers' own, {_ORDER} are read."
            )
        steps = PurePosixPath(place)
        if steps.is_absolute() or ".." in steps.parts or "\\" in place or ":" in place:
            raise BertsmithError(
                f"{path} names the path {place!r}, which leads out of the folder; that is not followed."
            )
        found.append((kind, path.parent / place))
    kinds = [kind for kind, _ in found]
    once = all(kinds.count(kind) == 1 for kind in ORDER[:2]) and kinds.count("Normalize") < 2
    if not once or kinds != sorted(kinds, key=ORDER.index):
        raise BertsmithError(f"{path} has the modules {', '.join(kinds)}; what is read is {_ORDER}, in this order.")
    return found


def _reading(encoder: Path) -> dict[str, Any]:
    """The Transformer module's own settings, empty where it has no file for them."""
    path = next((encoder / name for name in READING if os.path.lexists(encoder / name)), None)
    settings = read_json(path) if path else {}
    _check_usual(settings, READING_USUAL, encoder / "sentence_bert_config.json")
    return settings


def _check_usual(settings: dict[str, Any], usual: dict[str, Any], path: Path) -> None:
    for setting, value in usual.items():
        if settings.get(setting, value) not in (value, None):
            raise BertsmithError(f"{path} has {setting} = {settings[setting]!r}; only {value!r} is read.")


def _limit(length: object) -> int | None:
    return length if isinstance(length, int) and length > 2 else None


def _prompts(extra: dict[str, Any], path: Path) -> tuple[dict[str, str], str | None]:
    prompts, default = extra.get("prompts") or {}, extra.get("default_prompt_name")
    if not isinstance(prompts, dict) or not all(isinstance(text, str) for text in prompts.values()):
        raise BertsmithError(f"{path} must give each of its prompts a name and a text.")
    if default is not None and default not in prompts:
        raise BertsmithError(f"{path} has default_prompt_name = {default!r}, but no prompt of that name.")
    if extra.get("truncate_dim") is not None:
        raise BertsmithError(f"{path} cuts the vectors short (truncate_dim), which is not read here.")
    return prompts, default


def _modes(path: Path) -> tuple[str, ...]:
    settings = read_json(path)
    named = settings.get("pooling_mode")
    modes = tuple(named) if isinstance(named, list) else (named,) if named else ()
    modes = modes or tuple(mode for switch, mode in SWITCHES.items() if settings.get(switch)) or ("mean",)
    _check_modes(modes, path)
    if settings.get("include_prompt") is False:
        raise BertsmithError(f"{path} leaves the prompt out of the pooling (include_prompt), which is not read here.")
    return modes


def _check_modes(modes: tuple[Any, ...], path: Path) -> None:
    unknown = [mode for mode in modes if not isinstance(mode, str) or mode not in POOLINGS]
    if unknown:
        raise BertsmithError(f"{path} has the pooling {unknown[0]!r}; known are {', '.join(POOLINGS)}.")


def _dense(place: Path) -> tuple[DenseShape, dict[str, Tensor]]:
    path = place / "config.json"
    settings = read_json(path)
    named = str(settings.get("activation_function", "torch.nn.Tanh"))
    activation = named.rpartition(".")[2]
    if activation not in DENSE_ACTIVATIONS or not named.startswith("torch.nn."):
        known = ", ".join(DENSE_ACTIVATIONS)
        raise BertsmithError(f"{path} has activation_function {named}; known are {known} of torch.nn.")
    _check_usual(settings, DENSE_USUAL, path)
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


def _check_widths(pooling: Pooling, encoder: Path) -> None:
    """Each dense layer takes what the one before it gives, the first what the poolings give together."""
    width = read_width(encoder)
    given = width * len(pooling.modes) if width else None
    for number, shape in enumerate(pooling.shapes, 1):
        if given is not None and shape.inputs != given:
            raise BertsmithError(
                f"dense layer {number} takes vectors of width {shape.inputs}, but what comes before it in "
                f"{encoder} gives {given}."
            )
        given = shape.outputs


def write_sentence(sentence: Sentence, folder: Path) -> None:
    """The files around the encoder's own; that lies in `folder` itself."""
    pooling = sentence.pooling
    modules = [("", "Transformer"), ("1_Pooling", "Pooling")]
    (folder / "1_Pooling").mkdir()
    write_json(
        folder / "1_Pooling/config.json", {"word_embedding_dimension": read_width(folder), **_pooling(pooling.modes)}
    )
    for shape, layer in zip(pooling.shapes, pooling.dense, strict=True):
        modules.append((f"{len(modules)}_Dense", "Dense"))
        place = folder / modules[-1][0]
        place.mkdir()
        write_json(place / "config.json", _dense_settings(shape))
        write_tensors(place / "model.safetensors", {f"linear.{n}": t.detach() for n, t in layer.state_dict().items()})
    if pooling.normalize:
        modules.append((f"{len(modules)}_Normalize", "Normalize"))
        (folder / modules[-1][0]).mkdir()
        write_json(folder / modules[-1][0] / "config.json", {})
    kinds = "sentence_transformers.models."
    write_json(
        folder / "modules.json",
        [{"idx": i, "name": str(i), "path": place, "type": kinds + kind} for i, (place, kind) in enumerate(modules)],
    )
    reading = {"max_seq_length": sentence.limit, "do_lower_case": sentence.lower}
    write_json(folder / "sentence_bert_config.json", reading)
    extra = {"prompts": sentence.prompts, "default_prompt_name": sentence.default_prompt}
    write_json(folder / EXTRA, {**extra, "similarity_fn_name": sentence.similarity})


def _pooling(modes: tuple[str, ...]) -> dict[str, Any]:
    """Switches, which every version reads; only where they cannot tell the order, the list that newer ones have."""
    if modes == tuple(mode for mode in SWITCHES.values() if mode in modes):
        return {switch: mode in modes for switch, mode in SWITCHES.items()}
    return {"pooling_mode": list(modes)}


def read_width(folder: Path) -> int | None:
    """The width of the token vectors, as config.json has it; whether that is true is the checkpoint's part."""
    settings = read_json(folder / "config.json")
    width = settings.get("hidden_size", settings.get("dim"))
    return width if isinstance(width, int) else None


def _dense_settings(shape: DenseShape) -> dict[str, Any]:
    home = "linear" if shape.activation == "Identity" else "activation"
    name = f"torch.nn.modules.{home}.{shape.activation}"
    return {"in_features": shape.inputs, "out_features": shape.outputs, "bias": shape.bias, "activation_function": name}
