"""A table of short chunks of bytes that numpy looks up by the million. In: bytes and where chunks lie. Out: numbers.

A chunk of up to 16 bytes is two 64-bit words, padded with zeros; as text holds no zero byte, the two are the chunk, and
comparing them is exact. Each chunk has two places in the table it may stand at; one that finds both taken, and one that
is longer, is not in it: the caller has a dictionary for these few.
"""

import numpy as np

LONGEST = 16
_BITS = 22
_SHIFT = np.uint64(64 - _BITS)
_ONE, _TWO = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xC2B2AE3D27D4EB4F)
_MASKS = np.array([(1 << (8 * length)) - 1 for length in range(9)], np.uint64)


class Growing:
    """An array that grows at its end, twice as large each time it is full."""

    def __init__(self, kind: type) -> None:
        self.values: np.ndarray = np.empty(1024, kind)
        self._length = 0

    def __len__(self) -> int:
        return self._length

    def extend(self, more: np.ndarray) -> None:
        end = self._length + len(more)
        if end > len(self.values):
            larger = np.empty(max(end, 2 * len(self.values)), self.values.dtype)
            larger[: self._length] = self.values[: self._length]
            self.values = larger
        self.values[self._length : end] = more
        self._length = end


class ChunkTable:
    def __init__(self) -> None:
        self._slots = np.full(1 << _BITS, -1, np.int32)
        self._first, self._second = Growing(np.uint64), Growing(np.uint64)  # the words of each chunk, by its number

    def find(self, text: bytes, starts: np.ndarray, lengths: np.ndarray) -> np.ndarray:
        """The number of each chunk; -1: it is not in the table."""
        first, second = _read(text, starts, lengths)
        mixed = _mix(first, second)
        numbers = self._slots[(mixed >> _SHIFT).astype(np.int64)].astype(np.int64)
        self._forget_others(numbers, first, second)
        left = np.flatnonzero(numbers < 0)
        if len(left):
            again = self._slots[((mixed[left] * _TWO) >> _SHIFT).astype(np.int64)].astype(np.int64)
            self._forget_others(again, first[left], second[left])
            numbers[left] = again
        numbers[lengths > LONGEST] = -1
        return numbers

    def add(self, chunks: list[bytes]) -> None:
        """The next numbers, in order, are these chunks'."""
        lengths = np.fromiter(map(len, chunks), np.int64, len(chunks))
        first, second = _read(b"".join(chunks), np.cumsum(lengths) - lengths, lengths)
        number = len(self._first)
        self._first.extend(first)
        self._second.extend(second)
        mixed = _mix(first, second)
        waiting = np.flatnonzero(lengths <= LONGEST)
        for hashes in (mixed, mixed * _TWO):
            slots = (hashes[waiting] >> _SHIFT).astype(np.int64)
            _, chosen = np.unique(slots, return_index=True)  # the first of those that meet
            chosen = chosen[self._slots[slots[chosen]] < 0]
            self._slots[slots[chosen]] = number + waiting[chosen]
            waiting = np.delete(waiting, chosen)

    def _forget_others(self, numbers: np.ndarray, first: np.ndarray, second: np.ndarray) -> None:
        """Sets to -1 where another chunk, or none, stands in the slot."""
        is_same = (self._first.values[numbers] == first) & (self._second.values[numbers] == second) & (numbers >= 0)
        numbers[~is_same] = -1


def _read(text: bytes, starts: np.ndarray, lengths: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    padded = np.frombuffer(text + bytes(LONGEST), np.uint8)
    # A view that begins a 64-bit word at every byte.
    words = np.ndarray((len(padded) - 7,), "<u8", padded, strides=(1,))
    first = words[starts] & _MASKS[np.minimum(lengths, 8)]
    second = words[starts + 8] & _MASKS[np.clip(lengths - 8, 0, 8)]
    return first, second


def _mix(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    mixed = (first ^ (second * _TWO)) * _ONE
    return np.asarray((mixed ^ (mixed >> np.uint64(29))) * _TWO)
