"""Fill the masks of a text: each alone, all of them together (fill_joint.py), or with words to choose from.

A target of several pieces is a chain: as many masks as it has pieces, each piece scored with those before it in place.

Rows that are the same to the encoder are read once, whatever is asked of them: a text of many masks is one row, or a
few windows. The probabilities for the whole vocabulary are reduced to what is wanted of them as soon as they are there:
many texts with a few masks each would fill the memory with them.
"""

import math
from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence
from itertools import accumulate
from typing import Any

import torch
from torch import Tensor

from bertsmith.data.batch import Batch
from bertsmith.errors import BertsmithError
from bertsmith.models.network import Network
from bertsmith.tasks.fill_joint import BEAMS, Filling, fill_together
from bertsmith.tasks.masks import Mask, MaskedText, MaskRow, SharedRow, Talk, ask_rows, find_masks, find_spans
from bertsmith.tasks.result import Result, check_finite
from bertsmith.tasks.spelling import Span, spell, write
from bertsmith.tasks.task import Row, Task
from bertsmith.tasks.texts import is_iterable, take_count
from bertsmith.text.tokenizer import Tokenizer

AT_ONCE = 1024  # masks whose whole vocabulary is in memory
Words = dict[tuple[int, str], list[int]]  # (number of a mask, target) -> the target's pieces there


class Fill(Task[str, Result]):
    name = "fill"
    head = "mask"

    def __init__(
        self, tokenizer: Tokenizer, limit: int, truncate: str, top_k: int = 5, targets: Sequence[str] | None = None
    ) -> None:
        super().__init__(tokenizer, limit, truncate)
        self.top_k = take_count("top_k", top_k)
        self.targets = None if targets is None else _list_targets(targets)

    @property
    def alike(self) -> Hashable:
        return type(self), self.targets is None  # the likeliest pieces, or those of words

    def rows(self, examples: Sequence[str]) -> list[list[Row]]:
        return [[] for _ in examples]  # `talk` makes them: they depend on the targets' pieces

    def talk(self, example: str, rows: list[Row]) -> Talk:
        whole = self.tokenizer.encode(example)
        spans = find_spans(self.tokenizer, whole)
        words = self._spell(example, spans)
        spare = max((len(pieces) for pieces in words.values()), default=1) - 1
        masked = find_masks(self.tokenizer, example, whole, spans, self.limit - spare, self.truncate)
        if self.targets is not None:
            answers, joint = (yield from self._choose(masked, words)), None
        else:
            is_joint = len(masked.masks) > 1
            best = max(self.top_k, BEAMS) if is_joint else self.top_k  # they also begin the search
            scores = yield from ask_rows([masked.row(mask, {}, best) for mask in masked.masks])
            answers = [self._best(masked, mask, score) for mask, score in zip(masked.masks, scores, strict=True)]
            found = (yield from fill_together(masked, scores, self.top_k)) if is_joint else ()
            joint = [self._write(masked, filling) for filling in found] or None
        return Result(answers if len(answers) > 1 else answers[0], masked.dropped, joint)

    def scores(self, network: Network, batch: Batch, rows: Sequence[Row]) -> list[Tensor]:
        """What is wanted of each row, (2, pieces): the log-probabilities, and the ids that they belong to."""
        shared = [row for row in rows if isinstance(row, SharedRow)]
        asks = [ask for row in shared for ask in row.asks]
        starts = accumulate(batch.lengths, initial=0)
        places = [start + place for start, row in zip(starts, shared, strict=False) for place in row.at]
        at, found = torch.tensor(places, device=batch.ids.device), []
        hidden = network(batch.wanting(at.unique()))
        for start in range(0, len(asks), AT_ONCE):
            chances = network.score(hidden, batch, self.head, at[start : start + AT_ONCE]).float().log_softmax(dim=-1)
            found += keep_wanted(chances, asks[start : start + AT_ONCE])
        kept = iter(found)
        return [torch.cat([next(kept) for _ in row.asks], dim=1) for row in shared]

    def _best(self, masked: MaskedText, mask: Mask, score: Tensor) -> list[dict[str, Any]]:
        return [
            {
                "sequence": write(self.tokenizer, masked.text, [(mask.span, id)]),
                "score": math.exp(chance),
                "token": id,
                "token_str": self.tokenizer.decode([id], skip_specials=False),
            }
            for chance, id in _list_pieces(score)[: self.top_k]
        ]

    def _write(self, masked: MaskedText, filling: Filling) -> dict[str, Any]:
        spans = [mask.span for mask in masked.masks]
        return {
            "sequence": write(self.tokenizer, masked.text, list(zip(spans, filling.ids, strict=True))),
            "score": math.exp(filling.log_chance),
            "tokens": list(filling.ids),
            "token_strs": [self.tokenizer.decode([id], skip_specials=False) for id in filling.ids],
        }

    def _choose(self, masked: MaskedText, words: Words) -> Talk:
        """Each mask's targets; all pieces of all words are asked for in one round, each beginning of a word once."""
        assert self.targets is not None and self.tokenizer.mask_id is not None
        asked: dict[tuple[int, int, tuple[int, ...]], list[tuple[int, str]]] = defaultdict(list)
        for key, pieces in words.items():
            for known in range(len(pieces)):
                asked[key[0], len(pieces), tuple(pieces[:known])].append(key)
        rows = [
            masked.row_of_pieces(
                masked.masks[number], size, before, [words[key][len(before)] for key in keys], self.tokenizer.mask_id
            )
            for (number, size, before), keys in asked.items()
        ]
        scores = yield from ask_rows(rows)
        chains = dict.fromkeys(words, 0.0)
        for keys, score in zip(asked.values(), scores, strict=True):
            for key, (chance, _) in zip(keys, _list_pieces(score), strict=True):
                chains[key] += chance
        found = [
            [self._target(masked.text, mask.span, t, words[n, t], chains[n, t]) for t in self.targets]
            for n, mask in enumerate(masked.masks)
        ]
        return [sorted(answers, key=lambda a: -a["score"]) for answers in found]

    def _target(self, text: str, mask: Span, word: str, pieces: list[int], log_chance: float) -> dict[str, Any]:
        return {
            "sequence": text[: mask[0]] + word.strip() + text[mask[1] :],
            "score": math.exp(log_chance),
            "score_per_piece": math.exp(log_chance / len(pieces)),
            "token": pieces[0] if len(pieces) == 1 else pieces,
            "token_str": self.tokenizer.decode(pieces, skip_specials=False),
        }

    def _spell(self, text: str, spans: Sequence[Span]) -> Words:
        room = self.limit - self.tokenizer.template.specials(paired=False)
        words = {(n, t): spell(self.tokenizer, text, s, t) for n, s in enumerate(spans) for t in self.targets or ()}
        for (_, target), pieces in words.items():
            if len(pieces) > room:
                raise BertsmithError(
                    f"the target {target[:40]!r} has {len(pieces)} pieces, but the model reads at most {room} at once."
                )
        return words


