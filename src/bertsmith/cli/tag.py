"""`bertsmith tag`: the entities of a text, or whatever else its words were labelled with."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal

import typer

from bertsmith.asking import Input, Question, ask_words
from bertsmith.cli.bulk import BulkOptions, Out, write_file
from bertsmith.cli.inputs import ask, decode_option, read_texts
from bertsmith.cli.jobs import asks_file, open_cuts, read_file
from bertsmith.cli.options import File, Format, ModelOptions, OwnCut
from bertsmith.cli.output import wants_json, write_json, write_table, write_text

Aggregation = Literal["none", "simple", "first", "average", "max"]


def tag(
    texts: Annotated[
        list[str] | None, typer.Argument(metavar="TEXT", help="The texts, or - for standard input, one text a line.")
    ] = None,
    *,
    aggregation: Annotated[
        Aggregation,
        typer.Option(help="How pieces become words: by the first piece, their mean, the surest; or not at all."),
    ] = "first",
    file: File = None,
    text: Annotated[str | None, typer.Option(metavar="COLUMN", help="With --in: the column of the text.")] = None,
    words: Annotated[str | None, typer.Option(metavar="COLUMN", help="With --in: the column of the words.")] = None,
    format: Format = None,
    truncate: OwnCut = None,
    out: Out = None,
    bulk: BulkOptions,
    options: ModelOptions,
) -> None:
    """Find the entities of a text, or give each of its words a tag.

    The model must have been fine-tuned to tag words, here or elsewhere.

    \b
    Examples:
      bertsmith tag "Ada Lovelace was born in London."
      bertsmith tag --in train.conll --model my-tagger
      bertsmith tag --in reviews.csv --out names.jsonl --model my-tagger
    """
    question = Question("tag", {"aggregation": aggregation, "truncate": truncate})
    columns = {"text": decode_option(text, "--text"), "words": decode_option(words, "--words")}
    if bulk.asked(file, out):
        asks_file(texts, file)
        write_file(question, file, columns, format, out, bulk, options, lambda m: open_cuts(m, "tag", truncate))
        return
    is_file = asks_file(texts, file, text, words, format=format)
    chunks = read_file(question, file, columns, format) if is_file else read_texts(texts or ())
    as_json = wants_json(options.as_json)
    model = question.find_home(options.load())
    cuts = open_cuts(model, "tag", truncate)

    def put(chunk: list[Input]) -> Sequence[Any]:
        return ask_words(model, chunk, question.options)

    for given, result in ask(chunks, put):
        cuts.add(result.truncated)
        if as_json:
            write_json({**given.describe(), **result.as_dict()})
        else:
            write_text(mark(given.text, result.answers))
            if result.answers:
                write_table("", [describe(answer) for answer in result.answers])
    cuts.report()


def mark(text: str, answers: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, str]]:
    """The text with its entities in it, as in `[Ada Lovelace](PER) was born in [London](LOC).`"""
    end = 0
    for answer in answers:
        yield text[end : answer["start"]], ""
        end = answer["end"]
        yield f"[{text[answer['start'] : end]}]", "bold"
        yield f"({name(answer)})", "cyan"
    yield text[end:], ""


def describe(answer: Mapping[str, Any]) -> dict[str, Any]:
    """A row of the table."""
    place = f"{answer['start']}:{answer['end']}"
    return {"entity": name(answer), "score": answer["score"], "word": answer["word"], "characters": place}


def name(answer: Mapping[str, Any]) -> str:
    """Of an entity its kind, of a piece its tag."""
    return str(answer.get("entity_group", answer.get("entity")))
