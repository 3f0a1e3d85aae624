"""Texts as a study: masked tokens, hidden anew each time a text is read."""

from collections.abc import Collection, Mapping, Sequence

import numpy as np
from torch import Tensor

from bertsmith.data.batch import Batch, plan_batches
from bertsmith.models.network import Network
from bertsmith.objectives.masked import BERT, Masking, corrupt, masked_loss
from bertsmith.tasks.task import Row
from bertsmith.training.settings import Training
from bertsmith.training.study import FILLER, Drawn, LeanRow, Work, lay_end_to_end


class MaskStudy(Drawn):
    """What is hidden of a row is a function of (seed, step, the row's number), so a run resumes from its step."""

    def __init__(
        self, rows: Sequence[Row], specials: Collection[int], mask_id: int, vocabulary: int, settings: Training,
        head: str = "mask", masking: Masking = BERT,
    ) -> None:  # fmt: skip
        self.rows = [LeanRow(np.asarray(r.ids, np.int64), np.asarray(r.segments, np.int64), None, None) for r in rows]
        self.specials, self.mask_id, self.vocabulary = specials, mask_id, vocabulary
        self.settings, self.head, self.masking = settings, head, masking
        self.examples = len(self.rows)

    def works(self, step: int, rank: int, ranks: int, budget: int) -> list[Work]:
        chosen = sorted(self.chosen(step), key=lambda i: -len(self.rows[i].ids))
        mine = chosen[rank::ranks]
        if not mine:  # fewer rows than processes: one that costs nothing, as all of them must take part
            return [self._work([self._hide(step, chosen[0])], is_filler=True)]
        plan = plan_batches([len(self.rows[i].ids) for i in mine], budget)
        return [self._work([self._hide(step, mine[i]) for i in some]) for some in plan]

    def losses(
        self, network: Network, batch: Batch, given: Mapping[str, Tensor], work: Work | None = None
    ) -> dict[str, Tensor]:
        return {"loss": masked_loss(network, batch, given["at"], given["gold"], self.head).sum()}

    def _hide(self, step: int, number: int) -> LeanRow:
        row = self.rows[number]
        generator = np.random.default_rng([self.settings.seed, step, number])
        ids, at, gold = corrupt(row.ids, self.specials, self.mask_id, self.vocabulary, generator, self.masking)
        return LeanRow(ids, row.segments, at, gold)

    def _work(self, rows: Sequence[LeanRow], is_filler: bool = False) -> Work:
        gold = np.concatenate([row.gold for row in rows])
        count = 0.0 if is_filler else float(len(gold))
        gold = np.full_like(gold, FILLER) if is_filler else gold
        return lay_end_to_end(rows, gold, FILLER, count, self.masking.share)
