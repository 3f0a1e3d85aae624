"""Parts are compared. In: what was staged of each. Out: which documents and paragraphs stay, and what each part writes.

The first of several equal ones stays, in the order of the sources. Memory grows by some bytes a document and a
paragraph; hashes are looked at in as many rounds as it takes to hold few of them at a time.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bertsmith.data.corpus.minhash import BAND, PLACES, band_keys, estimate
from bertsmith.data.corpus.settings import CorpusSettings
from bertsmith.data.corpus.staging import read_staged

ROUND = 1 << 24  # hashes held at a time
LONG = 80  # characters from which a paragraph is one of its own; a shorter line may stand in several documents
STAYS, DUPLICATE, NEAR, BOILERPLATE, PARAGRAPH, NOTHING_LEFT = range(6)
NAMES = {
    DUPLICATE: "duplicate", NEAR: "near duplicate", BOILERPLATE: "boilerplate", PARAGRAPH: "duplicate paragraph",
    NOTHING_LEFT: "nothing left",
}  # fmt: skip


@dataclass(frozen=True)
class Verdicts:
    """For every document and paragraph of all parts in a row, why it goes; 0: it stays."""

    documents: np.ndarray  # uint8
    paragraphs: np.ndarray  # uint8
    document_bounds: np.ndarray  # where each part's begin
    paragraph_bounds: np.ndarray
    held_out: np.ndarray  # bool, a document

    def of(self, part: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        documents = slice(self.document_bounds[part], self.document_bounds[part + 1])
        paragraphs = slice(self.paragraph_bounds[part], self.paragraph_bounds[part + 1])
        return self.documents[documents], self.paragraphs[paragraphs], self.held_out[documents]


def compare(folders: Sequence[Path], settings: CorpusSettings) -> Verdicts:
    document_bounds = _bounds(folders, "documents")
    paragraph_bounds = _bounds(folders, "paragraphs")
    documents = np.zeros(document_bounds[-1], np.uint8)
    paragraphs = np.zeros(paragraph_bounds[-1], np.uint8)
    held_out = np.zeros(document_bounds[-1], bool)
    limit = np.uint64(min(int(settings.held_out * 2**64), 2**64 - 1))
    for part, folder in enumerate(folders):
        hashes = read_staged(folder, "document_hashes")
        held_out[document_bounds[part] : document_bounds[part + 1]] = hashes < limit
    if settings.duplicates:
        for members, _ in _groups(folders, "document_hashes", document_bounds):
            documents[members[1:]] = DUPLICATE
    if settings.near_duplicates:
        _mark_near(folders, settings.similarity, documents)
    if not settings.codes:
        _mark_paragraphs(folders, document_bounds, paragraph_bounds, settings, documents, paragraphs)
    return Verdicts(documents, paragraphs, document_bounds, paragraph_bounds, held_out)


def _bounds(folders: Sequence[Path], name: str) -> np.ndarray:
    return np.concatenate([[0], np.cumsum([len(read_staged(folder, name)) for folder in folders])]).astype(np.int64)


def _groups(folders: Sequence[Path], name: str, bounds: np.ndarray) -> Iterator[tuple[np.ndarray, int]]:
    """The places of each hash that occurs more than once, in order, and the hash."""
    rounds = max(1, -(-int(bounds[-1]) // ROUND))
    for turn in range(rounds):
        hashes, places = [np.empty(0, np.uint64)], [np.empty(0, np.int64)]
        for part, folder in enumerate(folders):
            here = read_staged(folder, name)
            chosen = np.flatnonzero(here % np.uint64(rounds) == turn) if rounds > 1 else np.arange(len(here))
            hashes.append(np.asarray(here[chosen]))
            places.append(bounds[part] + chosen)
        every, where = np.concatenate(hashes), np.concatenate(places)
        order = np.argsort(every, kind="stable")
        every, where = every[order], where[order]
        starts = np.flatnonzero(np.concatenate([[True], every[1:] != every[:-1]])) if len(every) else np.empty(0, int)
        ends = np.append(starts[1:], len(every))
        for number in np.flatnonzero(ends - starts > 1):
            yield where[starts[number] : ends[number]], int(every[starts[number]])


def _mark_near(folders: Sequence[Path], similarity: float, documents: np.ndarray) -> None:
    """A document goes where it is alike enough to one before it with which it shares a key."""
    signed = np.concatenate([read_staged(folder, "signed") for folder in folders] or [np.empty(0, bool)])
    rows = np.flatnonzero(signed)  # the place of each signature's document
    if not len(rows):
        return
    starts = np.concatenate([[0], np.cumsum([len(read_staged(folder, "signatures")) for folder in folders])])
    for band in range(PLACES // BAND):
        keys = np.concatenate([band_keys(read_staged(folder, "signatures"))[:, band] for folder in folders])
        candidates = np.flatnonzero(documents[rows] == STAYS)
        order = candidates[np.argsort(keys[candidates], kind="stable")]
        same = keys[order[1:]] == keys[order[:-1]]
        is_first = np.concatenate([[True], ~same])
        leader = order[np.maximum.accumulate(np.where(is_first, np.arange(len(order)), 0))] if len(order) else order
        before = np.concatenate([order[:1], order[:-1]])
        later = np.flatnonzero(~is_first)
        for others in (leader, before):  # the first with the key, and the one just before
            for block in range(0, len(later), ROUND >> 8):
                some = later[block : block + (ROUND >> 8)]
                left, right = (_signatures(folders, starts, which[some]) for which in (order, others))
                documents[rows[order[some[estimate(left, right) >= similarity]]]] = NEAR


def _signatures(folders: Sequence[Path], starts: np.ndarray, numbers: np.ndarray) -> np.ndarray:
    found = np.empty((len(numbers), PLACES), np.uint8)
    parts = np.searchsorted(starts, numbers, side="right") - 1
    for part in np.unique(parts):
        here = parts == part
        found[here] = read_staged(folders[part], "signatures")[numbers[here] - starts[part]]
    return found


def _mark_paragraphs(
    folders: Sequence[Path], document_bounds: np.ndarray, paragraph_bounds: np.ndarray, settings: CorpusSettings,
    documents: np.ndarray, paragraphs: np.ndarray,
) -> None:  # fmt: skip
    """Only among documents that stay; a document that loses all its paragraphs goes too."""
    owners = np.empty(paragraph_bounds[-1], np.int64)
    is_long, has_tokens = np.empty(paragraph_bounds[-1], bool), np.empty(paragraph_bounds[-1], bool)
    for part, folder in enumerate(folders):
        here = slice(paragraph_bounds[part], paragraph_bounds[part + 1])
        counts = np.asarray(read_staged(folder, "documents"), np.int64)
        owners[here] = np.repeat(np.arange(document_bounds[part], document_bounds[part + 1]), counts)
        is_long[here] = np.asarray(read_staged(folder, "paragraph_sizes")) >= LONG
        tokens = np.concatenate([[0], np.cumsum(read_staged(folder, "sentences"), dtype=np.int64)])
        has_tokens[here] = np.diff(tokens[np.cumsum(read_staged(folder, "paragraphs"), dtype=np.int64)], prepend=0) > 0
    # What people say ("Why not?") stands in some of any thousand documents.
    often = max(settings.boilerplate, len(documents) // 1000)
    if settings.filters or settings.duplicates:
        for members, _ in _groups(folders, "paragraph_hashes", paragraph_bounds):
            members = members[documents[owners[members]] == STAYS]
            if len(members) < 2:
                continue
            if is_long[members[0]]:
                if settings.duplicates:
                    paragraphs[members[1:]] = PARAGRAPH
            elif settings.filters and len(np.unique(owners[members])) >= often:
                paragraphs[members] = BOILERPLATE
    left = np.bincount(owners[(paragraphs == STAYS) & has_tokens], minlength=len(documents))
    documents[(left == 0) & (documents == STAYS)] = NOTHING_LEFT
