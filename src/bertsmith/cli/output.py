"""What a verb says: JSON lines in a pipe, tables on a terminal, and on standard error what was cut."""

import json
import os
import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from math import isfinite
from typing import Any, get_args

import typer

from bertsmith.asking import make_plain, write_line
from bertsmith.cli.options import Policy
from bertsmith.errors import BertsmithError

Rows = Sequence[Mapping[str, Any]]
# Control characters would steer the terminal, and line ends break a table: they are shown, not obeyed.
SHOWN = {code: ascii(chr(code))[1:-1] for code in (*range(0x20), *range(0x7F, 0xA0), 0x2028, 0x2029)}


def wants_json(asked: bool) -> bool:
    """Whether answers go out as JSON lines: where asked for, and wherever no person reads them."""
    if sys.stdout is None:
        raise BertsmithError("standard output is closed, so there is no place for the answers.")
    return asked or not sys.stdout.isatty()


def write_json(record: Mapping[str, Any]) -> None:
    """One record, one line, in UTF-8 whatever the locale says."""
    _write(write_line(record))


def write_table(title: str, rows: Rows, numbers: Collection[str] = (), narrow: bool = False) -> None:
    """A heading and a table whose columns are the keys of the rows; numbers stand to the right.

    `numbers` are the keys of those that are written out already; a `narrow` table has no lines between its columns.
    """
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(header_style="dim")
    if narrow:
        table = Table(header_style="dim", box=None, padding=(0, 1, 0, 0), pad_edge=False)
    for key in rows[0] if rows else ():
        if key in numbers or all(isinstance(row[key], (int, float)) for row in rows):
            table.add_column(key, justify="right", no_wrap=True, overflow="ellipsis")  # half a number is another one
        else:
            table.add_column(key, overflow="fold")
    for row in rows:
        table.add_row(*(Text(_format_cell(value).translate(SHOWN)) for value in row.values()))
    console = Console(file=sys.stdout, highlight=False)
    with console.capture() as captured:
        if title:
            console.print(Text(title.translate(SHOWN), style="bold"))  # Text: a [MASK] in it is no markup
        console.print(table)
    _write(captured.get().encode(sys.stdout.encoding, "replace"))


def write_text(parts: Iterable[tuple[str, str]]) -> None:
    """A text in parts, each with its style."""
    from rich.console import Console
    from rich.text import Text

    console = Console(file=sys.stdout, highlight=False)
    with console.capture() as captured:
        console.print(Text.assemble(*((part.translate(SHOWN), style) for part, style in parts)))
    _write(captured.get().encode(sys.stdout.encoding, "replace"))


def write_note(sentence: str) -> None:
    """A remark beside the answers, or an error, on standard error; a name in it may hold anything."""
    if sys.stderr is None:  # else it would go among the answers
        return
    with suppress(OSError):  # who has closed standard error wants no remarks
        print(sentence.translate(SHOWN), file=sys.stderr)


def drop_nan(value: Any) -> Any:
    """As JSON has it: a number that does not exist, as a score of no examples, is null."""
    if isinstance(value, Mapping):
        return {key: drop_nan(one) for key, one in value.items()}
    return None if isinstance(value, float) and not isfinite(value) else value


@dataclass
class Cuts:
    """Counts what the truncation policy took away; `choices` are all policies that the verb has."""

    policy: str
    inputs: int = 0
    cut: int = 0
    tokens: int = 0
    choices: Sequence[str] = field(default=get_args(Policy), kw_only=True)

    def add(self, tokens: int) -> None:
        """Counts one input that lost so many tokens."""
        self.inputs += 1
        self.cut += tokens > 0
        self.tokens += tokens

    def report(self) -> None:
        """Says what was cut, if anything was."""
        if self.cut:
            others = "|".join(policy for policy in self.choices if policy != self.policy)
            write_note(
                f"cut: {self.cut:,} of {self.inputs:,} input{'s' * (self.inputs != 1)}, "
                f"{self.tokens:,} token{'s' * (self.tokens != 1)} "
                f"(policy {self.policy}; --truncate {others} to change)"
            )


def pick(rows: Iterable[Mapping[str, Any]], *keys: str) -> Rows:
    """The rows with these keys only, in this order."""
    return [{key: row[key] for key in keys} for row in rows]


def _write(data: bytes) -> None:
    try:
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
    except OSError as error:
        # What is left in the buffer must go somewhere, or the interpreter complains about it at the end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(error, BrokenPipeError):  # the reader has left, as in `| head`
            raise typer.Exit(141) from None
        raise BertsmithError(f"cannot write to standard output: {error.strerror}.") from error


def _format_cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, (bool, str)):
        return str(value)
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:.4f}" if abs(value) >= 0.001 or not value else f"{value:.1e}"
    return json.dumps(value, ensure_ascii=False, default=make_plain)
