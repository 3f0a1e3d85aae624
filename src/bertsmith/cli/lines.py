"""Standard input line by line. In: bytes as they arrive. Out: whole lines, and whether a further one is there already.

Python's own reader cannot tell the latter: it waits until its buffer is full.
"""

import io
import os
import select
import sys
import time
from collections import deque
from collections.abc import Iterator
from typing import cast

from bertsmith.errors import BertsmithError

BLOCK = 1 << 16  # what a pipe holds


class Lines:
    """Iterates over the lines without their line feeds; only a line feed ends a line."""

    def __init__(self) -> None:
        if sys.stdin is None:
            raise BertsmithError("standard input is closed, and - reads from it.")
        self._file = cast(io.BufferedReader, sys.stdin.buffer)
        self._lines: deque[bytes] = deque()
        self._rest: list[bytes] = []  # of a line whose end has not come
        self._ended = False
        # Windows can wait for sockets only, and a file in memory has nothing to wait for: these count as ready.
        try:
            self._number = self._file.fileno() if os.name == "posix" else None
        except io.UnsupportedOperation:
            self._number = None

    def __iter__(self) -> Iterator[bytes]:
        while self._lines or not self._ended:
            if self._lines:
                yield self._lines.popleft()
            else:
                self._read()

    def has_next(self, deadline: float) -> bool:
        """Whether the next line, or the end, is there or comes before the deadline (of `time.monotonic`)."""
        while not self._lines and not self._ended:
            if not self._is_ready(max(deadline - time.monotonic(), 0)):
                return False
            self._read()
        return True

    def _is_ready(self, seconds: float) -> bool:
        return self._number is None or bool(select.select([self._number], [], [], seconds)[0])

    def _read(self) -> None:
        try:
            block = self._file.read1(BLOCK)
        except OSError as error:
            raise BertsmithError(f"cannot read standard input: {error.strerror or error}.") from error
        first, *others = block.split(b"\n")
        self._rest.append(first)
        self._ended = not block
        if others or (self._ended and any(self._rest)):
            self._lines += [b"".join(self._rest), *others[:-1]]
            self._rest = others[-1:]