def keep_wanted(chances: Tensor, asked: Sequence[MaskRow]) -> list[Tensor]:
    """Of log-probabilities (rows, vocabulary) what each row wants: (2, pieces), the ids below their chances."""
    most = min(max(ask.best for ask in asked), chances.shape[1])
    if most:
        top = chances.topk(most)
        pairs = torch.stack([top.values.double(), top.indices.double()], dim=1).cpu()  # (rows, 2, most)
        return [pair[:, : row.best] for pair, row in zip(pairs, asked, strict=True)]
    counts = [len(row.wanted) for row in asked]
    ids = torch.tensor([id for row in asked for id in row.wanted], dtype=torch.long, device=chances.device)
    numbers = torch.arange(len(asked), device=chances.device).repeat_interleave(
        torch.tensor(counts, device=chances.device)
    )
    return list(torch.stack([chances[numbers, ids].double(), ids.double()]).cpu().split(counts, dim=1))


def _list_pieces(score: Tensor) -> list[tuple[float, int]]:
    """The log-probabilities and ids that `keep_wanted` left of a row."""
    check_finite(score.numpy())
    chances, ids = score.tolist()
    return list(zip(chances, map(int, ids), strict=True))


def _list_targets(targets: Any) -> list[str]:
    """Each target once; a single word may be given by itself."""
    if isinstance(targets, bytes | Mapping) or not is_iterable(targets):
        raise BertsmithError(f"targets is a list of words, not {type(targets).__name__}.")
    words = [targets] if isinstance(targets, str) else list(targets)
    if not words:
        raise BertsmithError("targets is empty; name at least one word, or leave it out.")
    for word in words:
        if not isinstance(word, str):
            raise BertsmithError(f"a target must be a string, not {type(word).__name__}.")
    return list(dict.fromkeys(words))
