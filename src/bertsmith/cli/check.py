"""`bertsmith check`: what is wrong with a person's data, before a model is trained on it."""

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from bertsmith.cli.options import Json
from bertsmith.cli.output import wants_json, write_json

if TYPE_CHECKING:
    from bertsmith.data.findings import Diagnosis

Kind = Literal["classify", "tag", "span"]


def _column(what: str) -> Any:
    return typer.Option(metavar="COLUMN", help=f"The column of {what}.")


@dataclass(frozen=True)
class ColumnOptions:
    """Which column is which, where its name does not tell."""

    text: Annotated[str | None, _column("the text")] = None
    pair: Annotated[str | None, _column("a second text")] = None
    label: Annotated[str | None, _column("the label")] = None
    words: Annotated[str | None, _column("the words")] = None
    tags: Annotated[str | None, _column("the tags, one a word")] = None
    question: Annotated[str | None, _column("the question")] = None
    context: Annotated[str | None, _column("the text to answer from")] = None
    answers: Annotated[str | None, _column("the answers")] = None

    def chosen(self) -> dict[str, str]:
        """Role -> column, of those that were given."""
        return {field.name: getattr(self, field.name) for field in fields(self) if getattr(self, field.name)}


def check(
    data: Annotated[
        str, typer.Argument(metavar="DATA", help="A file, a folder with a train file, or - for standard input.")
    ],
    *,
    dev: Annotated[str | None, typer.Option(metavar="FILE", help="The data that will measure the model.")] = None,
    task: Annotated[Kind | None, typer.Option(help="What the data is for; else it is guessed.")] = None,
    several: Annotated[
        bool | None,
        typer.Option("--several/--single", help="A text has any number of labels, or one; else as it looks."),
    ] = None,
    separator: Annotated[str | None, typer.Option(metavar="TEXT", help="What stands between several labels.")] = None,
    label_names: Annotated[
        str | None, typer.Option(metavar="FILE", help="The names of labels that are numbers, one a line from 0 on.")
    ] = None,
    columns: ColumnOptions,
    model: Annotated[
        str | None,
        typer.Option(metavar="PATH|NAME", envvar="BERTSMITH_MODEL", help="Lengths are in this model's tokens."),
    ] = None,
    limit: Annotated[int | None, typer.Option(metavar="N", min=1, help="The longest input that will be read.")] = None,
    as_json: Json = False,
) -> None:
    """Look for what is wrong with labelled data; the exit status is 1 where it would waste a run.

    \b
    Examples:
      bertsmith check reviews.csv
      bertsmith check train.conll --dev dev.conll --task tag
    """
    from bertsmith.checking import check as check_data

    found = check_data(
        data, dev, task=task, columns=columns.chosen(), model=model or None, limit=limit, several=several,
        separator=separator, label_names=label_names,
    )  # fmt: skip
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
