"""A corpus on the disk. In: the folder that `bertsmith corpus build` wrote. Out: its tokens, mapped and not read.

    corpus = Corpus.open("corpus")                       # what training sees
    held_out = Corpus.open("corpus", split="held-out")   # what it never sees
    corpus.tokens[corpus.documents[7] : corpus.documents[8]]

`corpus.json` says what is in the folder; each split has three flat little-endian files: `tokens.bin` (uint16, or uint32
where the vocabulary needs it), `documents.bin` and `sentences.bin` (uint64: where each begins, and at last the end).
"""

import hashlib
import json
import sys
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from bertsmith.errors import BertsmithError
from bertsmith.text.tokenizer import Tokenizer

HEADER = "corpus.json"
FORMAT = 1
SPLITS = ("train", "held-out")
TOKENIZER = "tokenizer"  # the folder of the tokenizer that made the ids
TOKENIZER_FILE = "tokenizer.json"
FILES = {"tokens": "tokens.bin", "documents": "documents.bin", "sentences": "sentences.bin"}
_BOUND = np.dtype("<u8")


@dataclass(frozen=True)
class Corpus:
    """One split of a corpus. The arrays are maps of files: opening costs the same for any size."""

    folder: Path
    split: str
    header: dict[str, Any]
    tokens: np.ndarray  # (tokens,) uint16 or uint32
    documents: np.ndarray  # (documents + 1,) uint64: where each begins in `tokens`
    sentences: np.ndarray  # (sentences + 1,) uint64; the bounds of documents are among them

    @classmethod
    def open(cls, folder: str | Path, split: str = "train", tokenizer: Tokenizer | None = None) -> "Corpus":
        """`tokenizer`: the one that the reader means to use; a corpus that another one made is refused."""
        folder = Path(folder).expanduser()
        header = read_header(folder)
        if split not in SPLITS:
            raise BertsmithError(f"a corpus has no split {split!r}; use one of {', '.join(SPLITS)}.")
        if tokenizer is not None:
            refuse_other(folder, header, tokenizer)
        counts = header["splits"][split]
        kinds = {"tokens": np.dtype(header["dtype"]), "documents": _BOUND, "sentences": _BOUND}
        more = {"tokens": 0, "documents": 1, "sentences": 1}
        arrays = {name: _map(folder / split / FILES[name], kinds[name], counts[name] + more[name]) for name in FILES}
        return cls(folder, split, header, **arrays)

    @property
    def vocabulary(self) -> int:
        """How many rows an embedding needs: the largest id there may be plus one."""
        return int(self.header["vocabulary"])

    @property
    def specials(self) -> dict[str, int]:
        """The ids of the special tokens by role: cls, sep, pad, mask, unk."""
        return dict(self.header["specials"])

    def tokenizer(self) -> Tokenizer | None:
        """The tokenizer that made the ids; None: the corpus holds codes."""
        if self.header["tokenizer"] is None:
            return None
        found = Tokenizer.from_folder(self.folder / TOKENIZER)
        # Its file, not what a library makes of it, which may differ from version to version; older corpora tell less.
        written = self.header.get("tokenizer_sha256")
        path = self.folder / TOKENIZER / TOKENIZER_FILE
        if found.size != self.vocabulary or (written is not None and file_digest(path) != written):
            told = f"{self.folder / TOKENIZER} is not the tokenizer that made the ids of {self.folder}"
            raise BertsmithError(f"{told}; build the corpus again, or put its own tokenizer back.")
        return found

    def __len__(self) -> int:
        """How many documents."""
        return len(self.documents) - 1

    def document(self, number: int) -> np.ndarray:
        return self.tokens[int(self.documents[number]) : int(self.documents[number + 1])]

    @cached_property
    def first_sentences(self) -> np.ndarray:
        """(documents + 1,): the number of each document's first sentence; those of n end where n + 1 begins."""
        return np.searchsorted(self.sentences, self.documents)

    def verify(self) -> None:
        """Reads all of it once; an error says which file is not what was written."""
        for name, file in FILES.items():
            path = self.folder / self.split / file
            if file_digest(path) != self.header["splits"][self.split]["sha256"][name]:
                raise BertsmithError(f"{path} is not what was written: its checksum differs; build the corpus again.")


def read_header(folder: Path) -> dict[str, Any]:
    path = folder / HEADER
    if not path.is_file():
        what = "is not there" if not folder.exists() else f"is not a corpus (there is no {HEADER} in it)"
        raise BertsmithError(f"{folder} {what}; make one with `bertsmith corpus build`.")
    try:
        header = json.loads(path.read_text(encoding="utf-8"))
        if header["format"] != FORMAT:
            raise BertsmithError(f"{path} is of format {header['format']}, and this version reads {FORMAT}.")
        if not all(set(FILES) <= set(header["splits"][split]) for split in SPLITS):
            raise KeyError("splits")
        return dict(header)
    except (ValueError, KeyError, TypeError) as error:
        if isinstance(error, BertsmithError):
            raise
        raise BertsmithError(f"{path} is damaged ({error}); build the corpus again.") from error


def refuse_other(folder: Path, header: dict[str, Any], tokenizer: Tokenizer) -> None:
    """The ids of one tokenizer are noise to a model of another."""
    if header["tokenizer"] is None:
        raise BertsmithError(f"{folder} holds codes with a vocabulary of their own, which no tokenizer made.")
    if header["tokenizer"] != tokenizer_digest(tokenizer):
        raise BertsmithError(
            f"{folder} was made with another tokenizer (of {header['vocabulary']:,} ids; this has {tokenizer.size:,}); "
            f"use the one in {folder / TOKENIZER}, or build the corpus again with this one."
        )


def tokenizer_digest(tokenizer: Tokenizer) -> str:
    """The same for two tokenizers that give every text the same ids, wherever their files lie."""
    parts = json.loads(tokenizer._engine.to_str())
    kept = {name: parts.get(name) for name in ("model", "normalizer", "pre_tokenizer", "added_tokens")}
    return hashlib.sha256(json.dumps(kept, sort_keys=True).encode()).hexdigest()


def choose_dtype(vocabulary: int) -> np.dtype[Any]:
    return np.dtype("<u2") if vocabulary <= 1 << 16 else np.dtype("<u4")


def file_digest(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _map(path: Path, kind: np.dtype[Any], count: int) -> np.ndarray:
    try:
        size = path.stat().st_size
    except OSError as error:
        raise BertsmithError(f"{path} cannot be read: {error.strerror or error}; build the corpus again.") from error
    if size != count * kind.itemsize:
        raise BertsmithError(
            f"{path} has {size:,} bytes where {count * kind.itemsize:,} belong; copy it or build the corpus again."
        )
    if count == 0:  # nothing can be mapped
        return np.empty(0, kind)
    array: np.ndarray = np.memmap(path, kind, "r")
    return array if sys.byteorder == "little" else array.astype(kind.newbyteorder("="))
