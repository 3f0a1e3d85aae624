"""`bertsmith.export_model`: a model is written in the layout that somebody else needs, or in the one that is shipped.

In: a model and the name of a form. Out: a folder that is there whole or not at all, and what was written.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, get_args

from bertsmith.arguments import checked
from bertsmith.describing import list_heads
from bertsmith.errors import BertsmithError
from bertsmith.evaluating import find_kind, open_table, prepare
from bertsmith.evaluation.scoring import score_examples
from bertsmith.export.heads import pick_head
from bertsmith.export.onnx_folder import write_graph
from bertsmith.export.placing import refuse_sources, written_new
from bertsmith.export.plain import name_class, write_plain
from bertsmith.export.shipping import write_shipped
from bertsmith.loading import load
from bertsmith.model import Model
from bertsmith.models.adapter_folders import is_adapter
from bertsmith.models.files import take_folder
from bertsmith.models.graph import open_graph
from bertsmith.models.hub import GRAPHS
from bertsmith.tasks.catalog import find_task
from bertsmith.tasks.measures import LOWER_IS_BETTER
from bertsmith.training.choices import TaskChoices
from bertsmith.training.interrupts import terminable

Form = Literal["transformers", "compact", "onnx"]
STORES: dict[str, str] = {"transformers": "fp32", "compact": "int8", "onnx": "fp32"}
MAX_LOSS = 0.02
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")  # it becomes a folder's, and part of an id in the server


@dataclass(frozen=True)
class Exported:
    folder: Path
    form: str
    store: str
    sizes: dict[str, int]  # bytes of each part: "" is the base, the others are its adapters
    opens: str = ""  # the class of transformers that opens it
    left_out: list[str] = field(default_factory=list)  # adapters that are not in it
    errors: dict[str, float] = field(default_factory=dict)  # of each part: how far its numbers are from the ones before
    largest_error: float | None = None  # of a graph's scores, as a share of the largest; `errors` has the usual one
    metric: str = ""  # by which the model and its graph were compared on data
    scores: tuple[float, float] | None = None  # before and after

    @property
    def size(self) -> int:
        return sum(self.sizes.values())


@checked("out")
def export_model(
    source: str | Path | Model | None,
    out: str | Path,
    *,
    to: Form = "transformers",
    head: str | None = None,
    store: str | None = None,
    adapter_store: str | None = None,
    adapters: Mapping[str, str | Path] | None = None,
    defaults: Mapping[str, str] | None = None,
    data: Any = None,
    max_loss: float | None = None,
    overwrite: bool = False,
    download: bool = False,
) -> Exported:
    """Write a model as "transformers" opens it, "compact": the base and its adapters in a quarter of the bytes, or
    "onnx": a graph that ONNX Runtime runs without torch.

    `head` (transformers, onnx) is the name of an adapter, which becomes part of the weights, or of a job (tag, answer,
    …); without it the base is written with its own heads. `store` is fp32, bf16 or fp16 for transformers, int8, bf16
    or fp32 in the compact form, where `adapter_store` may differ from it, and fp32 or int8 for onnx. `adapters`,
    name -> folder, come beside those that the model has; `defaults`, job -> name, say which of them does a job that
    several can do. With `data` (onnx) the model and its graph are scored on it, and a graph whose score is worse by
    more than `max_loss` (0.02) is not written.
    """
    _check(to, head, adapter_store, adapters, defaults)
    limit = _check_scoring(to, data, max_loss)
    folder, beside = take_folder(out), _check_adapters(adapters)
    if not isinstance(source, Model):
        model = load(source, device="cpu", download=download, adapters=beside)
    else:
        own = {name: adapter.folder for name, adapter in source.adapters.items()}
        exact = to != "onnx" or (source.device.type == "cpu" and source.dtype == "float32")
        model = source if exact and not beside else load(source.folder, device="cpu", adapters={**own, **beside})
    refuse_sources(model, folder)
    with terminable(), written_new(folder, overwrite) as aside:
        if to == "transformers":
            chosen = pick_head(model, head)
            write_plain(chosen, aside, store or STORES[to])
            left = [name for name, other in model.adapters.items() if other.checkpoint is not chosen.checkpoint]
            found = Exported(folder, to, store or STORES[to], _measure(aside), name_class(aside), left)
        elif to == "onnx":
            chosen, kept = pick_head(model, head), store or STORES[to]
            agreement = write_graph(chosen, aside, kept)
            metric, scores = ("", None) if data is None else _score_both(chosen, aside, kept, data, limit)
            left = [name for name, other in model.adapters.items() if other.checkpoint is not chosen.checkpoint]
            found = Exported(
                folder, to, kept, _measure(aside), name_class(aside), left, {"": agreement.usual}, agreement.largest,
                metric, scores,
            )  # fmt: skip
        else:
            base_store = store or STORES[to]
            errors = write_shipped(model, aside, base_store, adapter_store or base_store, defaults or {})
            found = Exported(folder, to, base_store, _measure(aside), errors=errors)
    return found


def _score_both(model: Model, folder: Path, store: str, data: Any, limit: float) -> tuple[str, tuple[float, float]]:
    """The name of the task's main metric, and what the model and the graph reach on the data."""
    kind = find_task(find_kind(model) if list_heads(model) else "embed")
    home, task, examples = prepare(model, kind, open_table(data, None), {}, TaskChoices())
    predictors = home.predictor, replace(home.predictor, network=open_graph(folder / GRAPHS[store], folder).network)
    scored = [score_examples(predictor, task, examples, None).measures for predictor in predictors]
    name = task.metric if task.metric in scored[0] else next(iter(scored[0]))
    before, after = (measures[name].point for measures in scored)
    lost = (after - before) * (1 if name in LOWER_IS_BETTER else -1)
    if lost > limit:
        raise BertsmithError(
            f"{name} would change from {before:.4f} to {after:.4f} on {len(examples):,} examples, more than is allowed "
            f"({limit:g}); nothing was written. Write the graph in fp32, or allow more (--max-loss)."
        )
    return name, (before, after)


