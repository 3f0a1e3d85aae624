"""Fill the masks of a text: each alone, all of them together, or with words to choose from.

Together: a beam search from left to right, each mask filled in the light of those before it; the joint probability is
the product of the steps (the chain rule in reading order). A target of several pieces is a chain too: as many masks as
it has pieces, each piece scored with those before it in place.
"""

import math
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from bertsmith.errors import BertsmithError
from bertsmith.tasks.masks import Mask, MaskedText, find_masks, find_spans
from bertsmith.tasks.result import Result
from bertsmith.tasks.spelling import Span, spell, write
from bertsmith.tasks.task import Row, Task
from bertsmith.text.tokenizer import Tokenizer

BEAMS = 10  # kept in the joint search, or `top_k` if that is more
Talk = Generator[list[Row], list[Tensor], Any]
Words = dict[tuple[int, str], list[int]]  # (number of a mask, target) -> the target's pieces there


@dataclass
class Beam:
    ids: tuple[int, ...] = ()
    log_chance: float = 0.0


class Fill(Task[str, Result]):
    name = "fill"
    head = "mask"

    def __init__(
        self, tokenizer: Tokenizer, limit: int, truncate: str, top_k: int = 5, targets: Sequence[str] | None = None
    ) -> None:
        super().__init__(tokenizer, limit, truncate)
        if not isinstance(top_k, int) or top_k < 1:
            raise BertsmithError(f"top_k is {top_k!r}; it must be a whole number of at least 1.")
        self.top_k = top_k
        self.targets = None if targets is None else _list_targets(targets)

    def rows(self, examples: Sequence[str]) -> list[list[Row]]:
        return [[] for _ in examples]  # `talk` makes them: they depend on the targets' pieces

    def talk(self, example: str, rows: list[Row]) -> Talk:
        whole = self.tokenizer.encode(example)
        spans = find_spans(self.tokenizer, whole)
        words = self._spell(example, spans)
        spare = max((len(pieces) for pieces in words.values()), default=1) - 1
        masked = find_masks(self.tokenizer, example, whole, spans, self.limit - spare, self.truncate)
        scores = yield [masked.row(mask, {}) for mask in masked.masks]
        alone = [score[0].log_softmax(dim=-1) for score in scores]  # (vocabulary,) for each mask
        if self.targets is not None:
            answers = yield from self._choose(masked, alone, words)
            joint = None
        else:
            answers = [self._best(masked, mask, chances) for mask, chances in zip(masked.masks, alone, strict=True)]
            joint = (yield from self._together(masked, alone[0])) if len(masked.masks) > 1 else None
        return Result(answers if len(answers) > 1 else answers[0], masked.dropped, joint)

    def _best(self, masked: MaskedText, mask: Mask, chances: Tensor) -> list[dict[str, Any]]:
        top = chances.topk(min(self.top_k, len(chances)))
        return [
            {
                "sequence": write(self.tokenizer, masked.text, [(mask.span, id)]),
                "score": math.exp(chance),
                "token": id,
                "token_str": self.tokenizer.decode([id], skip_specials=False),
            }
            for chance, id in zip(top.values.tolist(), top.indices.tolist(), strict=True)
        ]

    def _together(self, masked: MaskedText, first: Tensor) -> Talk:
        width = max(self.top_k, BEAMS)
        beams = _widen([Beam()], [first], width)
        for mask in masked.masks[1:]:
            scores = yield [masked.row(mask, dict(enumerate(beam.ids))) for beam in beams]
            beams = _widen(beams, [score[0].log_softmax(dim=-1) for score in scores], width)
        spans = [mask.span for mask in masked.masks]
        return [
            {
                "sequence": write(self.tokenizer, masked.text, list(zip(spans, beam.ids, strict=True))),
                "score": math.exp(beam.log_chance),
                "tokens": list(beam.ids),
                "token_strs": [self.tokenizer.decode([id], skip_specials=False) for id in beam.ids],
            }
            for beam in beams[: self.top_k]
        ]

    def _choose(self, masked: MaskedText, alone: Sequence[Tensor], words: Words) -> Talk:
        """Each mask's targets; all pieces of all words are asked for in one round."""
        assert self.targets is not None and self.tokenizer.mask_id is not None
        asked: list[tuple[tuple[int, str], int]] = []
        rows = []
        for key, pieces in words.items():
            for known in range(len(pieces) if len(pieces) > 1 else 0):
                asked.append((key, pieces[known]))
                rows.append(masked.row_of_pieces(masked.masks[key[0]], pieces, known, self.tokenizer.mask_id))
        scores = (yield rows) if rows else []
        chains = {k: float(alone[k[0]][pieces[0]]) if len(pieces) == 1 else 0.0 for k, pieces in words.items()}
        for (key, piece), score in zip(asked, scores, strict=True):
            chains[key] += float(score[0].log_softmax(dim=-1)[piece])
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


def _list_targets(targets: Sequence[str]) -> list[str]:
    """Each target once; a single word may be given by itself."""
    words = [targets] if isinstance(targets, str) else list(dict.fromkeys(targets))
    if not words:
        raise BertsmithError("targets is empty; name at least one word, or leave it out.")
    for word in words:
        if not isinstance(word, str):
            raise BertsmithError(f"a target must be a string, not {type(word).__name__}.")
    return words


def _widen(beams: Sequence[Beam], chances: Sequence[Tensor], width: int) -> list[Beam]:
    """The likeliest ways to go on from these beams, among all pieces."""
    totals = torch.stack([beam.log_chance + c.double() for beam, c in zip(beams, chances, strict=True)])
    top = totals.flatten().topk(min(width, totals.numel()))
    size = totals.shape[1]
    pairs = zip(top.values.tolist(), top.indices.tolist(), strict=True)
    found = [Beam((*beams[place // size].ids, place % size), chance) for chance, place in pairs]
    return sorted(found, key=lambda b: (-b.log_chance, b.ids))
