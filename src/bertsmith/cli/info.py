"""`bertsmith info`: what a model is."""

from bertsmith.cli.options import ModelOptions
from bertsmith.cli.output import wants_json, write_json, write_table


def info(options: ModelOptions) -> None:
    """Tell what a model is: family, shape, heads, vocabulary, files.

    \b
    Example:
      bertsmith info
    """
    facts = options.load().info()
    if wants_json(options.as_json):
        write_json(facts)
    else:
        write_table("", [{"fact": fact, "value": value} for fact, value in facts.items()])
