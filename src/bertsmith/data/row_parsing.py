"""One line, or the lines of one row, become a record. In: lines as bytes. Out: a dict, or the fault of the row."""

import csv
from collections.abc import Iterator
from itertools import chain
from typing import TYPE_CHECKING, Any, Protocol

from bertsmith.data.decoding import cut_lines
from bertsmith.data.delimited import describe_width, explain_quotes, is_blank, refuse_swallowed, room_for
from bertsmith.data.headers import AGAIN, is_again
from bertsmith.data.jsonlines import parse_line
from bertsmith.errors import BertsmithError

if TYPE_CHECKING:
    from bertsmith.data.layouts import Layout

LONGEST_CELL = 1 << 26


class RowFault(BertsmithError):
    """What is wrong with one row; those behind it can be read."""


class LineSource(Protocol):
    def take(self) -> bytes | None: ...


class HeadLines:
    """The lines of the start of a file."""

    def __init__(self, text: str) -> None:
        self._lines = cut_lines(text)
        self.number = 0

    def take(self) -> bytes | None:
        line = next(self._lines, None)
        self.number += line is not None
        return None if line is None else line.encode()


class RowParser:
    def __init__(self, layout: "Layout", name: str, lines: LineSource) -> None:
        self.layout, self.name, self._lines = layout, name, lines

    def parse(self, raw: bytes, number: int) -> dict[str, Any] | None:
        """The record of the row that begins with this line; None where it has no content.

        A cell in quotes may take further lines of the source.
        """
        text = self._decode(raw, number)
        layout = self.layout
        if layout.kind in ("csv", "tsv"):
            return self._name_cells(self.cut(text, number), number)
        if not text.strip():
            return None
        if layout.kind == "lines":
            return {"text": text.removesuffix("\n").removesuffix("\r")}
        try:
            record = parse_line(text, f"{self.name}, line {number:,}")
        except BertsmithError as error:
            raise RowFault(str(error)) from None
        return {column: record.get(column) for column in layout.columns}

    def cut(self, text: str, number: int) -> list[str]:
        """The cells of a row; none where its line is empty."""
        layout = self.layout
        if not layout.quoted or '"' not in text:
            bare = text.removesuffix("\n").removesuffix("\r")
            return bare.split(layout.delimiter) if bare else []
        reader = csv.reader(chain([text], self._others(number)), delimiter=layout.delimiter, strict=True)
        try:
            with room_for(LONGEST_CELL):
                cells = next(reader)
        except csv.Error as error:
            # Where a quote mark stands wrong, nobody knows where the next row begins: this is not a fault of one row.
            raise explain_quotes(str(error), self.name, number, number + reader.line_num - 1) from None
        if reader.line_num > 1:
            width = len(layout.columns) or len(cells)
            refuse_swallowed(cells, layout.delimiter, width, f"{self.name}, line {number:,}")
        return cells

    def _others(self, number: int) -> Iterator[str]:
        while (raw := self._lines.take()) is not None:
            number += 1
            try:
                yield self._decode(raw, number)
            except RowFault as fault:
                raise BertsmithError(str(fault)) from None

    def _name_cells(self, cells: list[str], number: int) -> dict[str, Any] | None:
        columns = self.layout.columns
        if len(columns) > 1 and is_blank(cells):
            return None
        if cells and len(cells) != len(columns):
            told = describe_width(cells, len(columns), self.layout.delimiter)
            raise RowFault(f"{self.name}, row {number:,}: {told}")
        if is_again(cells, columns):
            raise RowFault(f"{self.name}, row {number:,}: {AGAIN}")
        has_content = bool(cells) and (len(columns) == 1 or any(cells))
        return dict(zip(columns, cells, strict=True)) if has_content else None

    def _decode(self, raw: bytes, number: int) -> str:
        where = f"{self.name}, line {number:,}"
        try:
            text = raw.decode()
        except UnicodeDecodeError as error:
            raise RowFault(
                f"{where}: byte {error.start + 1:,} of the line (0x{raw[error.start]:02x}) is not UTF-8; save the file "
                "as UTF-8, for example with `iconv -f WINDOWS-1252 -t UTF-8`."
            ) from None
        at = text.find("\0")
        if at >= 0:
            raise RowFault(f"{where}: character {at + 1:,} of the line is a NUL byte; remove it (`tr -d '\\0'`).")
        return text
