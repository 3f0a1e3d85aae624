"""How likely a text is to a model that fills masks: its pseudo-log-likelihood (Salazar et al. 2020, arXiv 1910.14659).

Each token is masked in turn, and the log-probabilities of what stood there are added up. `way` says what the model sees
meanwhile: "plain", all other tokens; "within-word", not the later pieces of the same word either, so that a rare word
is not made likely by its own end (Kauf & Ivanova 2023, arXiv 2305.10588).

In: texts. Out: a `Result` each, of `score` (the sum of natural logarithms), `tokens` and `perplexity`, a token's.
A text of n tokens is n rows; of each row's vocabulary only the wanted log-probability is kept.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice, pairwise

import numpy as np
import torch
from torch import Tensor

from bertsmith.data.batch import Array, Batch, send
from bertsmith.errors import BertsmithError
from bertsmith.models.network import Network
from bertsmith.tasks.hiding import HiddenText, need_mask
from bertsmith.tasks.mask_table import MaskTable, hide_each
from bertsmith.tasks.masks import MaskRow
from bertsmith.tasks.predicting import Predictor
from bertsmith.tasks.result import NOT_FINITE, Result
from bertsmith.tasks.task import Row, Task
from bertsmith.text.encoding import Encoding
from bertsmith.text.tokenizer import Tokenizer

WAYS = ("plain", "within-word")
AT_ONCE = 1024  # rows whose whole vocabulary is in memory
MOST = 700.0  # exp of more overflows
BLOCK = 2**14  # rows that are in memory, and among which equal ones are found


class Likelihood(Task[str, Result]):
    name = "likelihood"
    head = "mask"

    def __init__(self, tokenizer: Tokenizer, limit: int, truncate: str = "windows", way: str = "plain") -> None:
        """truncate="windows": each token of a longer text is read with as many on both sides of it as fit."""
        super().__init__(tokenizer, limit, truncate)
        if way not in WAYS:
            raise BertsmithError(f"way={way!r} is not a choice; use one of {', '.join(map(repr, WAYS))}.")
        self.way = way
        self.mask_id = need_mask(tokenizer)

    def rows(self, examples: Sequence[str]) -> list[list[Row]]:
        found = []
        for text in self.open(examples):
            rows: list[Row] = [*self.ask(text)]
            for row in rows[:1]:
                row.dropped = text.dropped
            found.append(rows)
        return found

    def open(self, texts: Sequence[str]) -> list[HiddenText]:
        """Texts in pieces, of which some are to be hidden."""
        return [HiddenText(one, self.tokenizer, self.limit) for one in self.encode(texts)]

    def encode(self, texts: Sequence[str]) -> list[Encoding]:
        """Texts in pieces, cut where the policy says so."""
        slides = self.truncate == "windows"
        return self.tokenizer.encode_many(
            texts, length=None if slides else self.limit, truncate="head" if slides else self.truncate
        )

    def ask(self, text: HiddenText, among: Iterable[int] | None = None) -> Iterator[MaskRow]:
        """A row for each piece (of some) that can be asked for; a mask, or another special token, cannot."""
        inside = self.way == "within-word"
        for piece in range(text.count) if among is None else among:
            if text.is_asked(piece):
                hidden = range(piece, text.word_end(piece) if inside else piece + 1)
                yield text.hide(hidden, [piece], self.mask_id)

    def scores(self, network: Network, batch: Batch, rows: Sequence[Row]) -> list[Tensor]:
        """The log-probabilities of each row's wanted pieces."""
        asked = MaskTable.of_rows([row for row in rows if isinstance(row, MaskRow)])
        found = self.read_wanted(network, batch, asked.at, np.arange(len(rows)), asked.wanted)
        return list(found.cpu()[:, None])

    def read_wanted(self, network: Network, batch: Batch, at: Array, owners: Array, wanted: Array) -> Tensor:
        """The log-probability of each wanted piece, on the device: n's is that at the `at` of row `owners[n]`.

        Owners never fall.
        """
        assert self.head is not None
        device = batch.ids.device
        places = batch.firsts + send(at, device)
        hidden = network(batch.wanting(places))
        rows, ids = send(owners, device), send(wanted, device)
        bounds = np.searchsorted(owners, range(0, len(at) + AT_ONCE, AT_ONCE)).tolist()
        found = []
        for start, (low, high) in enumerate(pairwise(bounds)):
            first = start * AT_ONCE
            logits = network.score(hidden, batch, self.head, places[first : first + AT_ONCE]).float()
            mine = rows[low:high] - first
            found.append(logits[mine, ids[low:high]] - logits.logsumexp(dim=-1)[mine])
        return torch.cat(found)

    def answer(self, example: str, rows: Sequence[Row], scores: Sequence[Tensor]) -> Result:
        return self.tell([float(score) for score in scores], sum(row.dropped for row in rows))

    def tell(self, chances: Sequence[float], dropped: int) -> Result:
        """What the log-probabilities of a text's tokens come to."""
        if not chances:
            raise BertsmithError("a text without a token to ask for has no likelihood; leave empty texts out.")
        total = self.add(chances)
        found = {"score": total, "tokens": len(chances), "perplexity": perplexity(total, len(chances))}
        return Result([found], dropped)

    def add(self, chances: Sequence[float]) -> float:
        total = math.fsum(chances)
        if not math.isfinite(total):
            raise BertsmithError(NOT_FINITE)
        return total


