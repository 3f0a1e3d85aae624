"""What goes over the socket between a process that speaks HTTP and one that holds models: frames, no pickle.

In: a header (plain JSON) and arrays of float32. Out: bytes; and back, however the bytes were cut on their way.

A frame is a mark, two lengths, the header as JSON, and the numbers of all arrays one after the other; the header's
`shapes` says where one ends and the next begins.
"""

import asyncio
import math
import struct
from collections.abc import Callable, Iterator, Sequence
from typing import Any, cast

import numpy as np
import orjson

Array = np.ndarray[Any, Any]
MARK = b"bsm1"
PREFIX = struct.Struct("<4sII")  # the mark, bytes of the header, bytes of the arrays
MOST = 2**30  # bytes of a frame: far above what the limits of a server let through
FLOAT = np.dtype("<f4")


class BrokenFrame(Exception):
    """The other side sent what is no frame; nothing that it sends after that can be trusted."""


class TooLarge(Exception):
    """A frame that the other side would not take."""


def pack(header: dict[str, Any], arrays: Sequence[Array] | None = None, most: int = MOST) -> bytes:
    """Raises `TooLarge`, or a TypeError for what JSON cannot hold: half a surrogate pair, a number beyond 64 bits."""
    bodies: list[bytes] = []
    if arrays is not None:
        rows = [np.asarray(array, FLOAT, order="C") for array in arrays]
        header = header | {"shapes": [row.shape for row in rows]}
        bodies = [row.tobytes() for row in rows]
    text = orjson.dumps(header, default=_make_plain, option=orjson.OPT_NON_STR_KEYS)
    size = sum(map(len, bodies))
    if len(text) + size > most:
        raise TooLarge(f"{len(text) + size:,} bytes; a frame has at most {most:,}")
    return b"".join((PREFIX.pack(MARK, len(text), size), text, *bodies))


class Frames:
    """Cuts a stream of bytes into frames."""

    def __init__(self, most: int = MOST) -> None:
        self.most = most
        self.buffer = bytearray()

    def feed(self, data: bytes) -> Iterator[tuple[dict[str, Any], list[Array] | None]]:
        """The frames that are whole by now; raises `BrokenFrame`."""
        self.buffer += data
        while len(self.buffer) >= PREFIX.size:
            mark, text, size = PREFIX.unpack_from(self.buffer)
            if mark != MARK or text + size > self.most:
                raise BrokenFrame("no frame, or one that is too large")
            end = PREFIX.size + text + size
            if len(self.buffer) < end:
                return
            frame = bytes(memoryview(self.buffer)[PREFIX.size : end])
            del self.buffer[:end]
            yield _unpack(frame, text)


def _unpack(frame: bytes, text: int) -> tuple[dict[str, Any], list[Array] | None]:
    try:
        header = orjson.loads(frame[:text])
    except orjson.JSONDecodeError as error:
        raise BrokenFrame(f"a header that is not JSON: {error}") from error
    if not isinstance(header, dict):
        raise BrokenFrame("a header that is not an object")
    shapes = header.pop("shapes", None)
    numbers = len(frame) - text
    if shapes is None:
        if numbers:
            raise BrokenFrame("numbers without shapes")
        return header, None
    if not _are_shapes(shapes) or sum(map(math.prod, shapes)) * FLOAT.itemsize != numbers:
        raise BrokenFrame("shapes that do not fit their numbers")
    arrays, start = [], text
    for shape in shapes:
        count = math.prod(shape)
        arrays.append(np.frombuffer(frame, FLOAT, count, start).reshape(shape))
        start += count * FLOAT.itemsize
    return header, arrays


def _are_shapes(shapes: Any) -> bool:
    return isinstance(shapes, list) and all(
        isinstance(shape, list) and len(shape) <= 8 and all(type(size) is int and 0 <= size <= MOST for size in shape)
        for shape in shapes
    )


def _make_plain(value: Any) -> Any:
    """numpy's numbers by their exact value, which orjson would shorten."""
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} is not plain JSON")


class Channel(asyncio.Protocol):
    """One connection: `on_frame` is called for each frame, `on_lost` once at its end; garbage is an end, too."""

    def __init__(
        self,
        on_frame: Callable[[dict[str, Any], list[Array] | None], None],
        on_lost: Callable[[], None],
        most: int = MOST,
    ) -> None:
        self.on_frame, self.on_lost = on_frame, on_lost
        self.frames = Frames(most)
        self.transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        try:
            for header, arrays in self.frames.feed(data):
                self.on_frame(header, arrays)
        except (BrokenFrame, LookupError, TypeError, ValueError):  # the latter: a header without what it should hold
            self.close()

    def connection_lost(self, error: Exception | None) -> None:
        self.transport = None
        self.on_lost()

    def send(self, frame: bytes) -> bool:
        """Whether there was a connection to send it on."""
        if self.transport is None or self.transport.is_closing():
            return False
        self.transport.write(frame)
        return True

    def close(self) -> None:
        if self.transport is not None:
            self.transport.abort()
