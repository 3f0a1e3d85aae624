"""Bytes of a text file become text. In: the bytes and the file's name. Out: a string, or the sentence why not.

UTF-8 is read with or without its mark; UTF-16 and UTF-32 are read where a mark at the start says so (Excel's "Unicode
text"). Nothing is guessed: a byte that is not UTF-8 is an error that names its line.
"""

import codecs
from collections.abc import Iterator

from bertsmith.errors import BertsmithError

# UTF-32's mark begins with that of UTF-16, so it comes first.
MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
NOT_TEXT = (
    (b"\x1f\x8b", "compressed with gzip; unpack it first (gunzip)"),
    (b"\xfd7zXZ", "compressed with xz; unpack it first (unxz)"),
    (b"BZh", "compressed with bzip2; unpack it first (bunzip2)"),
    (b"\x28\xb5\x2f\xfd", "compressed with zstd; unpack it first (unzstd)"),
    (b"PK\x03\x04", "a zip archive or an Excel workbook; unpack it, or save the sheet as CSV"),
    (b"\xd0\xcf\x11\xe0", "an old Excel workbook; save the sheet as CSV"),
    (b"%PDF", "a PDF; give the text as CSV or JSONL"),
    (b"version https://git-lfs.github.com/spec/", "a pointer of Git LFS, not the data; fetch it with `git lfs pull`"),
    (b"SQLite format 3\0", "an SQLite database; export the table as CSV"),
)


def decode(raw: bytes, name: str) -> str:
    refuse_other(raw, name)
    for mark, encoding in MARKS:
        if raw.startswith(mark):
            return _refuse_nul(_decode_as(raw[len(mark) :], encoding, name), name)
    _refuse_wide(raw, name)
    return _refuse_nul(_decode_as(raw, "utf-8", name), name)


def refuse_other(raw: bytes, name: str) -> None:
    """What is often met under the name of data, and is none that can be read."""
    for start, what in NOT_TEXT:
        if raw.startswith(start):
            raise BertsmithError(f"{name} is {what}.")


def cut_lines(text: str) -> Iterator[str]:
    """The lines with their ends. Only a line feed ends a line: the other Unicode line ends belong to the text."""
    start = 0
    while (end := text.find("\n", start) + 1) > 0:
        yield text[start:end]
        start = end
    if start < len(text):
        yield text[start:]


def bare_lines(text: str) -> Iterator[tuple[int, str]]:
    """The lines without their ends, each with its number."""
    for number, line in enumerate(cut_lines(text), 1):
        yield number, line.removesuffix("\n").removesuffix("\r")


def _decode_as(raw: bytes, encoding: str, name: str) -> str:
    try:
        return raw.decode(encoding)
    except UnicodeDecodeError as error:
        if encoding != "utf-8":
            raise BertsmithError(
                f"{name} begins with the mark of {encoding[:6].upper()} but is not valid at byte {error.start + 1:,}; "
                "save it as UTF-8."
            ) from None
        line = raw.count(b"\n", 0, error.start) + 1
        place = error.start - raw.rfind(b"\n", 0, error.start)
        byte = raw[error.start]
        as_latin = bytes([byte]).decode("cp1252", "replace")
        raise BertsmithError(
            f"{name}, line {line:,}: byte {place} of the line (0x{byte:02x}) is not UTF-8; if the file is Latin-1 or "
            f'Windows-1252, where that byte is "{as_latin}", save it as UTF-8, for example with '
            "`iconv -f WINDOWS-1252 -t UTF-8`."
        ) from None


def _refuse_wide(raw: bytes, name: str) -> None:
    """UTF-16 without its mark: every other byte of plain English is NUL."""
    start = raw[:400]
    for zeros in (start[0::2], start[1::2]):
        if len(zeros) > 1 and zeros.count(0) > 0.8 * len(zeros):
            raise BertsmithError(f"{name} looks like UTF-16 without its mark; save it as UTF-8.")


def _refuse_nul(text: str, name: str) -> str:
    at = text.find("\0")
    if at >= 0:
        line = text.count("\n", 0, at) + 1
        place = at - text.rfind("\n", 0, at)
        raise BertsmithError(
            f"{name}, line {line:,}: character {place:,} of the line is a NUL byte, so the file is damaged or is not "
            "text; remove it, for example with `tr -d '\\0'`."
        )
    return text
