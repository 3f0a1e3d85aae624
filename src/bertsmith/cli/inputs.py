"""What a verb is asked about. In: the texts of the command, or standard input. Out: chunks of numbered inputs.

A chunk is large enough to fill the model's batches and small enough that memory stays bounded and answers stream; when
no further line is there, it goes as it is. When an input is at fault the error names it, and all that stands before it
has been answered.
"""

import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TypeVar

import typer

from bertsmith.asking import CHUNK as CHUNK
from bertsmith.asking import Input as Input
from bertsmith.asking import answer_each
from bertsmith.cli.lines import Lines
from bertsmith.errors import BertsmithError

PATIENCE = 0.05  # seconds that a line waits for others to share its batch
Answer = TypeVar("Answer")


def read_texts(texts: Sequence[str], size: int | None = None) -> Iterator[list[Input]]:
    """The texts in chunks of `size` at most; `-` is standard input.

    A wrong command is refused here, before any model is loaded.
    """
    if "-" not in texts:
        wheres = [f"text {n}" * (len(texts) > 1) for n in range(1, len(texts) + 1)]
        return iter([[Input(where, decode(text, where)) for where, text in zip(wheres, texts, strict=True)]])
    if len(texts) > 1:
        raise typer.BadParameter("- is standard input and stands alone, without other texts.")
    lines = Lines()
    return _cut_chunks(_decode_lines(lines), lines, size or CHUNK)


def read_pairs(first: str, second: str | None) -> Iterator[list[Input]]:
    """The pair in a chunk of its own; `-` is standard input with two tab-separated columns."""
    if (first == "-") != (second is None):
        raise typer.BadParameter("give two texts, A and B, or - alone for standard input.")
    if second is None:
        lines = Lines()
        return _cut_chunks(map(_split_pair, _decode_lines(lines)), lines, CHUNK)
    return iter([[Input("", decode(first, "text A"), decode(second, "text B"))]])


def read_texts_or_pairs(texts: Sequence[str], pair: str | None) -> Iterator[list[Input]]:
    """As `read_texts`, with `pair` behind each; without it, a line of standard input may be a text, a tab and its pair.

    Either all lines have a pair or none has.
    """
    if pair is not None:
        return ([replace(given, pair=pair) for given in chunk] for chunk in read_texts(texts))
    if list(texts) != ["-"]:
        return read_texts(texts)
    lines = Lines()
    return _cut_chunks(_split_alike(_decode_lines(lines)), lines, CHUNK)


def decode(word: str, where: str) -> str:
    """A word of the command as UTF-8, whatever the locale took it for; `where` names it when it is something else."""
    try:
        return os.fsencode(word).decode()
    except UnicodeError:
        raise BertsmithError(f"{where}: not valid UTF-8." if where else "not valid UTF-8.") from None


def decode_option(word: str | None, name: str) -> str | None:
    """The value of an option as UTF-8; None where it was not given."""
    return None if word is None else decode(word, name)


def ask(
    chunks: Iterable[list[Input]], question: Callable[[list[Input]], Iterable[Answer]]
) -> Iterator[tuple[Input, Answer]]:
    """Each input with its answer to the question, which is put to a whole chunk at once."""
    for chunk in chunks:
        for given, answer in answer_each(chunk, lambda some: list(question(list(some)))):
            if isinstance(answer, BertsmithError):
                raise answer
            yield given, answer


def _decode_lines(lines: Lines) -> Iterator[Input]:
    """The lines as text. The other Unicode line ends belong to it."""
    for number, raw in enumerate(lines, 1):
        where = f"line {number}"
        try:
            text = raw.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            raise BertsmithError(f"{where}: not valid UTF-8 (byte {error.start + 1} of the line).") from None
        yield Input(where, text.removesuffix("\r"))


def _split_pair(line: Input) -> Input:
    cells = line.text.split("\t")
    if len(cells) != 2:
        raise line.mistake(f"{len(cells)} tab-separated column{'s' * (len(cells) != 1)}, where 2 are needed.")
    return Input(line.where, *cells)


def _split_alike(lines: Iterator[Input]) -> Iterator[Input]:
    """Lines of one or two tab-separated columns, as the first line has them."""
    wanted = 0
    for line in lines:
        cells = line.text.split("\t")
        found = f"{len(cells)} tab-separated column{'s' * (len(cells) != 1)}"
        if len(cells) > 2:
            raise line.mistake(f"{found}, where a text or a text and its pair are needed.")
        if wanted and len(cells) != wanted:
            raise line.mistake(f"{found}, but line 1 has {wanted}.")
        wanted = len(cells)
        yield Input(line.where, *cells)


def _cut_chunks(inputs: Iterator[Input], lines: Lines, size: int) -> Iterator[list[Input]]:
    size = 1 if sys.stdin.isatty() else size  # a person who types line by line wants each answer at once
    chunk: list[Input] = []
    deadline = 0.0
    try:
        for given in inputs:
            deadline = deadline if chunk else time.monotonic() + PATIENCE
            chunk.append(given)
            if len(chunk) == size or not lines.has_next(deadline):
                yield chunk
                chunk = []
    except BertsmithError:
        if chunk:
            yield chunk
        raise
    if chunk:
        yield chunk
