"""Adapters on a loaded model: any number of them on one encoder's memory, and which of them can do a job.

In: a `Model` and the name or the folder of an adapter. Out: a `Model` that shares everything but the adapter.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from bertsmith.errors import BertsmithError
from bertsmith.models.adapters import MEMBERS, is_adapter, read_adapter
from bertsmith.models.files import TASK_FILE, read_json
from bertsmith.tasks.catalog import HOMES

if TYPE_CHECKING:
    from bertsmith.model import Model


def read_trained(folder: Path) -> dict[str, Any]:
    """What a fine-tuning left about its task."""
    return read_json(folder / TASK_FILE) if (folder / TASK_FILE).exists() else {}


def list_adapters(folder: Path) -> dict[str, Path]:
    """The adapters in a model's own folder: the heads of several tasks on one encoder."""
    return {place.name: place for place in sorted((folder / MEMBERS).glob("*")) if is_adapter(place)}


def put_adapter(model: "Model", given: str | Path) -> "Model":
    """The model with an adapter from a folder."""
    try:
        folder = Path(given).expanduser()
        is_there = is_adapter(folder)
    except (OSError, ValueError, RuntimeError):
        is_there = False
    if not is_there:
        known = f"its adapters are {', '.join(model.adapters)}" if model.adapters else "it has none loaded"
        raise BertsmithError(f"{model.folder} has no adapter {str(given)!r} ({known}), and there is no folder of one.")
    checkpoint = read_adapter(folder, model.checkpoint)
    checkpoint.network.pack()  # of the head, where the base is packed
    return type(model)(
        folder, checkpoint, model.sentence, model.device, model.predictor.budget, read_trained(folder), base=model
    )


def find_home(model: "Model", head: str, what: str, task: str) -> "Model":
    """The model itself, or the one of its adapters that has the head; `task` is what the head was trained for."""
    if head in model.checkpoint.heads:
        return model
    able = {name: other for name, other in model.adapters.items() if head in other.checkpoint.heads}
    meant = {name: other for name, other in able.items() if other.trained.get("task") in (task, None)} if task else able
    if len(meant or able) == 1:
        return next(iter((meant or able).values()))
    if able:
        raise BertsmithError(
            f"several adapters of {model.folder} can {what}: {', '.join(meant or able)}; say which "
            f"(use {next(iter(meant or able))!r})."
        )
    there = ", ".join(name for name in model.checkpoint.heads if name != "pool") or "none"
    there += f"; of its adapters: {', '.join(model.adapters)}" if model.adapters else ""
    name = task if task in HOMES else head
    first = f"fine-tune it for that (finetune, task {name!r}), or " if name in HOMES else ""
    raise BertsmithError(f"{model.folder} has no head to {what} (heads there: {there}); {first}give another model.")
