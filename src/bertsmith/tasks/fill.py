"""Fill the masks of a text: each alone, all of them together, or with words to choose from.

Together: a beam search from left to right, each mask filled in the light of those before it; the joint probability is
the product of the steps (the chain rule in reading order). A target of several pieces is a chain too: as many masks as
it has pieces, each piece scored with those before it in place.
"""

import math
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from bertsmith.errors import BertsmithError
from bertsmith.tasks.masks import Mask, MaskedText, find_masks
from bertsmith.tasks.result import Result
from bertsmith.tasks.task import Row, Task
from bertsmith.text.tokenizer import Tokenizer

BEAMS = 10  # kept in the joint search, or `top_k` if that is more
Talk = Generator[list[Row], list[Tensor], Any]


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
        if top_k < 1:
            raise BertsmithError(f"top_k is {top_k}; it must be at least 1.")
        if targets is not None and not targets:
            raise BertsmithError("targets is empty; name at least one word, or leave it out.")
        self.top_k = top_k
        self.targets = None if targets is None else list(dict.fromkeys(targets))

    def rows(self, examples: Sequence[str]) -> list[list[Row]]:
        return [[] for _ in examples]  # `talk` makes them: they depend on the targets' pieces

    def talk(self, example: str, rows: list[Row]) -> Talk:
        words = self._spell(example) if self.targets is not None else {}
        spare = max((len(pieces) for pieces in words.values()), default=1) - 1
        masked = find_masks(self.tokenizer, example, self.limit - spare, self.truncate)
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
                "sequence": self._place(masked.text, [(mask, [id])]),
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
        return [
            {
                "sequence": self._place(masked.text, [(m, [id]) for m, id in zip(masked.masks, beam.ids, strict=True)]),
                "score": math.exp(beam.log_chance),
                "tokens": list(beam.ids),
                "token_strs": [self.tokenizer.decode([id], skip_specials=False) for id in beam.ids],
            }
            for beam in beams[: self.top_k]
        ]

    def _choose(self, masked: MaskedText, alone: Sequence[Tensor], words: dict[tuple[int, str], list[int]]) -> Talk:
        """Each mask's targets; all pieces of all words are asked for in one round."""
        assert self.targets is not None and self.tokenizer.mask_id is not None
        asked: list[tuple[int, str, int]] = []
        rows = []
        for number, mask in enumerate(masked.masks):
            for target in self.targets:
                pieces = words[number, target]
                for known in range(len(pieces) if len(pieces) > 1 else 0):
                    asked.append((number, target, pieces[known]))
                    rows.append(masked.row_of_pieces(mask, pieces, known, self.tokenizer.mask_id))
        scores = (yield rows) if rows else []
        chains = {key: float(alone[key[0]][pieces[0]]) for key, pieces in words.items()}
        chains.update(dict.fromkeys([(number, target) for number, target, _ in asked], 0.0))
        for (number, target, piece), score in zip(asked, scores, strict=True):
            chains[number, target] += float(score[0].log_softmax(dim=-1)[piece])
        return [
            sorted(
                (self._target(masked, mask, words[n, t], chains[n, t]) for t in self.targets), key=lambda a: -a["score"]
            )
            for n, mask in enumerate(masked.masks)
        ]

    def _target(self, masked: MaskedText, mask: Mask, pieces: list[int], log_chance: float) -> dict[str, Any]:
        return {
            "sequence": self._place(masked.text, [(mask, pieces)]),
            "score": math.exp(log_chance),
            "score_per_piece": math.exp(log_chance / len(pieces)),
            "token": pieces[0] if len(pieces) == 1 else pieces,
            "token_str": self.tokenizer.decode(pieces, skip_specials=False),
        }

    def _spell(self, text: str) -> dict[tuple[int, str], list[int]]:
        """The pieces of each target in the place of each mask, as the tokenizer spells it in that context."""
        assert self.targets is not None
        whole = self.tokenizer.encode(text)
        spans = [span for id, span in zip(whole.ids, whole.offsets, strict=True) if id == self.tokenizer.mask_id]
        return {(n, t): _spell_at(self.tokenizer, text, s, t) for n, s in enumerate(spans) for t in self.targets}

    def _place(self, text: str, fillings: Sequence[tuple[Mask, list[int]]]) -> str:
        """The text with each mask replaced; a piece that continues a word is joined to it."""
        done, rest = "", 0
        for mask, ids in fillings:
            left = done + text[rest : mask.start]
            word = self.tokenizer.decode(ids, skip_specials=False).removeprefix("##").strip()
            if left.endswith(" ") and self._continues(left, ids):
                left = left.rstrip(" ")
            done, rest = left + word, mask.end
        return done + text[rest:]

    def _continues(self, left: str, ids: list[int]) -> bool:
        """Whether the tokenizer would write these ids without a space behind `left`."""
        before = self.tokenizer.encode(left[-64:], specials=False).ids[-1:]
        alone = self.tokenizer.decode(before, skip_specials=False)
        joined = self.tokenizer.decode([*before, *ids], skip_specials=False)
        return bool(before) and not joined[len(alone) :].startswith(" ")


def _widen(beams: Sequence[Beam], chances: Sequence[Tensor], width: int) -> list[Beam]:
    found = []
    for beam, log_chances in zip(beams, chances, strict=True):
        top = log_chances.topk(min(width, len(log_chances)))
        for chance, id in zip(top.values.tolist(), top.indices.tolist(), strict=True):
            found.append(Beam((*beam.ids, id), beam.log_chance + chance))
    return sorted(found, key=lambda b: (-b.log_chance, b.ids))[:width]


def _spell_at(tokenizer: Tokenizer, text: str, span: tuple[int, int], target: str) -> list[int]:
    start, end = span
    word = target.strip()
    left = text[max(0, start - 64) : start]
    row = tokenizer.encode(left + word + text[end : end + 64], specials=False)
    edge = (len(left), len(left) + len(word))
    inside = [i for i, (s, e) in enumerate(row.offsets) if s < edge[1] and e > edge[0]]
    whole = bool(inside) and row.offsets[inside[0]][0] == edge[0] and row.offsets[inside[-1]][1] == edge[1]
    # Where the word would melt into its neighbours ("un[MASK]ly"), it is spelled by itself.
    pieces = [row.ids[i] for i in inside] if whole else tokenizer.encode(word, specials=False).ids
    if not pieces or tokenizer.special_ids.intersection(pieces):
        raise BertsmithError(f"the target {target!r} cannot be spelled with this model's vocabulary.")
    return pieces
