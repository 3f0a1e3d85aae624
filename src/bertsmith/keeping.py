"""What a model's folder keeps beside its weights: its tokenizer, the settings of its task, its adapters, how
it makes vectors.

In: a `Model`. Out: what to predict by, or files.
"""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bertsmith.errors import BertsmithError
from bertsmith.models.adapter_folders import MEMBERS, is_adapter
from bertsmith.models.adapters import write_adapter, write_member
from bertsmith.models.checkpoint import Checkpoint, save_config, save_weights
from bertsmith.models.files import TASK_FILE, write_json, written_aside
from bertsmith.models.lora import give_lora
from bertsmith.models.sentence import write_sentence
from bertsmith.resident import NAMED
from bertsmith.tasks.embed_training import EmbedPairs
from bertsmith.tasks.trained import TrainedTask
from bertsmith.text.loading import load_tokenizer
from bertsmith.text.tokenizer import Tokenizer

if TYPE_CHECKING:
    from bertsmith.model import Model


def find_settings(model: "Model", kind: type[TrainedTask[Any, Any]]) -> dict[str, Any]:
    """What the fine-tuning of this folder left about the task, or what config.json tells of it."""
    settings = model.trained.get("settings") if model.trained.get("task") == kind.name else None
    if kind.head is None:  # it reads the encoder itself
        if isinstance(settings, dict):
            return dict(settings)
        return kind.settings_of(model.sentence) if issubclass(kind, EmbedPairs) else kind.settings_from([], None)
    head: Any = model.checkpoint.network.heads[kind.head]
    outputs = head.shape.outputs
    if model.trained.get("task") == kind.name:
        if not isinstance(settings, dict) or len(settings.get("labels") or ()) != outputs:
            raise BertsmithError(
                f"{model.folder / TASK_FILE} does not belong to the model, whose head has {outputs} outputs; "
                "copy the folder again, or remove that file to use what config.json says."
            )
        return dict(settings)
    labels = model.checkpoint.labels or [f"LABEL_{number}" for number in range(outputs)]
    return kind.settings_from(labels, model.checkpoint.settings.get("problem_type"))


def read_tokenizer(model: "Model") -> Tokenizer:
    """That of the folder; one with more pieces than the model has words is another model's."""
    tokenizer = load_tokenizer(model.sentence.encoder)
    if tokenizer.size > model.checkpoint.config.vocabulary:
        raise BertsmithError(
            f"the tokenizer in {model.folder} gives ids up to {tokenizer.size - 1:,}, but the model's word table "
            f"has {model.checkpoint.config.vocabulary:,} rows; they do not belong together."
        )
    return tokenizer


def save_model(model: "Model", folder: Path) -> None:
    """`write_model` into a folder where another model may lie; its adapters would not fit this one."""
    there = [place.name for place in sorted((folder / MEMBERS).glob("*")) if is_adapter(place)]
    others = [name for name in there if name not in model.adapters]
    if others:
        raise BertsmithError(
            f"{folder / MEMBERS} holds the adapter {others[0]!r}, which the model to be saved does not have; give "
            "another folder, or move that away."
        )
    with written_aside(folder) as aside:
        write_model(model, aside)


def write_model(model: "Model", folder: Path) -> None:
    """A folder that this and other libraries open; adapters that were loaded with the model lie in it too."""
    write_beside(model, folder)
    save_weights(model.checkpoint, folder)
    for name, adapter in model.adapters.items():
        place = folder / MEMBERS / name
        if give_lora(adapter.checkpoint):
            write_adapter(adapter.checkpoint, place, model.folder)
        else:
            write_member(adapter.checkpoint, next(iter(adapter.checkpoint.heads), None), place)
        if adapter.trained:
            write_json(place / TASK_FILE, adapter.trained)


def write_beside(model: "Model", folder: Path) -> None:
    """All that a model's folder has but its weights and adapters."""
    save_config(_with_problem(model), folder)
    model.tokenizer.save(folder)
    if model.sentence.found:
        write_sentence(model.sentence, folder)
    trained = {**model.trained, **({NAMED: list(model.adapters)} if NAMED in model.trained else {})}
    if trained:
        write_json(folder / TASK_FILE, trained)


def _with_problem(model: "Model") -> Checkpoint:
    """The checkpoint with the problem_type that others judge its scores by; an adapter's folder has no config.json."""
    known, checkpoint = model.trained.get("settings"), model.checkpoint
    if "problem_type" in checkpoint.settings or not isinstance(known, dict):
        return checkpoint
    several = f"{'multi' if known.get('several') else 'single'}_label_classification"
    problem = {"regress": "regression", "classify": several}.get(str(model.trained.get("task")))
    return replace(checkpoint, settings={**checkpoint.settings, "problem_type": problem}) if problem else checkpoint
