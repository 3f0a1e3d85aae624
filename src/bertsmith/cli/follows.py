"""`bertsmith follows`: does the second text follow the first."""

from collections.abc import Sequence
from typing import Annotated, Any, get_args

import typer

from bertsmith.asking import Input, Question
from bertsmith.cli.bulk import BulkOptions, Out, write_file
from bertsmith.cli.inputs import ask, read_pairs
from bertsmith.cli.jobs import name_columns, read_file, refuse_format
from bertsmith.cli.options import Cut, CutPolicy, File, Format, ModelOptions
from bertsmith.cli.output import Cuts, wants_json, write_json, write_table


def follows(
    first: Annotated[
        str | None,
        typer.Argument(metavar="A", help="The first text, or - for standard input: A, a tab and B on each line."),
    ] = None,
    second: Annotated[str | None, typer.Argument(metavar="B", help="The text that may follow it.")] = None,
    *,
    file: File = None,
    text: Annotated[str | None, typer.Option(metavar="COLUMN", help="With --in: the column of A.")] = None,
    pair: Annotated[str | None, typer.Option(metavar="COLUMN", help="With --in: the column of B.")] = None,
    format: Format = None,
    truncate: Cut = "head",
    out: Out = None,
    bulk: BulkOptions,
    options: ModelOptions,
) -> None:
    """Tell whether text B follows text A or was taken at random.

    The model must have its next-sentence head.

    \b
    Examples:
      bertsmith follows "It rained." "The streets are wet."
      bertsmith follows --in pairs.csv --out order.jsonl
    """
    question = Question("follows", {"truncate": truncate})
    cuts, columns = Cuts(truncate, choices=get_args(CutPolicy)), name_columns(pair, text)
    if (first is None) == (file is None):
        raise typer.BadParameter("give two texts, A and B, - for standard input, or --in FILE; one of the three.")
    if file is None and any(columns.values()):
        raise typer.BadParameter("a column was named, but no file; give --in FILE too.")
    refuse_format(file, format)
    if bulk.asked(file, out):
        write_file(question, file, columns, format, out, bulk, options, lambda _: cuts)
        return
    chunks = read_pairs(first, second) if first is not None else read_file(question, file, columns, format)
    as_json = wants_json(options.as_json)
    model = options.load()

    def put(chunk: list[Input]) -> Sequence[Any]:
        return model.follows([given.text for given in chunk], [given.pair or "" for given in chunk], truncate=truncate)

    for given, result in ask(chunks, put):
        cuts.add(result.truncated)
        if as_json:
            write_json({**given.describe("pair"), **result.as_dict()})
        else:
            write_table(f"{given.text}  →  {given.pair}", result.answers)
    cuts.report()
