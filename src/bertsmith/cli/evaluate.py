"""`bertsmith evaluate`: how well a model does on labelled data, with an interval, and whether it beats another; how
well it can be fine-tuned on the tasks of a benchmark; or what it knows of language without labels.
"""

from collections.abc import Callable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any

import typer

from bertsmith.cli.benchmark import BenchmarkOptions, run_benchmark
from bertsmith.cli.flags import ColumnFlags, Flags, check_flags
from bertsmith.cli.options import Format, ModelOptions, look_here
from bertsmith.cli.output import Cuts, Rows, drop_nan, wants_json, write_json, write_note, write_table
from bertsmith.cli.unlabelled import USED, UnlabelledOptions, run_unlabelled
from bertsmith.data.findings import counted
from bertsmith.training.choices import TaskChoices
from bertsmith.training.settings import Training

CHOSEN = (
    "several", "separator", "label_names", "positive", "truncate", "length", "overlap", "question_length",
    "answer_length",
)  # fmt: skip
# Of the fine-tunings of a benchmark: what its rows and its seeds settle has no flag.
TRAINED = tuple(each.name for each in fields(Training) if each.name not in ("seed", "metric", "batch_tokens"))
PANEL = "Training, with --benchmark"
IN_UNITS = ("mse", "mae")  # of the data's own numbers: a hundredth of a price says nothing


def evaluate(
    folder: Annotated[
        Path | None,
        typer.Argument(metavar="DIR", help="With --benchmark: the folder that holds its tasks, or its text."),
    ] = None,
    *,
    data: Annotated[
        str | None, typer.Option(metavar="FILE", help="Labelled examples: a file, a folder with a dev file, or -.")
    ] = None,
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
    asked: BenchmarkOptions,
    unlabelled: UnlabelledOptions,
    training: Annotated[dict[str, Any], Flags(Training, PANEL, TRAINED)],
    both_ways: Annotated[dict[str, Any], Flags(TaskChoices, PANEL, ("swap",))],
) -> None:
    """Measure a fine-tuned model on labelled data: each metric with its 95 % interval.

    With --benchmark glue: fine-tune a model on each task, with several seeds, and tell the medians. With blimp, masked
    or perplexity nothing is trained: grammar by which of two sentences is likelier, words of plain text by frequency,
    the pseudo-perplexity of a text or of a corpus's held-out part, of codes too.

    \b
    Examples:
      bertsmith evaluate --model my-classifier --data reviews.csv
      bertsmith evaluate --model my-classifier --compare another-model --data reviews.csv --json
      bertsmith evaluate --benchmark glue GLUE --tasks cola,sst2 --seeds 2 --jobs 2 --out scores
      bertsmith evaluate --benchmark blimp examples/grammar --model my-bert
      bertsmith evaluate --benchmark masked bridge.txt --model my-bert --samples 1000
      bertsmith evaluate --benchmark perplexity bridge.txt --model my-bert
    """
    import bertsmith

    training |= both_ways
    check_flags({**columns, **choices, **training})
    if asked.benchmark is not None:
        for name, value in {"data": data, "compare": compare, "predictions": predictions, "task": task,
                            "format": format, **columns}.items():  # fmt: skip
            if value is not None:
                raise typer.BadParameter(f"--{name} has no use with --benchmark; leave it out.")
        if asked.benchmark in USED:
            return run_unlabelled(asked, unlabelled, folder, options, {**choices, **training})
        unlabelled.refuse()
        return run_benchmark(asked, folder, options, {**choices, **training})
    asked.refuse_alone()
    unlabelled.refuse()
    if folder is not None:
        raise typer.BadParameter(f"{folder} is given as a benchmark's folder; labelled data goes to --data.")
    if training:
        raise typer.BadParameter(f"--{next(iter(training)).replace('_', '-')} trains, which only --benchmark does.")
    if data is None:
        raise typer.BadParameter("--data is missing: the labelled examples; or give --benchmark NAME DIR.")
    if predictions is not None and compare is not None:
        raise typer.BadParameter("--predictions are scored alone; leave --compare out.")
    look_here(task)
    as_json = wants_json(options.as_json)
    found = bertsmith.evaluate(
        options.model, data, task=task, use=options.use, compare=compare, predictions=predictions,
        device=options.device, dtype=options.dtype, threads=options.threads, batch_tokens=options.batch_tokens,
        format=format, download=options.download, **columns, **choices,
    )  # fmt: skip
    if as_json:
        write_json(drop_nan(found))
    else:
        show(found, str(options.model or "the model"))


def show(found: Mapping[str, Any], model: str) -> None:
    """The table for people."""
    title = f"{found['task']}: {found['data']}, {counted(found['examples'], 'example')}"
    rows = metric_rows(found["metrics"])
    if "compare" in found:
        title, rows = f"{title}; A is {model}, B is {found['compare']['model']}", compare_rows(found)
    write_table(title, rows, numbers=[name for name in rows[0] if name != "metric"], narrow=True)
    if found.get("missing"):
        have = "has no prediction and counts" if found["missing"] == 1 else "have no prediction and count"
        write_note(f"{counted(found['missing'], 'question')} {have} as wrong")
    if "truncated" in found:
        cut = found["truncated"]
        Cuts(cut["policy"], found["examples"], cut["inputs"], cut["tokens"]).report()


def metric_rows(metrics: Mapping[str, Any]) -> Rows:
    """A row a metric, in percent; beside errors in the data's own units all are plain numbers."""
    show = choose_way(metrics)
    return [
        {"metric": name, "value" if show is plain else "%": show(one["value"]), "95 % interval": between(one, show),
         "n": one["n"]}
        for name, one in metrics.items()
    ]  # fmt: skip


def compare_rows(found: Mapping[str, Any]) -> Rows:
    """A row for each metric that both models have; p is how likely chance does as much between equals."""
    other, show = found["compare"], choose_way(found["metrics"])
    return [
        {
            "metric": name,
            "A": show(found["metrics"][name]["value"]),
            "B": show(other["metrics"][name]["value"]),
            "B - A": show(one["difference"], "+"),
            "95 % interval": between(one, show, "+"),
            "p": f"{one['p']:.4f}",
        }
        for name, one in other["differences"].items()
    ]


def percent(value: float | None, sign: str = "") -> str:
    """Two places; nothing where there is no such number."""
    return "–" if value is None or value != value else f"{100 * value:{sign}.2f}"


def plain(value: float | None, sign: str = "") -> str:
    return "–" if value is None or value != value else f"{value:{sign}.4f}"


def choose_way(metrics: Mapping[str, Any]) -> Callable[..., str]:
    return plain if any(name in metrics for name in IN_UNITS) else percent


def between(one: Mapping[str, Any], show: Callable[..., str], sign: str = "") -> str:
    return f"{show(one['low'], sign)} to {show(one['high'], sign)}"
