"""Raw text as people have it. In: files, folders and globs. Out: sources, parts of them, and their documents.

Text and Markdown, JSON Lines, JSON and Parquet, each also packed (.gz, .xz, .zst). A part is a range of one source that
begins and ends between two documents, so that several processes can share a large file and read what one would.
"""

import glob
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from bertsmith.errors import BertsmithError
from bertsmith.text.records import line_text, read_json_values, read_parquet_texts, record_text
from bertsmith.text.streams import PACKINGS, decode, line_of, open_stream, read_blocks

Unit = Literal["blank-line", "line", "file"]
UNITS = ("blank-line", "line", "file")
KINDS = {
    ".txt": "text", ".text": "text", ".md": "markdown", ".markdown": "markdown", ".jsonl": "records",
    ".ndjson": "records", ".json": "json", ".parquet": "parquet", ".pq": "parquet",
}  # fmt: skip
TABLES = (".csv", ".tsv")
NAMED = 8  # endings of files that are not read, in a sentence
FIELD = "text"  # of records, where it is not said
LONGEST = 4 << 20  # bytes of one document; what is longer comes in several, so that memory stays bounded
RECORD = 256 << 20  # bytes of one line of JSON Lines, which must be whole before it can be read
BLANK = re.compile(rb"\n[ \t\r\f\v]*\n")
_MARK = b"\xef\xbb\xbf"


@dataclass(frozen=True)
class Source:
    path: Path
    kind: str  # one of KINDS' values
    packing: str = ""  # "gz", "xz", "zst"

    @property
    def size(self) -> int:
        """Bytes on the disk."""
        return self.path.stat().st_size


@dataclass(frozen=True)
class Part:
    """From `start` to `end` (None: to the end): bytes, or rows of Parquet."""

    source: Source
    start: int = 0
    end: int | None = None
    share: float = 1.0  # of the source that it is

    @property
    def size(self) -> int:
        """Bytes on the disk, about."""
        return round(self.source.size * self.share)


@dataclass(frozen=True, slots=True)
class Document:
    text: str
    where: str  # the file and the byte (or record) it begins at
    size: int = 0  # bytes of its text in the source
    is_cut: bool = False  # it was longer than LONGEST and goes on in the next one
    start: int = 0  # the byte it begins at, in text


def name_sources(given: Any) -> list[str | Path]:
    """What a person names, one name or several."""
    named = list(given) if isinstance(given, Iterable) and not isinstance(given, str | bytes) else [given]
    for one in named:
        if not isinstance(one, str | Path) or not str(one).strip():
            raise BertsmithError(f"{one!r} is no source; name files, folders or globs with text.")
    if not named:
        raise BertsmithError("no source was given; name files, folders or globs with text.")
    return named


def list_sources(given: str | Path | Sequence[str | Path], unread: Counter[str] | None = None) -> list[Source]:
    """The files that `given` names, each once; a folder stands for all texts in it, in the order of their paths.

    `unread` is told how the names of other files in folders end, and how many there are of each.
    """
    found: dict[Path, Source] = {}
    for one in name_sources(given):
        for source in _expand(Path(one).expanduser(), Counter() if unread is None else unread):
            found.setdefault(source.path.resolve(), source)
    return list(found.values())


def tell_unread(unread: Mapping[str, int]) -> list[str]:
    """A sentence about files in folders that are no texts, if there are any."""
    if not unread:
        return []
    most = sorted(unread.items(), key=lambda item: (-item[1], item[0]))
    named = ", ".join(f"{count:,} {ending}" for ending, count in most[:NAMED]) + ", …" * (len(most) > NAMED)
    count = sum(unread.values())
    told = f"{count:,} {'file' if count == 1 else 'files'} in the folders {'was' if count == 1 else 'were'} not read"
    return [f"{told}, as {'its name does' if count == 1 else 'their names do'} not end as a text's does ({named})."]


def refuse_unread(sources: Iterable[Source], unit: Unit | None, field: str) -> None:
    """What says how a text, or how a record, is read, where there is none of them."""
    has_text = {source.kind in ("text", "markdown") for source in sources}
    if unit is not None and True not in has_text:
        raise BertsmithError("unit is for plain text, and here each record is a document; leave it out.")
    if field != FIELD and False not in has_text:
        raise BertsmithError("field is for JSON and Parquet, and the sources are plain text; leave it out.")


