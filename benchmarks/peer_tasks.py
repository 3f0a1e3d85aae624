"""What the reference of benchmarks/finetune.py reads, learns and is asked, by the recipes of `transformers`' examples.

In: GLUE tables as distributed, CoNLL-2003 columns, SQuAD JSON. Out: features for a collator, and scores by the rules
that bertsmith itself is scored by.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

Feature = dict[str, list[int] | int]
Array = np.ndarray[Any, Any]
Logits = list[tuple[Array, ...]]  # one entry a feature, without padding where the model scores tokens

# Where the text, its pair and the label stand in a line of each GLUE table.
GLUE = {
    "sst2": {"columns": (0, None, 1), "header": True},
    "cola": {"columns": (3, None, 1), "header": False},
    "mrpc": {"columns": (3, 4, 0), "header": True},
}
TASKS = (*GLUE, "conll", "squad")
STRIDE, BEST, LONGEST_ANSWER = 128, 20, 30  # as run_qa.py has them


@dataclass
class Work:
    """All that training and scoring need to know of a task."""

    model: str  # the class in transformers
    collator: str
    labels: list[str]
    train: list[Feature]
    dev: list[Feature]
    score: Callable[[Logits], dict[str, float]]
    main: str  # the metric that chooses the best epoch
    outputs: tuple[str, ...] = field(default=("logits",))


def score_tags(gold: list[list[str]], found: list[list[str]]) -> dict[str, float]:
    from bertsmith.tasks.entities import measure_tags

    return {name: measure.point for name, measure in measure_tags(found, gold, "iob2").items()}


def score_answers(questions: Sequence[dict[str, Any]], texts: Sequence[str]) -> dict[str, float]:
    from bertsmith.data.examples import SpanExample
    from bertsmith.tasks.squad_score import measure, score_texts

    examples = [
        SpanExample(one["question"], one["context"], tuple((a["text"], a["answer_start"]) for a in one["answers"]))
        for one in questions
    ]
    return {name: found.point for name, found in measure(score_texts(texts, examples)).items()}


def prepare(task: str, tokenizer: Any, train: Path, dev: Path, length: int, limit: int | None) -> Work:
    if task in GLUE:
        return prepare_texts(task, tokenizer, train, dev, length, limit)
    if task == "conll":
        return prepare_words(tokenizer, train, dev, length, limit)
    return prepare_questions(tokenizer, train, dev, length, limit)


# -- a label a text ---------------------------------------------------------------------------------------------------


def read_glue(task: str, path: Path) -> list[tuple[str, str | None, str]]:
    """Quotes mean nothing in these files, and the columns are known."""
    first, second, label = GLUE[task]["columns"]  # type: ignore[misc]
    lines = path.read_text(encoding="utf-8-sig").split("\n")[1 if GLUE[task]["header"] else 0 :]
    rows = [line.rstrip("\r").split("\t") for line in lines if line]
    return [(row[first], row[second] if second is not None else None, row[label]) for row in rows]


def prepare_texts(task: str, tokenizer: Any, train: Path, dev: Path, length: int, limit: int | None) -> Work:
    learnt, asked = read_glue(task, train)[:limit], read_glue(task, dev)[:limit]
    labels = sorted({label for _, _, label in learnt})
    gold = [labels.index(label) for _, _, label in asked]

    def features(rows: Sequence[tuple[str, str | None, str]]) -> list[Feature]:
        pairs = [pair or "" for _, pair, _ in rows] if rows[0][1] is not None else None
        made = tokenizer([text for text, _, _ in rows], pairs, truncation=True, max_length=length)
        names = list(made)
        return [
            {**{name: made[name][i] for name in names}, "labels": labels.index(label)}
            for i, (_, _, label) in enumerate(rows)
        ]

    def score(logits: Logits) -> dict[str, float]:
        from sklearn.metrics import accuracy_score, f1_score, matthews_corrcoef

        found = [int(scores.argmax()) for (scores,) in logits]
        metrics = {"accuracy": accuracy_score(gold, found), "matthews": matthews_corrcoef(gold, found)}
        metrics["f1"] = f1_score(gold, found, average="binary")  # of the label "1"
        metrics["macro_f1"] = f1_score(gold, found, average="macro")
        return {name: float(value) for name, value in metrics.items()}

    main = "matthews" if task == "cola" else "accuracy"
    model, collator = "AutoModelForSequenceClassification", "DataCollatorWithPadding"
    return Work(model, collator, labels, features(learnt), features(asked), score, main)


# -- a tag a word -----------------------------------------------------------------------------------------------------


def read_columns(path: Path) -> list[tuple[list[str], list[str]]]:
    """Sentences as words and the last column's tags, which stand in IOB1 there and leave in IOB2."""
    lines = path.read_text(encoding="utf-8").splitlines()
    blocks = [list(block) for empty, block in groupby(lines, lambda line: not line.strip()) if not empty]
    sentences = []
    for block in blocks:
        rows = [line.split() for line in block]
        if rows[0][0] != "-DOCSTART-":
            sentences.append(([row[0] for row in rows], begin_chunks([row[-1] for row in rows])))
    return sentences


def begin_chunks(tags: Sequence[str]) -> list[str]:
    """IOB1 to IOB2: the first word of every chunk is B-, not only the one that follows a chunk of its type."""
    before = ["O", *tags]
    return [
        "B" + tag[1:] if tag.startswith("I-") and previous[2:] != tag[2:] else tag
        for previous, tag in zip(before, tags, strict=False)
    ]


