"""Files as streams of bytes. In: a path and how it is packed. Out: an open stream, or the sentence why not.

Nothing is read whole: a file of any size, packed or not, passes through in blocks.
"""

import codecs
import gzip
import io
import lzma
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, cast

from bertsmith.errors import BertsmithError

PACKINGS = {".gz": "gz", ".xz": "xz", ".zst": "zst"}
BLOCK = 1 << 20
_SNIFFED = 4096
_MARKS = (
    (codecs.BOM_UTF32_LE, "UTF-32"), (codecs.BOM_UTF32_BE, "UTF-32"), (codecs.BOM_UTF16_LE, "UTF-16"),
    (codecs.BOM_UTF16_BE, "UTF-16"),
)  # fmt: skip
# What is often met under the name of a text.
_NOT_TEXT = (
    (b"\x1f\x8b", "packed with gzip; end its name in .gz"),
    (b"\xfd7zXZ", "packed with xz; end its name in .xz"),
    (b"\x28\xb5\x2f\xfd", "packed with zstd; end its name in .zst"),
    (b"BZh", "packed with bzip2; unpack it first (bunzip2)"),
    (b"PK\x03\x04", "a zip archive or an office document; unpack it, or save its text"),
    (b"PAR1", "a Parquet file; end its name in .parquet"),
    (b"%PDF", "a PDF; give its text"),
    (b"SQLite format 3\0", "an SQLite database; export its texts as JSON Lines"),
    (b"\x7fELF", "a program, not text"),
    (b"\x89PNG", "a picture, not text"),
    (b"\xff\xd8\xff", "a picture, not text"),
)


@contextmanager
def open_stream(path: Path, packing: str) -> Iterator[IO[bytes]]:
    """The unpacked bytes of a file; damage that shows while they are read is one sentence too."""
    try:
        with _open(path, packing) as stream:
            yield stream
    except (EOFError, lzma.LZMAError, zlib.error, gzip.BadGzipFile) as error:
        raise BertsmithError(f"{path} is damaged or not whole ({error}); fetch or pack it again.") from error
    except OSError as error:
        if error.filename is None:
            raise
        raise BertsmithError(f"{path} cannot be read: {error.strerror or error}.") from error


def refuse_binary(start: bytes, path: Path) -> None:
    """`start`: the first bytes, unpacked. What is not UTF-8 text is an error that says what it looks like."""
    for magic, what in _NOT_TEXT:
        if start.startswith(magic):
            raise BertsmithError(f"{path} is {what}.")
    for mark, encoding in _MARKS:
        if start.startswith(mark):
            raise BertsmithError(f"{path} is in {encoding}; save it as UTF-8 (`iconv -f {encoding} -t UTF-8`).")
    for zeros in (start[0:400:2], start[1:400:2]):
        if len(zeros) > 1 and zeros.count(0) > 0.8 * len(zeros):
            raise BertsmithError(f"{path} looks like UTF-16 without its mark; save it as UTF-8.")
    at = start.find(b"\0")
    if at >= 0:
        raise BertsmithError(f"{path} is a binary file, not text: byte {at + 1:,} is NUL.")


def read_blocks(stream: IO[bytes], path: Path, start: int, end: int | None) -> Iterator[bytes]:
    """The bytes from `start`, where the stream stands, to `end` in blocks; what is no text is an error."""
    left = None if end is None else end - start
    is_first = start == 0
    while left is None or left > 0:
        block = stream.read(BLOCK if left is None else min(BLOCK, left))
        if not block:
            return
        left = None if left is None else left - len(block)
        if is_first:
            refuse_binary(block[:_SNIFFED], path)
            is_first = False
        if (at := block.find(b"\0")) >= 0:
            place = start + at + 1
            raise BertsmithError(f"{path} is damaged or not text: byte {place:,} is NUL; remove it (`tr -d '\\0'`).")
        start += len(block)
        yield block


def decode(raw: bytes, path: Path, packing: str, start: int) -> str:
    """`start`: where the bytes stand in the unpacked file, for the sentence about one that is not UTF-8."""
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        byte, place = raw[error.start], start + error.start
        as_latin = bytes([byte]).decode("cp1252", "replace")
        raise BertsmithError(
            f"{path}, line {line_of(path, packing, place):,}: byte {place + 1:,} of the file (0x{byte:02x}) is not "
            f'UTF-8; if the file is in Windows-1252, where that byte is "{as_latin}", save it as UTF-8 '
            "(`iconv -f WINDOWS-1252 -t UTF-8`)."
        ) from None


def line_of(path: Path, packing: str, place: int) -> int:
    """The number of the line that a byte stands in; read anew, as only an error asks for it."""
    line = 1
    with open_stream(path, packing) as stream:
        while place > 0 and (block := stream.read(min(BLOCK, place))):
            line += block.count(b"\n")
            place -= len(block)
    return line


def _open(path: Path, packing: str) -> IO[bytes]:
    if packing == "gz":
        return cast(IO[bytes], gzip.open(path, "rb"))
    if packing == "xz":
        return cast(IO[bytes], lzma.open(path, "rb"))
    if packing == "zst":
        return _open_zstd(path)
    return open(path, "rb")


def _open_zstd(path: Path) -> IO[bytes]:
    try:  # in the standard library from Python 3.14 on
        from compression import zstd  # type: ignore[import-not-found,unused-ignore]

        return cast(IO[bytes], zstd.open(path, "rb"))
    except ImportError:
        pass
    try:
        import zstandard
    except ImportError:
        raise BertsmithError(
            f"{path} is packed with zstd, and nothing here can unpack it; pip install 'bertsmith[zst]'."
        ) from None
    return cast(IO[bytes], _Zstandard(path, zstandard))


class _Zstandard(io.RawIOBase):
    """The stream of the zstandard package; its own error is not one of the standard library's."""

    def __init__(self, path: Path, library: Any) -> None:
        self._error = library.ZstdError
        self._file = open(path, "rb")  # noqa: SIM115 - closed with the stream
        self._stream = library.ZstdDecompressor().stream_reader(self._file, read_across_frames=True)

    def read(self, size: int = -1) -> bytes:
        try:
            return cast(bytes, self._stream.read(size))
        except self._error as error:
            raise EOFError(str(error)) from error

    def close(self) -> None:
        self._file.close()
        super().close()
