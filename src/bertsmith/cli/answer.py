"""`bertsmith answer`: the part of a text that answers a question."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from bertsmith.asking import Input, Question
from bertsmith.cli.bulk import BulkOptions, Out, write_file
from bertsmith.cli.inputs import ask, decode, decode_option, read_pairs, read_texts
from bertsmith.cli.jobs import asks_file, open_cuts, read_file
from bertsmith.cli.options import File, Format, ModelOptions
from bertsmith.cli.output import Cuts, wants_json, write_json, write_table
from bertsmith.errors import BertsmithError

if TYPE_CHECKING:
    from bertsmith.model import Model

AROUND = 30  # characters of the context shown on each side of an answer


def answer(
    questions: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="QUESTION",
            help="The questions, or - for standard input: a question a line, without --context a tab and its context.",
        ),
    ] = None,
    *,
    context: Annotated[
        str | None,
        typer.Option(metavar="TEXT|@FILE|COLUMN", help="The text to answer from, or its file; with --in its column."),
    ] = None,
    file: File = None,
    question_column: Annotated[
        str | None, typer.Option("--question", metavar="COLUMN", help="With --in: the column of the question.")
    ] = None,
    format: Format = None,
    top_k: Annotated[int, typer.Option(metavar="N", min=1, help="How many answers to a question.")] = 1,
    truncate: Annotated[
        Literal["error", "head", "tail", "windows"] | None,
        typer.Option(help="What to do with a context that is longer than the model takes; else as it learnt."),
    ] = None,
    out: Out = None,
    bulk: BulkOptions,
    options: ModelOptions,
) -> None:
    """Answer a question with a part of a text.

    The model must have been fine-tuned to answer questions (--task span), here or elsewhere. Where the text holds no
    answer, a model that learnt so says "".

    \b
    Examples:
      bertsmith answer "Who built it?" --context "The bridge was built by a smith in 1861."
      bertsmith answer "Who built it?" --context @bridge.txt
      bertsmith answer --in asked.jsonl --out found.jsonl --model my-reader
    """
    question = Question("answer", {"top_k": top_k, "truncate": truncate})

    def count_cuts(home: "Model") -> Cuts:
        return open_cuts(home, "span", truncate, without="head+tail")

    if bulk.asked(file, out):
        asks_file(questions, file)
        columns = name_columns(question_column, context)
        write_file(question, file, columns, format, out, bulk, options, count_cuts)
        return
    chunks = read_asked(question, questions, context, file, question_column, format)
    as_json, own = wants_json(options.as_json), file is not None or context is None
    model = question.find_home(options.load())
    cuts = count_cuts(model)

    def put(chunk: list[Input]) -> Sequence[Any]:
        found: Sequence[Any] = model.answer(
            [given.text for given in chunk], [given.pair or "" for given in chunk], top_k=top_k, truncate=truncate
        )
        return found

    for given, result in ask(chunks, put):
        cuts.add(result.truncated)
        if as_json:
            write_json({**given.describe("context" if own else ""), **result.as_dict()})
        else:
            write_table(given.text, [describe(found, given.pair or "") for found in result.answers])
    cuts.report()


def name_columns(question: str | None, context: str | None) -> dict[str, str | None]:
    """The columns of a file that were named."""
    return {"question": decode_option(question, "--question"), "context": decode_option(context, "--context")}


def read_asked(
    question: Question, questions: list[str] | None, context: str | None, file: str | None, column: str | None,
    format: str | None,
) -> Iterator[list[Input]]:  # fmt: skip
    """The inputs of the command: questions with a context, pairs, or a file."""
    if asks_file(questions, file, column, format=format):
        return read_file(question, file, name_columns(column, context), format)
    asked = questions or []
    if context is None:
        if asked != ["-"]:
            raise typer.BadParameter("give the text to answer from: --context TEXT, or --context @FILE.")
        return read_pairs("-", None)
    text = read_context(context)
    return ([replace(given, pair=text) for given in chunk] for chunk in read_texts(asked, question.chunk))


def read_context(given: str) -> str:
    """The text itself, or that of the file behind an @."""
    if given == "-":  # it would be read as a text of one character, and never hold an answer
        raise typer.BadParameter("--context is a text or @FILE; standard input gives questions, or both, by a tab.")
    if not given.startswith("@"):
        return decode(given, "--context")
    from bertsmith.data.decoding import decode as decode_file

    try:
        return decode_file(Path(given[1:]).read_bytes(), given[1:])
    except OSError as error:
        raise BertsmithError(f"--context: {given[1:]} cannot be read: {error.strerror}.") from error


def describe(found: Mapping[str, Any], context: str) -> dict[str, Any]:
    """A row of the table: the answer, how sure it is, and where it stands."""
    start, end = found["start"], found["end"]
    if not found["answer"]:
        return {"answer": "(no answer)", "score": found["score"], "in the text": ""}
    before, after = context[max(start - AROUND, 0) : start], context[end : end + AROUND]
    around = f"{'…' * (start > AROUND)}{before}[{found['answer']}]{after}{'…' * (end + AROUND < len(context))}"
    return {"answer": found["answer"], "score": found["score"], "in the text": around}
