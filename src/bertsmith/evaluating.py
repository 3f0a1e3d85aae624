"""`bertsmith.evaluate`: how well a model, or somebody's predictions, do on labelled data; which of two is better.

In: a model folder (or a file of predictions) and data. Out: plain JSON: each metric with its interval, what was cut.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from bertsmith.arguments import checked
from bertsmith.checking import choose_kind
from bertsmith.data.columns import find_roles
from bertsmith.data.examples import SpanExample
from bertsmith.data.folders import require_split
from bertsmith.data.labels import guess_separator, read_label_names
from bertsmith.data.reading import holds_splits, read_table
from bertsmith.data.table import Table
from bertsmith.errors import BertsmithError
from bertsmith.evaluation.intervals import compare as compare_measures
from bertsmith.evaluation.scoring import Scored, score_examples, with_intervals
from bertsmith.loading import load
from bertsmith.model import Model
from bertsmith.models.files import read_json
from bertsmith.resident import find_default_home
from bertsmith.tasks.catalog import HOMES, find_task
from bertsmith.tasks.classes import label_number, take_positive
from bertsmith.tasks.classify import Classify
from bertsmith.tasks.embed import take_dims
from bertsmith.tasks.entities import refuse_strange
from bertsmith.tasks.measures import Measure
from bertsmith.tasks.squad_score import score_predictions
from bertsmith.tasks.tag import Tag
from bertsmith.tasks.trained import TrainedTask
from bertsmith.training.choices import TaskChoices, refuse_training, refuse_unused, sort_choices
from bertsmith.training.preparing import check_length


@checked("device", "dtype", "predictions")
def evaluate(
    model: Model | str | Path | None,
    data: Any,
    *,
    task: str | None = None,
    use: str | Path | None = None,
    compare: Model | str | Path | None = None,
    predictions: str | Path | Mapping[str, str] | None = None,
    device: str = "auto",
    dtype: str = "float32",
    threads: int | None = None,
    batch_tokens: int | None = None,
    format: str | None = None,
    download: bool = False,
    **settings: Any,
) -> dict[str, Any]:
    """`metrics` with `value, low, high, n` each; `compare` is a second model, scored on the same examples.

    A model that is loaded is scored as it is, where and in the numbers that it was loaded with. `use` names one of the
    model's adapters, or the folder of another.

    Instead of a model, `predictions` may hold the answers to SQuAD's questions, id -> text. `settings` are columns and
    the task's choices, as in `finetune`. A class that the model does not know is refused, since names that do not match
    would look like a bad model; a tag that it does not know counts as missed, as conlleval has it, if it knows others.
    """
    choices, _, columns = sort_choices(settings)
    refuse_training(settings)
    if predictions is not None:
        chosen = {name: value for name, value in asdict(choices).items() if value != getattr(TaskChoices(), name)}
        _refuse_beside(
            {"model": model, "compare": compare, "use": use, "task": None if task == "span" else task, **chosen}
        )
        return _score_predictions(predictions, open_table(data, format), columns, choices)
    how: dict[str, Any] = {"device": device, "dtype": dtype, "threads": threads, "batch_tokens": batch_tokens,
                           "download": download}  # fmt: skip
    models = [_open(m, how) for m in ([model] if compare is None else [model, compare])]
    models[0] = models[0] if use is None else models[0].use(use)
    name = task or find_kind(models[0])
    kind = find_task(name)
    refuse_unused(name, choices)
    table = open_table(data, format)
    found = [_score(each, kind, table, columns, choices) for each in models]
    report = _report(found[0], kind.name, table)
    if compare is not None:
        report["compare"] = _compare(found, str(compare.folder if isinstance(compare, Model) else compare))
    return report


def _refuse_beside(given: Mapping[str, Any]) -> None:
    """Predictions are there already: whatever says how they are made would have no effect."""
    name = next((name for name, value in given.items() if value is not None), None)
    if name is not None:
        raise BertsmithError(
            f"predictions are scored alone, and {name} would have no effect on them; leave {name} out."
        )


def _open(model: Model | str | Path | None, how: dict[str, Any]) -> Model:
    if not isinstance(model, Model):
        return load(model, **how)
    usual = {"device": "auto", "dtype": "float32", "threads": None, "batch_tokens": None, "download": False}
    if given := [name for name, value in how.items() if value != usual[name]]:
        raise BertsmithError(f"{model.folder} is loaded already: give {' and '.join(given)} to `load`, not here.")
    return model


def find_kind(model: Model) -> str:
    """The task that a model was fine-tuned for."""
    heads = [name for name in HOMES if find_task(name).head in model.checkpoint.heads]
    known = model.trained.get("task")
    if known in heads or known == "embed":
        return str(known)
    if known:  # its class is never looked up by what a folder says: that would run code that came with a model
        raise BertsmithError(
            f"{model.folder} was fine-tuned for a task of its own, {known!r}; "
            "name the class (task=module:Class, --task)."
        )
    is_number = model.checkpoint.settings.get("problem_type") == "regression"  # else the one output is a class's
    # And whether classes are those of a cross-encoder only a person knows.
    heads = [name for name in heads if name not in ("rerank", "classify" if is_number else "regress")]
    if not heads and len(model.adapters) == 1:
        return find_kind(*model.adapters.values())
    if not heads and model.adapters:
        names = ", ".join(model.adapters)
        raise BertsmithError(f"{model.folder} has the adapters {names}; say which one is meant (use), or the task.")
    if not heads:
        asked = ", ".join(name for name in HOMES if name != "embed")
        raise BertsmithError(
            f"{model.folder} has no head for any of {asked}; fine-tune it first, give another model, or score its "
            f"vectors (task embed)."
        )
    if len(heads) > 1:
        raise BertsmithError(f"{model.folder} has heads for {', '.join(heads)}; say which task is meant.")
    return heads[0]


def open_table(data: Any, format: str | None) -> Table:
    """The table to score; a folder has one under the usual names of dev."""
    if holds_splits(data):
        data = require_split(data, "dev")
    return read_table(data, name="" if isinstance(data, str | Path) else "data", format=format)


def _read(
    kind: type[TrainedTask[Any, Any]], table: Table, columns: dict[str, str], choices: TaskChoices,
    labels: Sequence[str] = (),
) -> Sequence[Any]:  # fmt: skip
    given = {name: value for name, value in asdict(choices).items() if value is not None}
    if choices.label_names is not None:
        given["label_names"] = read_label_names(choices.label_names)
    roles = find_roles([table], kind.roles, columns, kind.required)[0]
    is_asked = given.get("several") and not {"separator", "label_names"} & set(given)
    if is_asked and roles.get("label") in table.columns:
        given["separator"] = guess_separator(table, roles["label"], labels)
    examples = kind.examples(table, roles, given)
    if not examples:
        raise BertsmithError(f"{table.name} holds no example to score.")
    return examples


def _score(
    model: Model, kind: type[TrainedTask[Any, Any]], table: Table, columns: dict[str, str], choices: TaskChoices
) -> Scored:
    home, task, examples = prepare(model, kind, table, columns, choices)
    return score_examples(home.predictor, task, examples, None)


def prepare(
    model: Model, kind: type[TrainedTask[Any, Any]], table: Table, columns: dict[str, str], choices: TaskChoices
) -> tuple[Model, TrainedTask[Any, Any], Sequence[Any]]:
    """The model or adapter that is scored, the task as it learnt it, and the examples of the table."""
    if kind.head is not None:
        model = model.need(kind.head, f"be scored for {kind.name}", kind.name)
    else:
        model = find_default_home(model, kind.name)
    settings = model.task_settings(kind)
    check_length(choices.length, model.limit, model.tokenizer, model.folder)
    chosen = asdict(choices)
    for name in ("length", "overlap", "question_length", "answer_length", "positive"):
        if chosen[name] is not None:
            settings[name] = chosen[name]
    if choices.positive is not None and issubclass(kind, Classify):
        settings["positive"] = take_positive(choices.positive, settings["labels"], settings["several"])
    if choices.dims is not None and kind.name == "embed":
        settings["cut"] = take_dims(int(choices.dims) if choices.dims.isdecimal() else choices.dims, model.vector_width)
    if choices.several is None and "several" in settings:
        choices = TaskChoices(**{**chosen, "several": settings["several"]})
    examples = _read(kind, table, columns, choices, settings.get("labels") or ())
    task = kind(model.tokenizer, model.limit, choices.truncate or settings["truncate"], settings)
    if isinstance(task, Tag):
        golds = [example.tags or () for example in examples]
        refuse_strange(golds, task.labels, task.scheme, task.label_scheme, table.name)
    return model, task, examples


def _report(scored: Scored, task: str, table: Table) -> dict[str, Any]:
    cut = [sum(row.dropped for row in rows) for rows in scored.rows]
    return {
        "task": task,
        "data": table.name,
        "examples": len(scored.examples),
        "metrics": scored.metrics(),
        "truncated": {"inputs": sum(map(bool, cut)), "tokens": sum(cut), "policy": scored.task.truncate},
    }


def _compare(found: Sequence[Scored], other: str) -> dict[str, Any]:
    """The second against the first, example by example: a difference below 0 says that the second is worse."""
    second = _score_alike(*found)
    ours, theirs = found[0].measures, second.measures
    shared = {name: measure for name, measure in ours.items() if name in theirs}
    differences = {name: asdict(compare_measures(theirs[name], measure)) for name, measure in shared.items()}
    return {"model": other, "metrics": second.metrics(), "differences": differences}


def _score_alike(first: Scored, second: Scored) -> Scored:
    """The second with the F1 of the very label whose F1 is told of the first."""
    told = first.task.positive if isinstance(first.task, Classify) and "f1" in first.measures else None
    if told is None or "f1" not in second.measures:
        return second
    labels = second.task.labels
    same = labels[label_number(told.removeprefix("LABEL_"), labels)]
    task = second.task.tuned({"positive": same})
    return replace(second, task=task, measures=task.score(second.answers, second.examples))


def _score_predictions(
    predictions: str | Path | Mapping[str, str], table: Table, columns: dict[str, str], choices: TaskChoices
) -> dict[str, Any]:
    name = str(predictions) if isinstance(predictions, str | Path) else "predictions"
    if not isinstance(predictions, str | Path | Mapping):
        raise BertsmithError(f"predictions must be a file or a dict, id to text, not {type(predictions).__name__}.")
    if choose_kind(None, table, columns) != "span":
        raise BertsmithError("predictions are scored for questions and answers (SQuAD) only; give that kind of data.")
    try:
        texts = read_json(Path(predictions)) if isinstance(predictions, str | Path) else dict(predictions)
    except BertsmithError as error:  # the lines that `answer --out` writes, for one
        told = str(error).rstrip(".")
        raise BertsmithError(f"{told}; one JSON object is needed, ids with the answers' texts.") from error
    wrong = next((id for id, text in texts.items() if not isinstance(text, str)), None)
    if wrong is not None:
        raise BertsmithError(f"{name} must hold a text for each question's id, but holds none for {wrong!r}.")
    examples: Sequence[SpanExample] = _read(find_task("span"), table, columns, choices)
    missing = sum(example.id not in texts for example in examples)
    if missing == len(examples):
        raise BertsmithError(f"no question of {table.name} has an id that the predictions know; do they belong to it?")
    measures: dict[str, Measure] = score_predictions(texts, examples)
    metrics = with_intervals(measures, len(examples))
    return {"task": "span", "data": table.name, "examples": len(examples), "missing": missing, "metrics": metrics}