def _check_scoring(to: str, data: Any, max_loss: float | None) -> float:
    if to != "onnx" and (data is not None or max_loss is not None):
        raise BertsmithError("data and max_loss belong to the form onnx; score other folders with `evaluate`.")
    if max_loss is not None and data is None:
        raise BertsmithError("max_loss needs data to score the model on (--data).")
    if max_loss is not None and not 0 <= max_loss <= 1:
        raise BertsmithError(f"max_loss={max_loss!r} must be a number from 0 to 1.")
    return MAX_LOSS if max_loss is None else max_loss


def _check(
    to: str, head: str | None, adapter_store: str | None, adapters: Mapping[str, str | Path] | None,
    defaults: Mapping[str, str] | None,
) -> None:  # fmt: skip
    """Settings of the other form are refused, not overlooked."""
    if to not in get_args(Form):
        raise BertsmithError(f"to={to!r} is not a choice; use one of {', '.join(get_args(Form))}.")
    if to == "compact" and head is not None:
        raise BertsmithError("the compact form holds all heads and adapters; leave head out, or write to transformers.")
    if to != "compact" and (adapter_store or adapters or defaults):
        raise BertsmithError("adapters are put together in the compact form alone; a plain folder has one head (head).")


def _check_adapters(given: Mapping[str, str | Path] | None) -> dict[str, Path]:
    found = {name: take_folder(folder) for name, folder in (given or {}).items()}
    for name, folder in found.items():
        if not NAME.fullmatch(name):
            raise BertsmithError(f"{name[:60]!r} cannot be an adapter's name; use letters, digits and . _ - alone.")
        if (folder / "config.json").exists() and not is_adapter(folder):
            raise BertsmithError(
                f"{folder} is a whole model and not an adapter; train it on the base with --lora, or as one of several "
                "heads with --members."
            )
    return found


def _measure(folder: Path) -> dict[str, int]:
    """Bytes of all files, those of each adapter apart."""
    sizes = {"": 0}
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            parts = path.relative_to(folder).parts
            name = parts[1] if parts[0] == "adapters" and len(parts) > 2 else ""
            sizes[name] = sizes.get(name, 0) + path.stat().st_size
    return sizes
