"""The tasks that can be trained, by name; and a person's own, as `module:Class`."""

from importlib import import_module
from typing import Any

from bertsmith.errors import BertsmithError
from bertsmith.tasks.trained import TrainedTask

HOMES = {
    "classify": "bertsmith.tasks.classify:Classify",
    "tag": "bertsmith.tasks.tag:Tag",
    "span": "bertsmith.tasks.span:Span",
    "regress": "bertsmith.tasks.regress:Regress",
    "choose": "bertsmith.tasks.choose:Choose",
    "embed": "bertsmith.tasks.embed_training:EmbedPairs",
    "rerank": "bertsmith.tasks.rerank:Rerank",
}


def find_task(name: str) -> type[TrainedTask[Any, Any]]:
    module, _, leaf = HOMES.get(name, name).partition(":") if isinstance(name, str) else ("", "", "")
    if not leaf or not all(part.isidentifier() for part in module.split(".")):
        raise BertsmithError(
            f"task={name!r} is not a choice; use one of {', '.join(HOMES)}, or module:Class for your own."
        )
    try:
        found = getattr(import_module(module), leaf)
    except (ImportError, AttributeError) as error:
        raise BertsmithError(f"the task {name} cannot be found: {error}.") from error
    if not (isinstance(found, type) and issubclass(found, TrainedTask)):
        raise BertsmithError(f"{name} is not a task: it must be a subclass of bertsmith.tasks.trained.TrainedTask.")
    return found
