"""What each layer knows: how well a linear probe reads labels from it, beside what it reads from nothing.

In: a model, labelled texts or tagged words. Out: `Probes`: accuracy and F1 a layer, the majority's accuracy, that of a
control (Hewitt & Liang 2019, arXiv 1909.03368), and the share of each layer in a learned mix of all.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import numpy as np

from bertsmith.data.columns import find_columns, find_roles
from bertsmith.data.reading import read_sides
from bertsmith.data.table import Table
from bertsmith.errors import BertsmithError
from bertsmith.evaluation.intervals import interval
from bertsmith.inspection.layer_features import Array, Items, read_texts, read_words
from bertsmith.inspection.picture import Picture
from bertsmith.inspection.probes import Standard, fit, fit_mix
from bertsmith.inspection.probing_drawing import draw_probes
from bertsmith.inspection.subject import Subject
from bertsmith.tasks import measures
from bertsmith.tasks.catalog import find_task
from bertsmith.tasks.measures import Measure
from bertsmith.tasks.texts import take_count
from bertsmith.training.choices import take_columns

MOST = 10_000  # texts or words of each side
TASKS, READS = ("classify", "tag"), ("mean", "first")
Tell = Callable[[str, int, int], None]  # of what how many are done, and of how many


@dataclass(frozen=True)
class Score:
    accuracy: float
    low: float
    high: float
    macro_f1: float
    macro_low: float
    macro_high: float


@dataclass(frozen=True)
class LayerScore(Score):
    """`control` is the accuracy of the same probe where labels mean nothing; what it knows beyond is selectivity."""

    layer: int
    control: float

    @property
    def selectivity(self) -> float:
        return self.accuracy - self.control


class Probes(Picture):
    """`.layers` has a `LayerScore` a layer, 0 being the embedding; `.mix` is the score of all mixed, by `.shares`."""

    kind: ClassVar[str] = "probe"

    def __init__(
        self, task: str, labels: list[str], sizes: tuple[int, int], majority: float, layers: list[LayerScore],
        mix: Score, shares: Array, truncated: int,
    ) -> None:  # fmt: skip
        self.task, self.labels, self.sizes, self.majority = task, labels, sizes, majority
        self.layers, self.mix, self.shares, self.truncated = layers, mix, shares, truncated
        self.title = f"What each layer knows: {task}"

    @property
    def accuracy(self) -> Array:
        return np.array([each.accuracy for each in self.layers])

    def data(self) -> dict[str, Any]:
        items = "words" if self.task == "tag" else "texts"
        return {
            "task": self.task, "items": items, "labels": self.labels, "train": self.sizes[0], "dev": self.sizes[1],
            "truncated": self.truncated, "majority": self.majority,
            "layers": [{**asdict(each), "selectivity": each.selectivity} for each in self.layers],
            "mix": {**asdict(self.mix), "shares": self.shares.tolist()},
        }  # fmt: skip

    def svg(self) -> str:
        return draw_probes(self.data())


def probe(
    model: Subject, train: Any, dev: Any = None, *, task: str | None = None, reads: str = "mean", most: int = MOST,
    seed: int = 0, format: str | None = None, tell: Tell | None = None, **columns: str,
) -> Probes:  # fmt: skip
    """A linear probe for each layer: `probe(m, "train.conll", "dev.conll")`.

    `train` and `dev` are files, lists of dicts or DataFrames, or `train` a folder with both; `columns` say which column
    is which, as in `label="mood"`. `task` is classify (a label a text, read from the `mean` of its tokens or from the
    `first`) or tag (a word's tag, from its first piece); else it is told by the columns. Of more than `most` texts or
    words so many are drawn by `seed`. The control of words: each spelling has one tag, drawn by chance; that of texts:
    their labels in another order. `tell` hears how far it is, as ("layers", done, all).
    """
    if reads not in READS:
        raise BertsmithError(f"reads={reads!r} is not a choice; use one of {', '.join(READS)}.")
    most, tables = take_count("most", most), read_sides(train, dev, format)
    if len(tables) < 2:
        raise BertsmithError("a probe needs examples that it did not learn from; give them as dev.")
    chosen = take_columns(columns)
    kind = task or _guess_task(tables[0], chosen)
    if kind not in TASKS:
        raise BertsmithError(f"task={task!r} is not a choice; use one of {', '.join(TASKS)}.")
    sides = [_read(model, table, kind, found, reads, most, seed) for table, found in _find(tables, kind, chosen)]
    _refuse_few(sides, tables)
    return _measure(kind, sides[0], sides[1], seed, tell)


def _guess_task(table: Table, chosen: dict[str, str]) -> str:
    found = find_columns(table, find_task("tag").roles, chosen, required=())
    return "tag" if "words" in found or "entities" in found else "classify"


def _find(tables: Sequence[Table], kind: str, chosen: dict[str, str]) -> list[tuple[Table, Any]]:
    made_for = find_task(kind)
    return list(zip(tables, find_roles(tables, made_for.roles, chosen, made_for.required), strict=True))


def _read(model: Subject, table: Table, kind: str, columns: Any, reads: str, most: int, seed: int) -> Items:
    examples = find_task(kind).examples(table, columns, {"several": False} if kind == "classify" else {})
    count = sum(len(example.words) for example in examples) if kind == "tag" else len(examples)
    order = np.random.default_rng(seed).permutation(len(examples)) if count > most else range(len(examples))
    drawn = [examples[i] for i in order]
    return read_words(model, drawn, most) if kind == "tag" else read_texts(model, drawn, reads, most)


def _refuse_few(sides: Sequence[Items], tables: Sequence[Table]) -> None:
    for items, table in zip(sides, tables, strict=True):
        if not items.labels:
            raise BertsmithError(f"{table.name} holds nothing with a label to probe for.")
    if len(set(sides[0].labels)) < 2:
        raise BertsmithError(f"all labels of {tables[0].name} are {sides[0].labels[0]!r}; a probe needs two or more.")


def _measure(kind: str, train: Items, dev: Items, seed: int, tell: Tell | None) -> Probes:
    names = sorted(set(train.labels))
    numbers = {name: number for number, name in enumerate(names)}
    gold = np.array([numbers[label] for label in train.labels])
    wanted = np.array([numbers.get(label, -1) for label in dev.labels])  # one that train does not have is never right
    controls = _control(kind, train, dev, gold, wanted, len(names), seed)
    layers, standards = [], []
    for layer in range(train.features.shape[1]):
        if tell is not None:
            tell("layers", layer, train.features.shape[1])
        standard = Standard.of(train.features[:, layer])
        ours, theirs = standard(train.features[:, layer]), standard(dev.features[:, layer])
        found, other = (_predict(fit(ours, labels, len(names)), theirs) for labels in (gold, controls[0]))
        score = _score(found, wanted, dev.groups, len(names))
        layers.append(LayerScore(**asdict(score), layer=layer, control=float((other == controls[1]).mean())))
        standards.append(standard)
    mixed = [
        np.stack([standard(side.features[:, i]) for i, standard in enumerate(standards)], axis=1, dtype=np.float32)
        for side in (train, dev)
    ]
    shares, *probe = fit_mix(mixed[0], gold, len(names))
    found = _predict((probe[0], probe[1]), np.einsum("l,nlw->nw", shares, mixed[1]))
    majority = Counter(gold.tolist()).most_common(1)[0][0]
    sizes = (len(gold), len(wanted))
    mix = _score(found, wanted, dev.groups, len(names))
    share = float((wanted == majority).mean())
    return Probes(kind, names, sizes, share, layers, mix, shares, train.truncated + dev.truncated)


def _control(
    kind: str, train: Items, dev: Items, gold: Array, wanted: Array, count: int, seed: int
) -> tuple[Array, Array]:
    """Labels as frequent as the real ones that mean nothing: what a probe knows of them it has learnt by heart."""
    chance = np.random.default_rng(seed)
    if kind == "classify":
        return chance.permutation(gold), chance.permutation(wanted)
    spellings = sorted({*train.types, *dev.types})
    drawn = chance.choice(count, size=len(spellings), p=np.bincount(gold, minlength=count) / len(gold))
    tags = dict(zip(spellings, drawn.tolist(), strict=True))
    sides = [np.array([tags[spelling] for spelling in side.types]) for side in (train, dev)]
    return sides[0], sides[1]


def _predict(found: tuple[Array, Array], features: Array) -> Array:
    weights, bias = found
    return np.asarray((features @ weights + bias).argmax(axis=1))


def _score(found: Array, wanted: Array, groups: Sequence[int], count: int) -> Score:
    """With intervals over examples, not over their words, which stand or fall together."""
    known = np.arange(count)
    thirds = measures.count_labels(wanted[:, None] == known, found[:, None] == known)
    pairs = np.stack([found == wanted, np.ones(len(found))], axis=1)
    accuracy = measures.ratio(_sum(pairs, groups))
    macro = Measure(_sum(thirds, groups), measures.macro_f1_present, is_share=True)
    return Score(accuracy.point, *interval(accuracy), macro.point, *interval(macro))


def _sum(counts: Array, groups: Sequence[int]) -> Array:
    numbers = np.unique(np.asarray(groups), return_inverse=True)[1]
    found = np.zeros((numbers.max() + 1, counts.shape[1]))
    np.add.at(found, numbers, counts)
    return found