def read_documents(
    sources: Iterable[Source], *, unit: Unit | None = None, field: str = "text", longest: int = LONGEST
) -> Iterator[Document]:
    """The documents of all sources in order, one at a time.

    `unit` says what a document is in text: what stands between blank lines (else for .txt), a line, or the whole file
    (else for Markdown). In JSON and Parquet it is a record's `field`.
    """
    for source in sources:
        yield from read_part(Part(source), unit=unit, field=field, longest=longest)


def read_part(
    part: Part, *, unit: Unit | None = None, field: str = "text", longest: int = LONGEST, blank: bool = False
) -> Iterator[Document]:
    """The documents of one part, the same that `read_documents` gives for it.

    With `blank` also those without text: records, and files where each is a document.
    """
    source = part.source
    if source.kind == "parquet":
        for number, text in read_parquet_texts(source.path, source.packing, field, part.start, part.end):
            yield from _cut_long(text, f"{source.path}, row {number:,}", longest, blank)
    elif source.kind == "json":
        with open_stream(source.path, source.packing) as stream:
            blocks = read_blocks(stream, source.path, 0, None)
            for number, value in read_json_values(blocks, source.path, source.packing):
                where = f"{source.path}, record {number:,}"
                yield from _cut_long(record_text(value, field, where), where, longest, blank)
    elif source.kind == "records":
        for raw, start, is_cut in _cut_stream(part, "line", RECORD):
            where = f"{source.path}, byte {start + 1:,}"
            if is_cut:
                raise BertsmithError(f"{where}: a line of more than {RECORD >> 20} MiB; put records on lines.")
            text = decode(raw, source.path, source.packing, start)
            try:
                found = line_text(text, field, where)
            except BertsmithError as error:  # only now is it worth counting lines
                line = f"{source.path}, line {line_of(source.path, source.packing, start):,}"
                raise BertsmithError(str(error).replace(where, line, 1)) from None
            yield from _cut_long(found, where, longest, blank)
    else:
        blank &= unit_of(source, unit) == "file"
        for raw, start, is_cut in _cut_stream(part, unit_of(source, unit), longest):
            text, blank = decode(raw, source.path, source.packing, start), False
            yield Document(text, f"{source.path}, byte {start + 1:,}", len(raw), is_cut, start)
        if blank:
            yield Document("", str(source.path))


def _expand(given: Path, unread: Counter[str]) -> Iterator[Source]:
    if given.is_dir():
        files = sorted(filter(_can_end, _walk(given)), key=lambda path: path.as_posix())
        sources = [_describe(path) for path in files if _kind(path) is not None]
        unread.update(_ending(path) for path in files if _kind(path) is None)
        if not sources:
            raise BertsmithError(f"{given} holds no text; files that end in {_endings()} are looked for.")
        yield from sources
    elif given.exists():
        if not given.is_file():
            raise BertsmithError(f"{given} is neither a file nor a folder.")
        yield _describe(given)
    elif glob.has_magic(str(given)):
        matched = sorted(Path(path) for path in glob.glob(str(given), recursive=True))
        if not matched:
            raise BertsmithError(f"nothing matches {given}; name files, folders or globs with text.")
        for path in matched:
            yield from _expand(path, unread) if path.is_dir() else [_describe(path)]
    else:
        raise BertsmithError(f"{given} is not there; name files, folders or globs with text.")


def walk(folder: Path, onerror: Callable[[OSError], None] | None = None) -> Iterator[tuple[Path, list[str], list[str]]]:
    """As os.walk does, in the order of names and without hidden ones; a linked folder is gone into, but no place twice.

    Text that is linked into a folder is meant as much as what lies there, and a benchmark that is to stay out more so.
    """
    seen = set[str]()
    for place, folders, names in os.walk(folder, onerror=onerror, followlinks=True):
        real = os.path.realpath(place)
        folders[:] = [] if real in seen else sorted(name for name in folders if not name.startswith("."))
        if real not in seen:
            seen.add(real)
            yield Path(place), folders, sorted(name for name in names if not name.startswith("."))


