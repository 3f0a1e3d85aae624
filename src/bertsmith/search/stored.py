"""An index on disk, opened. In: its folder. Out: passages, vectors and words, all of them memory-mapped.

    index.json           which generation counts, the files it was made from, the model's mark
    generation-000003/   vectors.npy, passages.npy (document, start, end), texts.npy, keys.npy, documents.json, bm25
    pending/             vectors of an update that is under way, or was stopped

A generation never changes: an update writes the next one, names it in index.json and removes the one before.
"""

import json
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from bertsmith.data.bm25 import ARRAYS, Bm25
from bertsmith.errors import BertsmithError
from bertsmith.tasks.measures import Array

INDEX, DOCUMENTS = "index.json", "documents.json"
LAYOUT = 1  # counts up when the files mean something else


class Stored:
    def __init__(self, folder: Path, about: dict[str, Any]) -> None:
        self.folder = folder
        self.about = about
        self.vectors = self._map("vectors")
        self.passages = self._map("passages")
        self.text_starts = self._map("text_starts")
        self.texts = self._map("texts")
        # At once, as all else is opened: a later generation removes these files under a reader.
        self.documents: list[str] = json.loads((folder / DOCUMENTS).read_text(encoding="utf-8"))
        self.bm25 = Bm25({name: self._map(f"bm25-{name}") for name in ARRAYS}, len(self))

    def __len__(self) -> int:
        return len(self.passages)

    def _map(self, name: str) -> Array:
        try:
            # A plain array, since each slice of numpy's subclass costs dearly; "c", since torch takes no read-only one.
            return np.asarray(np.load(self.folder / f"{name}.npy", mmap_mode="c"))
        except ValueError:  # an empty array cannot be mapped
            return np.load(self.folder / f"{name}.npy")

    @cached_property
    def keys(self) -> Array:
        """The name of each passage's text, by which its vector is found again."""
        return self._map("keys")

    def raw_text(self, number: int) -> bytes:
        return bytes(self.texts[self.text_starts[number] : self.text_starts[number + 1]])

    def text(self, number: int) -> str:
        return self.raw_text(number).decode("utf-8", "surrogatepass")

    def answer(self, number: int, score: float) -> dict[str, Any]:
        document, start, end = map(int, self.passages[number])
        name = self.documents[document]
        return {"document": name, "start": start, "end": end, "text": self.text(number), "score": float(score)}


def read_about(place: Path) -> dict[str, Any]:
    """What index.json says; {} where there is none, or none that this version made."""
    try:
        found = json.loads((place / INDEX).read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):  # what is no folder cannot be written to either, which is told then
        return {}
    except (OSError, ValueError) as error:
        raise BertsmithError(f"{place / INDEX} cannot be read ({error}); remove that folder to index anew.") from error
    is_ours = isinstance(found, dict) and found.get("layout") == LAYOUT
    return found if is_ours else {}


def open_stored(place: Path, about: dict[str, Any]) -> Stored | None:
    """The generation that counts; None where it is not whole."""
    folder = place / str(about.get("generation"))
    sizes = about.get("sizes") or {"": 0}
    try:
        if any((folder / name).stat().st_size != size for name, size in sizes.items()):
            return None
        return Stored(folder, about)
    except (OSError, ValueError):
        return None
