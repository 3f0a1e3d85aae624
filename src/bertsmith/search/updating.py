"""An index is brought up to date. In: a folder, what embeds. Out: the next generation, or the one that is there.

Files that did not change are not read, and a text that was embedded once is not embedded again: wherever it now stands,
its vector is found by its content. That also holds for an update that was killed, which kept its vectors in `pending`.
What is in memory at a time is one file and one chunk of vectors, whatever the size of the whole.
"""

import json
import os
import shutil
import sys
import time
from array import array
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from bertsmith.data import bm25
from bertsmith.errors import BertsmithError
from bertsmith.search.documents import read_documents
from bertsmith.search.fingerprints import KEY, Embed, is_same, measure_file, name_file, name_text
from bertsmith.search.passages import cut_passages
from bertsmith.search.stored import DOCUMENTS, INDEX, LAYOUT, Stored
from bertsmith.search.vectors import write_vectors
from bertsmith.text.tokenizer import Tokenizer

Progress = Callable[[int, int], None]  # passages embedded, and of how many


class Taken(BertsmithError):
    """Another process is writing the index."""


@dataclass
class Draft:
    """A generation in the making."""

    folder: Path
    files: dict[str, dict[str, Any]] = field(default_factory=dict)
    documents: list[str] = field(default_factory=list)
    passages: "array[int]" = field(default_factory=lambda: array("q"))  # document, start, end of each
    text_starts: "array[int]" = field(default_factory=lambda: array("q", [0]))
    keys: bytearray = field(default_factory=bytearray)

    def __len__(self) -> int:
        return len(self.text_starts) - 1

    def add(self, start: int, end: int, text: bytes, texts: Any) -> None:
        """One more passage, of the last document."""
        texts.write(text)
        self.passages.extend((len(self.documents) - 1, start, end))
        self.text_starts.append(self.text_starts[-1] + len(text))
        self.keys += name_text(text)


def is_current(about: dict[str, Any], paths: dict[str, Path]) -> bool:
    """Whether the files are those that the index was made from; none of them is opened."""
    known = about.get("files", {})
    return set(known) == set(paths) and all(_is_unchanged(known[name], path) for name, path in paths.items())


def _is_unchanged(known: dict[str, Any], path: Path) -> bool:
    could_read = known["size"] >= 0
    try:
        measured = measure_file(path)
        if could_read:
            return is_same(known, *measured)
        path.open("rb").close()
    except OSError:
        return not could_read
    return False


def update(
    place: Path, paths: dict[str, Path], old: Stored | None, model: list[list[float]], tokenizer: Tokenizer,
    tokens: int, embed: Embed, progress: Progress | None,
) -> dict[str, Any]:  # fmt: skip
    """What the new index.json says; `old` is a generation made by the same model with the same length of passages."""
    files = _recognize(paths, old) if old else None
    if files is not None and old is not None:  # touched, or too fresh to be told from a later change: nothing to do
        about = {**old.about, "files": files}
        _write_json(place / INDEX, about)
        return about
    number = 1 + max((int(path.name[11:]) for path in place.glob("generation-*") if path.name[11:].isdecimal()),
                     default=0)  # fmt: skip
    aside, folder = place / ".part", place / f"generation-{number:06d}"
    try:
        shutil.rmtree(aside, ignore_errors=True)
        aside.mkdir()
        draft = _gather(aside, paths, old, tokenizer, tokens)
        write_vectors(place / "pending", aside, bytes(draft.keys), old, model, embed, progress)
        for name, values in bm25.build(_texts(aside, draft)).items():
            np.save(aside / f"bm25-{name}.npy", values)
        sizes = {path.name: path.stat().st_size for path in sorted(aside.iterdir())}
        about = {"layout": LAYOUT, "generation": folder.name, "sizes": sizes, "model": model, "tokens": tokens,
                 "files": draft.files}  # fmt: skip
        _settle(aside)
        os.replace(aside, folder)
        _write_json(place / INDEX, about)
    except OSError as error:
        raise BertsmithError(f"the index {place} cannot be written: {error.strerror or error}.") from error
    for path in place.glob("generation-*"):
        if path != folder:
            shutil.rmtree(path, ignore_errors=True)
    shutil.rmtree(place / "pending", ignore_errors=True)
    return about


def _recognize(paths: dict[str, Path], old: Stored) -> dict[str, Any] | None:
    """The files with their present times, if all have the content that they had."""
    known, found = old.about["files"], {}
    if set(known) != set(paths):
        return None
    for name, path in paths.items():
        found[name] = dict(known[name])
        if not _is_unchanged(known[name], path):
            try:
                found[name] |= {"read": time.time_ns(), **dict(zip(("size", "time"), measure_file(path), strict=True))}
                if name_file(path.read_bytes()) != known[name]["name"]:
                    return None
            except OSError:
                return None
    return found


