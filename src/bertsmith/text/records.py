"""Records become texts. In: JSON values or the rows of a Parquet file. Out: the text in the field asked for."""

import json
import re
from collections.abc import Iterable, Iterator
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

from bertsmith.errors import BertsmithError
from bertsmith.text.streams import decode, open_stream

_SPACES = re.compile("[ \t\n\r]+")


def line_text(line: str, field: str, where: str) -> str:
    """The text of one line of JSON Lines."""
    try:
        value = json.loads(line)
    except (ValueError, RecursionError) as error:
        why = f"{error.msg} at character {error.pos + 1}" if isinstance(error, json.JSONDecodeError) else str(error)
        raise BertsmithError(f"{where}: not JSON ({why}); each line must hold one object.") from None
    return record_text(value, field, where)


def record_text(value: Any, field: str, where: str) -> str:
    """The text in `field`, or the record itself where it is one; none (null) is an empty text."""
    if isinstance(value, str):
        return value
    if not isinstance(value, dict):
        raise BertsmithError(f"{where}: a record must be an object with a field {field!r}, not {str(value)[:40]}.")
    if field not in value:
        keys = ", ".join(f'"{key}"' for key in list(value)[:8]) or "none"
        raise BertsmithError(f'{where}: there is no field "{field}" (fields: {keys}); name it with --field.')
    text = value[field]
    if text is None:
        return ""
    if not isinstance(text, str):
        told = f'{where}: the field "{field}" holds {str(text)[:40]}, not a text'
        raise BertsmithError(f"{told}; correct the record, or name another field (--field).")
    return text


def read_json_values(blocks: Iterable[bytes], path: Path, packing: str) -> Iterator[tuple[int, Any]]:
    """The values of one array, or values that follow one another, each with its number, one at a time."""
    decoder, pieces = json.JSONDecoder(), _decode_all(blocks, path, packing)
    text, at, number = next(pieces, "").removeprefix("\ufeff"), 0, 0
    is_array, is_open, is_over = None, True, False
    while True:
        at = _spaces(text, at)
        if at == len(text) and not is_over:
            text, at, is_over = _read_on(pieces, 1)
            continue
        if is_array is None and at < len(text):
            is_array = text[at] == "["
            at += is_array
            continue
        if is_array and text[at : at + 1] in (",", "]"):
            is_open, at = text[at] == ",", at + 1
            continue
        if at == len(text):
            if is_array and is_open:
                told = f"{path} is a list without an end: behind record {number:,} there is no ]"
                raise BertsmithError(f"{told}; fetch or write it again.")
            return
        try:
            value, at = decoder.raw_decode(text, at)
        except (ValueError, RecursionError) as error:
            if is_over or isinstance(error, RecursionError):
                raise BertsmithError(f"{path}, record {number + 1:,}: not JSON ({error}).") from None
            # Twice as much each time, so that a large one is not tried block by block.
            text, at, is_over = _read_on(pieces, 2 * (len(text) - at) + 1, text[at:])
            continue
        number += 1
        yield number, value


def _spaces(text: str, at: int) -> int:
    """Behind the white space that stands there."""
    found = _SPACES.match(text, at)
    return found.end() if found else at


def _read_on(pieces: Iterator[str], wanted: int, rest: str = "") -> tuple[str, int, bool]:
    """`rest` and what follows, so many characters at least; where to go on in them; whether that is all."""
    found, held = [rest], len(rest)
    while held < wanted:
        piece = next(pieces, None)
        if piece is None:
            return "".join(found), 0, True
        found.append(piece)
        held += len(piece)
    return "".join(found), 0, False


def _decode_all(blocks: Iterable[bytes], path: Path, packing: str) -> Iterator[str]:
    """Text of whole characters, a block at a time."""
    rest, place = b"", 0
    for block in blocks:
        rest += block
        keep = _whole(rest)
        yield decode(rest[:keep], path, packing, place)
        rest, place = rest[keep:], place + keep
    if rest:
        yield decode(rest, path, packing, place)


def _whole(raw: bytes) -> int:
    """How many of the bytes are whole characters."""
    for back in range(1, min(4, len(raw)) + 1):
        byte = raw[-back]
        if byte & 0xC0 != 0x80:
            length = 1 if byte < 0x80 else 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            return len(raw) if length == back else len(raw) - back if length > back else len(raw)
    return len(raw)


def list_row_groups(path: Path) -> list[int]:
    """How many rows each has."""
    with _parquet(path, "") as file:
        return [file.metadata.row_group(group).num_rows for group in range(file.num_row_groups)]


def read_parquet_texts(path: Path, packing: str, field: str, start: int, end: int | None) -> Iterator[tuple[int, str]]:
    """The texts of the rows from `start` to `end`, each with its number from 1."""
    with _parquet(path, packing) as file:
        if field not in file.schema_arrow.names:
            columns = ", ".join(f'"{name}"' for name in file.schema_arrow.names[:8])
            raise BertsmithError(f'{path} has no column "{field}" (columns: {columns}); name it with --field.')
        bounds = [0, *accumulate(file.metadata.row_group(group).num_rows for group in range(file.num_row_groups))]
        end = bounds[-1] if end is None else end
        groups = [group for group, (first, last) in enumerate(pairwise(bounds)) if first < end and last > start]
        number = bounds[groups[0]] if groups else end
        for batch in file.iter_batches(256, row_groups=groups, columns=[field]) if groups else ():
            wanted = batch.column(0).slice(max(start - number, 0), max(end - max(start, number), 0)).to_pylist()
            for place, value in enumerate(wanted, max(start, number) + 1):
                yield place, record_text({field: value}, field, f"{path}, row {place:,}")
            number += len(batch)
            if number >= end:
                return


def read_parquet_rows(path: Path, packing: str) -> Iterator[dict[str, Any]]:
    """All rows with all their columns, a few at a time."""
    with _parquet(path, packing) as file:
        for batch in file.iter_batches(256):
            yield from batch.to_pylist()


def _parquet(path: Path, packing: str) -> Any:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise BertsmithError(f"{path}: Parquet needs pyarrow; pip install 'bertsmith[parquet]'.") from None
    try:
        if packing:  # Parquet is read from its end, so a packed one must be unpacked as a whole
            with open_stream(path, packing) as stream:
                return pyarrow.parquet.ParquetFile(pyarrow.BufferReader(stream.read()))
        return pyarrow.parquet.ParquetFile(path)
    except (pyarrow.ArrowException, OSError) as error:
        raise BertsmithError(f"{path} is not a whole Parquet file ({error}); fetch it again.") from None
