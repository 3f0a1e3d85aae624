"""Texts that a verb compares or ranks. In: those of the command, a file of lines, a table, or standard input.

Out: the texts, and at the end their ranks.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from bertsmith.cli.inputs import decode, decode_option
from bertsmith.cli.output import Cuts, write_json, write_table

if TYPE_CHECKING:
    from bertsmith.tasks.result import Result

TextsFile = Annotated[
    str | None,
    typer.Option("--texts", metavar="FILE", help="The texts: a line each, or a table's column; - for standard input."),
]
Column = Annotated[str | None, typer.Option("--text", metavar="COLUMN", help="With --texts: the column of the text.")]
TopK = Annotated[int | None, typer.Option(metavar="N", min=1, help="Only so many of the best; else all.")]


def take_texts(
    given: Sequence[str] | None, file: str | None, column: str | None, format: str | None, ask: str
) -> tuple[list[str], Sequence[int]]:
    """The texts of the command or of a file, and the number of each; `ask` says where the former stand, to one who
    gave both or none.

    A `-` in place of texts is standard input, as in every verb.
    """
    if file is None and given and "-" in given:
        if len(given) > 1:
            raise typer.BadParameter("- is standard input and stands alone, without other texts.")
        given, file = None, "-"
    if (file is None) == (not given):
        raise typer.BadParameter(f"give {ask} or as --texts FILE, one of the two.")
    if column is not None and file is None:
        raise typer.BadParameter("a column was named, but no file; give --texts FILE too.")
    if format is not None and file is None:
        raise typer.BadParameter("--format says what a file holds; give --texts FILE too.")
    texts = [decode(text, f"text {number}") for number, text in enumerate(given or (), 1)]
    return (texts, range(len(texts))) if file is None else read_texts_of(file, column, format)


def write_ranks(asked: str, result: "Result", numbers: Sequence[int], cuts: Cuts, as_json: bool) -> None:
    for answer in result.answers:
        answer["index"] = numbers[answer["index"]]
    cuts.add(result.truncated)
    if as_json:
        write_json({"input": asked, **result.as_dict()})
    else:
        write_table(asked, result.answers)
    cuts.report()


def read_texts_of(path: str, column: str | None, format: str | None) -> tuple[list[str], Sequence[int]]:
    """The numbers count from 0, as those of a command's texts: records, or the lines of a file, empty ones too."""
    from bertsmith.data.cells import text_cell
    from bertsmith.data.columns import find_columns
    from bertsmith.data.reading import read_table

    table = read_table(path, format=format)
    chosen = {"text": decode_option(column, "--text")}
    found = find_columns(table, ("text",), chosen, required=("text",))["text"]
    numbers = [row - 1 for row in table.rows] if table.kind == "lines" else range(len(table.records))
    return [text_cell(table, i, found) for i in range(len(table.records))], numbers
