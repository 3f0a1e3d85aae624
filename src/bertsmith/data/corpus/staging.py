"""One part of the sources is cleaned, cut and tokenized. In: a part and the settings. Out: a folder of arrays.

The arrays describe what is left of the part: tokens, how they group to sentences, paragraphs and documents, and hashes
by which the parts are compared afterwards. The folder is written aside and renamed: if it is there, it is whole.
"""

import json
import os
import shutil
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from hashlib import blake2b
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from bertsmith.data.corpus.codes import read_codes
from bertsmith.data.corpus.dropping import Reasons
from bertsmith.data.corpus.excluding import Excluded
from bertsmith.data.corpus.minhash import LEAST, PLACES, repeated_share, shingles, sign
from bertsmith.data.corpus.settings import CorpusSettings
from bertsmith.data.shards import TOKENIZER, choose_dtype
from bertsmith.text.chunks import Encoder
from bertsmith.text.normalizing import cut_paragraphs, normalize_text
from bertsmith.text.sentences import sentence_ends
from bertsmith.text.sources import Part, read_part
from bertsmith.text.tokenizer import Tokenizer
from bertsmith.text.wide import count_wide

TOLD = "told.json"
GRAMS = "excluded"
KINDS = {
    name: np.dtype(kind)
    for name, kind in (
        ("sentences", "<u4"), ("paragraphs", "<u4"), ("documents", "<u4"), ("paragraph_sizes", "<u4"),
        ("paragraph_hashes", "<u8"), ("document_hashes", "<u8"), ("signed", "?"), ("signatures", "u1"),
    )
}  # fmt: skip
CODES = np.dtype("<u4")  # of the tokens, where no tokenizer says how large they are
BLOCK = 1 << 20  # characters that are worked on at a time
UNKNOWN = 0.2  # share of a document's tokens from which on the tokenizer does not know its language


@dataclass(frozen=True)
class Job:
    """A part to stage; all that a process needs to know. The key changes with all that the result depends on."""

    key: str
    part: Part
    settings: CorpusSettings
    building: Path
    common: str = ""  # changes with the tokenizer, the excluded files and the settings

    @property
    def folder(self) -> Path:
        return self.building / "parts" / self.key


@dataclass
class Staged:
    """What is left of a part; its arrays are written as they come, so that a part may be of any size."""

    aside: Path
    dropped: Reasons = field(default_factory=Reasons)
    shared: dict[int, int] = field(default_factory=dict)  # excluded file -> paragraphs dropped for it
    documents: int = 0
    characters: int = 0
    size: int = 0
    cut: int = 0
    filled: int = 0  # documents of text that are one paragraph whose lines were filled to a width
    tokens: int = 0  # that stay, before parts are compared
    unknown: int = 0  # of them, those that say only that there was something

    def add(self, name: str, array: np.ndarray) -> None:
        with open(self.aside / f"{name}.bin", "ab") as file:
            file.write(np.ascontiguousarray(array, KINDS.get(name)).tobytes())


def stage(job: Job) -> None:
    """Does one part; one that is done already is left as it is."""
    if job.folder.exists():
        return
    begun, cpu = time.monotonic(), time.process_time()
    staged = Staged(job.folder.with_name(f"{job.folder.name}.{os.getpid()}.aside"))
    shutil.rmtree(staged.aside, ignore_errors=True)
    staged.aside.mkdir(parents=True)
    try:
        _stage_codes(job, staged) if job.settings.codes else _stage_text(job, staged)
        told = {
            "documents": staged.documents, "characters": staged.characters, "size": staged.size, "cut": staged.cut,
            "filled": staged.filled, "tokens": staged.tokens, "unknown": staged.unknown,
            "dropped": {reason: asdict(dropped) for reason, dropped in staged.dropped.items()},
            "shared": staged.shared, "seconds": time.monotonic() - begun, "cpu": time.process_time() - cpu,
        }  # fmt: skip
        (staged.aside / TOLD).write_text(json.dumps(told, ensure_ascii=False), encoding="utf-8")
        staged.aside.rename(job.folder)
    except BaseException:
        shutil.rmtree(staged.aside, ignore_errors=True)
        raise


