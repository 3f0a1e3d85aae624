"""The rows of a file in blocks, so that a file of any size is read in bounded memory, and can be read on from a place.

In: the path of a file. Out: blocks of rows, each row with the place behind it; a row that cannot be read is a sentence.
JSON Lines, CSV, TSV and lines of text are streamed, packed (.gz, .xz, .zst) or not; how they are laid out is told by
their start. Any other format is read whole, as `reading.py` does.
"""

import codecs
import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO, Any

from bertsmith.data.layouts import Layout, find_layout
from bertsmith.data.reading import read_table
from bertsmith.data.row_parsing import RowFault, RowParser
from bertsmith.data.table import Table
from bertsmith.errors import BertsmithError
from bertsmith.text.streams import BLOCK, PACKINGS, open_stream

BLOCK_BYTES = 1 << 21  # of input in a block, where its rows are long
LONGEST_LINE = 1 << 26


@dataclass(frozen=True, order=True)
class Place:
    """Between two rows: the byte where the next one begins, and the number of its line."""

    byte: int = 0
    line: int = 1


@dataclass(frozen=True, slots=True)
class Found:
    """One row: its record, or why it cannot be read."""

    number: int
    record: dict[str, Any] | None
    end: Place
    fault: str = ""


@dataclass(frozen=True)
class Block:
    rows: Sequence[Found]
    start: Place
    raw: bytes  # from `start` on, to the end of the last row at least

    def raw_until(self, place: Place) -> bytes:
        return self.raw[: place.byte - self.start.byte]


@dataclass(frozen=True)
class Rows:
    """A file whose start has been looked at."""

    path: Path
    name: str  # as the user gave it
    layout: Layout
    table: Table | None = field(default=None, repr=False)  # of a format that is read whole

    @property
    def packing(self) -> str:
        return PACKINGS.get(self.path.suffix.lower(), "")

    @property
    def total(self) -> int | None:
        """The bytes that places count; None where only reading all would tell."""
        if self.table is not None:
            return sum(map(len, map(_write_record, self.table.records)))
        return None if self.packing else self.path.stat().st_size

    def as_table(self, rows: Sequence[Found]) -> Table:
        """Those that could be read."""
        read = [(row.record, row.number) for row in rows if row.record is not None]
        layout = self.layout
        return Table(
            self.name, layout.columns, [record for record, _ in read], [number for _, number in read], layout.unit,
            layout.kind,
        )  # fmt: skip

    def head(self, rows: int = 1000) -> Table:
        """The first rows, by which columns are found; an error where there are none."""
        found = next(self.blocks(rows), None)
        if found is None:
            raise BertsmithError(f"{self.name} holds no rows.")
        return self.as_table(found.rows)

    def hasher(self, place: Place) -> "hashlib._Hash":
        """What all bytes before a place are known by; it can be fed those that follow."""
        total = hashlib.sha256()
        if self.table is not None:
            for raw in self._written(place.byte):
                total.update(raw)
            return total
        with open_stream(self.path, self.packing) as stream:
            for block in _read_exactly(stream, place.byte, self.name):
                total.update(block)
        return total

    def blocks(self, rows: int, start: Place | None = None, end: Place | None = None) -> Iterator[Block]:
        """Blocks of so many rows at most, from one place to another."""
        found = self._stream(start or Place(), end) if self.table is None else self._walk(start or Place())
        yield from _gather(found, rows, start or Place())

    def _stream(self, start: Place, end: Place | None) -> Iterator[tuple[Found, bytes]]:
        with open_stream(self.path, self.packing) as stream:
            if start.byte and not self.packing:
                stream.seek(start.byte)
            else:
                for _ in _read_exactly(stream, start.byte, self.name):
                    pass
            lines = Lines(stream, self.name, start)
            parser = RowParser(self.layout, self.name, lines)
            skip = self.layout.skip if start.byte == 0 else 0
            while end is None or lines.place < end:
                row = _parse_next(parser, lines)
                if row is None:
                    return
                if row.record is None and not row.fault:
                    continue
                if skip:
                    skip -= 1
                else:
                    yield row, lines.cut()

    def _walk(self, start: Place) -> Iterator[tuple[Found, bytes]]:
        assert self.table is not None
        byte = 0
        for index, record in enumerate(self.table.records):
            raw = _write_record(record)
            byte += len(raw)
            if byte > start.byte:
                yield Found(self.table.rows[index], record, Place(byte, index + 2)), raw

    def _written(self, byte: int) -> Iterator[bytes]:
        assert self.table is not None
        for record in self.table.records:
            if byte <= 0:
                return
            raw = _write_record(record)
            byte -= len(raw)
            yield raw


