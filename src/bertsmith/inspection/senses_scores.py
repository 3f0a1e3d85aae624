"""How well each layer tells senses apart: a test use gets the sense of the nearest training use, by cosine.

In: a folder in the layout of CoarseWSD-20 (Loureiro et al. 2021): a folder a word with `train.data.txt` (the number of
the word, a tab, a tokenized sentence), `train.gold.txt` (the number of its sense), the same for test, and
`classes_map.txt`. Out: accuracy by layer and word, beside the most frequent sense.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any, ClassVar

import numpy as np

from bertsmith.data.decoding import bare_lines, decode
from bertsmith.errors import BertsmithError
from bertsmith.evaluation.report.charts import Series, draw_lines
from bertsmith.inspection.picture import Picture
from bertsmith.inspection.sense_maps import Array, unit
from bertsmith.inspection.still import stack_charts
from bertsmith.inspection.subject import Subject
from bertsmith.inspection.uses import Use, read_uses
from bertsmith.models.files import read_json
from bertsmith.tasks.texts import take_count

BLOCK = 1024  # uses that are read at once
SAME = 1e-6  # cosines that differ by less are the same but for rounding


@dataclass(frozen=True)
class WordSet:
    """A word's uses; a use's label is the number of its sense."""

    word: str
    senses: dict[str, str]
    train: list[Use]
    test: list[Use]


@dataclass
class SenseScores(Picture):
    """`words` has of each its `accuracy` and `balanced` accuracy (the mean over its senses) by layer, and `frequent`,
    that of the sense which is most frequent in training; `micro` is over all uses, `macro` the mean over words."""

    kind: ClassVar[str] = "senses_scores"

    layers: list[int]
    words: list[dict[str, Any]]
    most: int | None  # uses of a word in each split, where there are more

    def __post_init__(self) -> None:
        self.title = "Senses by nearest use"
        tests = np.array([one["test"] for one in self.words])
        each = np.array([one["accuracy"] for one in self.words])  # (words, layers)
        frequent = np.array([one["frequent"] for one in self.words])
        self.micro = [float(x) for x in (each * tests[:, None]).sum(axis=0) / tests.sum()]
        self.macro = [float(x) for x in each.mean(axis=0)]
        self.balanced = [float(x) for x in np.array([one["balanced"] for one in self.words]).mean(axis=0)]
        self.frequent = {"micro": float((frequent * tests).sum() / tests.sum()), "macro": float(frequent.mean())}

    def data(self) -> dict[str, Any]:
        return {
            "layers": self.layers, "micro": _round(self.micro), "macro": _round(self.macro),
            "balanced": _round(self.balanced), "frequent": {k: round(v, 4) for k, v in self.frequent.items()},
            "train": sum(one["train"] for one in self.words), "test": sum(one["test"] for one in self.words),
            "most": self.most,
            "words": [{**one, "accuracy": _round(one["accuracy"]), "balanced": _round(one["balanced"]),
                       "frequent": round(one["frequent"], 4)} for one in self.words],
        }  # fmt: skip

    def html(self) -> str:
        raise BertsmithError("scores by layer stand still; save them as .svg or .json.")

    def svg(self) -> str:
        return draw_scores({"": self})


def score_senses(
    model: Subject, folder: str | Path, *, most: int | None = None, seed: int = 0,
    tell: Callable[[str, int, int], None] | None = None,
) -> SenseScores:  # fmt: skip
    """Accuracy by the nearest training use at every layer; `most` draws so many uses of each word and split."""
    sets = read_benchmark(folder)
    if most is not None:
        sets = [_draw(one, take_count("most", most), seed) for one in sets]
    layers = list(range(model.checkpoint.config.depth + 1))
    words = []
    for number, one in enumerate(sets):
        if tell is not None:
            tell("words", number, len(sets))
        words.append(_score_word(model, one, layers))
    return SenseScores(layers, words, most)


def _score_word(model: Subject, one: WordSet, layers: Sequence[int]) -> dict[str, Any]:
    train, test = (_read(model, uses, layers) for uses in (one.train, one.test))
    known, gold = (np.array([use.label for use in uses]) for uses in (one.train, one.test))
    accuracy, balanced = [], []
    for place in range(len(layers)):
        right = judge(test[:, place] @ train[:, place].T, known) == gold
        accuracy.append(float(right.mean()))
        balanced.append(float(np.mean([right[gold == sense].mean() for sense in np.unique(gold)])))
    frequent = Counter(known.tolist()).most_common(1)[0][0]
    return {
        "word": one.word, "senses": list(one.senses.values()), "train": len(one.train), "test": len(one.test),
        "accuracy": accuracy, "balanced": balanced, "frequent": float((gold == frequent).mean()),
    }  # fmt: skip


def judge(cosines: Array, known: Array) -> Array:
    """The sense of the nearest training use for each test use, cosines (test, train).

    Where several are as near, as without context all are that stand in one place, the sense of most of them.
    """
    names, numbers = np.unique(known, return_inverse=True)
    nearest = cosines >= cosines.max(axis=1, keepdims=True) - SAME
    votes = nearest.astype(np.float32) @ np.eye(len(names), dtype=np.float32)[numbers]  # (test, senses)
    return np.asarray(names[votes.argmax(axis=1)])


def _read(model: Subject, uses: Sequence[Use], layers: Sequence[int]) -> Array:
    """Unit vectors, (uses, layers, width)."""
    parts = [read_uses(model, uses[i : i + BLOCK], layers)[1] for i in range(0, len(uses), BLOCK)]
    return unit(np.concatenate(parts))


def read_benchmark(folder: str | Path) -> list[WordSet]:
    """The words of a folder in the layout of CoarseWSD-20, by name."""
    places = sorted(place.parent for place in Path(folder).glob("*/train.data.txt"))
    if not places:
        raise BertsmithError(
            f"{folder} has no folder of a word with train.data.txt in it; give the folder of CoarseWSD-20."
        )
    return [_read_word(place) for place in places]


def _read_word(place: Path) -> WordSet:
    senses = {str(key): str(name) for key, name in read_json(place / "classes_map.txt").items()}
    splits = {split: _read_split(place, split, senses) for split in ("train", "test")}
    return WordSet(place.name, senses, splits["train"], splits["test"])


def _read_split(place: Path, split: str, senses: dict[str, str]) -> list[Use]:
    data, gold = (_read_lines(place / f"{split}.{kind}.txt") for kind in ("data", "gold"))
    if len(data) != len(gold) or not data:
        raise BertsmithError(
            f"{place}: {split} has {len(data):,} sentences and {len(gold):,} senses; it needs as many."
        )
    uses = []
    for number, (line, sense) in enumerate(zip(data, gold, strict=True), 1):
        at, tab, text = line.partition("\t")
        tokens = text.split(" ")
        if not tab or not at.isdecimal() or int(at) >= len(tokens) or sense.strip() not in senses:
            raise BertsmithError(
                f"{place}, {split}, line {number}: needs the number of a word, a tab and a sentence with that many "
                f"words, and a sense that classes_map.txt names."
            )
        start = sum(len(token) + 1 for token in tokens[: int(at)])
        uses.append(Use(text, start, start + len(tokens[int(at)]), sense.strip(), number - 1))
    return uses


def _read_lines(path: Path) -> list[str]:
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise BertsmithError(f"{path} cannot be read: {error.strerror or error}.") from error
    return [line for _, line in bare_lines(decode(raw, str(path))) if line.strip()]


def _draw(one: WordSet, most: int, seed: int) -> WordSet:
    def some(uses: list[Use], split: str) -> list[Use]:
        return uses if len(uses) <= most else Random(f"{seed} {one.word} {split}").sample(uses, most)

    return WordSet(one.word, one.senses, some(one.train, "train"), some(one.test, "test"))


def draw_scores(by_model: dict[str, SenseScores]) -> str:
    """A chart a model: accuracy over layers, beside the most frequent sense."""
    charts = []
    for name, scores in by_model.items():
        last = scores.layers[-1]
        lines = [("all uses (micro)", scores.micro, 1), ("mean over words (macro)", scores.macro, 3)]
        series = [Series(label, list(zip(scores.layers, y, strict=True)), c, dots=True) for label, y, c in lines]
        flat = scores.frequent["micro"]
        series.append(Series("most frequent sense (micro)", [(0, flat), (last, flat)], 6))
        best = max(range(len(scores.layers)), key=lambda i: scores.micro[i])
        count = sum(one["test"] for one in scores.words)
        found = f"best: layer {scores.layers[best]}, {scores.micro[best]:.3f} of {count:,}"
        charts.append((name, found, draw_lines(series, "layer (0: before any context)", last, height=270), series))
    return stack_charts("Which sense? The nearest use knows", charts)


def _round(values: Sequence[float]) -> list[float]:
    return [round(value, 4) for value in values]
