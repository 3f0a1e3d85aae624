"""`bertsmith check`: what is wrong with a person's data, before a model is trained on it."""

from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from bertsmith.cli.flags import ColumnFlags, Flags
from bertsmith.cli.options import Format, Json
from bertsmith.cli.output import wants_json, write_json
from bertsmith.training.choices import TaskChoices

if TYPE_CHECKING:
    from bertsmith.data.findings import Diagnosis

Kind = Literal["classify", "tag", "span", "regress", "choose", "embed", "rerank"]


def check(
    data: Annotated[
        str, typer.Argument(metavar="DATA", help="A file, a folder with a train file, or - for standard input.")
    ],
    *,
    dev: Annotated[str | None, typer.Option(metavar="FILE", help="The data that will measure the model.")] = None,
    task: Annotated[Kind | None, typer.Option(help="What the data is for; else it is guessed.")] = None,
    columns: Annotated[dict[str, str], ColumnFlags()],
    labels: Annotated[dict[str, Any], Flags(TaskChoices, "Labels", ("several", "separator", "label_names"))],
    model: Annotated[
        str | None,
        typer.Option(metavar="PATH|NAME", envvar="BERTSMITH_MODEL", help="Lengths are in this model's tokens."),
    ] = None,
    limit: Annotated[int | None, typer.Option(metavar="N", min=1, help="The longest input that will be read.")] = None,
    format: Format = None,
    as_json: Json = False,
) -> None:
    """Look for what is wrong with labelled data; the exit status is 1 where it would waste a run.

    \b
    Examples:
      bertsmith check reviews.csv
      bertsmith check train.conll --dev dev.conll --task tag
    """
    from bertsmith.checking import check as check_data

    found = check_data(data, dev, task=task, columns=columns, model=model or None, limit=limit, format=format, **labels)
    if wants_json(as_json):
        write_json(found.as_dict())
    else:
        show(found)
    if found.errors:
        raise typer.Exit(1)


def show(found: "Diagnosis") -> None:
    """The report for people."""
    from bertsmith.cli.check_report import write_report

    write_report(found)
