"""A NumPy file that grows row by row. In: float32 vectors of one width. Out: an `.npy` file, whole or not at all."""

import os
import stat
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np

from bertsmith.bulk_output import check_ending
from bertsmith.errors import BertsmithError


class VectorFile:
    """Rows go into a file beside `path`, which takes its name once all are written."""

    def __init__(self, path: Path, overwrite: bool = False) -> None:
        self.path = path
        check_ending(path, vectors=True)
        self.count = 0
        self.width = 0
        try:
            self.path = path = path.resolve()  # a link stays one, its target is written
            mode = path.stat().st_mode if path.exists() else None
        except OSError as error:  # a name that is too long, a folder that cannot be looked into
            raise self._explain(error) from error
        except RuntimeError:  # Python before 3.13
            raise BertsmithError(f"cannot write {path}: its links go in a circle.") from None
        if mode is not None and stat.S_ISDIR(mode):
            raise BertsmithError(f"cannot write {path}: it is a folder; give a FILE.npy.")
        if mode is not None and not stat.S_ISREG(mode):  # the rename would take the place of a device
            raise BertsmithError(f"cannot write {path}: it is not an ordinary file; give a FILE.npy.")
        if mode is not None and not overwrite:
            raise BertsmithError(f"{path} is there already; give another file, or --overwrite.")
        self._aside = path.with_name(f".{path.name}.{os.getpid()}.part")

    def __enter__(self) -> Self:
        try:
            self._file = self._aside.open("wb")
            self._write_header()
        except OSError as error:
            raise self._explain(error) from error
        return self

    def append(self, vector: "np.ndarray[Any, Any]") -> None:
        """Writes the next row."""
        self.count += 1
        self.width = len(vector)
        try:
            self._file.write(vector.astype("<f4").tobytes())
        except OSError as error:
            raise self._explain(error) from error

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        try:
            if kind is None:
                self._file.seek(0)
                self._write_header()
                self._file.close()
                self._aside.replace(self.path)
        except OSError as problem:
            raise self._explain(problem) from problem
        finally:
            self._file.close()
            self._aside.unlink(missing_ok=True)

    def _write_header(self) -> None:
        # NumPy pads its header for a first axis of up to 21 digits, so the final one has the place of this first one.
        shape = (self.count, self.width)
        np.lib.format.write_array_header_1_0(self._file, {"descr": "<f4", "fortran_order": False, "shape": shape})

    def _explain(self, error: OSError) -> BertsmithError:
        return BertsmithError(f"cannot write {self.path}: {error.strerror}.")
