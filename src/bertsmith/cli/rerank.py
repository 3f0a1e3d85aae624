"""`bertsmith rerank`: texts in the order in which they answer a query."""

from typing import Annotated

import typer

from bertsmith.cli.inputs import decode
from bertsmith.cli.jobs import open_cuts
from bertsmith.cli.options import CutPolicy, Format, ModelOptions
from bertsmith.cli.output import wants_json, write_json, write_table
from bertsmith.cli.texts import Column, TextsFile, TopK, read_texts_of


def rerank(
    query: Annotated[str, typer.Argument(metavar="QUERY", help="What the texts should answer.")],
    others: Annotated[list[str] | None, typer.Argument(metavar="TEXT", help="The texts, if not in a file.")] = None,
    *,
    texts: TextsFile = None,
    text: Column = None,
    format: Format = None,
    top_k: TopK = None,
    truncate: Annotated[
        CutPolicy | None,
        typer.Option(help="What to do with a text that is too long with its query; else as it learnt."),
    ] = None,
    options: ModelOptions,
) -> None:
    """Rank texts by how well they answer a query: a cross-encoder reads both together.

    The model must have been fine-tuned for that (--task rerank), here or elsewhere.

    \b
    Examples:
      bertsmith rerank "who built the bridge" "A smith built it." "It rained." --model my-reranker
      bertsmith rerank "who built the bridge" --texts lines.txt --top-k 3 --model my-reranker
    """
    if (texts is None) == (not others):
        raise typer.BadParameter("give the texts behind the query or as --texts FILE, one of the two.")
    if text is not None and texts is None:
        raise typer.BadParameter("a column was named, but no file; give --texts FILE too.")
    asked = decode(query, "QUERY")
    ranked = [decode(one, f"text {number}") for number, one in enumerate(others or (), 1)]
    ranked = ranked if texts is None else read_texts_of(texts, text, format)
    as_json = wants_json(options.as_json)
    model = options.load()
    home = model.need("classify", "rerank texts", "rerank")
    cuts = open_cuts(home, "rerank", truncate, without="windows")
    result = model.rerank(asked, ranked, top_k=top_k, truncate=truncate)
    cuts.add(result.truncated)
    if as_json:
        write_json({"input": asked, **result.as_dict()})
    else:
        write_table(asked, result.answers)
    cuts.report()