def open_rows(source: str | Path, format: str | None = None) -> Rows:
    """Looks at the start of a file; `-` is standard input, which is read whole."""
    path, name, found = Path(source), str(source), None
    if name != "-" and path.is_file():
        packing = PACKINGS.get(path.suffix.lower(), "")
        with open_stream(path, packing) as stream:
            head, more = stream.read(BLOCK), True
            while more and b"\n" not in head and len(head) < LONGEST_LINE:
                more = bool(block := stream.read(BLOCK))
                head += block
            found = find_layout(head, not (more and stream.read(1)), path, packing, format)
    if found is not None:
        return Rows(path, name, found)
    table = read_table(source if name == "-" else path, name="" if name == "-" else name, format=format)
    return Rows(path, table.name, Layout(table.kind, table.columns, table.unit, streamed=False), table)


class Lines:
    """The lines of a stream with their ends; only a line feed ends a line."""

    def __init__(self, stream: IO[bytes], name: str, start: Place) -> None:
        self._stream, self._name = stream, name
        self._ready: list[bytes] = []  # in reverse, whole lines
        self._rest = b""
        self._taken: list[bytes] = []
        self.place = start

    def __iter__(self) -> Iterator[bytes]:
        while (line := self.take()) is not None:
            yield line

    def take(self) -> bytes | None:
        """The next line; None at the end."""
        if not self._ready and not self._fill():
            return None
        line = self._ready.pop()
        self._taken.append(line)
        self.place = Place(self.place.byte + len(line), self.place.line + 1)
        return line

    def cut(self) -> bytes:
        """All that was taken since the last cut."""
        raw = b"".join(self._taken)
        self._taken = []
        return raw

    def _fill(self) -> bool:
        while block := self._stream.read(BLOCK):
            *whole, rest = (self._rest + block).split(b"\n")
            if len(rest) > LONGEST_LINE:
                raise BertsmithError(
                    f"{self._name}, line {self.place.line + len(whole):,}: longer than {LONGEST_LINE >> 20} MiB, so "
                    "this is not a file of rows; give one row a line."
                )
            self._rest = rest
            if whole:
                self._ready = [line + b"\n" for line in reversed(whole)]
                return True
        self._ready, self._rest = [self._rest] if self._rest else [], b""
        return bool(self._ready)


def _parse_next(parser: RowParser, lines: Lines) -> Found | None:
    """The next row; one without content has neither record nor fault. None: the file is at its end."""
    begin = lines.place
    raw = lines.take()
    if raw is None:
        return None
    if begin.byte == 0:
        raw = raw.removeprefix(codecs.BOM_UTF8)
    try:
        record = parser.parse(raw, begin.line)
    except RowFault as fault:
        return Found(begin.line, None, lines.place, str(fault))
    return Found(begin.line, record, lines.place)


def _gather(rows: Iterator[tuple[Found, bytes]], count: int, start: Place) -> Iterator[Block]:
    found: list[Found] = []
    raws: list[bytes] = []
    size = 0
    try:
        for row, raw in rows:
            found.append(row)
            raws.append(raw)
            size += len(raw)
            if len(found) == count or size >= BLOCK_BYTES:
                yield Block(found, start, b"".join(raws))
                start, found, raws, size = row.end, [], [], 0
    except BertsmithError:
        if found:  # what stands before the mistake
            yield Block(found, start, b"".join(raws))
        raise
    if found:
        yield Block(found, start, b"".join(raws))


def _read_exactly(stream: IO[bytes], count: int, name: str) -> Iterator[bytes]:
    while count > 0:
        block = stream.read(min(BLOCK, count))
        if not block:
            raise BertsmithError(f"{name} has become shorter than what was read of it before.")
        count -= len(block)
        yield block


def _write_record(record: Mapping[str, Any]) -> bytes:
    return json.dumps(record, default=str).encode() + b"\n"


def describe_layout(layout: Layout) -> dict[str, Any]:
    """As JSON holds it."""
    found: dict[str, Any] = json.loads(json.dumps(asdict(layout)))
    return found
