"""A file of answers that survives a kill: it grows as FILE.part, and FILE.journal says how far it can be trusted.

In: encoded answers, and after each block the place in the input behind it. Out: FILE, whole or not at all. Whatever
stands in FILE.part behind what the journal knows is cut away when the work goes on, so no row is lost or doubled.
"""

import errno
import json
import os
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from bertsmith.data.streaming import Place
from bertsmith.errors import BertsmithError

try:
    import fcntl
except ImportError:  # Windows: there a second process is not noticed
    fcntl = None  # type: ignore[assignment]


# Endings that promise what is never written here: a reader that goes by the name would find something else.
FOREIGN = (
    ".csv", ".tsv", ".parquet", ".npz", ".xlsx", ".xls", ".feather", ".arrow", ".pkl", ".pt", ".safetensors", ".h5",
    ".gz", ".bz2", ".xz", ".zst", ".zip",
)  # fmt: skip
LINES = (".jsonl", ".ndjson", ".json", ".txt")


class WriteFault(BertsmithError):
    """The answers cannot be written; nothing is wrong with the rows."""


def check_ending(target: Path, *, vectors: bool) -> None:
    """A name must not promise another kind of file than the one that is written: JSON lines, or a NumPy file."""
    ending = target.suffix.lower()
    if vectors and ending in (*FOREIGN, *LINES):
        raise BertsmithError(f"{target} would hold a NumPy file in spite of its name; give a FILE.npy.")
    if not vectors and ending in (*FOREIGN, ".npy"):
        raise BertsmithError(f"{target} would hold JSON lines in spite of its name; give a FILE.jsonl.")


@dataclass
class Counts:
    rows: int = 0
    errors: int = 0
    cut: int = 0
    cut_tokens: int = 0


@dataclass
class Journal:
    """How far the work is: all that is needed to go on."""

    asked: dict[str, Any]
    layout: dict[str, Any]
    columns: dict[str, str]
    place: Place = field(default_factory=Place)
    digest: str = ""  # of the input before that place
    size: int = 0  # of the answers to it, in bytes
    counts: Counts = field(default_factory=Counts)
    seen: tuple[int, int] = (0, 0)  # the size of the input and when it was changed, at the end
    finished: bool = False
    anew: bool = False  # begun with `overwrite`: the same call goes on with it

    @classmethod
    def parse(cls, text: str) -> "Journal":
        found = json.loads(text)
        found["place"], found["counts"] = Place(**found["place"]), Counts(**found["counts"])
        found["seen"] = tuple(found["seen"])
        return cls(**found)

    def write(self) -> str:
        return json.dumps(asdict(self), indent=1)


class OutputFile:
    def __init__(self, target: Path) -> None:
        self.target = target
        self.part = target.with_name(f"{target.name}.part")
        self.journal = target.with_name(f"{target.name}.journal")
        self._file: int | None = None
        self._buffer: list[bytes] = []
        self._room = 1 << 20

    def check(self) -> None:
        """A path that cannot be written must not cost a long run."""
        if self.target.is_dir():
            raise BertsmithError(f"{self.target} is a folder; give a file to write the answers to.")
        if self.target.exists() and not self.target.is_file():
            raise BertsmithError(f"{self.target} is not an ordinary file; give another to write the answers to.")
        if not self.target.parent.is_dir():
            raise BertsmithError(f"{self.target} cannot be written: there is no folder {self.target.parent}.")

    def read_journal(self) -> Journal | None:
        """None where there is none, or none that can be read."""
        try:
            return Journal.parse(self.journal.read_text(encoding="utf-8"))
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def open(self) -> None:
        """FILE.part, held by this process alone."""
        while self._file is None:
            try:
                file = os.open(self.part, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o666)
            except OSError as error:
                raise self._explain(error) from error
            try:
                if fcntl is not None:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(file)
                raise BertsmithError(
                    f"{self.target} is being written by another process; wait for it, or give another file."
                ) from None
            except OSError:  # a file system that knows no locks
                pass
            if self._is_there(file):
                self._file = file
            else:  # who held it gave it its name between the two calls
                os.close(file)

    def begin(self, journal: Journal) -> None:
        """Anew. The journal first: one of before must never stand beside a part that is not its own."""
        self.save(journal)
        self.go_on(journal)

    def go_on(self, journal: Journal) -> None:
        assert self._file is not None
        size = os.fstat(self._file).st_size
        if size < journal.size:
            raise BertsmithError(
                f"{self.part} has {size:,} bytes where {journal.size:,} were written; somebody has changed it, so "
                "start anew with --overwrite."
            )
        os.ftruncate(self._file, journal.size)
        os.lseek(self._file, journal.size, os.SEEK_SET)

    def write(self, data: bytes) -> int:
        self._buffer.append(data)
        self._room -= len(data)
        if self._room <= 0:
            self._flush()
        return len(data)

    def checkpoint(self, journal: Journal) -> None:
        """What was written is on the disk before the journal tells of it."""
        assert self._file is not None
        self._flush()
        try:
            os.fsync(self._file)
        except OSError as error:
            raise self._explain(error) from error
        self.save(journal)

    def finish(self, journal: Journal, start: bytes = b"") -> None:
        """`start`: what the first bytes become, now that all is known."""
        assert self._file is not None
        self._flush()
        if start:
            os.lseek(self._file, 0, os.SEEK_SET)
            os.write(self._file, start)
        journal.finished = True
        self.checkpoint(journal)
        self.give_name()

    def give_name(self) -> None:
        try:
            os.replace(self.part, self.target)
        except OSError as error:
            raise self._explain(error) from error

    def close(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def clear(self) -> None:
        """Leaves nothing behind of work that never began."""
        for path in (self.part, self.journal):
            with suppress(OSError):
                path.unlink()

    def save(self, journal: Journal) -> None:
        aside = self.journal.with_name(f".{self.journal.name}.new")
        try:
            with open(aside, "w", encoding="utf-8") as file:
                file.write(journal.write())
                file.flush()
                os.fsync(file.fileno())
            os.replace(aside, self.journal)
        except OSError as error:
            raise self._explain(error) from error

    def _flush(self) -> None:
        assert self._file is not None
        data = memoryview(b"".join(self._buffer))
        self._buffer, self._room = [], 1 << 20
        try:
            while data:
                data = data[os.write(self._file, data) :]
        except OSError as error:
            raise self._explain(error) from error

    def _is_there(self, file: int) -> bool:
        try:
            return os.path.samestat(os.fstat(file), os.stat(self.part))
        except FileNotFoundError:
            return False

    def _explain(self, error: OSError) -> WriteFault:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            return WriteFault(
                f"The disk of {self.target.parent} is full; make room, and the same command goes on from here."
            )
        return WriteFault(f"{self.target} cannot be written: {error.strerror or error}.")


def describe_seen(path: Path) -> tuple[int, int]:
    facts = path.stat()
    return facts.st_size, facts.st_mtime_ns
