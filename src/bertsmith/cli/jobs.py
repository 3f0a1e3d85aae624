"""What the verbs that ask a model share: rows of a file as inputs, and the policy for long ones.

In: a file as a person has it, with or without labels. Out: chunks of inputs, each of which knows its row.
"""

from collections.abc import Iterator, Mapping, Sequence
from os.path import isfile, splitext
from shlex import quote
from typing import TYPE_CHECKING, Any, get_args

import typer

from bertsmith.asking import Input, Question
from bertsmith.cli.inputs import decode_option, read_texts_or_pairs
from bertsmith.cli.options import Policy
from bertsmith.cli.output import Cuts, write_json, write_note, write_table
from bertsmith.errors import BertsmithError

if TYPE_CHECKING:
    from bertsmith.data.streaming import Rows
    from bertsmith.model import Model


def asks_file(texts: Sequence[str] | None, file: str | None, *columns: str | None, format: str | None = None) -> bool:
    """Whether the rows of a file are asked about; a command that asks about both or about nothing is refused."""
    if file is not None:
        if texts:
            raise typer.BadParameter("give texts or --in FILE, not both.")
        return True
    if not texts:
        raise typer.BadParameter("Missing argument 'TEXT': give a text, - for standard input, or --in FILE.")
    if any(column is not None for column in columns):
        raise typer.BadParameter("a column was named, but no file; give --in FILE too.")
    refuse_format(file, format)
    for name in (text for text in texts if splitext(text)[1] and isfile(text)):
        write_note(f"{name} is a file, and its name was asked about; --in {quote(name)} asks about its rows.")
    return False


def refuse_format(file: str | None, format: str | None) -> None:
    if file is None and format is not None:
        raise typer.BadParameter("--format says what a file holds; give --in FILE too.")


def read_file(
    question: Question, path: str | None, columns: Mapping[str, str | None], format: str | None
) -> Iterator[list[Input]]:
    """The rows as inputs; a column that is not there is refused here, before any model is loaded."""
    from bertsmith.data.streaming import open_rows

    rows = open_rows(path or "-", format)
    return _read_blocks(question, rows, question.find_columns(rows, columns))


def _read_blocks(question: Question, rows: "Rows", columns: Mapping[str, str]) -> Iterator[list[Input]]:
    for block in rows.blocks(question.chunk):
        chunk: list[Input] = []
        for given in question.read(rows, block.rows, columns):
            if isinstance(given, BertsmithError):
                if chunk:
                    yield chunk
                raise given
            chunk.append(given)
        yield chunk


def name_columns(pair: str | None, text: str | None) -> dict[str, str | None]:
    """The columns of a file that were named."""
    return {"text": decode_option(text, "--text"), "pair": decode_option(pair, "--pair")}


def read_asked(
    question: Question, texts: list[str] | None, file: str | None, pair: str | None, text: str | None,
    format: str | None,
) -> Iterator[list[Input]]:  # fmt: skip
    """The inputs of a command about texts or pairs of them: its own, or those of a file."""
    if asks_file(texts, file, text, format=format):
        return read_file(question, file, name_columns(pair, text), format)
    return read_texts_or_pairs(texts or (), decode_option(pair, "--pair"))


def part(chunk: Sequence[Input]) -> tuple[list[str], list[str] | None]:
    """The texts of a chunk and, where it is of pairs, their seconds."""
    return [given.text for given in chunk], [given.pair for given in chunk if given.pair is not None] or None


def write_answers(given: Input, result: Any, as_json: bool, otherwise: Mapping[str, Any] | None = None) -> None:
    """One input's answers; a table says `otherwise` where there are none."""
    if as_json:
        write_json({**given.describe("pair"), **result.as_dict()})
    else:
        title = given.text if given.pair is None else f"{given.text}  |  {given.pair}"
        write_table(title, result.answers or ([otherwise] if otherwise else []))


def open_cuts(model: "Model", task: str, truncate: str | None, *, without: str = "") -> Cuts:
    """Counts what is cut by the policy that was asked for, or else by the one the model learnt with."""
    from bertsmith.tasks.catalog import find_task

    kind = find_task(task)
    policy = truncate or model.need(str(kind.head), "do that", task).task_settings(kind)["truncate"]
    return Cuts(policy, choices=[choice for choice in get_args(Policy) if choice != without])