def _walk(folder: Path) -> Iterator[Path]:
    return (place / name for place, _, names in walk(folder) for name in names)


def _can_end(path: Path) -> bool:
    """A pipe or a device does not; what is not there is told where it is opened."""
    return path.is_file() or not path.exists()


def _kind(path: Path) -> str | None:
    """None: its name says nothing."""
    bare = path.with_suffix("") if path.suffix.lower() in PACKINGS else path
    return KINDS.get(bare.suffix.lower())


def _ending(path: Path) -> str:
    return "".join(path.suffixes[-2:] if path.suffix.lower() in PACKINGS else path.suffixes[-1:]) or "without an ending"


def _describe(path: Path) -> Source:
    bare = path.with_suffix("") if path.suffix.lower() in PACKINGS else path
    if bare.suffix.lower() in TABLES:
        told = f"{path} is a table, and its columns are not all text"
        raise BertsmithError(f"{told}; write the one that is into a .txt (a line each) or a .jsonl file.")
    # A file that a person names is text unless its name says more; in a folder only known names are taken.
    return Source(path, _kind(path) or "text", PACKINGS.get(path.suffix.lower(), ""))


def _endings() -> str:
    return ", ".join(KINDS) + f" (and packed: {', '.join(PACKINGS)})"


def unit_of(source: Source, asked: Unit | None) -> Unit:
    if asked is not None and asked not in UNITS:
        raise BertsmithError(f"unit {asked!r} is not known; use one of {', '.join(UNITS)}.")
    if source.kind == "records":
        return "line"
    return asked or ("file" if source.kind == "markdown" else "blank-line")


def _cut_stream(part: Part, unit: Unit, longest: int) -> Iterator[tuple[bytes, int, bool]]:
    """The documents as bytes, each with its place and whether it was cut for its length; blank ones left out."""
    source = part.source
    bound = {"blank-line": BLANK, "line": re.compile(rb"\n"), "file": None}[unit]
    with open_stream(source.path, source.packing) as stream:
        stream.seek(part.start) if part.start else None
        rest, place, seen = b"", part.start, 0
        for block in read_blocks(stream, source.path, part.start, part.end):
            if place == 0 and not rest and block.startswith(_MARK):
                block, place = block[len(_MARK) :], len(_MARK)
            rest += block
            done = 0
            if bound is not None:
                for found in bound.finditer(rest, seen):
                    yield from _pieces(rest[done : found.start()], place + done, longest)
                    done = found.end()
            rest, place = rest[done:], place + done
            while len(rest) > longest:
                at = _cut_place(rest, longest)
                if rest[:at].strip():
                    yield rest[:at].strip(), place, True
                rest, place = rest[at:], place + at
            # A bound may begin in this block and end in the next: look again from the last line end on.
            seen = max(rest.rfind(b"\n", 0, len(rest.rstrip()) + 1), 0) if unit == "blank-line" else len(rest)
        yield from _pieces(rest, place, longest)


def _pieces(raw: bytes, place: int, longest: int) -> Iterator[tuple[bytes, int, bool]]:
    while len(raw) > longest:
        at = _cut_place(raw, longest)
        if raw[:at].strip():
            yield raw[:at].strip(), place, True
        raw, place = raw[at:], place + at
    if text := raw.strip():
        yield text, place + raw.find(text[:1]), False


def _cut_place(raw: bytes, longest: int) -> int:
    """Where to cut what is too long: behind a line, else behind a space, else between two characters."""
    for mark in (b"\n", b" "):
        at = raw.rfind(mark, longest // 2, longest)
        if at >= 0:
            return at + 1
    at = longest
    while at > longest - 4 and raw[at] & 0xC0 == 0x80:
        at -= 1
    return at


def _cut_long(text: str, where: str, longest: int, blank: bool) -> Iterator[Document]:
    raw = text.encode("utf-8", "replace") if len(text) * 4 > longest else b""
    if len(raw) <= longest:
        if blank or text.strip():
            yield Document(text, where, len(raw) or len(text.encode("utf-8", "replace")))
        return
    for piece, _, is_cut in _pieces(raw, 0, longest):
        yield replace(Document(piece.decode("utf-8"), where, len(piece)), is_cut=is_cut)
