"""The pseudo-perplexity of held-out text to an encoder that fills masks (Salazar et al. 2020, arXiv 1910.14659, eq. 4).

For a text W of N tokens it is exp(-1/N Σ log P(w | W without w)): every token is hidden alone behind a mask, while all
others of its row are seen. Hiding each token of a corpus would take a row a token, so the N here are a sample, drawn
without repeats by a seed that never changes: the same tokens for every run on this corpus with rows of this length, or
the first of them in a run that has little time. Rows are cut as in training, of one segment each. Special tokens are
seen, and never asked for; unknown ones are.

In: a corpus, a network with a head for masked tokens. Out: a score: `value`, the ends of its interval, and `n`.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Any, cast

import numpy as np
import torch

from bertsmith.data.rows import Rows
from bertsmith.data.rows_plan import Phase, open_passes
from bertsmith.data.shards import Corpus
from bertsmith.evaluation.masked_accuracy import tell_perplexity
from bertsmith.evaluation.report.facts import Score
from bertsmith.models.network import Network
from bertsmith.tasks.likelihood import Likelihood, ask_all
from bertsmith.tasks.masks import MaskRow
from bertsmith.tasks.measures import Array
from bertsmith.tasks.predicting import BUDGETS, Predictor

SAMPLE = 1024  # tokens that are asked for
READ = 65_536  # tokens of the corpus, at most, from whose rows they are drawn
PASS = 4096


class Hidden(Likelihood):
    """Asks for tokens of rows that are made already, of codes too: there is no text to cut and so no tokenizer."""

    def __init__(self) -> None:
        self.way = "plain"


def measure_pseudo_perplexity(
    corpus: Corpus, length: int, network: Network, device: torch.device,
    precision: Callable[[], AbstractContextManager[Any]] = nullcontext, samples: int = SAMPLE,
) -> Score | None:  # fmt: skip
    """Of rows of at most `length` tokens; None where there is nothing to ask for, no head to ask, or no finite number.

    Where several processes hold parts of the network, all of them must ask together.
    """
    rows = list(hide_each(corpus, length, samples)) if "mask" in network.heads else []
    if not rows:
        return None
    predictor = Predictor(network, device, max(BUDGETS[device.type], length), keeps_grads=True)
    was_training = network.training
    network.eval()
    try:
        with precision():
            chances = ask_all(predictor, Hidden(), rows)
    finally:
        network.train(was_training)
    sums = np.array([(chance, 1.0, 0.0) for chance in chances])
    found = tell_perplexity(sums)["token"] if np.isfinite(sums).all() else {"value": None}
    return None if found["value"] is None else cast(Score, found)


def hide_each(corpus: Corpus, length: int, samples: int = SAMPLE) -> Iterator[MaskRow]:
    """A row for each token of the sample, in which it alone is hidden."""
    tokens = len(corpus.tokens)
    if not tokens:
        return
    size = max(length, min(PASS, tokens))
    passes = open_passes(corpus, [Phase(length)], size)[0]
    found = [passes.rows_of(number) for number in range(max(1, min(READ, tokens) // size))]
    asked = [np.flatnonzero(_is_asked(corpus, rows.ids)) for rows in found]
    ends = np.cumsum([len(places) for places in asked])
    if not ends[-1]:
        return
    drawn = np.sort(np.random.default_rng(0).permutation(ends[-1])[:samples])  # a larger sample has the smaller in it
    for number in drawn:
        which = int(np.searchsorted(ends, number, side="right"))
        place = int(asked[which][number - (ends[which] - len(asked[which]))])
        yield _hide(found[which], place, corpus.specials["mask"])


def _hide(rows: Rows, place: int, mask: int) -> MaskRow:
    ends = np.cumsum(rows.lengths)
    row = int(np.searchsorted(ends, place, side="right"))
    inside = slice(int(ends[row]) - rows.lengths[row], int(ends[row]))
    ids = rows.ids[inside].copy()
    at = place - inside.start
    wanted, ids[at] = int(ids[at]), mask
    return MaskRow(ids.tolist(), rows.segments[inside].tolist(), at=[at], wanted=[wanted])


def _is_asked(corpus: Corpus, ids: Array) -> Array:
    specials = {*corpus.header.get("special_ids", ()), *corpus.specials.values()} - {corpus.specials.get("unk")}
    return ~np.isin(ids, sorted(specials))
