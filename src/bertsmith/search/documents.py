"""The texts of a folder. In: a folder as a person has it. Out: documents, each with its name and its kind.

Text and Markdown are taken as they are, HTML as what a reader would see, JSON Lines as one document a line: the field
that is called as texts usually are. Hidden files and folders are not looked at.
"""

import codecs
import json
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from bertsmith.data.columns import normalize
from bertsmith.data.decoding import bare_lines, decode
from bertsmith.errors import BertsmithError
from bertsmith.search.markup import read_markup
from bertsmith.text.sources import walk

KINDS = {
    ".txt": "text", ".text": "text", ".md": "markdown", ".markdown": "markdown", ".html": "html", ".htm": "html",
    ".jsonl": "records", ".ndjson": "records",
}  # fmt: skip
# The first of these that a line has, case and spaces aside.
FIELDS = (
    "text", "passage", "paragraph", "context", "contents", "content", "body", "document", "article", "abstract",
    "sentence", "description", "review", "comment", "message", "answer",
)  # fmt: skip
# What browsers understand by the name of an encoding, where that is more (WHATWG's Encoding Standard, section 4.2).
MEANT = {
    "iso8859-1": "cp1252", "ascii": "cp1252", "iso8859-9": "cp1254", "tis-620": "cp874", "iso8859-11": "cp874",
    "gb2312": "gb18030", "gbk": "gb18030", "shift_jis": "cp932", "euc_kr": "cp949", "big5": "big5hkscs",
}  # fmt: skip
JSON_KINDS = {bool: "true or false", int: "a number", float: "a number", list: "a list", dict: "an object"}
_CHARSET = re.compile(rb"""<meta[^>]{0,200}charset\s*=\s*["']?\s*([\w.:-]+)""", re.IGNORECASE)


@dataclass(frozen=True)
class Document:
    name: str  # the path below the folder; a line of JSON Lines has its number behind a colon
    text: str
    markdown: bool = False


def find_files(folder: Path, only: Sequence[str] = (), without: Path | None = None) -> dict[str, Path]:
    """The files that may hold texts, by their path below the folder, in order.

    `only` are globs for that path or for the name alone; `without` is a folder to pass over, that of the index.
    """
    if not folder.is_dir():
        what = "is a file; give the folder it is in" if folder.exists() else "is not there; give a folder with texts"
        raise BertsmithError(f"{folder} {what}.")
    passed = without.resolve() if without else None
    found = {}

    def keep(error: OSError) -> None:
        """A folder that cannot be looked into stands for what is in it; reading it says why."""
        found[f"{Path(error.filename).relative_to(folder).as_posix()}/"] = Path(error.filename)

    for place, folders, names in walk(folder, keep):
        folders[:] = [name for name in folders if (place / name).resolve() != passed]
        for name in names:
            path = (place / name).relative_to(folder).as_posix()
            wanted = not only or any(fnmatch(path, glob) or fnmatch(name, glob) for glob in only)
            if Path(name).suffix.lower() in KINDS and wanted:
                found[path] = place / name
    return dict(sorted(found.items()))


def read_documents(raw: bytes, name: str) -> Iterator[Document]:
    """The documents of a file; one that is not what its name says is an error."""
    kind = KINDS[Path(name).suffix.lower()]
    if kind == "records":
        yield from _read_records(decode(raw, name), name)
    elif kind == "html":
        yield Document(name, read_markup(_decode_page(raw, name)))
    else:
        yield Document(name, decode(raw, name), kind == "markdown")


def _decode_page(raw: bytes, name: str) -> str:
    """By the encoding that the page itself names, where it is not UTF-8."""
    said = _CHARSET.search(raw[:2048])
    try:
        encoding = codecs.lookup(said[1].decode("ascii")).name if said else "utf-8"
        # A page whose <meta> can be read as ASCII cannot be in UTF-16, whatever it says.
        if encoding.startswith("utf") or raw.startswith(codecs.BOM_UTF8):
            return decode(raw, name)
        with suppress(UnicodeError):
            return raw.decode(MEANT.get(encoding, encoding))
        return raw.decode(encoding)
    except (LookupError, UnicodeError):  # no such encoding, or one that is none of text
        return decode(raw, name)


def _read_records(text: str, name: str) -> Iterator[Document]:
    some = False
    for number, line in bare_lines(text):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            raise BertsmithError(f"{name}, line {number:,}: not JSON; each line must hold one object.") from None
        if not isinstance(record, dict):
            raise BertsmithError(f"{name}, line {number:,}: each line must hold one object.")
        by_name = {normalize(key): value for key, value in record.items() if isinstance(value, str)}
        field = next((field for field in FIELDS if field in by_name), None)
        yield Document(f"{name}:{number}", by_name[field] if field else _read_gap(record, f"{name}, line {number:,}"))
        some = True
    if not some:
        raise BertsmithError(f"{name} is empty.")


def _read_gap(record: dict[str, Any], where: str) -> str:
    """No text, where a table with gaps was written as JSON; an error where there is no place for one."""
    wrong = {key: value for key, value in record.items() if normalize(key) in FIELDS}
    if not wrong:
        keys = ", ".join(f'"{key}"' for key in list(record)[:8]) or "none"
        raise BertsmithError(f'{where}: no field is called as texts usually are (fields: {keys}); call it "text".')
    for key, value in wrong.items():
        if value is not None:
            raise BertsmithError(f'{where}: the field "{key}" is {JSON_KINDS[type(value)]}; it must be a text.')
    return ""
