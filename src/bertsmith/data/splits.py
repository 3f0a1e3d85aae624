"""Some examples are set apart for development. In: examples and a share. Out: train and dev, the same every time.

An example's side is decided by a hash of its content and the seed, not by its place in the file, so the order of the
rows does not matter. Examples that share their content (a text and its pair; the context of questions) stay together:
what is trained on is never scored.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Generic, TypeVar

from bertsmith.data.examples import (
    ChoiceExample,
    NumberExample,
    PairExample,
    RankExample,
    SpanExample,
    TagExample,
    TextExample,
)
from bertsmith.data.linking import link
from bertsmith.errors import BertsmithError

Known = TextExample | TagExample | SpanExample | NumberExample | ChoiceExample | PairExample | RankExample
Example = TypeVar(
    "Example", TextExample, TagExample, SpanExample, NumberExample, ChoiceExample, PairExample, RankExample
)
FEW = 20


@dataclass(frozen=True)
class Split(Generic[Example]):
    """`train, dev = split`; `note` is a sentence for the user, "" where there is nothing to say."""

    train: list[Example]
    dev: list[Example]
    note: str = ""

    def __iter__(self) -> Iterator[list[Example]]:
        return iter((self.train, self.dev))


def split_off(examples: Sequence[Example], share: float = 0.1, seed: int = 0, stratify: bool = True) -> Split[Example]:
    """About `share` of the examples for dev, at least one; with `stratify` as much of each label of texts.

    Each label that occurs keeps at least one example in train.
    """
    if not 0 < share < 1:
        raise BertsmithError(f"the share for development must lie between 0 and 1, not {share}.")
    by_context = all(isinstance(example, SpanExample) for example in examples)
    groups = _group(examples)
    if by_context and len(groups) < 2:
        groups, by_context = _group(examples, by_question=True), False
    if len(groups) < 2:
        what = (
            f"{len(examples)} examples, all of one text,"
            if len(examples) > 1
            else f"{len(examples)} example{'s' * (not examples)}"
        )
        raise BertsmithError(f"{what} cannot be split; give a file for development (--dev FILE).")
    strata = _stratify(examples, groups) if stratify else [list(groups)]
    chosen = _choose(examples, groups, strata, share, seed)
    if not chosen:
        raise BertsmithError(
            "no example can be set apart for development, since each label has only one; give more examples or a file "
            "for development (--dev FILE)."
        )
    apart = {i for key in chosen for i in groups[key]}
    train = [example for i, example in enumerate(examples) if i not in apart]
    dev = [example for i, example in enumerate(examples) if i in apart]
    return Split(train, dev, _describe(len(examples), len(dev), by_context))


def _group(examples: Sequence[Example], by_question: bool = False) -> dict[str, list[int]]:
    """Examples by what they share; white space and case do not make a text another one."""
    if examples and isinstance(examples[0], PairExample | RankExample):
        return link([e for e in examples if isinstance(e, PairExample | RankExample)])
    groups: dict[str, list[int]] = defaultdict(list)
    for i, example in enumerate(examples):
        if isinstance(example, SpanExample):
            parts = [example.context, example.question] if by_question else [example.context]
        else:
            parts = [example.text, (example.pair or "") if isinstance(example, TextExample | NumberExample) else ""]
        groups["\0".join(" ".join(part.casefold().split()) for part in parts)].append(i)
    return dict(groups)


def _stratify(examples: Sequence[Example], groups: dict[str, list[int]]) -> list[list[str]]:
    """The groups by the rarest label in each, for of several labels it is the one that a split could lose."""
    counts = Counter(label for example in examples for label in _labels(example))
    strata: dict[str, list[str]] = defaultdict(list)
    for key, members in groups.items():
        labels = {label for i in members for label in _labels(examples[i])}
        strata[min(labels, key=lambda label: (counts[label], label), default="")].append(key)
    return [strata[label] for label in sorted(strata)]


def _labels(example: Known) -> tuple[str, ...]:
    return example.labels or () if isinstance(example, TextExample) else ()


def _choose(
    examples: Sequence[Example], groups: dict[str, list[int]], strata: list[list[str]], share: float, seed: int
) -> list[str]:
    """The groups that go to dev: of each stratum its quota, in the order of their hashes."""
    left = Counter(label for example in examples for label in set(_labels(example)))
    chosen: list[str] = []
    sizes = [sum(len(groups[key]) for key in keys) for keys in strata]
    for keys, quota in zip(strata, _share_out(sizes, share), strict=True):
        kept = len(keys)
        for key in sorted(keys, key=lambda key: _hash(key, seed)):
            members = groups[key]
            if quota == 0:
                break
            lost = Counter(label for i in members for label in set(_labels(examples[i])))
            if len(members) > quota or kept == 1 or any(left[label] <= count for label, count in lost.items()):
                continue
            chosen.append(key)
            quota, kept = quota - len(members), kept - 1
            left.subtract(lost)
    return chosen or _smallest(examples, groups, left, seed)


def _share_out(sizes: Sequence[int], share: float) -> list[int]:
    """Whole numbers near share x size that add up to the share of all, at least 1: the largest remainders go up."""
    total = max(1, round(share * sum(sizes)))
    quotas = [int(share * size) for size in sizes]
    order = sorted(range(len(sizes)), key=lambda i: (quotas[i] - share * sizes[i], -sizes[i], i))
    for i in order[: max(0, total - sum(quotas))]:
        quotas[i] += 1
    return quotas


def _smallest(examples: Sequence[Example], groups: dict[str, list[int]], left: Counter[str], seed: int) -> list[str]:
    """Where no group fits its quota: the smallest one that leaves train an example of each label."""
    for key in sorted(groups, key=lambda key: (len(groups[key]), _hash(key, seed))):
        lost = Counter(label for i in groups[key] for label in set(_labels(examples[i])))
        if all(left[label] > count for label, count in lost.items()):
            return [key]
    return []


def _hash(key: str, seed: int) -> bytes:
    return blake2b(f"{seed}\0{key}".encode("utf-8", "surrogatepass"), digest_size=16).digest()


def _describe(count: int, apart: int, by_context: bool) -> str:
    together = ", all questions of a context on one side" if by_context else ""
    note = f"set {apart:,} of {count:,} examples apart for development{together}"
    if count < FEW:
        note += "; a score from so few says little, so give more examples or a file for development (--dev FILE)"
    return note + "."