def prepare_words(tokenizer: Any, train: Path, dev: Path, length: int, limit: int | None) -> Work:
    learnt, asked = read_columns(train)[:limit], read_columns(dev)[:limit]
    labels = sorted({tag for _, tags in learnt for tag in tags})
    numbers = {tag: i for i, tag in enumerate(labels)}

    def features(sentences: Sequence[tuple[list[str], list[str]]]) -> tuple[list[Feature], list[list[int]]]:
        """With the places of the words' first pieces, which alone carry a tag."""
        given = [words for words, _ in sentences]
        made = tokenizer(given, truncation=True, max_length=length, is_split_into_words=True)
        found, places = [], []
        for i, (_, tags) in enumerate(sentences):
            owners = made.word_ids(i)
            firsts = [at for at in range(1, len(owners)) if owners[at] is not None and owners[at] != owners[at - 1]]
            gold = [-100] * len(owners)
            for at in firsts:
                gold[at] = numbers.get(tags[owners[at]], -100)
            found.append({**{name: made[name][i] for name in made}, "labels": gold})
            places.append(firsts)
        return found, places

    dev_features, places = features(asked)

    def score(logits: Logits) -> dict[str, float]:
        answers = []
        for (scores,), at, (words, _) in zip(logits, places, asked, strict=True):
            found = [labels[number] for number in scores[at].argmax(axis=-1)]
            answers.append(found + ["O"] * (len(words) - len(found)))  # words beyond the length were not seen
        return score_tags([tags for _, tags in asked], answers)

    model, collator = "AutoModelForTokenClassification", "DataCollatorForTokenClassification"
    return Work(model, collator, labels, features(learnt)[0], dev_features, score, "f1")


# -- an answer from a text --------------------------------------------------------------------------------------------


def read_questions(path: Path) -> list[dict[str, Any]]:
    articles = json.loads(path.read_text(encoding="utf-8"))["data"]
    return [
        {**question, "context": paragraph["context"]}
        for article in articles
        for paragraph in article["paragraphs"]
        for question in paragraph["qas"]
    ]


def cut(tokenizer: Any, questions: Sequence[dict[str, Any]], length: int) -> Any:
    """Windows of the context that overlap by STRIDE tokens, each behind its whole question."""
    return tokenizer(
        [question["question"].lstrip() for question in questions], [question["context"] for question in questions],
        truncation="only_second", max_length=length, stride=STRIDE, return_overflowing_tokens=True,
        return_offsets_mapping=True,
    )  # fmt: skip


def window(made: Any, i: int) -> tuple[list[tuple[int, int] | None], int, int]:
    """Characters of each context token (None for the others), and the first and last of them."""
    kinds = made.sequence_ids(i)
    inside = [at for at, kind in enumerate(kinds) if kind == 1]
    offsets = [span if kind == 1 else None for span, kind in zip(made["offset_mapping"][i], kinds, strict=True)]
    return offsets, inside[0], inside[-1]


def locate(offsets: list[tuple[int, int] | None], first: int, last: int, start: int, end: int) -> tuple[int, int]:
    """The answer's first and last token, or [CLS] twice where this window does not hold it all."""
    if offsets[first][0] > start or offsets[last][1] < end:  # type: ignore[index]
        return 0, 0
    begin = max(at for at in range(first, last + 1) if offsets[at][0] <= start)  # type: ignore[index]
    return begin, min(at for at in range(first, last + 1) if offsets[at][1] >= end)  # type: ignore[index]


def prepare_questions(tokenizer: Any, train: Path, dev: Path, length: int, limit: int | None) -> Work:
    learnt, asked = read_questions(train)[:limit], read_questions(dev)[:limit]

    def features(made: Any) -> list[Feature]:
        names = ("input_ids", "token_type_ids", "attention_mask")
        return [{name: made[name][i] for name in names} for i in range(len(made["input_ids"]))]

    made = cut(tokenizer, learnt, length)
    train_features = features(made)
    for i, feature in enumerate(train_features):
        answers = learnt[made["overflow_to_sample_mapping"][i]]["answers"]
        begin = answers[0]["answer_start"] if answers else -1
        places = locate(*window(made, i), begin, begin + len(answers[0]["text"])) if answers else (0, 0)
        feature["start_positions"], feature["end_positions"] = places

    cuts = cut(tokenizer, asked, length)
    offsets = [window(cuts, i)[0] for i in range(len(cuts["input_ids"]))]

    def score(logits: Logits) -> dict[str, float]:
        best: list[tuple[float, str]] = [(-np.inf, "")] * len(asked)
        for i, (starts, ends) in enumerate(logits):
            which = cuts["overflow_to_sample_mapping"][i]
            best[which] = max(best[which], read_answer(starts, ends, offsets[i], asked[which]["context"]))
        return score_answers(asked, [text for _, text in best])

    model, collator = "AutoModelForQuestionAnswering", "DataCollatorWithPadding"
    names = ("start_logits", "end_logits")
    return Work(model, collator, [], train_features, features(cuts), score, "f1", names)


def read_answer(starts: Array, ends: Array, offsets: list[Any], context: str) -> tuple[float, str]:
    """The best of the BEST x BEST likeliest spans of one window, by the sum of their two scores."""
    found = (-np.inf, "")
    begins, finishes = (np.argsort(scores)[: -BEST - 1 : -1].tolist() for scores in (starts, ends))
    for begin in begins:
        for end in finishes:
            if begin <= end < begin + LONGEST_ANSWER and offsets[begin] and offsets[end]:
                text = context[offsets[begin][0] : offsets[end][1]]
                found = max(found, (float(starts[begin] + ends[end]), text))
    return found