def read_staged(folder: Path, name: str, tokens: np.dtype[Any] = CODES) -> np.ndarray:
    """An array of a staged part, mapped; `tokens` is the kind of the one that is called so."""
    path, kind = folder / f"{name}.bin", KINDS.get(name, tokens)
    if not path.exists() or path.stat().st_size == 0:
        return np.empty((0, PLACES) if name == "signatures" else 0, kind)
    array: np.ndarray = np.memmap(path, kind, "r")
    return array.reshape(-1, PLACES) if name == "signatures" else array


def _stage_codes(job: Job, staged: Staged) -> None:
    for codes, counts in read_codes(job.part, job.settings, staged):
        _add_rows(codes, counts, job.settings, staged)


def _stage_text(job: Job, staged: Staged) -> None:
    encoder, size, unknown = _encoder(str(job.building / TOKENIZER), job.common)
    excluded = _excluded(str(job.building / GRAMS), job.settings.gram, job.common)
    kind, most = choose_dtype(size), job.settings.most_tokens(size)
    for texts in _clean_blocks(job, staged, excluded):
        ends = [sentence_ends(text) for text in texts]
        ids, counts = encoder.encode(texts, ends)
        _add_texts(texts, ends, ids.astype(kind), counts, job.settings, most, unknown, staged)


def _clean_blocks(job: Job, staged: Staged, excluded: Excluded | None) -> Iterator[list[str]]:
    """Clean texts, their paragraphs on lines, in blocks of about a megabyte."""
    settings, block, waiting = job.settings, [], 0
    shortest = settings.shortest if settings.filters else 1
    for document in read_part(job.part, unit=settings.unit, field=settings.field, blank=True):
        text = normalize_text(document.text)
        if "\n" in text:
            paragraphs = cut_paragraphs(text)
            staged.filled += len(paragraphs) == 1 and "\n\n" not in text and job.part.source.kind == "text"
            text = "\n".join(paragraphs)
        staged.documents += 1
        staged.characters += len(text)
        staged.size += document.size
        staged.cut += document.is_cut
        if len(text) < shortest:
            staged.dropped["too short" if text else "empty"].add(text)
            continue
        block.append(text)
        waiting += len(text)
        if waiting >= BLOCK:
            yield _without_excluded(block, excluded, staged)
            block, waiting = [], 0
    yield _without_excluded(block, excluded, staged)


def _without_excluded(texts: list[str], excluded: Excluded | None, staged: Staged) -> list[str]:
    if excluded is None:
        return texts
    paragraphs = [text.split("\n") for text in texts]
    found = excluded.find(paragraphs)
    if not found:
        return texts
    kept, number = [], 0
    for text, some in zip(texts, paragraphs, strict=True):
        hit = [found.get(place) for place in range(number, number + len(some))]
        number += len(some)
        if all(file is None for file in hit):
            kept.append(text)
            continue
        for paragraph, file in zip(some, hit, strict=True):
            if file is not None:
                staged.dropped["excluded"].add(paragraph)
                staged.shared[file] = staged.shared.get(file, 0) + 1
        left = "\n".join(paragraph for paragraph, file in zip(some, hit, strict=True) if file is None)
        if left:
            kept.append(left)
        else:
            staged.dropped["nothing left"].add(text)
    return kept


def _add_texts(
    texts: list[str], ends: list[list[int]], ids: np.ndarray, counts: np.ndarray, settings: CorpusSettings,
    most: float, unknown: int | None, staged: Staged,
) -> None:  # fmt: skip
    """Filters whole documents by their tokens, and adds the rest; `unknown` is the id of what has no other."""
    if not texts:
        return
    sentences = np.fromiter(map(len, ends), np.int64, len(ends))
    lengths = np.add.reduceat(counts, np.cumsum(sentences) - sentences)
    unknowns = _count_unknown(ids, lengths, unknown)
    hashes, per_document = shingles(ids, lengths)
    keep = lengths > 0
    if settings.filters:
        widths = np.array([len(text) + 3 * count_wide(text) for text in texts])
        is_poor = (lengths > most * widths) | (unknowns > UNKNOWN * lengths)
        is_repetitive = (repeated_share(hashes, per_document) > settings.repetition) & (lengths >= LEAST)
        for reason, mask in (("poor fit", is_poor), ("repetition", is_repetitive & ~is_poor)):
            for number in np.flatnonzero(mask & keep):
                staged.dropped[reason].add(texts[number])
        keep &= ~(is_poor | is_repetitive)
    for number in np.flatnonzero(lengths == 0):
        staged.dropped["empty"].add(texts[number])
    left = np.flatnonzero(keep)
    cut = [cut_lines(texts[number], ends[number]) for number in left]
    paragraphs = [paragraph for some, _ in cut for paragraph in some]
    staged.tokens += int(lengths[keep].sum())
    staged.unknown += int(unknowns[keep].sum())
    staged.add("tokens", ids[np.repeat(keep, lengths)])
    staged.add("sentences", counts[np.repeat(keep, sentences)])
    staged.add("paragraphs", np.array([count for _, many in cut for count in many]))
    staged.add("paragraph_hashes", hash_texts(paragraphs))
    staged.add("paragraph_sizes", np.fromiter(map(len, paragraphs), np.uint32, len(paragraphs)))
    staged.add("documents", np.array([len(some) for some, _ in cut]))
    staged.add("document_hashes", hash_texts([texts[number] for number in left]))
    _add_signatures(hashes, per_document, lengths, keep, settings, staged)


