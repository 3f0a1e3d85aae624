"""Whether something changed: a file since it was read, a model since its vectors were made."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from stat import S_ISDIR, S_ISREG
from typing import Any

import numpy as np

from bertsmith.tasks.measures import Array

KEY = 16  # bytes of the name of a text: two texts of one name are not to be expected among 2**60
FRESH = 2_000_000_000  # nanoseconds: file systems count so coarsely that a file may change twice in one tick
# A model is known by what it makes of these, wherever its folder lies: vectors this near serve the same searches.
PROBES = ("A river bank.", "can you get medicine for someone pharmacy", "Straße 7, 東京: 1861–1905?")
NEAR = 0.9999  # a cosine; another precision or device keeps to it, another model does not

Embed = Callable[[Sequence[str]], Array]  # vectors of length 1


def name_text(text: bytes) -> bytes:
    return hashlib.blake2b(text, digest_size=KEY).digest()


def name_file(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=KEY).hexdigest()


def measure_file(path: Path) -> tuple[int, int]:
    """Size, and time of the last change in nanoseconds; an OSError where reading it might wait for ever."""
    status = path.stat()
    if not (S_ISREG(status.st_mode) or S_ISDIR(status.st_mode)):
        raise OSError("it is a pipe or a device, not a file")
    return status.st_size, status.st_mtime_ns


def is_same(known: Mapping[str, Any], size: int, time: int) -> bool:
    """Whether a file with this size and time is the one that was read, and was not just being written then."""
    return bool(known["size"] == size and known["time"] == time and known["read"] - time > FRESH)


def probe(embed: Embed) -> list[list[float]]:
    found: list[list[float]] = np.asarray(embed(PROBES), dtype=np.float64).round(6).tolist()
    return found


def is_same_model(known: Any, found: Any) -> bool:
    one, other = np.asarray(known, dtype=np.float64), np.asarray(found, dtype=np.float64)
    return one.shape == other.shape and bool(((one * other).sum(axis=1) > NEAR).all())
