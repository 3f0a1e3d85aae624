"""`bertsmith score`: a number for a text or a pair of texts."""

from collections.abc import Iterator, Sequence
from typing import Annotated, Any

import typer

from bertsmith.cli.inputs import Input, ask, decode_option, read_texts_or_pairs
from bertsmith.cli.jobs import asks_file, open_cuts, read_file
from bertsmith.cli.options import File, Format, ModelOptions, OwnCut
from bertsmith.cli.output import wants_json, write_json, write_table


def score(
    texts: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="TEXT",
            help="The texts, or - for standard input: a text a line, or a text, a tab and its pair.",
        ),
    ] = None,
    *,
    pair: Annotated[
        str | None,
        typer.Option(metavar="TEXT|COLUMN", help="A second text, put behind each TEXT; with --in its column."),
    ] = None,
    file: File = None,
    text: Annotated[str | None, typer.Option(metavar="COLUMN", help="With --in: the column of the text.")] = None,
    format: Format = None,
    truncate: OwnCut = None,
    options: ModelOptions,
) -> None:
    """Give a number for a text or a pair of texts: how alike they are, how many stars.

    The model must have been fine-tuned for that (--task regress), here or elsewhere.

    \b
    Examples:
      bertsmith score "A man is dancing." --pair "Someone dances." --model my-scorer
      bertsmith score --in pairs.csv --model my-scorer
    """
    chunks = read_asked(texts, file, pair, text, format)
    as_json = wants_json(options.as_json)
    model = options.load()
    model.need("classify", "give a number", "regress")
    cuts = open_cuts(model, "regress", truncate)

    def question(chunk: list[Input]) -> Sequence[Any]:
        pairs = [given.pair for given in chunk if given.pair is not None]
        found: Sequence[Any] = model.score([given.text for given in chunk], pairs or None, truncate=truncate)
        return found

    for given, result in ask(chunks, question):
        cuts.add(result.truncated)
        if as_json:
            second = {} if given.pair is None else {"pair": given.pair}
            write_json({"input": given.text, **second, **result.as_dict()})
        else:
            write_table(given.text if given.pair is None else f"{given.text}  |  {given.pair}", result.answers)
    cuts.report()


def read_asked(
    texts: list[str] | None, file: str | None, pair: str | None, text: str | None, format: str | None
) -> Iterator[list[Input]]:
    """The inputs of the command: texts, or a file."""
    pair = decode_option(pair, "--pair")
    if asks_file(texts, file, text):
        return read_file("regress", file, {"text": decode_option(text, "--text"), "pair": pair}, format)
    return read_texts_or_pairs(texts or (), pair)
