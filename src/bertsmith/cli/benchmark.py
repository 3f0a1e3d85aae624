"""`bertsmith evaluate --benchmark`: what the flags ask for, carried out, and the table of the medians."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any

import typer

from bertsmith.cli.lists import parse_seeds
from bertsmith.cli.options import ModelOptions
from bertsmith.cli.output import drop_nan, wants_json, write_json, write_note, write_table
from bertsmith.errors import BertsmithError

PANEL = "Benchmark"


@dataclass(frozen=True)
class BenchmarkOptions:
    """Which benchmark, which part of it, and how its fine-tunings are carried out."""

    benchmark: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="glue, on whose tasks it is fine-tuned; or blimp, masked, perplexity.",
            rich_help_panel=PANEL,
        ),
    ] = None
    tasks: Annotated[
        str | None,
        typer.Option(metavar="LIST", help="Some of its tasks: cola,sst2; else all in DIR.", rich_help_panel=PANEL),
    ] = None
    complete: Annotated[
        bool, typer.Option("--complete", help="Only tasks that DIR holds in full.", rich_help_panel=PANEL)
    ] = False
    seeds: Annotated[
        str | None,
        typer.Option(metavar="N|LIST", help="How many seeds, or which: 1,2,3.  [default: 5]", rich_help_panel=PANEL),
    ] = None
    jobs: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="Fine-tunings side by side.  [default: 1]", rich_help_panel=PANEL),
    ] = None
    start: Annotated[
        list[str] | None,
        typer.Option(metavar="TASK=PATH", help="Another model for a task, as in rte=runs/mnli.", rich_help_panel=PANEL),
    ] = None
    out: Annotated[
        str | None,
        typer.Option(metavar="DIR", help="A folder for the table and the runs; else they go.", rich_help_panel=PANEL),
    ] = None
    keep_models: Annotated[
        bool, typer.Option("--keep-models", help="Keep each run's weights, not its scores only.", rich_help_panel=PANEL)
    ] = False
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Start anew where --out holds these runs.", rich_help_panel=PANEL)
    ] = False

    def refuse_alone(self) -> None:
        """Without --benchmark none of them means anything."""
        for each in fields(self):
            if getattr(self, each.name):
                name = each.name.replace("_", "-")
                raise typer.BadParameter(f"--{name} is for --benchmark NAME DIR; labelled data goes to --data.")


def parse_starts(given: Sequence[str]) -> dict[str, str]:
    """`rte=runs/mnli` for each."""
    found: dict[str, str] = {}
    for each in given:
        task, sign, source = each.partition("=")
        if not sign or not task.strip() or not source:
            raise typer.BadParameter(f"--start is {each!r}; give a task and its model, as in rte=runs/mnli.")
        if task in found:
            raise typer.BadParameter(f"--start names {task} twice.")
        found[task.strip()] = source
    return found


def run_benchmark(
    asked: BenchmarkOptions, folder: Path | None, options: ModelOptions, settings: Mapping[str, Any]
) -> None:  # fmt: skip
    """Runs it, shows the medians, and ends the command with status 1 where a run failed."""
    import bertsmith
    from bertsmith.evaluation.benchmarks import find_benchmark
    from bertsmith.evaluation.tables import NUMBERS, benchmark_notes, benchmark_rows

    name = str(asked.benchmark)
    try:
        find_benchmark(name)
    except BertsmithError as error:
        raise typer.BadParameter(str(error)) from error
    if folder is None:
        raise typer.BadParameter(f"--benchmark {name} needs the folder with its tasks: --benchmark {name} DIR.")
    if options.dtype != "float32":
        raise typer.BadParameter("--dtype is for a model as it is; a fine-tuning takes --precision.")
    if options.use is not None:
        raise typer.BadParameter("--use is for a model as it is; leave it out with --benchmark.")
    as_json = wants_json(options.as_json)
    named = {} if options.batch_tokens is None else {"batch_tokens": options.batch_tokens}
    found = bertsmith.benchmark(
        name, folder, options.model,
        tasks=None if asked.tasks is None else [task.strip() for task in asked.tasks.split(",")],
        complete=asked.complete, seeds=5 if asked.seeds is None else parse_seeds(asked.seeds), jobs=asked.jobs or 1,
        start=parse_starts(asked.start or []), out=asked.out, keep_models=asked.keep_models, overwrite=asked.overwrite,
        device=options.device, threads=options.threads, download=options.download, say=write_note, **named, **settings,
    )  # fmt: skip
    if as_json:
        write_json(drop_nan(found))
    else:
        write_table(name, benchmark_rows(found), numbers=NUMBERS, narrow=True)
    for note in benchmark_notes(found)[-1 if as_json else 0 :]:
        write_note(note)
    if found["failed"]:
        raise typer.Exit(1)
