"""How well texts answer a query: a cross-encoder, which reads query and text together.

In: `RankExample`s. Out: a `Result` of `index, text, score`, best first. The head has one output, whose sigmoid is the
score, and learns by binary cross-entropy; one of another library may have two, of which one means yes.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from bertsmith.data.batch import Batch
from bertsmith.data.examples import RankExample
from bertsmith.data.matches import rank_examples, scale_of
from bertsmith.data.table import Table
from bertsmith.errors import BertsmithError
from bertsmith.models.adapter_folders import is_adapter
from bertsmith.models.files import TASK_FILE, read_json
from bertsmith.models.sentence import read_sentence
from bertsmith.tasks.calibration import sigmoid
from bertsmith.tasks.classes import positive_label
from bertsmith.tasks.losses import Criterion, find_known
from bertsmith.tasks.measures import Measure
from bertsmith.tasks.result import Result, check_finite
from bertsmith.tasks.retrieval import score_rankings
from bertsmith.tasks.task import Row, too_long
from bertsmith.tasks.texts import list_texts, pair_lists, take_count
from bertsmith.tasks.trained import MISTAKES, Settings, TrainedTask
from bertsmith.text.tokenizer import Tokenizer

NEGATIVES = 4  # found for each query, where the data has none
OUTPUT = "relevance"


class Rerank(TrainedTask[RankExample, Result]):
    """`settings`: labels (of the head's outputs), least and most (the ends of the labels' scale), truncate, length."""

    name = "rerank"
    head = "classify"
    windows = False
    metric = "mrr@10"
    roles: ClassVar[tuple[str, ...]] = ("query", "passage", "negative", "label")
    required: ClassVar[tuple[str, ...]] = ("query", "passage")
    classes: ClassVar[bool] = False

    def __init__(
        self, tokenizer: Tokenizer, limit: int, truncate: str, settings: Settings, top_k: int | None = None,
        raw: bool = False,
    ) -> None:  # fmt: skip
        """`raw`: scores are the head's own numbers; of a head with two, by how much yes leads. Their sigmoid is the
        usual score, so their order is the same."""
        super().__init__(tokenizer, limit, truncate, settings)
        self.refuse_windows()
        self.top_k = None if top_k is None else take_count("top_k", top_k)
        self.raw = raw
        self.least, self.most = float(settings.get("least", 0.0)), float(settings.get("most", 1.0))

    @classmethod
    def examples(
        cls, table: Table, columns: Mapping[str, str], choices: Mapping[str, Any], gold: bool = True
    ) -> list[RankExample]:
        """`choices`: negatives (how many to find for each query where the data has none)."""
        return rank_examples(table, columns, negatives=choices.get("negatives") or NEGATIVES, gold=gold)

    @classmethod
    def settle(cls, examples: Sequence[RankExample], choices: Mapping[str, Any]) -> Settings:
        """`choices`: source, truncate, length."""
        gains = [gain for example in examples for gain in example.gains or ()]
        if not gains:
            raise BertsmithError("no training example has a label, so there is nothing to learn; name its column.")
        if min(gains) == max(gains):
            raise BertsmithError(
                f"all {len(gains):,} labels of train are {gains[0]:g}, so there is nothing to learn; give texts that "
                f"answer their query and texts that do not."
            )
        least, most = scale_of(gains)
        settings: Settings = {"labels": [name_output(choices.get("source"))], "least": least, "most": most}
        return settings | {"truncate": choices.get("truncate") or cls.truncation, "length": choices.get("length")}

    @classmethod
    def settings_from(cls, labels: Sequence[str], problem_type: str | None) -> Settings:
        """Whatever the problem_type: a number that says how well a text fits ranks as its sigmoid does."""
        if len(labels) not in (1, 2):
            raise BertsmithError(
                f"this model has a head of {len(labels)} classes; a cross-encoder that reranks has one output or two."
            )
        return {"labels": list(labels), "truncate": cls.truncation, "length": None}

    def rows(self, examples: Sequence[RankExample]) -> list[list[Row]]:
        """One row a text, behind the query."""
        queries = [e.query for e in examples for _ in e.texts]
        texts = [text for e in examples for text in e.texts]
        cut = None if self.truncate == "error" else self.length
        policy = self.truncate if cut else "head"
        encoded = iter(self.tokenizer.encode_many(queries, texts, length=cut, truncate=policy))
        found = []
        for example in examples:
            rows = [Row(e.ids, e.segments, dropped=e.dropped) for e in (next(encoded) for _ in example.texts)]
            longest = max((len(row.ids) for row in rows), default=0)
            if longest > self.length:
                raise too_long(longest, self.length, self.windows, example.where, "a text with its query")
            if example.gains is not None:
                for row, gain in zip(rows, example.gains, strict=True):
                    row.gold = np.float32(self.share(gain))
            found.append(rows)
        return found

    def share(self, gain: float) -> float:
        """A label on the scale from 0 to 1; one of dev may lie outside of what train shows."""
        return min(max((gain - self.least) / (self.most - self.least), 0.0), 1.0)

    def loss(self, scores: Tensor, gold: Tensor, batch: Batch, criterion: Criterion) -> Tensor:
        cost = F.binary_cross_entropy_with_logits(scores[:, 0].float(), gold.nan_to_num(0.0), reduction="none")
        return torch.where(find_known(gold), cost, 0.0)

    def diverge(self, one: Tensor, other: Tensor, batch: Batch) -> Tensor:
        a, b = one[:, 0].float(), other[:, 0].float()
        return 0.5 * (a.sigmoid() - b.sigmoid()) * (a - b)

    def answer(self, example: RankExample, rows: Sequence[Row], scores: Sequence[Tensor]) -> Result:
        given = np.concatenate([score.double().numpy() for score in scores])  # (texts, outputs)
        labels = self.settings["labels"]
        yes = positive_label(labels) if len(labels) == 2 else 0
        leads = given[:, yes] - given[:, 1 - yes] if len(labels) == 2 else given[:, 0]
        check_finite(leads)
        shown = leads if self.raw else sigmoid(leads)
        answers = [
            {"index": int(i), "text": example.texts[i], "score": float(shown[i])}
            for i in np.argsort(-leads, kind="stable")[: self.top_k]  # from about 37 on every sigmoid is 1
        ]
        return Result(answers, truncated=sum(row.dropped for row in rows))

    def score(self, answers: Sequence[Result], examples: Sequence[RankExample]) -> dict[str, Measure]:
        """Over the queries that some text answers: of the others no order is right."""
        right = self._right(examples)
        kept = [i for i, some in enumerate(right) if some]
        found = [[answer["text"].strip() for answer in answers[i]] for i in kept]
        scored = score_rankings(found, [right[i] for i in kept], cuts=(1,))
        return {name: replace(measure, among=len(kept)) for name, measure in scored.items()}

    def report(self, answers: Sequence[Result], examples: Sequence[RankExample]) -> dict[str, Any]:
        """The queries whose first text does not answer, the surest first."""
        errors = []
        for result, example, right in zip(answers, examples, self._right(examples), strict=True):
            if right and result[0]["text"].strip() not in right:
                errors.append({"text": example.query, "where": example.where, "predicted": result[0]["text"],
                               "gold": max(right, key=right.__getitem__), "score": result[0]["score"]})  # fmt: skip
        return {"labels": [], "errors": sorted(errors, key=lambda error: -error["score"])[:MISTAKES]}

    def _right(self, examples: Sequence[RankExample]) -> list[dict[Any, float]]:
        """The texts that answer each query, with their gains; one whose labels are unknown cannot be scored.

        Gains are the labels less the one that means "not at all": by the training data, or where the folder says
        nothing of that by these examples. A label above all that training showed is worth more than those.
        """
        unknown = next((example.where for example in examples if example.gains is None), None)
        if unknown is not None:
            raise BertsmithError(f"{unknown or 'An example'} has no label to score by; give one or take it out.")
        gains = [gain for example in examples for gain in example.gains or ()]
        least = self.least if "least" in self.settings or not gains else scale_of(gains)[0]
        found: list[dict[Any, float]] = []
        for example in examples:
            some: dict[Any, float] = {}
            for text, gain in zip(example.texts, example.gains or (), strict=True):
                if gain > least:
                    some[text.strip()] = max(gain - least, some.get(text.strip(), 0.0))
            found.append(some)
        return found


def name_output(source: Any) -> str:
    """As the one output of the base model is called, if it is a cross-encoder's: then its head goes on training."""
    folder = Path(source) if source else Path()
    is_added = is_adapter(folder)  # its labels are in a file of its own
    path = folder / TASK_FILE if is_added else read_sentence(folder).encoder / "config.json"
    found = read_json(path) if source and path.is_file() else {}
    if is_added:
        settings = found.get("settings")
        labels = settings.get("labels") if isinstance(settings, dict) and found.get("task") == Rerank.name else None
    else:
        names = found.get("id2label")
        labels = [*names.values()] if isinstance(names, dict) and found.get("problem_type") != "regression" else None
    return str(labels[0]) if isinstance(labels, list) and len(labels) == 1 else OUTPUT


def ask_ranks(query: Any, texts: Any) -> list[RankExample]:
    """The examples of a request: a query with its texts, or several queries with a list of texts each."""
    if isinstance(query, str):
        return [RankExample(_take_query(query), _take_texts(texts))]
    pairs = pair_lists("rerank", query, texts, ("query", "queries"), "texts")
    return [RankExample(_take_query(one), _take_texts(some)) for one, some in pairs]


def _take_query(query: str) -> str:
    if not query.strip():
        raise BertsmithError("the query is empty; give some words to rank the texts by.")
    return query


def _take_texts(given: Any) -> tuple[str, ...]:
    texts = tuple(list_texts(given))
    if not texts:
        raise BertsmithError("there are no texts to rank; give at least one.")
    return texts
