"""`bertsmith rerank`: texts in the order in which they answer a query."""

from typing import Annotated

import typer

from bertsmith.cli.inputs import decode
from bertsmith.cli.jobs import open_cuts
from bertsmith.cli.options import CutPolicy, Format, ModelOptions
from bertsmith.cli.output import wants_json
from bertsmith.cli.texts import Column, TextsFile, TopK, take_texts, write_ranks


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
    asked = decode(query, "QUERY")
    ranked, numbers = take_texts(others, texts, text, format, "the texts behind the query")
    as_json = wants_json(options.as_json)
    model = options.load()
    home = model.need("classify", "rerank texts", "rerank")
    cuts = open_cuts(home, "rerank", truncate, without="windows")
    result = model.rerank(asked, ranked, top_k=top_k, truncate=truncate)
    write_ranks(asked, result, numbers, cuts, as_json)
