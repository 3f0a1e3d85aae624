"""Many numbers in a small file: squeezed, and spelt so that JSON holds them.

In: an array. Out: `{"shape", "encoding", "data"}`, which `unpack` here and `bertsmith.unpack` in a browser read. `data`
has a text for each entry of the first of three axes or more, so that a page opens one layer without the others.
"""

import base64
import zlib
from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Encoding = Literal["roots", "float16", "float32"]
Packed = dict[str, Any]

# Of square roots and not of the weights themselves: a step is then finest where most weights are, near nothing, and
# what is 1/512 of a row still has eleven steps below it.
LEVELS = 255


def pack(array: NDArray[Any], *, encoding: Encoding = "roots", levels: int = LEVELS) -> Packed:
    """Weights from 0 to 1 as `levels` steps of their root (off by at most sqrt(w)/levels), or any numbers as floats."""
    if not 1 <= levels <= LEVELS:
        raise ValueError(f"levels is {levels}; a byte holds 1 to {LEVELS}.")
    whole = np.atleast_1d(np.asarray(array))
    if not np.isfinite(whole).all():
        raise ValueError("only numbers that are finite can be packed.")
    if encoding == "roots" and whole.size and (whole.min() < -1e-6 or whole.max() > 1 + 1e-3):
        raise ValueError("weights are from 0 to 1; pack other numbers as float16 or float32.")
    spell = _speller(encoding, levels)
    parts = [
        base64.b64encode(zlib.compress(spell(part), 6)).decode("ascii")
        for part in (whole if whole.ndim > 2 else [whole])
    ]
    packed: Packed = {"shape": list(whole.shape), "encoding": encoding, "data": parts}
    return {**packed, "levels": levels} if encoding == "roots" else packed


def _speller(encoding: Encoding, levels: int) -> Callable[[NDArray[Any]], bytes]:
    if encoding == "roots":
        return lambda part: np.rint(np.sqrt(np.clip(part, 0, 1)) * levels).astype(np.uint8).tobytes()
    if encoding == "float16":  # holds no more than 65504; what lies beyond is shown as that
        return lambda part: np.clip(part, -65504, 65504).astype("<f2").tobytes()
    return lambda part: np.asarray(part).astype("<f4").tobytes()


def unpack(packed: Packed) -> NDArray[np.float32]:
    """The numbers again, as near as they were kept."""
    kinds = {"roots": "u1", "float16": "<f2", "float32": "<f4"}
    raw = b"".join(zlib.decompress(base64.b64decode(part)) for part in packed["data"])
    values = np.frombuffer(raw, kinds[packed["encoding"]]).astype(np.float32).reshape(packed["shape"])
    return (values / np.float32(packed["levels"])) ** 2 if packed["encoding"] == "roots" else values
