"""`bertsmith similar`: other texts by how alike they are to one."""

from typing import Annotated

import typer

from bertsmith.cli.inputs import decode
from bertsmith.cli.options import Format, ModelOptions, Truncate
from bertsmith.cli.output import Cuts, wants_json
from bertsmith.cli.texts import Column, TextsFile, TopK, take_texts, write_ranks


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
    asked = decode(first, "TEXT")
    compared, numbers = take_texts(others, texts, text, format, "the other texts behind the first")
    as_json = wants_json(options.as_json)
    model, cuts = options.load(), Cuts(truncate)
    result = model.similar(asked, compared, top_k=top_k, truncate=truncate)
    write_ranks(asked, result, numbers, cuts, as_json)
