"""What stays becomes the corpus. In: staged parts and the verdicts about them. Out: the flat files of both splits.

Every part knows where its share begins, so parts are written in any order and by any number of processes to the same
bytes. A part that is written is taken away, which keeps the disk from holding everything twice.
"""

import json
import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bertsmith.data.corpus.comparing import NAMES, STAYS, Verdicts
from bertsmith.data.corpus.staging import read_staged
from bertsmith.data.shards import FILES, SPLITS

VERDICTS = "verdicts.npz"
SHARES = "compared.json"
SHARDS = "shards"
_SENTENCES = 1 << 16  # written at a time


class Kept:
    """Which sentences of a staged part are kept, by split."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        with np.load(folder / VERDICTS) as file:
            self.documents, self.paragraphs, self.held_out = file["documents"], file["paragraphs"], file["held_out"]
        self.paragraph_counts = np.asarray(read_staged(folder, "documents"), np.int64)
        self.sentence_counts = np.asarray(read_staged(folder, "paragraphs"), np.int64)
        self.sentences = np.asarray(read_staged(folder, "sentences"), np.int64)

    def documents_of(self, split: str) -> np.ndarray:
        return (self.documents == STAYS) & (self.held_out == (split == "held-out"))

    def sentences_of(self, split: str) -> np.ndarray:
        """A flag a sentence: it is in a paragraph that stays of a document that stays, and has a token."""
        paragraphs = np.repeat(self.documents_of(split), self.paragraph_counts) & (self.paragraphs == STAYS)
        return np.repeat(paragraphs, self.sentence_counts) & (self.sentences > 0)

    def document_lengths(self, split: str) -> np.ndarray:
        """How many tokens stay of each of the split's documents."""
        owners = np.repeat(np.repeat(np.arange(len(self.documents)), self.paragraph_counts), self.sentence_counts)
        mask = self.sentences_of(split)
        lengths = np.bincount(owners[mask], self.sentences[mask], len(self.documents)).astype(np.int64)
        return lengths[self.documents_of(split)]


def share(folders: Sequence[Path], verdicts: Verdicts, building: Path, key: str) -> dict[str, Any]:
    """Puts its verdicts into each part's folder and lays down where its share of each file begins."""
    bases = {split: dict.fromkeys(FILES, 0) for split in SPLITS}
    shares = []
    for number, folder in enumerate(folders):
        documents, paragraphs, held_out = verdicts.of(number)
        np.savez(folder / VERDICTS, documents=documents, paragraphs=paragraphs, held_out=held_out)
        kept = Kept(folder)
        shares.append({split: dict(bases[split]) for split in SPLITS})
        for split in SPLITS:
            mask = kept.sentences_of(split)
            bases[split]["tokens"] += int(kept.sentences[mask].sum())
            bases[split]["sentences"] += int(mask.sum())
            bases[split]["documents"] += int(kept.documents_of(split).sum())
    return {"key": key, "shares": shares, "totals": bases}


def most_on_disk(sizes: Sequence[int], bases: Sequence[dict[str, dict[str, int]]], item: int) -> int:
    """The most bytes that parts and files take together, when part after part is written and goes.

    `bases` says where each part's share begins, and at last where all end.
    """
    written = [sum(base[split]["tokens"] * item + 8 * base[split]["sentences"] + 8 * base[split]["documents"]
                   for split in SPLITS) for base in bases]  # fmt: skip
    left = np.cumsum(np.array(sizes[::-1], np.int64))[::-1]
    return int(max(left + written[1:]))


def dropped_after(folder: Path) -> dict[str, tuple[int, int]]:
    """For each reason that comparing gave: how many documents or paragraphs of a part, and their characters."""
    kept = Kept(folder)
    sizes = np.asarray(read_staged(folder, "paragraph_sizes"), np.int64)
    owners = np.repeat(kept.documents, kept.paragraph_counts)
    found = {}
    for verdict, reason in NAMES.items():
        gone = kept.documents == verdict
        paragraphs = (kept.paragraphs == verdict) & (owners == STAYS)
        if gone.any() or paragraphs.any():
            # A paragraph of a document that went for lack of others is counted with its own reason.
            found[reason] = int(gone.sum() + paragraphs.sum()), int(sizes[(owners == verdict) | paragraphs].sum())
    return found


@dataclass(frozen=True)
class Writing:
    """A part to write; all that a process needs to know."""

    folder: Path
    target: Path
    share: dict[str, dict[str, int]]
    staged_kind: str
    kind: str


def make_files(target: Path, totals: dict[str, dict[str, int]], kind: np.dtype[Any]) -> None:
    """Files of their final size, with the last bound in its place."""
    for split in SPLITS:
        (target / split).mkdir(parents=True, exist_ok=True)
        for name, file in FILES.items():
            size = totals[split][name] * kind.itemsize if name == "tokens" else (totals[split][name] + 1) * 8
            with open(target / split / file, "ab") as stream:
                stream.truncate(size)
            if name != "tokens":
                _put(target / split / file, (size - 8), np.array([totals[split]["tokens"]], "<u8"))


def write_part(writing: Writing) -> None:
    """Writes a part's share and takes the part away; one that is gone was written before."""
    if not writing.folder.exists():
        return
    kept = Kept(writing.folder)
    tokens = read_staged(writing.folder, "tokens", np.dtype(writing.staged_kind))
    ends = np.cumsum(kept.sentences)
    kind = np.dtype(writing.kind)
    for split in SPLITS:
        base, folder = writing.share[split], writing.target / split
        mask = kept.sentences_of(split)
        lengths = kept.sentences[mask]
        _put(folder / FILES["sentences"], base["sentences"] * 8, _starts(lengths, base["tokens"]))
        _put(folder / FILES["documents"], base["documents"] * 8, _starts(kept.document_lengths(split), base["tokens"]))
        place = base["tokens"] * kind.itemsize
        for first in range(0, len(mask), _SENTENCES):
            some = slice(first, min(first + _SENTENCES, len(mask)))
            begin = int(ends[first - 1]) if first else 0
            here = tokens[begin : int(ends[some.stop - 1])]
            chosen = np.asarray(here[np.repeat(mask[some], kept.sentences[some])], kind)
            _put(folder / FILES["tokens"], place, chosen)
            place += chosen.nbytes
    done = writing.folder.with_name(f"{writing.folder.name}.done")
    writing.folder.rename(done)
    shutil.rmtree(done, ignore_errors=True)


def _starts(lengths: np.ndarray, base: int) -> np.ndarray:
    return (base + np.cumsum(lengths) - lengths).astype("<u8")


def _put(path: Path, place: int, array: np.ndarray) -> None:
    # Written and not mapped: a full disk is an error then, not the end of the process.
    with open(path, "r+b") as file:
        file.seek(place)
        file.write(array.tobytes())


def write_json(path: Path, content: Any) -> None:
    """Aside and renamed: if the file is there, it is whole."""
    aside = path.with_name(f"{path.name}.aside")
    aside.write_text(json.dumps(content, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")
    os.replace(aside, path)
