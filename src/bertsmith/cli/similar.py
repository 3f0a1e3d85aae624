"""`bertsmith similar`: other texts by how alike they are to one."""

from typing import Annotated

import typer

from bertsmith.cli.inputs import decode
from bertsmith.cli.options import Format, ModelOptions, Truncate
from bertsmith.cli.output import Cuts, wants_json, write_json, write_table
from bertsmith.cli.texts import Column, TextsFile, TopK, read_texts_of


def similar(
    first: Annotated[str, typer.Argument(metavar="TEXT", help="The text to compare with.")],
    others: Annotated[list[str] | None, typer.Argument(metavar="OTHER", help="The other texts.")] = None,
    *,
    texts: TextsFile = None,
    text: Column = None,
    format: Format = None,
    top_k: TopK = None,
    truncate: Truncate = "head",
    options: ModelOptions,
) -> None:
    """Compare a text with others: the cosine of their vectors, the most alike first.

    \b
    Examples:
      bertsmith similar "a river bank" "the shore of a stream" "a savings bank"
      bertsmith similar "a river bank" --texts lines.txt --top-k 3
    """
    if (texts is None) == (not others):
        raise typer.BadParameter("give the other texts behind the first or as --texts FILE, one of the two.")
    if text is not None and texts is None:
        raise typer.BadParameter("a column was named, but no file; give --texts FILE too.")
    asked = decode(first, "TEXT")
    compared = [decode(one, f"text {number}") for number, one in enumerate(others or (), 1)]
    compared = compared if texts is None else read_texts_of(texts, text, format)
    as_json = wants_json(options.as_json)
    model, cuts = options.load(), Cuts(truncate)
    result = model.similar(asked, compared, top_k=top_k, truncate=truncate)
    cuts.add(result.truncated)
    if as_json:
        write_json({"input": asked, **result.as_dict()})
    else:
        write_table(asked, result.answers)
    cuts.report()
