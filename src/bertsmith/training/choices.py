"""What a person may choose for a fine-tuning beside the data: about the task, and about training (`Training`).

The same names everywhere: keyword arguments in Python, flags on the command line, keys of a TOML file.
"""

import difflib
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Literal

from bertsmith.errors import BertsmithError
from bertsmith.training.settings import Training, check_types

COLUMNS = (
    "text", "pair", "label", "words", "tags", "entities", "question", "context", "answers", "id", "prompt", "choices",
    "answer", "query", "passage", "negative",
)  # fmt: skip

SETTLED = ("thresholds", "scheme", "label_scheme", "swap", "calibrate", "dev_share")  # by a fine-tuning, for good

# Not those of a person's own, which may use any choice.
TASKS = ("classify", "tag", "span", "regress", "choose", "embed", "rerank")
USED_BY = {
    **dict.fromkeys(("several", "separator", "positive", "thresholds", "calibrate"), ("classify",)),
    "label_names": ("classify", "tag"),
    "swap": ("classify", "regress"),
    **dict.fromkeys(("scheme", "label_scheme"), ("tag",)),
    **dict.fromkeys(("overlap", "question_length", "answer_length"), ("span",)),
    "dims": ("embed",),
    "negatives": ("rerank",),
}
# What other libraries call it.
ALIASES = {
    **dict.fromkeys(("lr", "learning_rate", "max_lr", "peak_lr"), "rate"),
    **dict.fromkeys(("bs", "batch_size", "train_batch_size", "per_device_train_batch_size"), "batch"),
    **dict.fromkeys(("num_epochs", "num_train_epochs", "n_epochs", "max_epochs"), "epochs"),
    **dict.fromkeys(("max_length", "max_len", "max_seq_length", "max_seq_len", "model_max_length"), "length"),
    **dict.fromkeys(("wd", "decay", "l2"), "weight_decay"),
    **dict.fromkeys(("warmup_ratio", "warmup_proportion", "warmup_steps"), "warmup"),
    **dict.fromkeys(("scheduler", "lr_scheduler", "lr_scheduler_type"), "schedule"),
    **dict.fromkeys(("grad_clip", "max_grad_norm", "gradient_clip_val"), "clip"),
    **dict.fromkeys(("fp16", "bf16", "amp", "mixed_precision"), "precision"),
    **dict.fromkeys(("eval_steps", "eval_every"), "evaluate_every"),
    **dict.fromkeys(("random_state", "random_seed"), "seed"),
    **dict.fromkeys(("stride", "doc_stride"), "overlap"),
    **dict.fromkeys(("matryoshka_dims", "truncate_dim", "dimensions"), "dims"),
    **dict.fromkeys(("num_negatives", "n_negatives"), "negatives"),
    **dict.fromkeys(("output_dir", "output", "save_dir"), "out"),
    **dict.fromkeys(("eval", "validation", "valid"), "dev"),
    "adam_epsilon": "eps",
    "early_stopping_patience": "patience",
    "gradient_checkpointing": "recompute",
    "hidden_dropout_prob": "dropout",
    "label_smoothing": "smoothing",
    "label_smoothing_factor": "smoothing",
    "llrd": "layer_decay",
    "logging_steps": "log_every",
    "max_answer_length": "answer_length",
    "max_query_length": "question_length",
    "metric_for_best_model": "metric",
    "model_name_or_path": "model",
    "optim": "optimizer",
    "total_steps": "max_steps",
    "truncation": "truncate",
    "validation_split": "dev_share",
}
Policy = Literal["error", "head", "tail", "head+tail", "windows"]


@dataclass(frozen=True)
class TaskChoices:
    """About the task; what one of ours has no use for is refused (`refuse_unused`)."""

    several: bool | None = None  # classify: any number of labels a text; None: as the data looks
    separator: str | None = None  # classify: between several labels in one cell
    label_names: str | None = None  # a file with one label name a line, where the data has numbers
    positive: str | None = None  # classify: the label whose F1 is asked for, of two
    thresholds: str | float | None = None  # classify, several labels: one, each, or a number
    scheme: str | None = None  # tag: of the data; None: found
    label_scheme: str | None = None  # tag: what the head is trained in
    truncate: Policy | None = None  # what to do with long inputs
    length: int | None = None  # tokens in a row; None: as many as the model takes
    overlap: int | None = None  # span: pieces of the context that neighbouring windows share
    question_length: int | None = None  # span
    answer_length: int | None = None  # span
    dims: str | None = None  # embed: the lengths to which vectors may be cut, as in 384,128,64
    negatives: int = 4  # rerank: texts of other queries that stand against a query's own, where the data has none
    swap: bool = False  # classify and regress: train on each pair the other way round too
    calibrate: bool = False  # fit a temperature on the development set
    dev_share: float = 0.1  # of the training examples, where no development set is given

    def __post_init__(self) -> None:
        check_types(self)
        for name in ("length", "question_length", "answer_length"):
            if getattr(self, name) is not None and getattr(self, name) < 1:
                raise BertsmithError(f"{name} is {getattr(self, name)}; it must be at least 1.")
        if self.negatives < 1:
            raise BertsmithError(f"negatives is {self.negatives}; it must be at least 1.")
        if not 0 < self.dev_share < 1:
            raise BertsmithError(f"dev_share is {self.dev_share}; it must be between 0 and 1.")


