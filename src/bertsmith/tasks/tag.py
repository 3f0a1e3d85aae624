"""A tag for each word: names and other entities, chunks, slots, parts of speech.

In: `TagExample`s; a raw text becomes one by `split_text`. Out: a `Result` of `entity_group, score, word, start, end`,
with the tag of each word in `.tags`, in the scheme of the training data. A word's label stands on its first piece.
Training is in iob2 whatever scheme comes in (iobes on request); the best well-formed sequence is found exactly.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from bertsmith.data.examples import TagExample
from bertsmith.data.findings import counted
from bertsmith.data.schemes import OUTSIDE, SCHEMES, convert, find_scheme, guess_scheme
from bertsmith.data.table import Table
from bertsmith.data.tags import tag_examples
from bertsmith.errors import BertsmithError
from bertsmith.tasks.aggregation import BY_PIECE, MODES, Answers, list_entities, list_groups, list_pieces, merge_pieces
from bertsmith.tasks.alignment import align
from bertsmith.tasks.entities import measure_tags, type_table
from bertsmith.tasks.measures import Array, Measure
from bertsmith.tasks.result import Result, check_finite
from bertsmith.tasks.tag_rows import FILLER, Layout, TagRow
from bertsmith.tasks.task import Row
from bertsmith.tasks.trained import MISTAKES, Settings, TrainedTask
from bertsmith.tasks.viterbi import Grammar, best_path
from bertsmith.text.tokenizer import Tokenizer


class Tag(TrainedTask[TagExample, Result]):
    """`settings`: labels, the label_scheme they are in, the scheme of the data, default, truncate, length."""

    name = "tag"
    head = "tag"
    metric = "f1"
    truncation: ClassVar[str] = "windows"
    roles: ClassVar[tuple[str, ...]] = ("words", "tags", "text", "entities")
    required: ClassVar[tuple[str, ...]] = ("words",)  # or a text with entities

    def __init__(
        self, tokenizer: Tokenizer, limit: int, truncate: str, settings: Settings, aggregation: str = "first"
    ) -> None:
        super().__init__(tokenizer, limit, truncate, settings)
        if aggregation not in MODES:
            raise BertsmithError(f"aggregation={aggregation!r} is not a choice; use one of {', '.join(MODES)}.")
        self.aggregation = aggregation
        self.scheme: str = settings["scheme"]
        self.label_scheme: str = settings.get("label_scheme") or self.scheme
        self.numbers = {label: number for number, label in enumerate(settings["labels"])}
        self.layout = Layout(tokenizer, self.length, truncate)
        if self.scheme == "plain":
            self.metric = "accuracy"

    @classmethod
    def examples(
        cls, table: Table, columns: Mapping[str, str], choices: Mapping[str, Any], gold: bool = True
    ) -> list[TagExample]:
        return tag_examples(table, columns, label_names=choices.get("label_names"), gold=gold)

    @classmethod
    def settle(cls, examples: Sequence[TagExample], choices: Mapping[str, Any]) -> Settings:
        """`choices`: scheme (of the data; None: found), label_scheme (to train in; None: iob2), truncate, length."""
        tags = [_tags_of(example) for example in examples]
        scheme = _choose_scheme("scheme", choices) or find_scheme(tags)
        label_scheme = _choose_scheme("label_scheme", choices) or ("plain" if scheme == "plain" else "iob2")
        if "plain" in (scheme, label_scheme) and scheme != label_scheme:
            raise BertsmithError(
                f"label_scheme={label_scheme!r} does not go with tags that are {scheme}; leave it out."
            )
        found = [tag for sentence in tags for tag in convert(sentence, scheme, label_scheme)]
        default = OUTSIDE
        if scheme == "plain":
            if not found:
                raise BertsmithError("the training examples have no words, so there are no tags to learn.")
            default = Counter(sorted(found)).most_common(1)[0][0]
        labels = sorted({*found, default}, key=lambda label: (label != OUTSIDE, label))
        chosen = {"truncate": choices.get("truncate") or cls.truncation, "length": choices.get("length")}
        return {"labels": labels, "scheme": scheme, "label_scheme": label_scheme, "default": default, **chosen}

    @classmethod
    def settings_from(cls, labels: Sequence[str], problem_type: str | None) -> Settings:
        """The settings of a folder made elsewhere, by its labels.

        B and I alone may be iob1 as well as iob2, so there every sequence is allowed and read as conlleval reads it.
        """
        scheme = guess_scheme(labels)
        default = OUTSIDE if OUTSIDE in labels else labels[0]
        written = "iob2" if scheme == "iob" else scheme
        return {
            "labels": list(labels), "scheme": written, "label_scheme": scheme, "default": default,
            "truncate": cls.truncation, "length": None,
        }  # fmt: skip

    @cached_property
    def grammar(self) -> Grammar:
        return Grammar(self.labels, self.label_scheme)

    def rows(self, examples: Sequence[TagExample]) -> list[list[Row]]:
        """The places asked for are the first pieces of the words, or all pieces where the aggregation needs them."""
        every = self.aggregation != "first"
        made: list[list[Row]] = []
        for example, whole in zip(examples, self.tokenizer.encode_many([e.text for e in examples]), strict=True):
            lead, count = self.layout.lead, len(whole) - self.layout.specials
            words = align(example.text, example.spans, whole.offsets[lead : lead + count])
            made.append([*self.layout.rows(whole, words, every, self._gold(example), example.where)])
        return made

    def answer(self, example: TagExample, rows: Sequence[Row], scores: Sequence[Tensor]) -> Result:
        chances, words, pieces = _gather(rows, scores)
        by_piece = self.aggregation in BY_PIECE
        merged = merge_pieces(chances, words, len(example.spans), "first" if by_piece else self.aggregation)
        chosen, sure = self._decode(merged)
        tags = convert([self.settings["labels"][number] for number in chosen], self.label_scheme, self.scheme)
        if by_piece:
            answers = self._answer_pieces(example.text, chances, pieces)
        else:
            answers = list_entities(example.text, example.spans, tags, sure, self.scheme)
        return Result(answers, truncated=sum(row.dropped for row in rows), tags=tags)

    def score(self, answers: Sequence[Result], examples: Sequence[TagExample]) -> dict[str, Measure]:
        return measure_tags([answer.tags or [] for answer in answers], [_tags_of(e) for e in examples], self.scheme)

    def report(self, answers: Sequence[Result], examples: Sequence[TagExample]) -> dict[str, Any]:
        found, gold = [answer.tags or [] for answer in answers], [list(_tags_of(example)) for example in examples]
        wrong: list[dict[str, Any]] = [
            {"where": e.where, "words": e.words, "gold": theirs, "predicted": ours, "score": _surest(answer)}
            for e, answer, ours, theirs in zip(examples, answers, found, gold, strict=True)
            if ours != theirs
        ]
        wrong.sort(key=lambda mistake: -mistake["score"])
        return {"per_label": type_table(found, gold, self.scheme), "errors": wrong[:MISTAKES]}

    def _gold(self, example: TagExample) -> Array | None:
        """The number of each word's label; a label that training did not have is filler."""
        if example.tags is None:
            return None
        labels = convert(_tags_of(example), self.scheme, self.label_scheme)
        return np.array([self.numbers.get(label, FILLER) for label in labels], dtype=np.int64)

    def _decode(self, chances: Array) -> tuple[Array, Array]:
        """The label of each word and its probability; a word that the model did not see gets the default."""
        unseen = np.isnan(chances).any(axis=1)
        costs = np.log(np.maximum(chances, 1e-300))
        costs[unseen] = -np.inf
        costs[unseen, self.numbers.get(self.settings.get("default", OUTSIDE), 0)] = 0.0
        chosen = best_path(costs, self.grammar)
        sure = np.where(unseen, 0.0, chances[np.arange(len(chances)), chosen])
        return chosen, sure

    def _answer_pieces(self, text: str, chances: Array, pieces: Array) -> Answers:
        pieces, places = np.unique(pieces, return_index=True)
        chances, lead = chances[places], self.layout.lead
        offsets = self.tokenizer.encode(text).offsets
        spans = [offsets[lead + piece] for piece in pieces]
        tags = [self.settings["labels"][number] for number in chances.argmax(axis=1)]
        sure = chances.max(axis=1, initial=0.0)
        if self.aggregation == "simple":
            return list_groups(text, spans, tags, sure, self.label_scheme)
        return list_pieces(text, spans, tags, sure, (pieces + lead).tolist())


