"""What a model of codes knows of them: codes of held-out rows guessed, by how frequent they are, and pseudo-perplexity.

In: the held-out part of a corpus of codes, which no tokenizer made and so no text can ask for. Out: for a sample of
places, each hidden alone, whether the first guess is right and how likely was what stood there.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
import torch
from torch import Tensor

from bertsmith.data.batch import Batch
from bertsmith.data.shards import Corpus
from bertsmith.errors import BertsmithError
from bertsmith.evaluation.masked_accuracy import BLOCK, Guess, tell_bands, tell_perplexity, tell_share
from bertsmith.models.network import Network
from bertsmith.tasks.likelihood import AT_ONCE
from bertsmith.tasks.measures import Array
from bertsmith.tasks.predicting import Predictor
from bertsmith.tasks.result import NOT_FINITE
from bertsmith.tasks.task import Row, Task

AROUND = 2  # special ids of a row: one before the codes, one behind them


@dataclass(frozen=True)
class CodePlace:
    codes: Array  # as many of a row around the place as fit
    at: int


class GuessCode(Task[CodePlace, tuple[bool, float]]):
    """Whether the hidden code is the likeliest, and the logarithm of its probability."""

    name = "guess"
    head = "mask"

    def __init__(self, specials: dict[str, int]) -> None:
        self.before, self.behind, self.mask = (specials[role] for role in ("cls", "sep", "mask"))

    def rows(self, examples: Sequence[CodePlace]) -> list[list[Row]]:
        return [[self._hide(example)] for example in examples]

    def _hide(self, place: CodePlace) -> Row:
        ids = [self.before, *place.codes.tolist(), self.behind]
        at = place.at + 1
        wanted, ids[at] = ids[at], self.mask
        return Row(ids, [0] * len(ids), at=[at], gold=wanted)

    def scores(self, network: Network, batch: Batch, rows: Sequence[Row]) -> list[Tensor]:
        assert self.head is not None
        at = torch.tensor([row.at[0] for row in rows], device=batch.ids.device) + batch.firsts
        wanted = torch.tensor([row.gold for row in rows], device=batch.ids.device)
        hidden = network(batch.wanting(at))
        found = []
        for places, codes in zip(at.split(AT_ONCE), wanted.split(AT_ONCE), strict=True):
            logits = network.score(hidden, batch, self.head, places).float()
            chances = logits.log_softmax(dim=-1).gather(1, codes[:, None])[:, 0]
            found.append(torch.stack([logits.argmax(dim=-1) == codes, chances], dim=1))
        return list(torch.cat(found).cpu())

    def answer(self, example: CodePlace, rows: Sequence[Row], scores: Sequence[Tensor]) -> tuple[bool, float]:
        is_right, chance = scores[0].tolist()
        return bool(is_right), chance


def measure_codes(predictor: Predictor, corpus: Corpus, length: int, samples: int, seed: int) -> dict[str, Any]:
    """What `evaluate_masked` and `evaluate_perplexity` tell of a corpus of codes."""
    if not len(corpus.tokens):
        raise BertsmithError(f"{corpus.folder} holds no codes apart; build it anew (corpus build --held-out).")
    total = len(corpus.tokens)
    drawn = np.sort(np.random.default_rng([seed, 0]).choice(total, min(samples, total), replace=False))
    task, waiting = GuessCode(corpus.specials), _find_places(corpus, drawn, length - AROUND)
    found: list[tuple[bool, float]] = []
    while block := list(islice(waiting, BLOCK)):
        found += predictor.predict(task, block)
    chances = np.array([(chance, 1.0, 0.0) for _, chance in found])
    if not np.isfinite(chances).all():
        raise BertsmithError(NOT_FINITE)
    guesses = [Guess(str(code), right) for code, (right, _) in zip(corpus.tokens[drawn].tolist(), found, strict=True)]
    return {
        "documents": len(corpus), "codes": total, "seed": seed, "samples": len(found), "is_whole": len(found) == total,
        "log_likelihood": float(chances[:, 0].sum()), "perplexity": tell_perplexity(chances),
        "accuracy": {"all": tell_share(guesses)}, "bands": list(tell_bands(guesses, rank_codes(corpus))),
    }  # fmt: skip


def _find_places(corpus: Corpus, drawn: Array, room: int) -> Iterator[CodePlace]:
    """Each place with its row, or with as much of it on both sides as fits."""
    for place in drawn.tolist():
        number = int(np.searchsorted(corpus.documents, place, side="right")) - 1
        row, at = corpus.document(number), place - int(corpus.documents[number])
        start = min(max(at - room // 2, 0), max(len(row) - room, 0))
        yield CodePlace(row[start : start + room], at - start)


def rank_codes(held_out: Corpus) -> dict[str, int]:
    """Code -> its place by frequency in what was trained on, from 1; those of equal frequency by their number."""
    tokens = Corpus.open(held_out.folder).tokens
    codes, counts = np.unique(tokens, return_counts=True)
    order = np.argsort(-counts, kind="stable")
    return {str(code): rank for rank, code in enumerate(codes[order].tolist(), 1)}
