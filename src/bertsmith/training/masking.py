"""Texts as a study: masked tokens, hidden anew each time a text is read."""

from collections.abc import Collection, Mapping, Sequence

import numpy as np
from torch import Tensor

from bertsmith.data.batch import Batch, plan_batches
from bertsmith.models.network import Network
from bertsmith.objectives.chance import Fixed
from bertsmith.objectives.costs import token_costs
from bertsmith.objectives.masked_tokens import MaskedTokens
from bertsmith.objectives.objective import Vocabulary
from bertsmith.tasks.task import Row
from bertsmith.training.devices import seed_of
from bertsmith.training.settings import Training
from bertsmith.training.study import FILLER, Drawn, LeanRow, Work, lay_end_to_end

SHARE = 0.15  # of a row's tokens, as BERT


class MaskStudy(Drawn):
    """What is hidden of a row is a function of (seed, step, its ids): a run resumes from its step, on any number of
    processes."""

    def __init__(
        self, rows: Sequence[Row], specials: Collection[int], mask_id: int, vocabulary: int, settings: Training,
        head: str = "mask",
    ) -> None:  # fmt: skip
        self.rows = [LeanRow(np.asarray(r.ids, np.int64), np.asarray(r.segments, np.int64), None, None) for r in rows]
        known = {id for id in (mask_id, *specials) if id < vocabulary}
        self.masking = MaskedTokens(Vocabulary(vocabulary, mask_id, tuple(sorted(known))), SHARE, static=True)
        self.special = self.masking.lookup.tables.special.numpy()
        self.settings, self.head = settings, head
        self.examples = len(self.rows)

    def works(self, step: int, rank: int, ranks: int, budget: int) -> list[Work]:
        chosen = sorted(self.chosen(step), key=lambda i: -len(self.rows[i].ids))
        mine = [self.rows[i] for i in chosen[rank::ranks]]
        if not mine:  # fewer rows than processes: one that costs nothing, as all of them must take part
            return [self._work(self._hide(step, [self.rows[chosen[0]]]), is_filler=True)]
        hidden = self._hide(step, mine)
        plan = plan_batches([len(row.ids) for row in hidden], budget)
        return [self._work([hidden[i] for i in some]) for some in plan]

    def losses(
        self, network: Network, batch: Batch, given: Mapping[str, Tensor], work: Work | None = None
    ) -> dict[str, Tensor]:
        total, _ = token_costs(network, network(batch), batch, given["at"], given["gold"], head=self.head)
        return {"loss": total}

    def _hide(self, step: int, rows: Sequence[LeanRow]) -> list[LeanRow]:
        lengths = tuple(len(row.ids) for row in rows)
        ids = np.concatenate([row.ids for row in rows])
        batch = Batch.of_flat(ids, np.zeros_like(ids), lengths)
        chance = Fixed(batch, seed_of(self.settings.seed, step))
        read, at, gold = (x.numpy() for x in self.masking.hide(batch, chance, int((~self.special[ids]).sum())))
        at, gold = at[gold >= 0], gold[gold >= 0]
        ends = np.cumsum(lengths)
        cuts = np.searchsorted(at, ends)  # the places ascend, so those of a row lie together
        found, last = [], 0
        for row, end, cut in zip(rows, ends, cuts, strict=True):
            start = end - len(row.ids)
            found.append(LeanRow(read[start:end], row.segments, at[last:cut] - start, gold[last:cut]))
            last = cut
        return found

    def _work(self, rows: Sequence[LeanRow], is_filler: bool = False) -> Work:
        gold = np.concatenate([row.gold for row in rows])
        count = 0.0 if is_filler else float(len(gold))
        gold = np.full_like(gold, FILLER) if is_filler else gold
        return lay_end_to_end(rows, gold, FILLER, count, SHARE)
