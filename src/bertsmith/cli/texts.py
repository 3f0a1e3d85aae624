"""Texts that a verb compares or ranks. In: a file of lines, a table, or standard input. Out: the texts."""

from typing import Annotated

import typer

from bertsmith.cli.inputs import decode_option

TextsFile = Annotated[
    str | None,
    typer.Option(
        "--texts", metavar="FILE", help="The texts: a line each, or a table's column; - for standard input."
    ),
]
Column = Annotated[str | None, typer.Option("--text", metavar="COLUMN", help="With --texts: the column of the text.")]
TopK = Annotated[int | None, typer.Option(metavar="N", min=1, help="Only so many of the best; else all.")]


def read_texts_of(path: str, column: str | None, format: str | None) -> list[str]:
    from bertsmith.data.cells import text_cell
    from bertsmith.data.columns import find_columns
    from bertsmith.data.reading import read_table

    table = read_table(path, format=format)
    chosen = {"text": decode_option(column, "--text")}
    found = find_columns(table, ("text",), chosen, required=("text",))["text"]
    return [text_cell(table, i, found) for i in range(len(table.records))]
