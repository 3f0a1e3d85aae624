"""CRC-32C of large arrays in numpy, with which TensorFlow guards each block and each tensor of a checkpoint."""

import struct
from functools import cache

import numpy as np


def masked(crc: int) -> int:
    """LevelDB stores checksums turned and shifted, so that the checksum of a checksum stays a good one."""
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def checksum(data: np.ndarray) -> int:
    """CRC-32C of bytes, pairwise as a tree: numpy does a level at once, 0.4 GB in about a second.

    A CRC is the remainder of a polynomial, so that of `left + right` is `left` moved on by the length of `right`, plus
    (xor) `right`. Zeros in front change nothing.
    """
    padding = -len(data) % 4
    # The register starts as all ones. The word 0x641F6454 brings an empty one there.
    front = np.frombuffer(bytes(padding) + struct.pack("<I", 0x641F6454), np.uint8)
    words = np.concatenate([front, data]).view("<u4")
    level = 0
    while len(words) > 1:
        if len(words) % 2:
            words = np.concatenate([np.zeros(1, np.uint32), words])
        words = _move(words[0::2], level) ^ words[1::2]
        level += 1
    return int(_move(words, 0)[0]) ^ 0xFFFFFFFF


def _move(words: np.ndarray, level: int) -> np.ndarray:
    """Each register after 4 · 2**level zero bytes more."""
    low, high = _tables(level)
    moved: np.ndarray = low[words & 0xFFFF] ^ high[words >> 16]
    return moved


@cache
def _tables(level: int) -> tuple[np.ndarray, np.ndarray]:
    """Where the low and the high half of a register go in 4 · 2**level zero bytes, for each value of the half."""
    half = np.arange(1 << 16, dtype=np.uint32)
    if level:  # twice as far is the same way twice
        return _move(_move(half, level - 1), level - 1), _move(_move(half << 16, level - 1), level - 1)
    both = [half, half << 16]
    for _ in range(32):
        both = [part >> 1 ^ (part & 1) * np.uint32(0x82F63B78) for part in both]
    return both[0], both[1]
