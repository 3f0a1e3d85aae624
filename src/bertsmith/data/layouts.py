"""How the rows of a file are laid out, told by its start. In: the first bytes. Out: a layout, or None: read it whole.

The rules are those of `reading.py` and `delimited.py`, put to the start of the file alone.
"""

import codecs
import json
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from bertsmith.data.conll import looks_like_conll
from bertsmith.data.decoding import MARKS, NOT_TEXT, bare_lines
from bertsmith.data.delimited import HEAD, drop_blank, guess_delimiter, is_quoted_tsv, settle_columns, take_told
from bertsmith.data.jsonlines import is_by_line
from bertsmith.data.reading import EXTENSIONS, guess_format
from bertsmith.data.row_parsing import HeadLines, RowFault, RowParser
from bertsmith.data.squad import is_squad
from bertsmith.errors import BertsmithError

STREAMED = (None, "jsonl", "json", "csv", "tsv", "lines")
NOT_STREAMED = tuple(mark for mark, encoding in MARKS if encoding != "utf-8") + tuple(mark for mark, _ in NOT_TEXT)
TRIES = 20  # lines taken off the end of a start, where a cell may go on behind it


@dataclass(frozen=True)
class Layout:
    kind: str  # jsonl, lines, csv, tsv; any other is read whole
    columns: tuple[str, ...]
    unit: str = "line"
    delimiter: str = ""
    quoted: bool = False
    skip: int = 0  # rows at the start that are no data
    streamed: bool = True

    @classmethod
    def of(cls, described: Mapping[str, Any]) -> "Layout":
        return cls(**{**described, "columns": tuple(described["columns"])})


def find_layout(head: bytes, is_all: bool, path: Path, packing: str, format: str | None) -> Layout | None:
    """`is_all`: the file ends with its head."""
    inner = path.with_suffix("") if packing else path
    kind = format or EXTENSIONS.get(inner.suffix.lower())
    found = None
    if kind in STREAMED and not head.startswith(NOT_STREAMED):
        end = len(head) if is_all else head.rfind(b"\n") + 1
        # A bad byte is for the reader to name with its row; what the file holds is told by the others.
        text = head[:end].removeprefix(codecs.BOM_UTF8).decode("utf-8", "replace").replace("\0", "")
        found = _lay_out(text, is_all, kind, str(path)) if text.strip() else None
    if found is None and packing:
        raise BertsmithError(
            f"{path} is packed, and does not hold JSON Lines, CSV, TSV or lines of text; unpack it first, or name its "
            "format with --format."
        )
    return found


def _lay_out(text: str, is_all: bool, kind: str | None, name: str) -> Layout | None:
    if "\n" not in text and "\r" in text.rstrip():  # lines as old Macs ended them
        return None
    kind = kind or guess_format(text)
    if kind == "tsv" and looks_like_conll(text):
        return None
    if kind == "lines":
        return Layout("lines", ("text",))
    if kind in ("csv", "tsv"):
        return _lay_out_cells(text, is_all, kind, name)
    if kind == "jsonl" or (kind == "json" and is_by_line(text)):
        return _lay_out_objects(text)
    return None


def _lay_out_objects(text: str) -> Layout | None:
    if text.lstrip().startswith("["):
        return None
    columns: dict[str, None] = {}
    for _, line in islice(bare_lines(text), HEAD):
        try:
            record = json.loads(line) if line.strip() else {}
        except (ValueError, RecursionError):
            continue
        if isinstance(record, dict):
            if not columns and is_squad(record):
                return None
            columns |= dict.fromkeys(map(str, record))
    return Layout("jsonl", tuple(columns)) if columns else None


def _lay_out_cells(text: str, is_all: bool, kind: str, name: str) -> Layout | None:
    if "\n" not in text:
        return None
    text, told = take_told(text) if kind == "csv" else (text, None)
    delimiter = "\t" if kind == "tsv" else told or guess_delimiter(text)
    quoted = kind == "csv" or _has_quoted_cells(text, is_all)
    lines = HeadLines(text)
    parser = RowParser(Layout(kind, (), "row", delimiter, quoted), name, lines)
    found: list[tuple[int, list[str]]] = []
    spans = False
    while len(found) < HEAD and (line := lines.take()) is not None:
        try:
            cells = parser.cut(line.decode(), lines.number)
        except RowFault:
            continue
        except BertsmithError:
            if is_all:
                raise
            break  # a cell that goes on behind the start
        spans = spans or any("\n" in cell for cell in cells)
        if cells:
            found.append((lines.number, cells))
    rows = [cells for _, cells in drop_blank(found)]
    if not rows:
        return None
    columns, skip = settle_columns(rows, kind, f"{name}, row 1", None)
    return Layout(kind, columns, "line" if spans else "row", delimiter, quoted, skip + bool(told))


def _has_quoted_cells(text: str, is_all: bool) -> bool:
    if '"' not in text:
        return False
    for _ in range(1 if is_all else TRIES):
        if is_quoted_tsv(text):
            return True
        text = text[: text.rstrip("\n").rfind("\n") + 1]
        if not text:
            break
    return False
