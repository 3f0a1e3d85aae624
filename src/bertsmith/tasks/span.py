"""Answer a question from a text: the span of it that starts and ends best, or that there is none (SQuAD 1.1 and 2.0).

The head scores each token twice, as start and as end of the answer. A long context is read in windows that share
`overlap` of its pieces with their neighbours (the window moves by its room minus the overlap; BERT's `doc_stride` is
that move, Hugging Face's `stride` is this overlap). The question stands whole in each, cut to `question_length` pieces.
"""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from bertsmith.data.batch import Batch
from bertsmith.data.examples import SpanExample
from bertsmith.data.spans import span_examples
from bertsmith.data.table import Table
from bertsmith.errors import BertsmithError
from bertsmith.tasks.answers import Candidates, Context, SpanRow, mark_gold, weigh
from bertsmith.tasks.losses import Criterion, diverge
from bertsmith.tasks.measures import Measure
from bertsmith.tasks.result import Result
from bertsmith.tasks.squad_score import best_threshold, measure, score_texts
from bertsmith.tasks.task import Row
from bertsmith.tasks.texts import list_texts, pair_up, take_count
from bertsmith.tasks.trained import MISTAKES, Settings, TrainedTask
from bertsmith.text.encoding import Encoding
from bertsmith.text.tokenizer import Tokenizer
from bertsmith.text.truncation import keep, slide

LENGTH, QUESTION_LENGTH, ANSWER_LENGTH = 384, 64, 30  # as BERT's authors had them for SQuAD
NO_TOKEN = -1e30  # the score of a place without a token: finite, as infinities next to each other give NaN gradients
CHOICES = ("truncate", "length", "overlap", "question_length", "answer_length")