def _count_unknown(ids: np.ndarray, lengths: np.ndarray, unknown: int | None) -> np.ndarray:
    """(documents,): how many of each one's tokens are that one."""
    if unknown is None:
        return np.zeros_like(lengths)
    found = np.flatnonzero(ids == unknown)
    return np.bincount(np.searchsorted(np.cumsum(lengths), found, side="right"), minlength=len(lengths))


def cut_lines(text: str, ends: list[int]) -> tuple[list[str], list[int]]:
    """A document's paragraphs, and how many sentences each has."""
    lines = text.split("\n")
    if len(lines) == 1:
        return lines, [len(ends)]
    counts, stop, place = [], 0, 0
    for line in lines[:-1]:
        stop += len(line) + 1
        first = place
        while ends[place] < stop:
            place += 1
        place += 1
        counts.append(place - first)
    return lines, [*counts, len(ends) - place]


def hash_texts(texts: list[str]) -> np.ndarray:
    raw = b"".join(blake2b(text.encode("utf-8", "replace"), digest_size=8).digest() for text in texts)
    return np.frombuffer(raw, "<u8")


def _add_rows(ids: np.ndarray, lengths: np.ndarray, settings: CorpusSettings, staged: Staged) -> None:
    """Codes: a row is a document of one paragraph and one sentence."""
    ones = np.ones(len(lengths), np.uint32)
    bounds = [0, *np.cumsum(lengths).tolist()]
    raw = ids.astype("<u4")
    digests = [blake2b(raw[a:b].tobytes(), digest_size=8).digest() for a, b in pairwise(bounds)]
    hashes = np.frombuffer(b"".join(digests), "<u8")
    for name, array in (
        ("tokens", raw), ("sentences", lengths), ("paragraphs", ones), ("paragraph_hashes", hashes),
        ("paragraph_sizes", lengths), ("documents", ones), ("document_hashes", hashes),
    ):  # fmt: skip
        staged.add(name, array)
    grams, per_document = shingles(ids, lengths)
    _add_signatures(grams, per_document, lengths, np.ones(len(lengths), bool), settings, staged)


def _add_signatures(
    hashes: np.ndarray, per_document: np.ndarray, lengths: np.ndarray, keep: np.ndarray, settings: CorpusSettings,
    staged: Staged,
) -> None:  # fmt: skip
    """Of documents that are long enough; `signed` says which of those that are kept."""
    if not settings.near_duplicates:
        return
    wanted = keep & (lengths >= LEAST)
    staged.add("signed", wanted[keep])
    staged.add("signatures", sign(hashes[np.repeat(wanted, per_document)], per_document[wanted]))


@lru_cache(maxsize=1)
def _encoder(folder: str, common: str) -> tuple[Encoder, int, int | None]:
    """One for all parts that a process does, so that what it learnt of words stays.

    `common` tells builds apart: the next one into the same folder has another tokenizer in its place.
    """
    tokenizer = Tokenizer.from_folder(folder)
    return Encoder(tokenizer), tokenizer.size, tokenizer.unk_id


@lru_cache(maxsize=1)
def _excluded(folder: str, size: int, common: str) -> Excluded | None:
    return Excluded.load(Path(folder), size) if Path(folder).exists() else None