def measure_likelihood(predictor: Predictor, task: Likelihood, texts: Sequence[str]) -> list[Result]:
    """As `predict` answers, in bounded memory; what several texts ask alike is asked once."""
    read = task.encode(texts)
    return [task.tell(chances, one.dropped) for one, chances in zip(read, ask_each(predictor, task, read), strict=True)]


def ask_each(predictor: Predictor, task: Likelihood, read: Sequence[Encoding]) -> list[list[float]]:
    """The log-probabilities of each text's tokens."""
    table, counts = hide_each(read, task.tokenizer, task.limit, task.mask_id, task.way == "within-word")
    if not counts.all():
        number = int(counts.argmin()) + 1
        raise BertsmithError(f"text {number:,} has no token to ask for, so no likelihood; leave it out.")
    blocks = (table.take(slice(start, start + BLOCK)) for start in range(0, len(table), BLOCK))
    chances = _ask_blocks(predictor, task, blocks)
    return [chances[end - count : end] for end, count in zip(np.cumsum(counts).tolist(), counts.tolist(), strict=True)]


def ask_all(predictor: Predictor, task: Likelihood, rows: Iterable[MaskRow]) -> list[float]:
    """The log-probability that each row asks for, a block of rows at a time."""
    waiting = iter(rows)
    blocks = iter(lambda: list(islice(waiting, BLOCK)), [])
    return _ask_blocks(predictor, task, map(MaskTable.of_rows, blocks))


def _ask_blocks(predictor: Predictor, task: Likelihood, blocks: Iterable[MaskTable]) -> list[float]:
    """Chances stay on the device until the last block is under way: the host prepares one while it computes another."""
    with predictor.reading():
        found = [_ask_block(predictor, task, block) for block in blocks]
        return torch.cat(found).tolist() if found else []


def _ask_block(predictor: Predictor, task: Likelihood, block: MaskTable) -> Tensor:
    """The log-probability that each row asks for, on the device; equal rows are read once, the longest first."""
    leaders = block.share()
    distinct = np.unique(leaders)
    batches = list(block.take(distinct).batches(predictor.budget))
    rows = block.take(distinct[np.concatenate(batches)])  # as they are read
    turns = np.empty(len(block), dtype=np.int64)
    turns[distinct[np.concatenate(batches)]] = np.arange(len(rows))
    turns = turns[leaders]  # which of them is whose
    order = np.argsort(turns, kind="stable")
    owners, wanted = turns[order], block.wanted[order]

    def read(some: slice) -> list[Tensor]:
        mine = rows.take(some)
        batch = Batch.of_flat(*mine.fill(), tuple(mine.lengths.tolist()), predictor.device)
        own = slice(*np.searchsorted(owners, (some.start, some.stop)).tolist())
        return [task.read_wanted(predictor.network, batch, mine.at, owners[own] - some.start, wanted[own])]

    bounds = np.cumsum([0, *map(len, batches)]).tolist()
    found = [predictor.halve(read, rows.lengths, slice(*ends)) for ends in pairwise(bounds)]
    back = np.empty_like(order)
    back[order] = np.arange(len(order))
    return torch.cat([part for parts in found for part in parts]).index_select(0, send(back, predictor.device))


def perplexity(total: float, count: float) -> float | None:
    """exp(-total / count); None where that is too large a number."""
    return math.exp(-total / count) if -total / count < MOST else None
