"""How likely a text is to a model that fills masks: its pseudo-log-likelihood (Salazar et al. 2020, arXiv 1910.14659).

Each token is masked in turn, and the log-probabilities of what stood there are added up. `way` says what the model sees
meanwhile: "plain", all other tokens; "within-word", not the later pieces of the same word either, so that a rare word
is not made likely by its own end (Kauf & Ivanova 2023, arXiv 2305.10588).

In: texts. Out: a `Result` each, of `score` (the sum of natural logarithms), `tokens` and `perplexity`, a token's.
A text of n tokens is n rows; of each row's vocabulary only the wanted log-probability is kept.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice

import torch
from torch import Tensor

from bertsmith.data.batch import Batch
from bertsmith.errors import BertsmithError
from bertsmith.models.network import Network
from bertsmith.tasks.hiding import HiddenText, need_mask
from bertsmith.tasks.masks import MaskRow
from bertsmith.tasks.predicting import Predictor
from bertsmith.tasks.result import NOT_FINITE, Result
from bertsmith.tasks.task import Row, Task
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
        """Texts in pieces, cut where the policy says so."""
        slides = self.truncate == "windows"
        read = self.tokenizer.encode_many(
            texts, length=None if slides else self.limit, truncate="head" if slides else self.truncate
        )
        return [HiddenText(one, self.tokenizer, self.limit) for one in read]

    def ask(self, text: HiddenText, among: Iterable[int] | None = None) -> Iterator[MaskRow]:
        """A row for each piece (of some) that can be asked for; a mask, or another special token, cannot."""
        inside = self.way == "within-word"
        for piece in range(text.count) if among is None else among:
            if text.is_asked(piece):
                hidden = range(piece, text.word_end(piece) if inside else piece + 1)
                yield text.hide(hidden, [piece], self.mask_id)

    def scores(self, network: Network, batch: Batch, rows: Sequence[Row]) -> list[Tensor]:
        """The log-probabilities of each row's wanted pieces."""
        asked = [row for row in rows if isinstance(row, MaskRow)]
        hidden = network(batch)
        at = batch.firsts + torch.tensor([row.at[0] for row in asked], device=hidden.device)
        counts = [len(row.wanted) for row in asked]
        found = []
        for start in range(0, len(asked), AT_ONCE):
            some = slice(start, start + AT_ONCE)
            logits = network.score(hidden, batch, self.head, at[some]).float()
            ids = torch.tensor([id for row in asked[some] for id in row.wanted], device=hidden.device)
            numbers = torch.arange(len(logits)).repeat_interleave(torch.tensor(counts[some])).to(hidden.device)
            found.append(logits[numbers, ids] - logits.logsumexp(dim=-1)[numbers])
        return list(torch.cat(found).cpu().split(counts))

    def answer(self, example: str, rows: Sequence[Row], scores: Sequence[Tensor]) -> Result:
        return self.tell([float(score) for score in scores], sum(row.dropped for row in rows))

    def tell(self, chances: Sequence[float], dropped: int) -> Result:
        """What the log-probabilities of a text's tokens come to."""
        if not chances:
            raise BertsmithError("a text without a token to ask for has no likelihood; leave empty texts out.")
        total = math.fsum(chances)
        if not math.isfinite(total):
            raise BertsmithError(NOT_FINITE)
        found = {"score": total, "tokens": len(chances), "perplexity": perplexity(total, len(chances))}
        return Result([found], dropped)


def measure_likelihood(predictor: Predictor, task: Likelihood, texts: Sequence[str]) -> list[Result]:
    """As `predict` answers, in bounded memory; what several texts ask alike is asked once."""
    opened = task.open(texts)
    counts = [sum(map(text.is_asked, range(text.count))) for text in opened]
    for number, count in enumerate(counts, 1):
        if not count:
            raise BertsmithError(f"text {number:,} has no token to ask for, so no likelihood; leave it out.")
    chances = iter(ask_all(predictor, task, chain.from_iterable(map(task.ask, opened))))
    return [
        task.tell(list(islice(chances, count)), text.dropped) for text, count in zip(opened, counts, strict=True)
    ]  # fmt: skip


def ask_all(predictor: Predictor, task: Likelihood, rows: Iterable[MaskRow]) -> list[float]:
    """The log-probability that each row asks for, a block of rows at a time."""
    waiting, found = iter(rows), []
    while block := list(islice(waiting, BLOCK)):
        distinct, places = share_rows(block)
        scores = [score.tolist() for score in predictor.run(task, distinct)]
        found += [scores[row][which] for row, which in places]
    return found


def share_rows(rows: Sequence[MaskRow]) -> tuple[list[MaskRow], list[tuple[int, int]]]:
    """Equal rows once, wanting all that any of them wants; for each given row which one that is, and which wish.

    Two sentences that differ in one word ask the same there.
    """
    distinct: list[MaskRow] = []
    numbers: dict[tuple[int, ...], int] = {}
    places = []
    for row in rows:
        (wanted,) = row.wanted
        number = numbers.setdefault((*row.ids, row.at[0]), len(distinct))
        if number == len(distinct):
            distinct.append(row)
        elif wanted not in distinct[number].wanted:
            known = distinct[number]
            distinct[number] = MaskRow(known.ids, known.segments, known.at, wanted=(*known.wanted, wanted))
        places.append((number, distinct[number].wanted.index(wanted)))
    return distinct, places


def perplexity(total: float, count: float) -> float | None:
    """exp(-total / count); None where that is too large a number."""
    return math.exp(-total / count) if -total / count < MOST else None
