"""`bertsmith tokenize`: the pieces that a model sees of a text."""

from typing import TYPE_CHECKING, Annotated

import typer

from bertsmith.cli.inputs import ask, decode_option, read_texts
from bertsmith.cli.options import ModelOptions, Texts
from bertsmith.cli.output import Rows, wants_json, write_json, write_table

if TYPE_CHECKING:
    from bertsmith.text.encoding import Encoding


def tokenize(
    texts: Texts,
    *,
    pair: Annotated[str | None, typer.Option(metavar="TEXT", help="A second text, put behind each TEXT.")] = None,
    options: ModelOptions,
) -> None:
    """Show the pieces that a model sees of a text, and where each comes from.

    \b
    Example:
      bertsmith tokenize "Transformers tokenize unbelievably."
    """
    chunks, pair = read_texts(texts), decode_option(pair, "--pair")
    as_json = wants_json(options.as_json)
    model = options.load()
    for given, encoding in ask(chunks, lambda chunk: [model.tokenize(each.text, pair=pair) for each in chunk]):
        columns = {
            "ids": encoding.ids,
            "pieces": encoding.pieces,
            "offsets": encoding.offsets,
            "words": encoding.words,
            "segments": encoding.segments,
        }
        if as_json:
            write_json({"input": given.text, **({} if pair is None else {"pair": pair}), **columns})
        else:
            write_table(given.text, list_rows(encoding))


def list_rows(encoding: "Encoding") -> Rows:
    """A row a piece, for people: the id as it is written in vocabularies, nothing where a special token has no word."""
    return [
        {"id": str(id_), "piece": piece, "characters": f"{start}:{stop}", "word": word, "segment": segment}
        for id_, piece, (start, stop), word, segment in zip(
            encoding.ids, encoding.pieces, encoding.offsets, encoding.words, encoding.segments, strict=True
        )
    ]
