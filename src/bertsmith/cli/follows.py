"""`bertsmith follows`: does the second text follow the first."""

from collections.abc import Sequence
from typing import Annotated, Any, get_args

import typer

from bertsmith.cli.inputs import Input, ask, read_pairs
from bertsmith.cli.options import Cut, CutPolicy, ModelOptions
from bertsmith.cli.output import Cuts, wants_json, write_json, write_table


def follows(
    first: Annotated[
        str, typer.Argument(metavar="A", help="The first text, or - for standard input: A, a tab and B on each line.")
    ],
    second: Annotated[str | None, typer.Argument(metavar="B", help="The text that may follow it.")] = None,
    *,
    truncate: Cut = "head",
    options: ModelOptions,
) -> None:
    """Tell whether text B follows text A or was taken at random.

    The model must have its next-sentence head.

    \b
    Example:
      bertsmith follows "It rained." "The streets are wet." --model google-bert/bert-base-uncased --download
    """
    chunks = read_pairs(first, second)
    cuts, as_json = Cuts(truncate, choices=get_args(CutPolicy)), wants_json(options.as_json)
    model = options.load()

    def question(chunk: list[Input]) -> Sequence[Any]:
        return model.follows([given.text for given in chunk], [given.pair or "" for given in chunk], truncate=truncate)

    for given, result in ask(chunks, question):
        cuts.add(result.truncated)
        if as_json:
            write_json({"input": given.text, "pair": given.pair, **result.as_dict()})
        else:
            write_table(f"{given.text}  →  {given.pair}", result.answers)
    cuts.report()