def _gather(rows: Sequence[Row], scores: Sequence[Tensor]) -> tuple[Array, Array, Array]:
    """The probabilities of all places of an example in the order of its pieces; their words; their pieces."""
    tagged = [row for row in rows if isinstance(row, TagRow)]
    found = torch.cat([score[: len(row.words)] for row, score in zip(tagged, scores, strict=True)])
    chances = found.double().softmax(dim=-1).numpy()
    check_finite(chances)
    words = np.array([word for row in tagged for word in row.words], dtype=np.int64)
    pieces = np.array([piece for row in tagged for piece in row.pieces], dtype=np.int64)
    order = np.argsort(pieces, kind="stable")
    return chances[order], words[order], pieces[order]


def _tags_of(example: TagExample) -> tuple[str, ...]:
    where = example.where or "an example"
    if example.tags is None:
        raise BertsmithError(f"{where} has no tags; give it one tag a word.")
    if len(example.tags) != len(example.spans):
        told = f"{where} has {counted(len(example.tags), 'tag')} for {counted(len(example.spans), 'word')}"
        raise BertsmithError(f"{told}; give one tag a word.")
    return example.tags


def _surest(answer: Result) -> float:
    return max((found["score"] for found in answer.answers), default=0.0)


def _choose_scheme(name: str, choices: Mapping[str, Any]) -> str | None:
    chosen = choices.get(name)
    if chosen is not None and chosen not in SCHEMES:
        raise BertsmithError(f"{name}={chosen!r} is not a choice; use one of {', '.join(SCHEMES)}.")
    return chosen