class Span(TrainedTask[SpanExample, Result]):
    """`settings`: labels, truncate, impossible (whether "" may be the answer) and then threshold (by how much no answer
    must lead), and where they were chosen length, overlap, question_length, answer_length (all in pieces)."""

    name = "span"
    head = "span"
    per_token = True
    metric = "f1"
    truncation: ClassVar[str] = "windows"
    weighs: ClassVar[bool] = False  # gold is places
    roles: ClassVar[tuple[str, ...]] = ("question", "context", "answers", "start", "id", "impossible")
    required: ClassVar[tuple[str, ...]] = ("question", "context", "answers")

    def __init__(self, tokenizer: Tokenizer, limit: int, truncate: str, settings: Settings, top_k: int = 1) -> None:
        super().__init__(tokenizer, limit, truncate, settings)
        if truncate == "head+tail":
            raise BertsmithError(
                "span has no meaning for truncate='head+tail', as an answer could reach over the hole; "
                "use 'windows', 'head', 'tail' or 'error'."
            )
        self.top_k = take_count("top_k", top_k)
        chosen = {name: value for name, value in settings.items() if value is not None}
        self.length = min(limit, take_count("length", chosen.get("length", LENGTH)))
        asked = chosen.get("question_length", max(1, min(QUESTION_LENGTH, self.length // 4)))
        self.question_length = take_count("question_length", asked)
        longest = take_count("answer_length", chosen.get("answer_length", ANSWER_LENGTH))
        self.answer_length = min(longest, self.length)
        self.overlap = chosen.get("overlap", self.length // 3)
        self.slots = tokenizer.template.slots(True, specials=True)
        self.specials = tokenizer.template.specials(True)
        room = self.length - self.specials - self.question_length
        if not isinstance(self.overlap, int) or not 0 <= self.overlap < room:
            raise BertsmithError(
                f"overlap={self.overlap!r} does not fit: rows of {self.length} ids with a question of up to "
                f"{self.question_length} have room for {max(room, 0)} pieces of the context, and neighbouring windows "
                "must share at least 0 and fewer than that; change overlap, question_length or length."
            )

    @classmethod
    def examples(
        cls, table: Table, columns: Mapping[str, str], choices: Mapping[str, Any], gold: bool = True
    ) -> list[SpanExample]:
        return span_examples(table, columns, gold=gold)

    @classmethod
    def settle(cls, examples: Sequence[SpanExample], choices: Mapping[str, Any]) -> Settings:
        if not any(example.answers for example in examples):
            raise BertsmithError(
                "No question of the training data has an answer to learn from; give each its answers with their first "
                "characters (answer_start) in the context."
            )
        chosen = {name: choices[name] for name in CHOICES if choices.get(name) is not None}
        impossible = any(example.answers == () for example in examples)
        return {**cls.settings_from((), None), **chosen, "impossible": impossible}

    @classmethod
    def settings_from(cls, labels: Sequence[str], problem_type: str | None) -> Settings:
        """Those of a folder that says nothing about them: it answers every question."""
        return {"labels": ["start", "end"], "truncate": cls.truncation, "impossible": False, "threshold": 0.0}

    def rows(self, examples: Sequence[SpanExample]) -> list[list[Row]]:
        questions = self._encode([example.question for example in examples])
        read = self._encode([example.context for example in examples])
        contexts = {text: Context.of(text, encoding) for text, encoding in read.items()}
        return [[*self._windows(e, questions[e.question].ids, contexts[e.context])] for e in examples]

    def _encode(self, texts: Sequence[str]) -> dict[str, Encoding]:
        """Each distinct text once: SQuAD asks five questions of a context."""
        distinct = list(dict.fromkeys(texts))
        return dict(zip(distinct, self.tokenizer.encode_many(distinct, specials=False), strict=True))

    def _windows(self, example: SpanExample, question: list[int], context: Context) -> list[SpanRow]:
        asked, count = question[: self.question_length], len(context.ids)
        room = self.length - self.specials - len(asked)
        self._refuse_long(example, len(question), count, room)
        windows = self.truncate == "windows"
        kept = slide(count, room, self.overlap) if windows else keep([count], room, self.truncate)[0]
        rows = [self._row(asked, context, begin, end) for begin, end in kept]
        rows[0].dropped = len(question) - len(asked) + (0 if windows else max(count - room, 0))
        mark_gold(rows, context, example.answers)
        return rows

    def _refuse_long(self, example: SpanExample, asked: int, count: int, room: int) -> None:
        if self.truncate == "error" and (count > room or asked > self.question_length):
            raise BertsmithError(
                f"{example.where + ': ' if example.where else ''}the question has {asked} pieces of at most "
                f"{self.question_length} and the context {count} of at most {room}; use truncate='windows'."
            )

    def _row(self, question: list[int], context: Context, begin: int, end: int) -> SpanRow:
        ids: list[int] = []
        segments: list[int] = []
        first = 0
        for slot in self.slots:
            if slot.sequence == 1:
                first = len(ids)
            more = [slot.id] if slot.sequence is None else (question, context.ids[begin:end])[slot.sequence]
            ids += more
            segments += [slot.segment] * len(more)
        return SpanRow(ids, segments, context=context, first=first, begin=begin, end=end)

    def loss(self, scores: Tensor, gold: Tensor, batch: Batch, criterion: Criterion) -> Tensor:
        """The mean of what start and end cost, each a choice among the places of its row: gold (rows, 2) -> (rows,)."""
        padded = batch.pad(scores.float(), NO_TOKEN)  # (rows, longest, 2)
        there = padded[..., 0] > NO_TOKEN / 2  # (rows, longest)
        costs = [choose_place(padded[..., i], there, gold[:, i], criterion) for i in range(2)]
        return 0.5 * (costs[0] + costs[1])

    def diverge(self, one: Tensor, other: Tensor, batch: Batch) -> Tensor:
        padded = [batch.pad(scores.float(), NO_TOKEN).transpose(1, 2) for scores in (one, other)]  # (rows, 2, longest)
        return diverge(padded[0], padded[1]).mean(dim=-1)

    def answer(self, example: SpanExample, rows: Sequence[Row], scores: Sequence[Tensor]) -> Result:
        """`score` is the share of an answer among all that the context allows, no answer being one if it may be."""
        candidates, context = self._weigh(rows, scores)
        truncated = sum(row.dropped for row in rows)
        if candidates.best == -np.inf:  # nothing but spaces in the context
            return Result([_nothing(1.0)], truncated, no_answer=1.0)
        impossible = bool(self.settings.get("impossible"))
        total = candidates.log_total(with_nothing=impossible)
        answers = []
        for first, last in candidates.top(self.top_k):
            place = context.characters(first, last)
            score = float(np.exp(candidates.spans[first, last - first] - total))
            text = example.context[place]
            answers.append({"answer": text, "score": score, "start": place.start, "end": place.stop})
        if not impossible:
            return Result(answers, truncated)
        nothing = float(np.exp(candidates.nothing - total))
        wins = candidates.nothing - candidates.best > self.settings.get("threshold", 0.0)
        behind = next((i for i, answer in enumerate(answers) if i and answer["score"] < nothing), len(answers))
        answers.insert(0 if wins else behind, _nothing(nothing))
        return Result(answers[: self.top_k], truncated, no_answer=nothing)

    def tune(self, examples: Sequence[SpanExample], rows: Sequence[Sequence[Row]], scores: Sequence[Sequence[Tensor]],
             choices: Mapping[str, Any]) -> Settings:  # fmt: skip
        """The threshold with the best F1 by the official rule, halfway to the first answer that it withholds."""
        if not self.settings.get("impossible") or not any(example.answers == () for example in examples):
            return {}
        texts, leads = [], np.zeros(len(examples))
        for i, (example, some, said) in enumerate(zip(examples, rows, scores, strict=True)):
            candidates, context = self._weigh(some, said)
            best = [context.characters(first, last) for first, last in candidates.top(1)]
            texts.append(example.context[best[0]] if best else "")
            leads[i] = candidates.nothing - candidates.best
        scored = score_texts(texts, examples)
        given = best_threshold(scored, scored.f1, leads).given
        known = scored.labelled & np.isfinite(leads)  # blank contexts have no answer whatever the threshold is
        if not known.any():
            return {}
        low = leads[known & given].max(initial=leads[known].min() - 1)
        high = leads[known & ~given].min(initial=leads[known].max() + 1)
        return {"threshold": float((low + high) / 2)}

    def score(self, answers: Sequence[Result], examples: Sequence[SpanExample]) -> dict[str, Measure]:
        return measure(score_texts([result[0]["answer"] for result in answers], examples))

    def metrics(self, examples: Sequence[SpanExample] = ()) -> list[str]:
        """Those of the two kinds of questions as well, where some have no answer."""
        kinds = ("has_answer", "no_answer") if self.settings.get("impossible") else ()
        names = super().metrics(examples)
        return [*names, *(f"{kind}_{name}" for kind in kinds for name in names)]

    def report(self, answers: Sequence[Result], examples: Sequence[SpanExample]) -> dict[str, Any]:
        scored = score_texts([result[0]["answer"] for result in answers], examples)
        wrong: list[dict[str, Any]] = [
            {
                "where": e.where, "question": e.question, "context": e.context, "score": result[0]["score"],
                "gold": [text for text, _ in e.answers or ()] or [""], "predicted": result[0]["answer"],
                "gold_start": e.answers[0][1] if e.answers else None, "predicted_start": result[0]["start"],
            }
            for e, result, exact in zip(examples, answers, scored.exact, strict=True)
            if not exact
        ]  # fmt: skip
        wrong.sort(key=lambda mistake: -mistake["score"])
        threshold = {"no answer": self.settings["threshold"]} if self.settings.get("impossible") else {}
        return {"errors": wrong[:MISTAKES], "thresholds": threshold}

    def _weigh(self, rows: Sequence[Row], scores: Sequence[Tensor]) -> tuple[Candidates, Context]:
        windows = [row for row in rows if isinstance(row, SpanRow)]
        return weigh(windows, scores, self.answer_length), windows[0].context


def ask_spans(question: Any, context: Any) -> list[SpanExample]:
    """The examples of a request: a question with its context, or several, with one each or one for all."""
    if context is None:
        raise BertsmithError("give the text to answer from (context).")
    questions = question if isinstance(question, str) else list_texts(question)
    if not isinstance(question, str) and isinstance(context, str):
        context = [context] * len(questions)
    pairs, _ = pair_up("answer", questions, context)
    return [SpanExample(one, found or "") for one, found in pairs]


def choose_place(scores: Tensor, there: Tensor, gold: Tensor, criterion: Criterion) -> Tensor:
    """What it costs to choose among the places that are there: scores (rows, longest), gold (rows,) -> (rows,).

    `Criterion.choose` would spread its smoothing over the places that are not there. No shape depends on the gold.
    """
    chances = scores.log_softmax(dim=-1)
    right = chances.gather(1, gold.clamp(min=0)[:, None])[:, 0]
    cost = -right
    if criterion.smoothing:
        spread = -torch.where(there, chances, 0.0).sum(dim=-1) / there.sum(dim=-1).clamp(min=1)
        cost = torch.lerp(cost, spread, criterion.smoothing)
    if criterion.focal:
        cost = cost * (1 - right.exp()).clamp(min=1e-7) ** criterion.focal  # a root has no slope at 0
    return torch.where(gold >= 0, cost, 0.0)


def _nothing(score: float) -> dict[str, Any]:
    return {"answer": "", "score": score, "start": 0, "end": 0}
