"""One process at a time in a run's folder: a lock of the operating system, which is gone when its process is.

In: a folder that is there. Out: nothing; a folder that another process writes to is refused in one sentence.
"""

import os
from pathlib import Path

from bertsmith.errors import BertsmithError

try:
    import fcntl
except ImportError:  # Windows: there a second process is not noticed
    fcntl = None  # type: ignore[assignment]

LOCK = ".lock"


class FolderLock:
    def __init__(self, folder: Path) -> None:
        self.folder, self.path = folder, folder / LOCK
        self._file: int | None = None

    def take(self) -> None:
        """Hold the folder until `release`, or until this process ends, however it does."""
        while fcntl is not None and self._file is None:
            try:
                file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
            except OSError:  # what cannot be written fails with a sentence of its own
                return
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(file)
                raise BertsmithError(
                    f"{self.folder} is being written by another process; wait for it, or give another folder."
                ) from None
            except OSError:  # a file system that knows no locks
                os.close(file)
                self.path.unlink(missing_ok=True)
                return
            if self._is_there(file):
                self._file = file
            else:  # who held it took it away between the two calls
                os.close(file)

    def release(self) -> None:
        if self._file is not None:
            self.path.unlink(missing_ok=True)  # first: behind the lock it might be another's
            os.close(self._file)
            self._file = None

    def _is_there(self, file: int) -> bool:
        try:
            return os.path.samestat(os.fstat(file), os.stat(self.path))
        except FileNotFoundError:
            return False
