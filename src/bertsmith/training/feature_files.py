"""Features on disk: an array with a head of JSON that names its key and its checksum, written aside and renamed.

In: a folder, a key, and a function that computes what is not there. Out: a memory-mapped array. A file that is damaged,
cut short or another's is computed anew, never trusted.
"""

import json
import os
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from bertsmith.errors import BertsmithError

try:
    import fcntl
except ImportError:  # Windows: there each process writes a file of its own
    fcntl = None  # type: ignore[assignment]

Array = np.ndarray[Any, Any]
CAN_LOCK: bool = fcntl is not None
FORMAT = "bertsmith features 1"
HEAD = 1024  # bytes before the array
BLOCK = 1 << 24


@dataclass(frozen=True)
class FeatureFile:
    folder: Path
    key: str  # of all that the numbers depend on
    shape: tuple[int, int]
    dtype: str

    @property
    def path(self) -> Path:
        return self.folder / f"{self.key}.features"

    @property
    def size(self) -> int:
        return int(np.prod(self.shape)) * np.dtype(self.dtype).itemsize

    def keep(self, compute: Callable[[], Iterable[Array]]) -> tuple[Array, bool]:
        """The array, and whether it was there; else it is made of the parts that `compute` gives in order."""
        found = self.read()
        if found is not None:
            return found, True
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with self._hold() as file:
                found = self.read()  # another process may have written it while this one waited
                if found is not None:
                    return found, True
                self._write(file, compute())
                _let_go(file)
                os.replace(file.name, self.path)
        except OSError as error:
            raise BertsmithError(
                f"{self.folder} cannot hold the features, which take {self.size / 1e9:.2f} GB: "
                f"{error.strerror or error}; give a folder with room as cache."
            ) from error
        found = self.read()
        if found is None:
            raise BertsmithError(f"{self.path} does not hold what was written to it; the disk may be failing.")
        return found, False

    def read(self) -> Array | None:
        """The array, if the file is whole and has this very key."""
        try:
            with self.path.open("rb") as file:
                about = json.loads(file.read(HEAD).decode("ascii"))
                if about != self._about(about.get("sum")) or os.fstat(file.fileno()).st_size != HEAD + self.size:
                    return None
                if _sum(file) != about["sum"]:
                    return None
            return np.memmap(self.path, self.dtype, "r", HEAD, self.shape)
        except (OSError, ValueError, AttributeError, TypeError):
            return None

    def _about(self, total: Any) -> dict[str, Any]:
        return {"format": FORMAT, "key": self.key, "shape": list(self.shape), "dtype": self.dtype, "sum": total}

    def _write(self, file: BinaryIO, parts: Iterable[Array]) -> None:
        file.seek(HEAD)
        total = 0
        for part in parts:
            if not np.isfinite(part).all():
                raise BertsmithError("the encoder's states are not finite numbers here; give precision=fp32.")
            data = np.ascontiguousarray(part).data.cast("B")
            total = zlib.crc32(data, total)
            file.write(data)
        file.seek(0)
        file.write(json.dumps(self._about(total)).encode("ascii").ljust(HEAD))
        file.flush()

    @contextmanager
    def _hold(self) -> Iterator[BinaryIO]:
        """A file to write aside, by one process at a time; it is gone afterwards, unless it got another name."""
        own = "" if CAN_LOCK else f".{os.getpid()}"
        aside = self.folder / f".{self.key}{own}.part"
        file = _open_held(aside)
        try:
            file.truncate(0)
            yield file
        finally:
            _let_go(file)
            aside.unlink(missing_ok=True)  # before the lock goes: behind it, it might be another's
            file.close()


def _let_go(file: BinaryIO) -> None:
    """Windows moves and removes no file that is open."""
    if not CAN_LOCK:
        file.close()


def _open_held(path: Path) -> BinaryIO:
    """Open to write, and wait until nobody else does; the lock is gone when its process is, however that ends."""
    while True:
        file: BinaryIO = open(path, "r+b", opener=lambda name, flags: os.open(name, flags | os.O_CREAT, 0o666))  # noqa: SIM115
        if not CAN_LOCK:
            return file
        try:
            fcntl.flock(file, fcntl.LOCK_EX)
        except OSError:  # a file system that knows no locks; the checksum still tells what is whole
            return file
        try:
            if os.path.samestat(os.fstat(file.fileno()), os.stat(path)):
                return file
        except FileNotFoundError:
            pass
        file.close()  # whoever held it gave it its name, or took it away


def _sum(file: BinaryIO) -> int:
    total = 0
    while block := file.read(BLOCK):
        total = zlib.crc32(block, total)
    return total
