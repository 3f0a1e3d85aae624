"""Examples that share a text stay on one side of a split. In: pairs, or queries with texts. Out: groups of them.

Two examples belong together when they ask the same or have the same text as an answer, and so do those they are linked
to. Where that would tie most of them into one (as with an answer that many share), only what is asked counts.
"""

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence

from bertsmith.data.examples import PairExample, RankExample

MOST = 0.5  # of all examples in one group: with more no split is left


def link(examples: Sequence[PairExample | RankExample]) -> dict[str, list[int]]:
    """The numbers of the examples in each group, by a name that does not depend on their order."""
    groups = _connect(examples, _all_texts)
    if max(map(len, groups), default=0) > MOST * len(examples):
        groups = _connect(examples, _asked)
    return {min(_plain(examples[i].text) for i in members): members for members in groups}


def _asked(example: PairExample | RankExample) -> list[Hashable]:
    return [("asked", _plain(example.text))]


def _all_texts(example: PairExample | RankExample) -> list[Hashable]:
    if isinstance(example, PairExample):
        return [*_asked(example), ("told", _plain(example.pair))]
    most = max(example.gains or (), default=0.0)
    told = [text for text, gain in zip(example.texts, example.gains or (), strict=False) if gain == most and gain > 0]
    return [*_asked(example), *(("told", _plain(text)) for text in told)]


def _connect(
    examples: Sequence[PairExample | RankExample], texts: Callable[[PairExample | RankExample], Iterable[Hashable]]
) -> list[list[int]]:
    """Groups of examples that have one of their texts in common, by union and find."""
    above = list(range(len(examples)))

    def find(i: int) -> int:
        while above[i] != i:
            above[i] = above[above[i]]
            i = above[i]
        return i

    holders: dict[Hashable, int] = {}
    for i, example in enumerate(examples):
        for text in texts(example):
            above[find(i)] = find(holders.setdefault(text, i))
    groups: dict[int, list[int]] = defaultdict(list)
    for i in range(len(examples)):
        groups[find(i)].append(i)
    return list(groups.values())


def _plain(text: str) -> str:
    """White space and case do not make a text another one."""
    return " ".join(text.casefold().split())
