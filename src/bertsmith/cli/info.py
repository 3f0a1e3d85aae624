"""`bertsmith info`: what a model is."""

from dataclasses import replace
from typing import Annotated

import typer

from bertsmith.cli.options import ModelOptions
from bertsmith.cli.output import wants_json, write_json, write_table


def info(
    context: typer.Context,
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
    if source is not None:
        origin = context.get_parameter_source("model")
        if origin is not None and origin.name == "COMMANDLINE":  # not the environment: that one only stands in
            raise typer.BadParameter(f"give PATH|NAME or --model, not both ({source!r} and {options.model!r}).")
        options = replace(options, model=source)
    as_json = wants_json(options.as_json)
    facts = options.load().info()
    if as_json:
        write_json(facts)
    else:
        write_table("", [{"fact": fact, "value": value} for fact, value in facts.items()])
