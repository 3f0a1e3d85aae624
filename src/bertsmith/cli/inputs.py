"""What a verb is asked about. In: the texts of the command, or standard input. Out: chunks of numbered inputs.

A chunk is large enough to fill the model's batches and small enough that memory stays bounded and answers stream. When
an input is at fault the error names it, and all that stands before it has been answered.
"""

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

import typer

from bertsmith.errors import BertsmithError

CHUNK = 4096
Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class Input:
    """One text, or a pair, and where it came from: "line 3", "text 2", or nothing where there is only one."""

    where: str
    text: str
    pair: str = ""

    def mistake(self, what: str) -> BertsmithError:
        """The error that says `what` is wrong with this input."""
        return BertsmithError(f"{self.where}: {what}" if self.where else what)


def read_texts(texts: Sequence[str]) -> Iterator[list[Input]]:
    """The texts in chunks; `-` is standard input. A wrong command is refused here, before any model is loaded."""
    if "-" not in texts:
        return iter([[_check(Input(f"text {n}" * (len(texts) > 1), text)) for n, text in enumerate(texts, 1)]])
    if len(texts) > 1:
        raise typer.BadParameter("- is standard input and stands alone, without other texts.")
    return _cut_chunks(_read_lines())


def read_pairs(first: str, second: str | None) -> Iterator[list[Input]]:
    """The pair in a chunk of its own; `-` is standard input with two tab-separated columns."""
    if (first == "-") != (second is None):
        raise typer.BadParameter("give two texts, A and B, or - alone for standard input.")
    if second is None:
        return _cut_chunks(map(_split_pair, _read_lines()))
    return iter([[_check(Input("", first, second))]])


def ask(
    chunks: Iterable[list[Input]], question: Callable[[list[Input]], Iterable[Answer]]
) -> Iterator[tuple[Input, Answer]]:
    """Each input with its answer to the question, which is put to a whole chunk at once."""
    for chunk in chunks:
        yield from _ask_chunk(chunk, question)


def _ask_chunk(
    chunk: list[Input], question: Callable[[list[Input]], Iterable[Answer]]
) -> Iterator[tuple[Input, Answer]]:
    try:
        answers = list(question(chunk))
    except BertsmithError as error:
        question([])  # raises the same where no input is at fault: the model has no such head, an option does not fit
        if len(chunk) == 1:
            raise chunk[0].mistake(str(error)) from error
        # Halving finds the one at fault for about the price of one more pass, and answers what stands before it.
        middle = len(chunk) // 2
        yield from _ask_chunk(chunk[:middle], question)
        yield from _ask_chunk(chunk[middle:], question)
    else:
        yield from zip(chunk, answers, strict=True)


def _check(given: Input) -> Input:
    try:
        (given.text + given.pair).encode()
    except UnicodeEncodeError:  # bytes of the command that are not UTF-8 arrive as lone surrogates
        raise given.mistake("not valid UTF-8.") from None
    return given


def _read_lines() -> Iterator[Input]:
    """The lines of standard input. Only a line feed ends a line: the other Unicode line ends belong to the text."""
    for number, raw in enumerate(sys.stdin.buffer, 1):
        where = f"line {number}"
        try:
            text = raw.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            raise BertsmithError(f"{where}: not valid UTF-8 (byte {error.start + 1} of the line).") from None
        yield Input(where, text.removesuffix("\n").removesuffix("\r"))


def _split_pair(line: Input) -> Input:
    cells = line.text.split("\t")
    if len(cells) != 2:
        raise line.mistake(f"{len(cells)} tab-separated column{'s' * (len(cells) != 1)}, where 2 are needed.")
    return Input(line.where, *cells)


def _cut_chunks(inputs: Iterator[Input]) -> Iterator[list[Input]]:
    size = 1 if sys.stdin.isatty() else CHUNK  # a person who types line by line wants each answer at once
    chunk: list[Input] = []
    try:
        for given in inputs:
            chunk.append(given)
            if len(chunk) == size:
                yield chunk
                chunk = []
    except BertsmithError:
        if chunk:
            yield chunk
        raise
    if chunk:
        yield chunk
