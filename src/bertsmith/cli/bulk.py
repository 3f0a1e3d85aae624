"""Answers to the rows of a file, into a file: what the verbs with `--in FILE --out FILE` share."""

import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from bertsmith.asking import Question
from bertsmith.cli.options import ModelOptions
from bertsmith.cli.output import Cuts, write_note
from bertsmith.data.findings import counted

if TYPE_CHECKING:
    from bertsmith.model import Model

Out = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="With --in: write the answers here; after a kill the same command goes on."),
]
PACE = 0.5  # seconds between two looks at the progress


@dataclass(frozen=True)
class BulkOptions:
    """How a file is answered into a file."""

    on_error: Annotated[
        Literal["stop", "skip"],
        typer.Option(help="With --out: a row at fault ends the work, or has a line that says why."),
    ] = "stop"
    engine: Annotated[
        Literal["local", "ray"], typer.Option(help="With --out: answer here, or on many machines by Ray (an extra).")
    ] = "local"
    overwrite: Annotated[bool, typer.Option("--overwrite", help="With --out: make FILE anew.")] = False

    def asked(self, file: str | None, out: Path | None) -> bool:
        """Whether the answers go to a file; a command that says how, but not where to, is refused."""
        if out is not None and file is None:
            raise typer.BadParameter("--out goes with --in FILE; the answers to other texts go to standard output.")
        if out is not None and file == "-":
            raise typer.BadParameter("standard input cannot be read again after a kill; use > FILE, or --in a file.")
        if out is None and self != BulkOptions():
            raise typer.BadParameter("--on-error, --engine and --overwrite say how --out FILE is written; give it too.")
        return out is not None


def write_file(
    question: Question, file: str | None, columns: Mapping[str, str | None], format: str | None, out: Path | None,
    bulk: BulkOptions, options: ModelOptions, open_cuts: Callable[["Model"], Cuts],
) -> None:  # fmt: skip
    """Answers every row of `file` into `out`."""
    assert file is not None and out is not None
    from bertsmith.bulk import count_rows, predict_file

    model = options.load()
    cuts = open_cuts(question.find_home(model))
    counter = Counter(question.name)
    try:
        made = predict_file(
            question.name, file, out, model, options=question.options, columns=columns, format=format,
            on_error=bulk.on_error, engine=bulk.engine, overwrite=bulk.overwrite, say=counter.say,
            progress=counter.show,
        )  # fmt: skip
    finally:
        counter.close()
    if counter.worked:
        errors = f"; {made.errors:,} of them could not be answered, as their lines say" if made.errors else ""
        write_note(f"wrote the answers to {count_rows(made.rows)} to {out}{errors}")
    cuts.inputs, cuts.cut, cuts.tokens = made.rows, made.cut, made.cut_tokens
    cuts.report()


class Counter:
    """How far the work is, in one line of a terminal that is written over."""

    def __init__(self, job: str) -> None:
        self._job, self._wrote, self.worked = job, False, False
        self._looked = time.monotonic()
        self._first: tuple[float, int, float] | None = None  # when, rows and share at the first look

    def show(self, rows: int, share: float | None) -> None:
        self.worked = True
        now = time.monotonic()
        if self._first is None:
            self._first = (now, rows, share or 0.0)
        if sys.stderr is None or not sys.stderr.isatty() or now - self._looked < PACE:
            return
        self._looked = now
        print(f"\r{self._job}: {describe(self._first, (now, rows, share))}\x1b[K", end="", file=sys.stderr, flush=True)
        self._wrote = True

    def say(self, sentence: str) -> None:
        self.close()
        write_note(sentence)

    def close(self) -> None:
        if self._wrote:
            print(file=sys.stderr)
        self._wrote = False


def describe(first: tuple[float, int, float], now: tuple[float, int, float | None]) -> str:
    """As in `12,345 rows, 1,234 a second, 3 min left`."""
    seconds, rows = now[0] - first[0], now[1] - first[1]
    words = [counted(now[1], "row")]
    if seconds > 0 and rows > 0:
        words.append(f"{rows / seconds:,.0f} a second")
        if now[2] is not None and now[2] > first[2]:
            left = seconds * (1 - now[2]) / (now[2] - first[2])
            words.append(f"{left / 60:,.0f} min left" if left > 90 else f"{left:,.0f} s left")
    return ", ".join(words)
