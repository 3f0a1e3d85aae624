"""Uses of a word in texts, and what a model makes of each. In: a word, sentences. Out: spans, and vectors by layer.

A use's vector is the mean of the states of its pieces. The word is matched whole, by the characters of the text, so
that "bank" is neither found in "banker" nor missed where a tokenizer cuts it.
"""

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import Any

import numpy as np
import torch
from torch import Tensor

from bertsmith.data.batch import Batch
from bertsmith.errors import BertsmithError
from bertsmith.inspection.subject import Subject
from bertsmith.models.network import Network
from bertsmith.tasks.embed import choose_layers
from bertsmith.tasks.result import check_finite
from bertsmith.tasks.task import Row, Task
from bertsmith.tasks.texts import is_iterable
from bertsmith.text.encoding import Encoding
from bertsmith.text.tokenizer import Tokenizer

Array = np.ndarray[Any, Any]
Span = tuple[int, int]
# Scripts without spaces (Thai to Myanmar, Khmer, Chinese, Japanese): there a neighbour may be of another word.
_UNSPACED = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]")


@dataclass(frozen=True)
class Use:
    """A word in a text, from the character `start` to `end`."""

    text: str
    start: int
    end: int
    label: str | None = None
    number: int = 0  # of the sentence among those given, from 0
    where: str | None = None  # the file and place it was found at, if it was not given
    pieces: tuple[str, ...] = ()


@dataclass
class WordVectors:
    word: str
    uses: list[Use]
    layers: list[int]
    vectors: Array  # (uses, layers, width), float32
    truncated: int  # tokens of long sentences that were out of reach of the use asked about


class WordPattern:
    """Finds a word whole; `is_folded`: whatever its case."""

    def __init__(self, word: str, is_folded: bool) -> None:
        if not isinstance(word, str) or not word.strip():
            raise BertsmithError("word is empty; name the word to look at.")
        forms = dict.fromkeys([word, unicodedata.normalize("NFC", word), unicodedata.normalize("NFD", word)])
        spelled = "|".join(r"\s+".join(map(re.escape, form.split())) for form in forms)
        self.word = word.strip()
        self._pattern = re.compile(spelled, re.IGNORECASE if is_folded else 0)

    @classmethod
    def of(cls, word: str, tokenizer: Tokenizer) -> "WordPattern":
        """As the tokenizer reads the word: without case where it takes upper and lower case for the same."""
        given = word if isinstance(word, str) else ""
        low, high = (tokenizer.encode(one, specials=False).ids for one in (given.lower(), given.upper()))
        return cls(word, low == high)

    def find(self, text: str) -> list[Span]:
        spans, place = [], 0
        while (found := self._pattern.search(text, place)) is not None:
            start, end = found.span()
            if _is_whole(text, start, end):
                spans.append((start, end))
            place = end if spans and spans[-1] == (start, end) else start + 1
        return spans


def _is_whole(text: str, start: int, end: int) -> bool:
    before, after = text[start - 1 : start], text[end : end + 1]
    if after and unicodedata.category(after).startswith("M"):  # an accent of the last letter
        return False
    return not _joins(before, text[start]) and not _joins(text[end - 1], after)


def _joins(left: str, right: str) -> bool:
    """Whether two neighbours belong to one word."""
    if not left or not right or _UNSPACED.match(left) or _UNSPACED.match(right):
        return False
    return all(one.isalnum() or one == "_" or unicodedata.category(one).startswith("M") for one in (left, right))


def list_sentences(given: Any) -> list[tuple[str, str | None]]:
    """Sentences with their labels: texts, or mappings with `text` (or `sentence`) and perhaps `label`."""
    if isinstance(given, (str, bytes, Mapping)) or not is_iterable(given):
        raise BertsmithError(f"sentences is a list of texts, not {type(given).__name__}.")
    found: list[tuple[str, str | None]] = []
    for number, one in enumerate(given, 1):
        text, label = one, None
        if isinstance(one, Mapping):
            text, label = one.get("text", one.get("sentence")), one.get("label")
        if not isinstance(text, str):
            raise BertsmithError(
                f"sentence {number} must be a text, or a mapping with a text and perhaps a label, not "
                f"{type(one).__name__}."
            )
        found.append((text, None if label is None else str(label)))
    return found


def find_uses(pattern: WordPattern, sentences: Sequence[tuple[str, str | None]]) -> list[Use]:
    """Every use, in order; a sentence without one is an error."""
    uses = []
    for number, (text, label) in enumerate(sentences):
        spans = pattern.find(text)
        if not spans:
            shown = text if len(text) <= 60 else f"{text[:57]}…"
            cased = re.search(re.escape(pattern.word), text, re.IGNORECASE) is not None
            why = " as a word of its own in this spelling and case" if cased else ""
            raise BertsmithError(
                f"sentence {number + 1} ({shown!r}) does not hold {pattern.word!r}{why}; leave it out or name another "
                f"word."
            )
        uses += [Use(text, start, end, label, number) for start, end in spans]
    return uses


