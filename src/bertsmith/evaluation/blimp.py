"""BLiMP (Warstadt et al. 2020): of two sentences, which differ in one point of grammar, is the right one the likelier?

In: a folder with the benchmark's files, a file a set, and a model that fills masks. Out: for each pair whether the good
sentence has the higher pseudo-log-likelihood; the share of those a set, the mean of sets a phenomenon, a field and
overall. A tie counts as wrong.
"""

import difflib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import compress
from pathlib import Path
from typing import Any

import numpy as np

from bertsmith.data.reading import read_table
from bertsmith.errors import BertsmithError
from bertsmith.evaluation.scoring import with_intervals
from bertsmith.tasks.likelihood import Likelihood, ask_each
from bertsmith.tasks.measures import Array, Measure, mean, share
from bertsmith.tasks.predicting import Predictor
from bertsmith.tasks.texts import list_names

SETS, PAIRS = 67, 1000  # of the whole benchmark: less is reported as a subset
FIELDS = ("sentence_good", "sentence_bad", "field", "linguistics_term", "UID")
PLACES = (".", "data", "blimp/data")  # where the files are in what people unpack
# The files have 13 terms for the 12 phenomena of the paper's table 2, and one field in two spellings.
PHENOMENA = {"s-selection": "argument_structure"}
Say = Callable[[str], None]


@dataclass(frozen=True)
class PairSet:
    name: str  # the files' UID
    phenomenon: str
    field: str
    pairs: Sequence[tuple[str, str]]  # the good sentence, the bad one


@dataclass(frozen=True)
class Judged:
    """What became of a set's pairs."""

    given: PairSet
    right: Array  # (pairs that were read,) of bool
    ties: int
    skipped: int  # pairs with a sentence that is longer than the model reads


def find_sets(folder: Path, names: Sequence[str] | None = None) -> list[Path]:
    """The files of the sets, of those that are named; a set is called as its file."""
    if not folder.is_dir():
        raise BertsmithError(f"{folder} is not a folder; give the one that holds the .jsonl files of BLiMP.")
    found = next((files for place in PLACES if (files := sorted((folder / place).glob("*.jsonl")))), [])
    if not found:
        raise BertsmithError(
            f"{folder} holds no file of BLiMP; looked for *.jsonl in it and in {', '.join(PLACES[1:])}."
        )
    if names is None:
        return found
    names = list_names("sets", names)
    known = {path.stem: path for path in found}
    for name in names:
        if name not in known:
            near = difflib.get_close_matches(name, known, 1)
            hint = f"did you mean {near[0]}?" if near else f"it has {', '.join([*known][:5])} …"
            raise BertsmithError(f"{folder} has no set {name!r}; {hint}")
        if names.count(name) > 1:
            raise BertsmithError(f"{name} is named twice; name each set once.")
    if not names:
        raise BertsmithError("no set is named; name some, or leave sets out for all.")
    return [path for name, path in known.items() if name in names]


def read_set(path: Path, limit: int | None = None) -> PairSet:
    """The pairs of one file, the first `limit` of them."""
    table = read_table(path, format="jsonl")
    records = table.records[:limit]
    for number, record in enumerate(records):
        for name in FIELDS:
            value = record.get(name)
            if not isinstance(value, str) or not value.strip():
                raise BertsmithError(
                    f'{table.where(number)}: has no text in "{name}"; each line of a set holds {", ".join(FIELDS)}.'
                )
        if record["UID"] != records[0]["UID"]:
            raise BertsmithError(
                f'{table.where(number)}: "UID" is {record["UID"]!r}, but {records[0]["UID"]!r} above; a file holds '
                f"one set."
            )
    first = records[0]
    term, field = first["linguistics_term"], first["field"].replace("/", "_")
    pairs = [(record["sentence_good"], record["sentence_bad"]) for record in records]
    return PairSet(first["UID"], PHENOMENA.get(term, term), field, pairs)


def judge_set(predictor: Predictor, task: Likelihood, given: PairSet) -> Judged:
    """Pairs that do not fit are left out; all others are asked in one go."""
    read = task.tokenizer.encode_many([text for pair in given.pairs for text in pair])
    tokens = np.array([len(one) for one in read]).reshape(-1, 2)
    fits = np.repeat(tokens.max(axis=1) <= task.limit, 2)
    chances = ask_each(predictor, task, list(compress(read, fits)))
    scores = np.array([task.add(some) for some in chances]).reshape(-1, 2)
    good, bad = scores[:, 0], scores[:, 1]
    return Judged(given, good > bad, int((good == bad).sum()), len(given.pairs) - len(scores))


def macro(parts: Sequence[Array]) -> Measure:
    """The mean of the shares of right ones of several sets, whatever their sizes; pairs are the examples.

    Where all are right, or all wrong, it is the plain share, whose interval can say how little that tells.
    """
    every = np.concatenate(parts)
    if len(parts) == 1 or every.all() or not every.any():
        return mean(every)
    sizes = [len(part) for part in parts]
    mine = np.repeat(np.eye(len(parts), dtype=np.uint8), sizes, axis=0)  # (pairs, sets): whose pair it is
    counts = np.hstack([mine * every[:, None].astype(np.uint8), mine])
    return Measure(counts, lambda sums: _mean_share(sums, len(parts)))


def _mean_share(sums: Array, sets: int) -> Array:
    there = sums[..., sets:] > 0  # a small sample may have none of a set's
    shares = share(sums[..., :sets], sums[..., sets:])
    return share(shares.sum(axis=-1), there.sum(axis=-1))


def summarize(judged: Sequence[Judged]) -> dict[str, Any]:
    """Accuracies with intervals: overall, by field, by phenomenon, by set; plain JSON."""
    read = [one for one in judged if len(one.right)]
    if not read:
        raise BertsmithError("every pair has a sentence that is longer than the model reads; nothing is left to judge.")
    return {
        "accuracy": tell_group(read),
        "fields": [{"field": name, **tell_group(some)} for name, some in group(read, "field")],
        "phenomena": [{"phenomenon": name, **tell_group(some)} for name, some in group(read, "phenomenon")],
        "sets": [
            {"set": one.given.name, "phenomenon": one.given.phenomenon, "field": one.given.field,
             **tell_group([one]), "ties": one.ties, "skipped": one.skipped}
            for one in read
        ],
        "pairs": sum(len(one.right) for one in judged),
        "ties": sum(one.ties for one in judged),
        "skipped": sum(one.skipped for one in judged),
        "subset": tell_subset(judged),
    }  # fmt: skip


def group(judged: Sequence[Judged], key: str) -> Iterable[tuple[str, list[Judged]]]:
    names = sorted({getattr(one.given, key) for one in judged})
    return [(name, [one for one in judged if getattr(one.given, key) == name]) for name in names]


def tell_group(judged: Sequence[Judged]) -> dict[str, Any]:
    """`value, low, high, n` (pairs) and `sets`."""
    measure = macro([one.right for one in judged])
    found = with_intervals({"accuracy": measure}, sum(len(one.right) for one in judged))["accuracy"]
    return {**found, "sets": len(judged)}


def tell_subset(judged: Sequence[Judged]) -> str | None:
    """What is lacking of the benchmark as it was published."""
    fewest = min(len(one.right) for one in judged)
    parts = [f"{len(judged)} of {SETS} sets"] if len(judged) < SETS else []
    if fewest < PAIRS:
        most = max(len(one.right) for one in judged)
        told = f"{fewest:,}" if fewest == most else f"{fewest:,} to {most:,}"
        parts.append(f"{told} of {PAIRS:,} pairs each")
    return ", ".join(parts) or None
