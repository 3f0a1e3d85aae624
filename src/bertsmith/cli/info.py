"""`bertsmith info`: what a model is."""

from dataclasses import replace
from typing import Annotated

import typer

from bertsmith.cli.options import ModelOptions
from bertsmith.cli.output import wants_json, write_json, write_table


def info(
    source: Annotated[str | None, typer.Argument(metavar="PATH|NAME", help="The same as --model.")] = None,
    *,
    options: ModelOptions,
) -> None:
    """Tell what is in a folder: family, shape, heads, vocabulary, and what had no use.

    \b
    Examples:
      bertsmith info
      bertsmith info path/to/folder
    """
    facts = (replace(options, model=source) if source else options).load().info()
    if wants_json(options.as_json):
        write_json(facts)
    else:
        write_table("", [{"fact": fact, "value": value} for fact, value in facts.items()])
