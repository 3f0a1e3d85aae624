"""Which part of a model is meant by the name of a head: that part as a model of its own.

In: a `Model` with its own heads and adapters, and a name. Out: a `Model` with one head, or with the base's own.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from bertsmith.errors import BertsmithError
from bertsmith.layers.linear import Linear
from bertsmith.models.adapters import share_network
from bertsmith.models.checkpoint import Checkpoint
from bertsmith.resident import DOES
from bertsmith.tasks.catalog import HOMES, find_task

if TYPE_CHECKING:
    from bertsmith.model import Model

# In bertsmith.json: of a base, not of what is written alone; and of what was learnt.
OF_ADAPTERS, OF_TASKS = ("adapters", "default_for"), ("task", "settings", "run")
# A job, as verbs and heads are called -> the head it needs, and the task that one learns for it.
JOBS = {
    "fill": ("mask", ""),
    "mask": ("mask", ""),
    "follows": ("follows", ""),
    "classify": ("classify", "classify"),
    "zero-shot": ("classify", "zero-shot"),
    "score": ("classify", "regress"),
    "rerank": ("classify", "rerank"),
    "tag": ("tag", "tag"),
    "answer": ("span", "span"),
    "span": ("span", "span"),
    "choose": ("choose", "choose"),
}


def pick_head(model: "Model", name: str | None) -> "Model":
    """The adapter of that name, or whatever does that job; without a name the base with its own heads, alone."""
    if name is None:
        return _make_alone(model, model.checkpoint)
    defaults = model.trained.get("default_for", {})
    adapter = name if name in model.adapters else defaults.get(name)
    if adapter is not None:
        return _declare(model.adapters[adapter], [job for job, other in defaults.items() if other == adapter])
    if name == "embed":
        return _make_alone(model, _keep_heads(model.checkpoint, {}), is_part=True)
    if name not in JOBS:
        known = ", ".join((*model.adapters, "embed", *JOBS))
        raise BertsmithError(f"head {name!r} is not known; give the name of an adapter or of a job: {known}.")
    head, task = JOBS[name]
    home = model.need(head, f"write as a head for {name}", task)
    if home is not model:
        return home
    return _make_alone(model, _keep_heads(model.checkpoint, {head: model.checkpoint.heads[head]}), is_part=True)


def _declare(adapter: "Model", jobs: Sequence[str]) -> "Model":
    """Where a job is not called as the head that does it, the base alone knew what the adapter is for."""
    others = [job for job in jobs if job in JOBS and JOBS[job][0] not in adapter.checkpoint.heads]
    if not others:
        return adapter
    return type(adapter)(
        adapter.folder, adapter.checkpoint, adapter.sentence, adapter.device, adapter.predictor.budget,
        {**adapter.trained, DOES: others[0]}, base=adapter.base,
    )  # fmt: skip


def _make_alone(model: "Model", checkpoint: Checkpoint, is_part: bool = False) -> "Model":
    """The model without its adapters; of a part what it learnt counts where that is the part's own."""
    is_known = not is_part or _has_learnt(model.trained.get("task"), checkpoint.heads)
    left_out = OF_ADAPTERS if is_known else (*OF_ADAPTERS, *OF_TASKS)
    trained = {key: value for key, value in model.trained.items() if key not in left_out}
    return type(model)(
        model.folder, checkpoint, model.sentence, model.device, model.predictor.budget, trained, base=model.base
    )


def _has_learnt(task: Any, heads: Collection[str]) -> bool:
    """A task of a person's own may be of any head."""
    if not heads:
        return bool(task == "embed")
    return task not in HOMES or find_task(task).head in heads


def _keep_heads(checkpoint: Checkpoint, heads: Mapping[str, Any]) -> Checkpoint:
    """The checkpoint with some of its heads, on the same memory; one on features of several layers is for itself."""
    network: Any = checkpoint.network
    if set(heads) == set(checkpoint.heads) or (heads and network.features is not None):
        return checkpoint
    shared: Any = share_network(network, {name: network.heads[name].shape for name in heads})
    for name in heads:
        shared.heads[name] = network.heads[name]
    for name, module in network.named_modules():
        if isinstance(module, Linear) and module.low is not None and not name.startswith(("heads.", "mix.")):
            shared.get_submodule(name).low = module.low  # an adapter is a part of its encoder
    return Checkpoint(checkpoint.family, checkpoint.config, dict(heads), shared, checkpoint.settings)
