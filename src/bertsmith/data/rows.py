"""Rows of a corpus as a model reads them. In: where their text lies in the corpus. Out: ids laid end to end.

`Spans` says where the text of many rows lies, `Layout` where special tokens stand around it (as the tokenizer that made
the corpus has it: [CLS] A [SEP] B [SEP], <s> A </s></s> B </s>, …), `Rows` is what comes of both.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bertsmith.data.shards import Corpus
from bertsmith.errors import BertsmithError
from bertsmith.text.templates import Slot, Template

Array = np.ndarray[Any, Any]
NO_PAIR = -100  # the label of a row that has no second segment, and of filler


@dataclass(frozen=True)
class Rows:
    """What one pass reads; a row's tokens lie between the bounds that `lengths` gives."""

    ids: Array  # (tokens,) int64
    segments: Array  # (tokens,) int64
    lengths: tuple[int, ...]
    pairs: Array | None  # (rows,) int64: 0 where B follows A, 1 where it does not, -100 where nothing is asked
    ordinary: int  # tokens that are no specials and no filler
    cut: int = 0  # tokens of the last row that had no room


@dataclass(frozen=True)
class Spans:
    """Where the text of rows lies: an entry a row. A row of one segment has a second one of no tokens."""

    first: Array  # (rows,) int64: where the first segment begins in the corpus
    first_size: Array
    second: Array
    second_size: Array
    labels: Array

    @classmethod
    def single(cls, first: Array, size: Array) -> "Spans":
        nothing, label = (np.broadcast_to(np.int64(value), first.shape) for value in (0, NO_PAIR))
        return cls(first, size, nothing, nothing, label)

    @classmethod
    def join(cls, parts: Sequence["Spans"]) -> "Spans":
        return parts[0] if len(parts) == 1 else cls(*(np.concatenate(column) for column in zip(*parts, strict=True)))

    def take(self, which: Array | slice) -> "Spans":
        return Spans(*(column[which] for column in self))

    def __iter__(self) -> Iterator[Array]:
        return iter((self.first, self.first_size, self.second, self.second_size, self.labels))

    def __len__(self) -> int:
        return len(self.first)


def fit(first: Array, second: Array, room: Array | int) -> tuple[Array, Array]:
    """The sizes of two segments once the longer has lost tokens, one at a time, until both fit into `room`.

    What BERT's `truncate_seq_pair` ends with: of two equals the second loses first.
    """
    half = -(-np.asarray(room) // 2)
    kept = np.minimum(first, np.maximum(half, room - second))
    return kept, np.minimum(second, room - kept)


class Layout:
    """Where special tokens stand around one segment and around two."""

    def __init__(self, corpus: Corpus) -> None:
        tokenizer = corpus.tokenizer()
        template = tokenizer.template if tokenizer is not None else _template_of(corpus)
        self.specials = np.array([template.specials(paired=False), template.specials(paired=True)])
        self.pad = corpus.specials.get("pad", corpus.specials.get("eos", 0))
        self.is_special = np.zeros(corpus.vocabulary, bool)
        self.is_special[[*corpus.header.get("special_ids", ()), *corpus.specials.values()]] = True
        slots = (template.single, template.pair)
        widest = max(map(len, slots))
        # (2, slots): of a row of one segment, of a row of two; -1 in `_holds` is a special token, -2 is nothing.
        self._holds = np.full((2, widest), -2)
        self._ids, self._segments = np.zeros((2, widest), np.int64), np.zeros((2, widest), np.int64)
        for kind, places in enumerate(slots):
            for place, slot in enumerate(places):
                self._holds[kind, place] = -1 if slot.sequence is None else slot.sequence
                self._ids[kind, place], self._segments[kind, place] = slot.id, slot.segment

    def room(self, length: int, paired: bool) -> int:
        """How many tokens of text fit into a row of this length."""
        taken = int(self.specials[int(paired)])
        if length < taken + 2:
            raise BertsmithError(f"rows of {length} tokens have no room for text beside {taken} special ones.")
        return length - taken

    def sizes(self, spans: Spans) -> Array:
        """(rows,): how many tokens each row has, special ones among them."""
        return spans.first_size + spans.second_size + self.specials[(spans.second_size > 0).astype(np.int64)]

    def cut(self, spans: Spans, size: int) -> Spans | None:
        """One row made to have at most `size` tokens; None: nothing of it would be left."""
        paired = int(spans.second_size[0] > 0)
        room = size - int(self.specials[paired])
        if room < 1 + paired:
            return None
        first, second = fit(spans.first_size, spans.second_size, room)
        return Spans(spans.first, first, spans.second, second, spans.labels)

    def lay(self, tokens: Array, spans: Spans, total: int, longest: int, paired: bool, cut: int = 0) -> Rows:
        """These rows end to end, and filler behind them up to `total` tokens, in rows of at most `longest`."""
        kinds = (spans.second_size > 0).astype(np.int64)
        holds = self._holds[kinds]  # (rows, slots)
        sizes = np.where(holds == -1, 1, 0)
        sources = np.zeros_like(sizes)  # a special token is read from place 0 and then written over
        for sequence, begin, size in ((0, spans.first, spans.first_size), (1, spans.second, spans.second_size)):
            held = holds == sequence
            sizes = np.where(held, size[:, None], sizes)
            sources = np.where(held, begin[:, None], sources)
        flat = sizes.ravel()
        places = np.cumsum(flat) - flat  # where each slot begins in the pass
        used = int(flat.sum())
        ids = np.full(total, self.pad, np.int64)
        segments = np.zeros(total, np.int64)
        ids[:used] = tokens[np.repeat(sources.ravel() - places, flat) + np.arange(used)]
        is_special = (holds == -1).ravel()
        ids[places[is_special]] = self._ids[kinds].ravel()[is_special]
        segments[:used] = np.repeat(self._segments[kinds].ravel(), flat)
        fillers = [longest] * ((total - used) // longest) + [(total - used) % longest] * ((total - used) % longest > 0)
        lengths = (*sizes.sum(axis=1).tolist(), *fillers)
        labels = np.concatenate([spans.labels, np.full(len(fillers), NO_PAIR)]) if paired else None
        return Rows(ids, segments, lengths, labels, used - int(self.is_special[ids[:used]].sum()), cut)


def _template_of(corpus: Corpus) -> Template:
    """Of codes, which no tokenizer made: as BERT has it."""
    before, behind = (_special(corpus, role) for role in ("cls", "sep"))
    start, end = Slot(None, 0, before), Slot(None, 0, behind)
    return Template((start, Slot(0, 0), end), (start, Slot(0, 0), end, Slot(1, 1), Slot(None, 1, behind)))


def _special(corpus: Corpus, role: str) -> int:
    if role not in corpus.specials:
        raise BertsmithError(f"{corpus.folder} names no special token for the role {role!r}; build the corpus again.")
    return corpus.specials[role]
