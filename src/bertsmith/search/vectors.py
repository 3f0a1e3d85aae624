"""The vectors of passages on their way to disk. In: keys of texts, what embeds. Out: `vectors.npy`, a row a passage.

A vector that is known, from the generation before or from an update that was stopped, is taken from there. The others
are kept in `pending` as they are made: a key and a vector a record, so that half a record at the end is known as such.
"""

import json
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bertsmith.search.fingerprints import KEY, Embed, is_same_model
from bertsmith.search.stored import Stored
from bertsmith.tasks.measures import Array

CHUNK = 1024  # passages embedded, and written, at a time
KIND = "<f2"  # half the place of float32; the cosine of two such vectors is right to about 1e-4


class Pending:
    """Vectors by the keys of their texts, in a file that grows."""

    def __init__(self, folder: Path, model: list[list[float]], width: int) -> None:
        self.kind = np.dtype([("key", f"V{KEY}"), ("vector", KIND, (width,))])
        path = folder / "vectors.bin"
        if not _belongs(folder, model):
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            (folder / "model.json").write_text(json.dumps(model))
        self._file = path.open("a+b")
        count = path.stat().st_size // self.kind.itemsize
        self._file.truncate(count * self.kind.itemsize)
        self._file.seek(0)
        self.places = {self._read(i)["key"].tobytes(): i for i in range(count)}

    def _read(self, place: int) -> Any:
        self._file.seek(place * self.kind.itemsize)
        return np.frombuffer(self._file.read(self.kind.itemsize), self.kind)[0]

    def vector(self, key: bytes) -> Array:
        return np.asarray(self._read(self.places[key])["vector"])

    def add(self, keys: Sequence[bytes], vectors: Array) -> None:
        records = np.zeros(len(keys), self.kind)
        records["key"] = np.frombuffer(b"".join(keys), f"V{KEY}")
        records["vector"] = vectors
        self._file.seek(0, 2)
        self._file.write(records.tobytes())
        self._file.flush()
        first = len(self.places)
        self.places.update({key: first + i for i, key in enumerate(keys)})

    def close(self) -> None:
        self._file.close()


def _belongs(folder: Path, model: list[list[float]]) -> bool:
    try:
        return is_same_model(json.loads((folder / "model.json").read_text()), model)
    except (OSError, ValueError):
        return False


def write_vectors(
    pending_folder: Path, aside: Path, keys: bytes, old: Stored | None, model: list[list[float]], embed: Embed,
    progress: Callable[[int, int], None] | None,
) -> None:  # fmt: skip
    """Writes them in the order of the keys."""
    width = len(model[0])
    count = len(keys) // KEY
    before = {} if old is None else {key.tobytes(): i for i, key in enumerate(old.keys)}
    pending = Pending(pending_folder, model, width)
    texts = np.load(aside / "texts.npy", mmap_mode="r")
    starts = np.load(aside / "text_starts.npy")
    # What is new, each text once.
    new = {key: i for i in range(count) if (key := keys[i * KEY : (i + 1) * KEY]) not in before}
    left = [key for key in new if key not in pending.places]
    try:
        for first in range(0, len(left), CHUNK):
            some = left[first : first + CHUNK]
            raws = (bytes(texts[starts[new[key]] : starts[new[key] + 1]]) for key in some)
            pending.add(some, embed([raw.decode("utf-8", "surrogatepass") for raw in raws]))
            if progress:
                progress(min(first + CHUNK, len(left)), len(left))
        with (aside / "vectors.npy").open("wb") as file:
            np.lib.format.write_array_header_1_0(file, {"descr": KIND, "fortran_order": False, "shape": (count, width)})
            for first in range(0, len(keys), CHUNK * KEY):
                some = [keys[i : i + KEY] for i in range(first, min(first + CHUNK * KEY, len(keys)), KEY)]
                rows = [old.vectors[before[key]] if old and key in before else pending.vector(key) for key in some]
                file.write(np.stack(rows).astype(KIND).tobytes())
    finally:
        pending.close()