@dataclass
class UseRow(Row):
    groups: list[list[int]] = field(default_factory=list)  # the places of each use's pieces in the row
    owners: list[int] = field(default_factory=list)  # the number of each use


class UseStates(Task[Any, Any]):
    """Of each row the mean state of each use in it at some layers, (uses, layers, width)."""

    name = "senses"

    def __init__(self, model: Subject, layers: Sequence[int]) -> None:
        super().__init__(model.tokenizer, model.limit, "windows")
        self.layers = layers

    def scores(self, network: Network, batch: Batch, rows: Sequence[Row]) -> list[Tensor]:
        asked = [row for row in rows if isinstance(row, UseRow)]
        starts = accumulate(batch.lengths, initial=0)
        groups = [[start + i for i in group] for start, row in zip(starts, asked, strict=False) for group in row.groups]
        device = batch.ids.device
        at = torch.tensor([i for group in groups for i in group], device=device)
        counts = torch.tensor([len(group) for group in groups], device=device)
        owners = torch.repeat_interleave(torch.arange(len(groups), device=device), counts)
        means = {}
        for layer, x in enumerate(network.states(batch)):
            if layer in self.layers:
                sums = torch.zeros(len(groups), x.shape[1], device=device).index_add(0, owners, x[at].float())
                means[layer] = sums / counts[:, None]
        found = torch.stack([means[layer] for layer in self.layers], dim=1).cpu()  # (uses, layers, width)
        return list(found.split([len(row.groups) for row in asked]))


def read_uses(model: Subject, uses: Sequence[Use], layers: Sequence[int]) -> tuple[list[Use], Array, int]:
    """The uses with their pieces, their vectors (uses, layers, width), and how many tokens none of them could see."""
    rows: list[UseRow] = []
    known = list(uses)
    by_text: dict[str, list[int]] = {}
    for i, use in enumerate(uses):
        by_text.setdefault(use.text, []).append(i)
    for (text, numbers), whole in zip(by_text.items(), model.tokenizer.encode_many(list(by_text)), strict=True):
        for row, encoding in _lay_rows(model, text, whole, [(i, uses[i]) for i in numbers]):
            rows.append(row)
            for i, group in zip(row.owners, row.groups, strict=True):
                known[i] = replace(uses[i], pieces=tuple(encoding.pieces[place] for place in group))
    vectors = np.zeros((len(uses), len(layers), model.checkpoint.config.width), np.float32)
    for row, found in zip(rows, model.predictor.run(UseStates(model, layers), rows), strict=True):
        vectors[row.owners] = found.numpy()
    check_finite(vectors)
    return known, vectors, sum(row.dropped for row in rows)


def _lay_rows(
    model: Subject, text: str, whole: Encoding, uses: Sequence[tuple[int, Use]]
) -> list[tuple[UseRow, Encoding]]:
    """The row of a text; of one that is too long the windows in which its uses stand most central."""
    windows = [whole]
    if len(whole) > model.limit:
        room = model.limit - model.tokenizer.template.specials(paired=False)
        windows = model.tokenizer.windows(text, length=model.limit, overlap=room // 2)
    chosen: dict[int, UseRow] = {}
    for i, use in uses:
        places = [_find_pieces(window, use) for window in windows]
        longest = max(map(len, places))
        if not longest:
            raise BertsmithError(f"the tokenizer leaves nothing of {use.text[use.start : use.end]!r} in {text[:60]!r}.")
        centred = [  # a window that cuts the use in two has fewer of its pieces
            (min(group[0], len(window) - 1 - group[-1]), -number)
            for number, (window, group) in enumerate(zip(windows, places, strict=True))
            if len(group) == longest
        ]
        number = -max(centred)[1]
        window = windows[number]
        row = chosen.setdefault(number, UseRow(window.ids, window.segments, dropped=len(whole) - len(window)))
        row.groups.append(places[number])
        row.owners.append(i)
    return [(row, windows[number]) for number, row in chosen.items()]


def _find_pieces(encoding: Encoding, use: Use) -> list[int]:
    """The places of the pieces that hold a character of the use."""
    return [i for i, (start, end) in enumerate(encoding.offsets) if start < use.end and end > use.start]


def word_vectors(
    model: Subject, word: str, sentences: Sequence[Any], *, layers: Sequence[int] | None = None
) -> WordVectors:
    """A vector for every use of a word at every layer, or at these; 0 is the embedding, -1 the last.

    Sentences are texts, or mappings with a `text` and perhaps a `label`.
    """
    chosen = choose_layers("all" if layers is None else layers, model.checkpoint.config.depth + 1)
    assert chosen is not None
    pattern = WordPattern.of(word, model.tokenizer)
    uses, vectors, truncated = read_uses(model, find_uses(pattern, list_sentences(sentences)), chosen)
    return WordVectors(pattern.word, uses, chosen, vectors, truncated)
