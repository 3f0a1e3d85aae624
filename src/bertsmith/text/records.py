"""Records become texts. In: JSON values or the rows of a Parquet file. Out: the text in the field asked for."""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from bertsmith.errors import BertsmithError
from bertsmith.text.streams import decode, open_stream


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
    decoder, rest, place, number = json.JSONDecoder(), b"", 0, 0
    stream = iter(blocks)
    text, wanted, is_array, is_open, is_over = "", 1, None, True, False
    while True:
        # Wait for twice as much after each value that was not whole, so that a large one is not read block by block.
        while len(text) < wanted and not is_over:
            block = next(stream, None)
            is_over = block is None
            rest += block or b""
            keep = len(rest) if is_over else _whole(rest)
            text += decode(rest[:keep], path, packing, place)
            rest, place = rest[keep:], place + keep
        text = text.removeprefix("\ufeff") if is_array is None else text
        text = text.lstrip(" \t\n\r")
        if is_array is None and text:
            is_array = text.startswith("[")
            text = text[1:] if is_array else text
            continue
        if is_array and text[:1] in (",", "]"):
            is_open, text = text[0] == ",", text[1:]
            continue
        if not text and is_over:
            if is_array and is_open:
                told = f"{path} is a list without an end: behind record {number:,} there is no ]"
                raise BertsmithError(f"{told}; fetch or write it again.")
            return
        try:
            value, end = decoder.raw_decode(text)
        except (ValueError, RecursionError) as error:
            if is_over or isinstance(error, RecursionError):
                raise BertsmithError(f"{path}, record {number + 1:,}: not JSON ({error}).") from None
            wanted = 2 * len(text) + 1
            continue
        number, text, wanted = number + 1, text[end:], 1
        yield number, value


def _whole(raw: bytes) -> int:
    """How many of the bytes are whole characters."""
    for back in range(1, min(4, len(raw)) + 1):
        byte = raw[-back]
        if byte & 0xC0 != 0x80:
            length = 1 if byte < 0x80 else 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            return len(raw) if length == back else len(raw) - back if length > back else len(raw)
    return len(raw)


def count_row_groups(path: Path) -> int:
    with _parquet(path, "") as file:
        return int(file.num_row_groups)


def read_parquet_texts(path: Path, packing: str, field: str, start: int, end: int | None) -> Iterator[tuple[int, str]]:
    """The texts of the row groups from `start` to `end`, each with its row in them."""
    with _parquet(path, packing) as file:
        if field not in file.schema_arrow.names:
            columns = ", ".join(f'"{name}"' for name in file.schema_arrow.names[:8])
            raise BertsmithError(f'{path} has no column "{field}" (columns: {columns}); name it with --field.')
        groups = range(start, file.num_row_groups if end is None else end)
        number = sum(file.metadata.row_group(group).num_rows for group in range(start))
        for batch in file.iter_batches(256, row_groups=groups, columns=[field]) if groups else ():
            for value in batch.column(0).to_pylist():
                number += 1
                yield number, record_text({field: value}, field, f"{path}, row {number:,}")


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