def _gather(aside: Path, paths: dict[str, Path], old: Stored | None, tokenizer: Tokenizer, tokens: int) -> Draft:
    """Passages and texts of all files, those that did not change as they were."""
    draft = Draft(aside)
    known = old.about["files"] if old else {}
    with (aside / "texts.npy").open("wb") as texts:
        _write_header(texts, 0)
        for name, path in paths.items():
            first = len(draft)
            draft.files[name] = _add_file(draft, name, path, known.get(name), old, tokenizer, tokens, texts)
            draft.files[name] |= {"first": first, "count": len(draft) - first}
        texts.seek(0)
        _write_header(texts, draft.text_starts[-1])
    if not len(draft):
        notes = notes_of({"files": draft.files})
        why = f"{len(notes):,} could not be read, the first because: {notes[0]}" if notes else "all of them are empty."
        raise BertsmithError(f"there is no text to search in {len(paths):,} file{'s' * (len(paths) != 1)}; {why}")
    np.save(aside / "passages.npy", np.frombuffer(draft.passages, np.int64).reshape(-1, 3))
    np.save(aside / "text_starts.npy", np.frombuffer(draft.text_starts, np.int64))
    np.save(aside / "keys.npy", np.frombuffer(bytes(draft.keys), f"V{KEY}"))
    (aside / DOCUMENTS).write_text(json.dumps(draft.documents), encoding="utf-8")
    return draft


def _add_file(
    draft: Draft, name: str, path: Path, known: dict[str, Any] | None, old: Stored | None, tokenizer: Tokenizer,
    tokens: int, texts: Any,
) -> dict[str, Any]:  # fmt: skip
    """Adds the passages of a file; what is to be known of it next time."""
    about: dict[str, Any] = {"size": -1, "time": 0, "read": time.time_ns(), "name": ""}
    try:
        about["size"], about["time"] = measure_file(path)
        if known and old and is_same(known, about["size"], about["time"]):
            _copy(draft, old, known, texts)
            return dict(known)
        raw = path.read_bytes()
    except OSError as error:
        return about | {"size": -1, "note": f"{name} cannot be read: {error.strerror or error}."}
    about["name"] = name_file(raw)
    if known and old and known["name"] == about["name"]:
        _copy(draft, old, known, texts)
        return about | ({"note": known["note"]} if "note" in known else {})
    try:
        found = list(read_documents(raw, name))
    except BertsmithError as error:
        return about | {"note": str(error)}
    for document in found:
        spans = cut_passages(document.text, tokenizer, tokens, document.markdown)
        if spans:
            draft.documents.append(document.name)
        for start, end in spans:
            draft.add(start, end, document.text[start:end].encode("utf-8", "surrogatepass"), texts)
    return about


def _copy(draft: Draft, old: Stored, known: dict[str, Any], texts: Any) -> None:
    last = None
    for number in range(known["first"], known["first"] + known["count"]):
        document, start, end = map(int, old.passages[number])
        if document != last:
            draft.documents.append(old.documents[document])
            last = document
        draft.add(start, end, old.raw_text(number), texts)


def _texts(aside: Path, draft: Draft) -> Iterator[str]:
    """The passages again, from the file: only one of them is in memory."""
    starts = draft.text_starts
    with (aside / "texts.npy").open("rb") as file:
        np.lib.format.read_magic(file)
        np.lib.format.read_array_header_1_0(file)
        for start, end in pairwise(starts):
            yield file.read(end - start).decode("utf-8", "surrogatepass")


def _write_header(file: Any, length: int) -> None:
    # NumPy leaves room for a first axis of up to 21 digits, so the final header has the place of the first one.
    np.lib.format.write_array_header_1_0(file, {"descr": "|u1", "fortran_order": False, "shape": (length,)})


def _settle(folder: Path) -> None:
    for path in folder.iterdir():
        with path.open("rb") as file:
            os.fsync(file.fileno())


def _write_json(path: Path, content: dict[str, Any]) -> None:
    aside = path.with_name(f".{path.name}.part")
    with aside.open("w", encoding="utf-8") as file:
        json.dump(content, file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(aside, path)


@contextmanager
def taken(place: Path) -> Iterator[None]:
    """The index is this process's alone to write; it is let go when the process ends, however it ends."""
    try:
        place.mkdir(parents=True, exist_ok=True)
        (place / ".gitignore").write_text("*\n")  # it can be made again from the files
        file = (place / "lock").open("a")
    except OSError as error:
        raise BertsmithError(
            f"the index {place} cannot be written: {error.strerror or error}; name another place for it (--index DIR)."
        ) from error
    with file:
        try:
            _lock(file.fileno())
        except OSError:
            raise Taken(
                f"another process is writing the index {place}; wait until it is done, or name another (--index DIR)."
            ) from None
        yield


def _lock(number: int) -> None:
    if sys.platform == "win32":
        import msvcrt

        msvcrt.locking(number, msvcrt.LK_NBLCK, 1)
    else:
        import fcntl

        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)


def notes_of(about: dict[str, Any]) -> Sequence[str]:
    """A sentence for each file that was passed over."""
    return [file["note"] for file in about.get("files", {}).values() if "note" in file]
