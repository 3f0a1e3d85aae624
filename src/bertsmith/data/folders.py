"""Folders of data: the file of a split by its usual name, and the layout of slot filling (seq.in, seq.out, label)."""

import errno
import os
import re
from pathlib import Path
from typing import Any

from bertsmith.data.decoding import bare_lines, decode
from bertsmith.data.table import Table
from bertsmith.errors import BertsmithError

SPLITS = {
    "train": ("train", "training", "trn"),
    "dev": ("dev", "devel", "development", "validation", "valid", "val", "testa"),
    "test": ("test", "testb", "tst", "testing"),
}
NOT_DATA = {".md", ".html", ".pdf", ".gz", ".xz", ".zip", ".bz2", ".zst", ".log", ".py", ".sh", ".png", ".toml"}


def find_split(folder: str | Path, split: str) -> Path | None:
    """The file (or slots folder) of "train", "dev" or "test"; None: there is none; two of them are an error.

    `train.tsv` is taken before `train.subset10k.tsv`, `eng.train` or `en_ewt-ud-train.conllu`; of MNLI's two, the
    matched one.
    """
    folder = Path(folder)
    exact, loose = [], []
    for path in sorted(_entries(folder)):
        if path.suffix.lower() in NOT_DATA or (path.is_dir() and not is_slots(path)):
            continue
        parts = re.split(r"[^a-z0-9]+", path.name.lower())
        if path.stem.lower() in SPLITS[split]:
            exact.append(path)
        elif set(parts) & set(SPLITS[split]):
            loose.append(path)
    found = exact or loose
    if len(found) > 1:
        found = [path for path in found if "mismatched" not in path.name.lower()]
    if len(found) > 1:
        names = ", ".join(path.name for path in found)
        raise BertsmithError(f"{folder} holds {len(found)} files that may be {split}: {names}; give the file itself.")
    return found[0] if found else None


def require_split(folder: str | Path, split: str) -> Path:
    """As `find_split`, and an error that lists what is there where it finds none."""
    found = find_split(folder, split)
    if found is None:
        usual = ", ".join(f"{name}.*" for name in SPLITS[split][:4])
        raise BertsmithError(f"{folder} holds no file for {split} ({usual}); it holds {list_folder(Path(folder))}.")
    return found


def list_folder(folder: Path) -> str:
    names = sorted(path.name + ("/" if path.is_dir() else "") for path in _entries(folder))
    more = f" and {len(names) - 12:,} more" if len(names) > 12 else ""
    return ", ".join(names[:12]) + more if names else "nothing"


def is_slots(folder: Path) -> bool:
    return (folder / "seq.in").is_file()


def read_slots(folder: Path, name: str) -> Table:
    """Columns text, words and, where their files are there, tags and intent; row n is line n of each file."""
    columns: dict[str, list[str]] = {}
    for column, file in (("text", "seq.in"), ("tags", "seq.out"), ("intent", "label")):
        if (folder / file).is_file():
            columns[column] = _read_lines(folder / file)
    counts = {column: len(lines) for column, lines in columns.items()}
    if len(set(counts.values())) > 1:
        shown = ", ".join(f"{column} {count:,}" for column, count in counts.items())
        raise BertsmithError(f"{name}: seq.in, seq.out and label must have as many lines as each other ({shown}).")
    records: list[dict[str, Any]] = []
    for line in zip(*columns.values(), strict=True):
        record: dict[str, Any] = dict(zip(columns, line, strict=True))
        words = record["text"].split()
        record |= {"text": " ".join(words), "words": words}
        if "tags" in record:
            record["tags"] = record["tags"].split()
        if "intent" in record:
            record["intent"] = record["intent"].strip()
        records.append(record)
    if not records:
        raise BertsmithError(f"{name}: seq.in is empty.")
    return Table(name, tuple(records[0]), records, range(1, len(records) + 1), "line", "slots")


def _read_lines(path: Path) -> list[str]:
    try:
        return [line for _, line in bare_lines(decode(path.read_bytes(), str(path)))]
    except OSError as error:
        raise BertsmithError(f"{path} cannot be read: {error.strerror}.") from None


def _entries(folder: Path) -> list[Path]:
    try:
        return [path for path in folder.iterdir() if not path.name.startswith(".")]
    except OSError as error:
        raise BertsmithError(f"{folder} cannot be read as a folder: {error.strerror}.") from None


def refuse_name(given: str | os.PathLike[str]) -> None:
    """What no file can be called; whether it is there is another question."""
    try:
        os.lstat(given)
    except ValueError:
        raise BertsmithError(f"{str(given)!r:.60} is a name that no file or folder can have.") from None
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            raise BertsmithError(f"{str(given)[:60]!r} … is too long for the name of a file or folder.") from None
