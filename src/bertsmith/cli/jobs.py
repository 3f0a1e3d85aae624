"""What the verbs that ask a model share: rows of a file as inputs, and the policy for long ones.

In: a file as a person has it, with or without labels. Out: chunks of inputs, each of which knows its row.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, get_args

import typer

from bertsmith.cli.inputs import CHUNK, Input, decode_option, read_texts_or_pairs
from bertsmith.cli.options import Policy
from bertsmith.cli.output import Cuts, write_json, write_table

if TYPE_CHECKING:
    from bertsmith.model import Model

GOLD = ("label", "tags", "answers", "answer")  # what a question does not need


def asks_file(texts: Sequence[str] | None, file: str | None, *columns: str | None) -> bool:
    """Whether the rows of a file are asked about; a command that asks about both or about nothing is refused."""
    if file is not None:
        if texts:
            raise typer.BadParameter("give texts or --in FILE, not both.")
        return True
    if not texts:
        raise typer.BadParameter("give a text, - for standard input, or --in FILE.")
    if any(column is not None for column in columns):
        raise typer.BadParameter("a column was named, but no file; give --in FILE too.")
    return False


def read_file(
    task: str, path: str | None, columns: Mapping[str, str | None], format: str | None, size: int = CHUNK
) -> Iterator[list[Input]]:
    """The rows as inputs; columns are found as in training, and what is gold there is not looked at."""
    from bertsmith.data.columns import find_columns
    from bertsmith.data.reading import read_table
    from bertsmith.tasks.catalog import find_task

    kind = find_task(task)
    table = read_table(path, format=format)
    required = [role for role in kind.required if role not in GOLD]
    examples = kind.examples(table, find_columns(table, kind.roles, columns, required=required), {}, gold=False)
    inputs = [_as_input(example) for example in examples]
    return (inputs[start : start + size] for start in range(0, len(inputs), size))


def _as_input(example: Any) -> Input:
    """The example itself forgets where it stood: the input names the row in messages."""
    alone = replace(example, where="")
    if hasattr(example, "question"):
        return Input(example.where, example.question, example.context, alone)
    return Input(example.where, example.text, getattr(example, "pair", None), alone)


def read_asked(
    task: str, texts: list[str] | None, file: str | None, pair: str | None, text: str | None, format: str | None
) -> Iterator[list[Input]]:
    """The inputs of a command about texts or pairs of them: its own, or those of a file."""
    pair = decode_option(pair, "--pair")
    if asks_file(texts, file, text):
        return read_file(task, file, {"text": decode_option(text, "--text"), "pair": pair}, format)
    return read_texts_or_pairs(texts or (), pair)


def part(chunk: Sequence[Input]) -> tuple[list[str], list[str] | None]:
    """The texts of a chunk and, where it is of pairs, their seconds."""
    return [given.text for given in chunk], [given.pair for given in chunk if given.pair is not None] or None


def write_answers(given: Input, result: Any, as_json: bool, otherwise: Mapping[str, Any] | None = None) -> None:
    """One input's answers; a table says `otherwise` where there are none."""
    if as_json:
        second = {} if given.pair is None else {"pair": given.pair}
        write_json({"input": given.text, **second, **result.as_dict()})
    else:
        title = given.text if given.pair is None else f"{given.text}  |  {given.pair}"
        write_table(title, result.answers or ([otherwise] if otherwise else []))


def open_cuts(model: "Model", task: str, truncate: str | None, *, without: str = "") -> Cuts:
    """Counts what is cut by the policy that was asked for, or else by the one the model learnt with."""
    from bertsmith.tasks.catalog import find_task

    kind = find_task(task)
    policy = truncate or model.need(str(kind.head), "do that", task).task_settings(kind)["truncate"]
    return Cuts(policy, choices=[choice for choice in get_args(Policy) if choice != without])
