"""`bertsmith.evaluate`: how well a model, or somebody's predictions, do on labelled data; which of two is better.

In: a model folder (or a file of predictions) and data. Out: plain JSON: each metric with its interval, what was cut.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from bertsmith.checking import choose_kind, find_roles
from bertsmith.choices import TaskChoices, sort_choices
from bertsmith.data.examples import SpanExample
from bertsmith.data.folders import is_slots, require_split
from bertsmith.data.labels import read_label_names
from bertsmith.data.reading import read_table
from bertsmith.errors import BertsmithError
from bertsmith.evaluation.intervals import compare as compare_measures
from bertsmith.evaluation.intervals import interval
from bertsmith.loading import load
from bertsmith.model import Model
from bertsmith.models.files import read_json
from bertsmith.scoring import Scored, score_examples
from bertsmith.tasks.catalog import find_task
from bertsmith.tasks.measures import Measure
from bertsmith.tasks.squad_score import score_predictions
from bertsmith.tasks.trained import TrainedTask


def evaluate(
    model: str | Path | None,
    data: Any,
    *,
    task: str | None = None,
    compare: str | Path | None = None,
    predictions: str | Path | Mapping[str, str] | None = None,
    device: str = "auto",
    dtype: str = "float32",
    threads: int | None = None,
    batch_tokens: int | None = None,
    format: str | None = None,
    download: bool = False,
    **settings: Any,
) -> dict[str, Any]:
    """`metrics` with `value, low, high, n` each; `compare` names a second model, scored on the same examples.

    Instead of a model, `predictions` may hold the answers to SQuAD's questions, id -> text. `settings` are columns and
    the task's choices, as in `finetune`.
    """
    choices, _, columns = sort_choices(settings)
    if predictions is not None:
        return _score_predictions(predictions, data, columns, choices, format)
    models = [load(m, device=device, dtype=dtype, threads=threads, batch_tokens=batch_tokens, download=download)
              for m in ([model] if compare is None else [model, compare])]  # fmt: skip
    kind = find_task(task or _find_kind(models[0]))
    found = [_score(each, kind, data, columns, choices, format) for each in models]
    report = _report(found[0], kind.name, data)
    if compare is not None:
        report["compare"] = _compare(found, str(compare))
    return report


def _find_kind(model: Model) -> str:
    heads = [name for name in ("classify", "tag", "span") if name in model.checkpoint.heads]
    known = model.trained.get("task")
    if known in heads:
        return str(known)
    if len(heads) != 1:
        there = ", ".join(heads) or "none of classify, tag and span"
        raise BertsmithError(f"{model.folder} has heads for {there}; name the task, or fine-tune it first.")
    return heads[0]


def _read(
    kind: type[TrainedTask[Any, Any]], data: Any, columns: dict[str, str], choices: TaskChoices, format: str | None
) -> Sequence[Any]:
    if isinstance(data, str | Path) and str(data) != "-" and Path(data).is_dir() and not is_slots(Path(data)):
        data = require_split(data, "dev")
    table = read_table(data, name="" if isinstance(data, str | Path) else "data", format=format)
    given = {name: value for name, value in asdict(choices).items() if value is not None}
    if choices.label_names is not None:
        given["label_names"] = read_label_names(choices.label_names)
    examples = kind.examples(table, find_roles([table], kind, columns)[0], given)
    if not examples:
        raise BertsmithError(f"{table.name} holds no example to score.")
    return examples


def _score(
    model: Model, kind: type[TrainedTask[Any, Any]], data: Any, columns: dict[str, str], choices: TaskChoices,
    format: str | None,
) -> Scored:  # fmt: skip
    model.need(kind.name)
    settings = model.task_settings(kind)
    chosen = asdict(choices)
    for name in ("length", "overlap", "question_length", "answer_length", "positive"):
        if chosen[name] is not None:
            settings[name] = chosen[name]
    if choices.several is None and "several" in settings:
        choices = TaskChoices(**{**chosen, "several": settings["several"]})
    examples = _read(kind, data, columns, choices, format)
    task = kind(model.tokenizer, model.limit, choices.truncate or settings["truncate"], settings)
    return score_examples(model.predictor, task, examples, None)


def _report(scored: Scored, task: str, data: Any) -> dict[str, Any]:
    cut = [sum(row.dropped for row in rows) for rows in scored.rows]
    return {
        "task": task,
        "data": str(data) if isinstance(data, str | Path) else "data",
        "examples": len(scored.examples),
        "metrics": scored.metrics(),
        "truncated": {"inputs": sum(map(bool, cut)), "tokens": sum(cut), "policy": scored.task.truncate},
    }


def _compare(found: Sequence[Scored], other: str) -> dict[str, Any]:
    """The second against the first, example by example: a difference below 0 says that the second is worse."""
    ours, theirs = found[0].measures, found[1].measures
    shared = {name: measure for name, measure in ours.items() if name in theirs}
    differences = {name: asdict(compare_measures(theirs[name], measure)) for name, measure in shared.items()}
    return {"model": other, "metrics": found[1].metrics(), "differences": differences}


def _score_predictions(
    predictions: str | Path | Mapping[str, str], data: Any, columns: dict[str, str], choices: TaskChoices,
    format: str | None,
) -> dict[str, Any]:  # fmt: skip
    texts = read_json(Path(predictions)) if isinstance(predictions, str | Path) else dict(predictions)
    if not all(isinstance(text, str) for text in texts.values()):
        raise BertsmithError(f"{predictions} must hold a text for each question's id.")
    table = read_table(data, format=format)
    if choose_kind(None, table, columns) != "span":
        raise BertsmithError("predictions are scored for questions and answers (SQuAD) only; give that kind of data.")
    examples: Sequence[SpanExample] = _read(find_task("span"), table, columns, choices, format)
    measures: dict[str, Measure] = score_predictions(texts, examples)
    metrics = {}
    for name, measure in measures.items():
        low, high = interval(measure)
        metrics[name] = {"value": measure.point, "low": low, "high": high, "n": len(measure.counts)}
    missing = sum(example.id not in texts for example in examples)
    return {"task": "span", "data": str(data), "examples": len(examples), "missing": missing, "metrics": metrics}
