"""`bertsmith evaluate`: how well a model does on labelled data, with an interval, and whether it beats another."""

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from bertsmith.cli.flags import ColumnFlags, Flags, check_flags
from bertsmith.cli.options import Format, ModelOptions, look_here
from bertsmith.cli.output import Cuts, Rows, drop_nan, wants_json, write_json, write_note, write_table
from bertsmith.training.choices import TaskChoices

CHOSEN = (
    "several", "separator", "label_names", "positive", "truncate", "length", "overlap", "question_length",
    "answer_length",
)  # fmt: skip


def evaluate(
    *,
    data: Annotated[
        str, typer.Option(metavar="FILE", help="Labelled examples: a file, a folder with a dev file, or -.")
    ],
    compare: Annotated[
        str | None, typer.Option(metavar="PATH|NAME", help="A second model, scored on the same examples.")
    ] = None,
    predictions: Annotated[
        str | None,
        typer.Option(metavar="FILE.json", help="Instead of a model: answers to SQuAD's questions, id to text."),
    ] = None,
    task: Annotated[
        str | None, typer.Option(metavar="NAME", help="classify, tag, span or module:Class; else what the model does.")
    ] = None,
    format: Format = None,
    options: ModelOptions,
    columns: Annotated[dict[str, str], ColumnFlags()],
    choices: Annotated[dict[str, Any], Flags(TaskChoices, "Task", CHOSEN)],
) -> None:
    """Measure a fine-tuned model on labelled data: each metric with its 95 % interval.

    \b
    Examples:
      bertsmith evaluate --model my-classifier --data reviews.csv
      bertsmith evaluate --model my-classifier --compare another-model --data reviews.csv --json
    """
    import bertsmith

    if predictions is not None and compare is not None:
        raise typer.BadParameter("--predictions are scored alone; leave --compare out.")
    check_flags({**columns, **choices})
    look_here(task)
    as_json = wants_json(options.as_json)
    found = bertsmith.evaluate(
        options.model, data, task=task, compare=compare, predictions=predictions,
        device=options.device, dtype=options.dtype, threads=options.threads, batch_tokens=options.batch_tokens,
        format=format, download=options.download, **columns, **choices,
    )  # fmt: skip
    if as_json:
        write_json(drop_nan(found))
    else:
        show(found, str(options.model or "the model"))


def show(found: Mapping[str, Any], model: str) -> None:
    """The table for people."""
    title, rows = f"{found['task']}: {found['data']}, {found['examples']:,} examples", metric_rows(found["metrics"])
    if "compare" in found:
        title, rows = f"{title}; A is {model}, B is {found['compare']['model']}", compare_rows(found)
    write_table(title, rows, numbers=[name for name in rows[0] if name != "metric"], narrow=True)
    if found.get("missing"):
        write_note(f"{found['missing']:,} questions have no prediction and count as wrong")
    if "truncated" in found:
        cut = found["truncated"]
        Cuts(cut["policy"], found["examples"], cut["inputs"], cut["tokens"]).report()


def metric_rows(metrics: Mapping[str, Any]) -> Rows:
    """A row a metric, in percent."""
    return [
        {"metric": name, "%": percent(one["value"]), "95 % interval": between(one), "n": one["n"]}
        for name, one in metrics.items()
    ]


def compare_rows(found: Mapping[str, Any]) -> Rows:
    """A row for each metric that both models have, in percent; p is how likely chance does as much between equals."""
    other = found["compare"]
    return [
        {
            "metric": name,
            "A": percent(found["metrics"][name]["value"]),
            "B": percent(other["metrics"][name]["value"]),
            "B - A": percent(one["difference"], sign="+"),
            "95 % interval": between(one, sign="+"),
            "p": f"{one['p']:.4f}",
        }
        for name, one in other["differences"].items()
    ]


def percent(value: float | None, sign: str = "") -> str:
    """Two places; nothing where there is no such number."""
    return "–" if value is None or value != value else f"{100 * value:{sign}.2f}"


def between(one: Mapping[str, Any], sign: str = "") -> str:
    return f"{percent(one['low'], sign)} to {percent(one['high'], sign)}"
