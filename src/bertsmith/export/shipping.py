"""The form in which a model is shipped: one base and its adapters in one folder, all of them compact.

In: a `Model` with the adapters that were put on it. Out: a folder that `bertsmith.load` opens whole, whose
bertsmith.json names the adapters, in order, and which of them does a job that several could do.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torch import Tensor

from bertsmith.keeping import write_model
from bertsmith.models.adapter_folders import MEMBERS
from bertsmith.models.adapters import fingerprint
from bertsmith.models.checkpoint import load_checkpoint
from bertsmith.models.compact import Store, read_compact, take_store, write_compact
from bertsmith.models.files import (
    ADAPTER,
    ADAPTER_CONFIG,
    COMPACT,
    COMPACT_ADAPTER,
    TASK_FILE,
    WEIGHTS,
    read_json,
    read_noted,
    write_json,
)
from bertsmith.resident import DEFAULTS, NAMED, check_able, check_defaults

if TYPE_CHECKING:
    from bertsmith.model import Model

BESIDE = "../.."  # the base of an adapter that lies in the base's own folder


def write_shipped(
    model: "Model", folder: Path, store: str, adapter_store: str, defaults: Mapping[str, str]
) -> dict[str, float]:
    """For each part, "" being the base, the relative error that its storage brought.

    A model that is an adapter itself is written whole, its base included.
    """
    stores = take_store(store), take_store(adapter_store)
    names = list(model.adapters)
    declared = {**model.trained.get(DEFAULTS, {}), **defaults}
    check_defaults(declared, names, "what is asked for")
    check_able(model, defaults)
    write_model(model, folder)
    _forget_origin(folder / "config.json", "_name_or_path")
    errors = {"": _pack(folder / WEIGHTS, folder / COMPACT, stores[0])}
    base = fingerprint(load_checkpoint(folder).network)  # which has other numbers now than the adapters were made for
    for name in names:
        place = folder / MEMBERS / name
        errors[name] = _pack(place / ADAPTER, place / COMPACT_ADAPTER, stores[1], {"base": base})
        if (place / ADAPTER_CONFIG).exists():
            settings = read_json(place / ADAPTER_CONFIG)
            write_json(place / ADAPTER_CONFIG, {**settings, "base_model_name_or_path": BESIDE})
    if names or model.trained:
        about = {**model.trained, **({NAMED: names} if names else {}), **({DEFAULTS: declared} if declared else {})}
        write_json(folder / TASK_FILE, about)
    return errors


def _forget_origin(path: Path, key: str) -> None:
    """A path of whoever made the model is nobody else's business."""
    settings = read_json(path)
    write_json(path, {name: value for name, value in settings.items() if name != key})


def _pack(plain: Path, compact: Path, store: Store, changed: Mapping[str, str] | None = None) -> float:
    """The plain file becomes a compact one; how far the numbers are from those before."""
    tensors, notes = read_noted(plain)
    write_compact(compact, tensors, store, {**notes, **(changed or {})})
    plain.unlink()
    return measure_error(tensors, read_compact(compact)[0])


def measure_error(before: Mapping[str, Tensor], after: Mapping[str, Tensor]) -> float:
    """The length of the difference as a share of the length of all numbers together."""
    lost: Any = sum((after[name].double() - tensor.double()).square().sum() for name, tensor in before.items())
    whole: Any = sum(tensor.double().square().sum() for tensor in before.values())
    return float(lost / whole) ** 0.5 if whole else 0.0
