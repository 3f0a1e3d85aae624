"""Anything that holds labelled data becomes a table. In: a path, `-`, a DataFrame, dicts. Out: a `Table`.

The format is told by the extension; where that is silent (.txt, none, standard input), by the content: an object or
array at the start is JSON, words with tags in blocks are CoNLL, a tab in the first line is TSV, a usual column name in
a first line with commas is CSV, and anything else is one text a line.
"""

import difflib
import os
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from bertsmith.data.columns import KNOWN, normalize
from bertsmith.data.conll import looks_like_conll, read_conll
from bertsmith.data.decoding import bare_lines, decode, refuse_other
from bertsmith.data.delimited import guess_delimiter, read_delimited
from bertsmith.data.folders import find_split, is_slots, list_folder, read_slots, require_split
from bertsmith.data.jsonlines import read_json
from bertsmith.data.records import gather, read_frame, refuse_twins
from bertsmith.data.table import Table
from bertsmith.errors import BertsmithError

FORMATS = ("csv", "tsv", "jsonl", "json", "parquet", "conll", "squad", "lines")
EXTENSIONS = {
    ".csv": "csv", ".tsv": "tsv", ".tab": "tsv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "json",
    ".parquet": "parquet", ".pq": "parquet", ".conll": "conll", ".conllu": "conll", ".bio": "conll", ".iob": "conll",
    ".iob2": "conll", ".bioes": "conll",
}  # fmt: skip
STANDARD_INPUT = "standard input"


def read_table(source: Any, *, name: str = "", format: str | None = None, header: bool | None = None) -> Table:
    """`name` is for messages (a path names itself); `header` is for CSV and TSV, headers.py has the rules without."""
    if isinstance(source, Table):
        return source
    if format is not None and format not in FORMATS:
        raise BertsmithError(f"format {format!r} is not known; use one of {', '.join(FORMATS)}.")
    if isinstance(source, str) and source == "-":
        if sys.stdin is None:
            raise BertsmithError("standard input is closed, and - reads from it.")
        return _parse(sys.stdin.buffer.read(), name or STANDARD_INPUT, format, header)
    if isinstance(source, str) and not source.strip():
        raise BertsmithError("the name of the file is empty; give a path, or - for standard input.")
    if isinstance(source, (str, Path)):
        return _read_path(Path(source), name or str(source), format, header)
    name = name or "data"
    if (table := read_frame(source, name)) is not None:
        return table
    if isinstance(source, Mapping | bytes) or not isinstance(source, Iterable):
        raise BertsmithError(f"{name}: give a path, a DataFrame or a list of dicts, not {type(source).__name__}.")
    return gather(source, name)


def holds_splits(source: Any) -> bool:
    """Whether it is a folder with a file a split, not a file or the data itself."""
    is_path = isinstance(source, str | Path) and str(source) != "-"
    return is_path and os.path.isdir(source) and not is_slots(Path(source))


def read_sides(data: Any, dev: Any, format: str | None) -> list[Table]:
    """The tables of train and, if there is one, dev; a folder has both under their usual names."""
    if holds_splits(data):
        data, dev = require_split(data, "train"), find_split(data, "dev") if dev is None else dev
    given = {"train": data} if dev is None else {"train": data, "dev": dev}
    return [
        read_table(source, name="" if isinstance(source, str | Path) else side, format=format)
        for side, source in given.items()
    ]


def _read_path(path: Path, name: str, format: str | None, header: bool | None) -> Table:
    if os.path.isdir(path):  # False for a name that no file can have
        if is_slots(path):
            return read_slots(path, name)
        raise BertsmithError(f"{name} is a folder; give one of its files (it holds {list_folder(path)}).")
    return _parse(_read_bytes(path, name), name, format or EXTENSIONS.get(path.suffix.lower()), header)


def _read_bytes(path: Path, name: str) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise BertsmithError(f"{name} does not exist{_suggest(path)}") from None
    except (OSError, ValueError) as error:  # a zero byte in the name is the latter
        raise BertsmithError(f"{name} cannot be read: {getattr(error, 'strerror', None) or error}.") from None


def _parse(raw: bytes, name: str, format: str | None, header: bool | None) -> Table:
    refuse_other(raw, name)
    if format == "parquet" or raw.startswith(b"PAR1"):
        return _read_parquet(raw, name)
    text = decode(raw, name)
    del raw  # the last reference to what may be large
    if not text.strip():
        raise BertsmithError(f"{name} is empty.")
    if "\n" not in text:
        text = text.replace("\r", "\n")  # as old Macs ended lines
    format = format or guess_format(text)
    if format == "tsv" and header is None and looks_like_conll(text):
        format = "conll"  # as many give tagged words out
    if format in ("csv", "tsv"):
        return read_delimited(text, name, format, header)
    if format in ("json", "jsonl", "squad"):
        return read_json(text, name, by_line=format == "jsonl")
    return read_conll(text, name) if format == "conll" else _read_lines(text, name)


def guess_format(text: str) -> str:
    first = next(line for _, line in bare_lines(text) if line.strip()).strip()
    if first.startswith("{") or (first.startswith("[") and first[1:].lstrip()[:1] in ("", "{", "]")):
        return "json"
    if looks_like_conll(text):
        return "conll"
    if "\t" in first:
        return "tsv"
    cells = [cell.strip('" ') for cell in first.split(guess_delimiter(first))]
    return "csv" if len(cells) > 1 and any(normalize(cell) in KNOWN for cell in cells) else "lines"


def _read_lines(text: str, name: str) -> Table:
    lines = [(number, line) for number, line in bare_lines(text) if line.strip()]
    records = [{"text": line} for _, line in lines]
    return Table(name, ("text",), records, [number for number, _ in lines], "line", "lines")


def _read_parquet(raw: bytes, name: str) -> Table:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise BertsmithError(
            f"{name} is Parquet, which needs the extra `parquet`: pip install 'bertsmith[parquet]'."
        ) from None
    try:
        refuse_twins(parquet.read_schema(pyarrow.BufferReader(raw)).names, name)
        return gather(parquet.read_table(pyarrow.BufferReader(raw)).to_pylist(), name, kind="parquet")
    except (pyarrow.ArrowException, OSError) as error:
        raise BertsmithError(f"{name} cannot be read as Parquet: {str(error).splitlines()[0].rstrip('.')}.") from None


def _suggest(path: Path) -> str:
    """The end of a sentence: a file beside it with a name much like it."""
    if not path.parent.is_dir():
        return f" (nor does the folder {path.parent})."
    if path.is_symlink():
        return f" (it is a link to {path.readlink()})."
    # By what stands before the ending, which many have in common; of two such files the one of the same ending.
    others = sorted(path.parent.iterdir(), key=lambda other: (other.suffix == path.suffix, other.name))
    known = {other.stem: other for other in others}
    near = difflib.get_close_matches(path.stem, known, 1)
    return f"; did you mean {known[near[0]]}?" if near else "."
