"""How good tags are: entity F1 by the rules of conlleval, per type and over all, and the share of right tags.

In: the tags found and the gold ones, a list a sentence each. Out: measures whose counts are sums over sentences.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from bertsmith.data.findings import quoted
from bertsmith.data.schemes import OUTSIDE, convert, find_scheme, read_spans
from bertsmith.errors import BertsmithError
from bertsmith.tasks.measures import Array, Measure, macro_f1_present, micro_f1, ratio, share, tabulate

Tags = Sequence[Sequence[str]]


def measure_tags(found: Tags, gold: Tags, scheme: str) -> dict[str, Measure]:
    """The measures of a scheme, the main one first; `found` is in it, `gold` may be in another one with entities."""
    kinds, counts = count_entities(found, gold, scheme)
    right = ratio(count_right(found, gold, scheme))
    macro = Measure(counts, macro_f1_present, labels=tuple(kinds), is_share=True)
    if scheme == "plain":
        return {"accuracy": right, "macro_f1": macro}
    values = {"f1": micro_f1, "precision": _precision, "recall": _recall}
    totals = np.stack([each.sum(axis=1) for each in np.split(counts, 3, axis=1)], axis=1)
    of_all = {name: Measure(totals, value, is_share=True) for name, value in values.items()}
    return {**of_all, "macro_f1": macro, "accuracy": right}


def count_entities(found: Tags, gold: Tags, scheme: str) -> tuple[list[str], Array]:
    """The types, and how many entities of each a sentence has, (sentences, 3 · types): rightly found, found, gold.

    An entity is right if its first word, its last word and its type are. With plain tags each word is one.
    """
    pairs = [(set(read_spans(f, scheme)), set(read_spans(g, scheme))) for f, g in zip(found, gold, strict=True)]
    kinds = sorted({kind for both in pairs for spans in both for _, _, kind in spans})
    numbers = {kind: number for number, kind in enumerate(kinds)}
    counts = np.zeros((len(pairs), 3, len(kinds)), dtype=np.int32)
    for sentence, (ours, theirs) in zip(counts, pairs, strict=True):
        for row, spans in zip(sentence, (ours & theirs, ours, theirs), strict=True):
            for _, _, kind in spans:
                row[numbers[kind]] += 1
    return kinds, counts.reshape(len(pairs), 3 * len(kinds))


def count_right(found: Tags, gold: Tags, scheme: str) -> Array:
    """How many tags are right, and how many there are, (sentences, 2).

    Tags are compared as they are written, as conlleval does, so what was found is first put in the scheme of the gold.
    """
    other = _scheme_of_gold(gold, scheme)
    if other != scheme:
        found = [convert(tags, scheme, other) for tags in found]
    pairs = zip(found, gold, strict=True)
    right = [[sum(f == g for f, g in zip(ours, theirs, strict=True)), len(theirs)] for ours, theirs in pairs]
    return np.array(right, dtype=np.int64).reshape(-1, 2)


def type_table(found: Tags, gold: Tags, scheme: str) -> list[dict[str, Any]]:
    """A row a type, as in `tabulate`."""
    kinds, counts = count_entities(found, gold, scheme)
    return tabulate(kinds, counts.sum(axis=0))


def refuse_strange(gold: Tags, labels: Sequence[str], scheme: str, label_scheme: str, name: str) -> None:
    """Tags of which a model knows none are another column's, or called otherwise: it would seem to find nothing."""
    given = list(dict.fromkeys(tag for tags in gold for tag in tags if tag != OUTSIDE))
    kinds = {kind for tags in gold for _, _, kind in read_spans(tags, scheme)}
    known = {kind for label in labels for _, _, kind in read_spans([label], label_scheme)}
    if given and known.isdisjoint(kinds):
        theirs = quoted(label for label in labels if label != OUTSIDE)
        raise BertsmithError(
            f"{name} has none of the tags that the model knows: it has {quoted(given)}, the model {theirs}; choose "
            "their column (--tags COLUMN), or rename them."
        )


def _scheme_of_gold(gold: Tags, scheme: str) -> str:
    if scheme in ("plain", "bare", "io"):
        return scheme
    try:
        other = find_scheme(gold)
    except BertsmithError:  # some tag is odd; it counts as wrong
        return scheme
    if other in ("plain", "bare"):
        return scheme
    return "iob1" if other == "io" else other  # the same, but for entities side by side


def _precision(sums: Array) -> Array:
    return share(sums[..., 0], sums[..., 1])


def _recall(sums: Array) -> Array:
    return share(sums[..., 0], sums[..., 2])