def sort_choices(given: Mapping[str, Any]) -> tuple[TaskChoices, Training, dict[str, str]]:
    """What was given by name, as choices about the task, about training, and role -> column."""
    known = {field.name: kind for kind in (TaskChoices, Training) for field in fields(kind)}
    parts: dict[Any, dict[str, Any]] = {TaskChoices: {}, Training: {}, "columns": {}}
    for name, value in given.items():
        if name in COLUMNS:
            parts["columns"] |= take_columns({name: value})
        elif name in known:
            parts[known[name]][name] = plain_value(name, value)
        else:
            raise BertsmithError(f"{name} is not a setting{suggest(name, [*known, *COLUMNS])}")
    choices, training = TaskChoices(**parts[TaskChoices]), Training(**parts[Training])
    if training.schedule != "trapezoid" and training.cooldown != Training.cooldown:
        told = f"cooldown is for schedule trapezoid, and schedule is {training.schedule!r}"
        raise BertsmithError(f"{told}; leave it out, or give schedule trapezoid.")
    return choices, training, parts["columns"]


def plain_value(name: str, value: Any) -> Any:
    """As JSON and a command line hold it: paths and columns as words; dims may be a list or a number too."""
    if name in COLUMNS:
        return take_columns({name: value}).get(name)
    if name == "dims" and isinstance(value, list | tuple | int) and not isinstance(value, bool):
        return ",".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
    return str(value) if isinstance(value, Path) else value


def take_columns(given: Any) -> dict[str, str]:
    """Role -> column, as a person gave it."""
    if not isinstance(given, Mapping):
        raise BertsmithError(f'columns is {given!r}; give each role its column, as in {{"text": "review"}}.')
    for role in given:
        if role not in COLUMNS:
            raise BertsmithError(f"{role} is not a column's role{suggest(str(role), [*COLUMNS])}")
    return {role: _take_column(role, value) for role, value in given.items() if value is not None}


def _take_column(role: str, value: Any) -> str:
    """A column's name, or its number counted from 1; of labels that have a column each, all of them."""
    if role == "label" and isinstance(value, list | tuple) and value:
        return ",".join(_take_column(role, one) for one in value)
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise BertsmithError(f"{role} is {value!r}; give the name or the number of a column.")
    return str(value)


def refuse_training(given: Mapping[str, Any]) -> None:
    """What a fine-tuned model cannot be given any more: it was settled when it was trained."""
    settled = {field.name: field.default for field in fields(Training)}
    settled |= {field.name: field.default for field in fields(TaskChoices) if field.name in SETTLED}
    for name, value in given.items():
        if name in settled and value != settled[name]:
            raise BertsmithError(f"{name} is settled when a model is fine-tuned; leave it out here.")


def suggest(name: str, known: list[str]) -> str:
    """The end of a sentence about a name that is not known."""
    name = name.replace("-", "_").lower()
    alias = ALIASES.get(name)
    near = [alias] if alias in known else difflib.get_close_matches(name, known, 1)
    return f"; did you mean {near[0]}?" if near else "."


def refuse_unused(task: str, choices: TaskChoices) -> None:
    """What was chosen and would have no effect."""
    for field in fields(choices):
        users = USED_BY.get(field.name, TASKS)
        if task in TASKS and task not in users and getattr(choices, field.name) != field.default:
            raise BertsmithError(
                f"{field.name} is for {' and '.join(users)} and has no use in {task}; leave --{_flag(field.name)} out."
            )


def _flag(name: str) -> str:
    return name.replace("_", "-")


def read_toml(path: str | Path) -> dict[str, Any]:
    """A file of settings, flat or in tables, whose names do not matter."""
    try:
        content = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise BertsmithError(f"{path} cannot be read: {error.strerror or error}.") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BertsmithError(f"{path} is not valid TOML: {error}.") from error
    found: dict[str, Any] = {}
    for name, value in content.items():
        for key, inner in value.items() if isinstance(value, dict) else [(name, value)]:
            key = key.replace("-", "_")
            if key in found:
                raise BertsmithError(f"{path} has {key} twice; leave one of them out.")
            found[key] = inner
    return found


def as_asked(choices: TaskChoices, training: Training) -> dict[str, Any]:
    """What a run is known by: another value makes it another run."""
    return {**asdict(choices), **asdict(training), "rate": training.peak}
