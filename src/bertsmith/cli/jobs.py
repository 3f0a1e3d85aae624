"""What classify, tag and answer share: rows of a file as inputs, and the policy for long ones.

In: a file as a person has it, with or without labels. Out: chunks of inputs, each of which knows its row.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, get_args

import typer

from bertsmith.cli.inputs import CHUNK, Input
from bertsmith.cli.options import Policy
from bertsmith.cli.output import Cuts

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


def open_cuts(model: "Model", task: str, truncate: str | None, *, without: str = "") -> Cuts:
    """Counts what is cut by the policy that was asked for, or else by the one the model learnt with."""
    from bertsmith.tasks.catalog import find_task

    policy = truncate or model.task_settings(find_task(task))["truncate"]
    return Cuts(policy, choices=[choice for choice in get_args(Policy) if choice != without])
