"""`bertsmith classify`: which class a text or a pair of texts is of."""

from collections.abc import Iterator, Sequence
from typing import Annotated, Any

import typer

from bertsmith.cli.inputs import Input, ask, decode_option, read_texts_or_pairs
from bertsmith.cli.jobs import asks_file, open_cuts, read_file
from bertsmith.cli.options import File, Format, ModelOptions, OwnCut
from bertsmith.cli.output import wants_json, write_json, write_table


def classify(
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
    top_k: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="So many labels; else all classes, or the labels that count.")
    ] = None,
    truncate: OwnCut = None,
    options: ModelOptions,
) -> None:
    """Tell which class a text is of, or which labels it has.

    The model must have been fine-tuned to classify, here or elsewhere.

    \b
    Examples:
      bertsmith classify "A wonderful film." "Two hours of my life, gone." --model my-classifier
      bertsmith classify --in reviews.csv --model my-classifier
    """
    chunks = read_asked(texts, file, pair, text, format)
    as_json = wants_json(options.as_json)
    model = options.load()
    model.need("classify", "classify texts")
    cuts = open_cuts(model, "classify", truncate)

    def question(chunk: list[Input]) -> Sequence[Any]:
        pairs = [given.pair for given in chunk if given.pair is not None]
        found: Sequence[Any] = model.classify(
            [given.text for given in chunk], pairs or None, top_k=top_k, truncate=truncate
        )
        return found

    for given, result in ask(chunks, question):
        cuts.add(result.truncated)
        if as_json:
            second = {} if given.pair is None else {"pair": given.pair}
            write_json({"input": given.text, **second, **result.as_dict()})
        else:
            title = given.text if given.pair is None else f"{given.text}  |  {given.pair}"
            write_table(title, result.answers or [{"label": "no label reaches its threshold"}])
    cuts.report()


def read_asked(
    texts: list[str] | None, file: str | None, pair: str | None, text: str | None, format: str | None
) -> Iterator[list[Input]]:
    """The inputs of the command: texts, or a file."""
    pair = decode_option(pair, "--pair")
    if asks_file(texts, file, text):
        return read_file("classify", file, {"text": decode_option(text, "--text"), "pair": pair}, format)
    return read_texts_or_pairs(texts or (), pair)
