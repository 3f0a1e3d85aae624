"""Hard negatives: texts that look like an answer to a query by their words, and belong to another one.

In: `RankExample`s whose texts all answer their query. Out: the same with the best of the others by BM25 behind them.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from bertsmith.data.bm25 import Array, Bm25, build
from bertsmith.data.examples import RankExample
from bertsmith.errors import BertsmithError

POOL = 50_000  # texts that a query is compared with: time would grow by the square of them


def mine(examples: Sequence[RankExample], count: int, name: str) -> list[RankExample]:
    """`count` texts for each example, the same every time; fewer only where there are fewer others.

    Texts that differ in their white space alone are one: such a copy of the right answer is no wrong one.
    """
    spellings: dict[str, str] = {}
    for text in (text for example in examples for text in example.texts):
        spellings.setdefault(_key(text), text)
    texts = list(spellings.values())
    if len(texts) < 2:
        raise BertsmithError(
            f"{name} has no text but the {len(texts)} that answers, so nothing stands against it; give other texts, or "
            f"negatives (--negative COLUMN)."
        )
    places = {key: place for place, key in enumerate(spellings)}
    parts = {start: Bm25(build(texts[start : start + POOL]), len(texts[start : start + POOL]))
             for start in range(0, len(texts), POOL)}  # fmt: skip
    found = []
    for example in examples:
        start = places[_key(example.texts[0])] // POOL * POOL
        own = [places[_key(text)] - start for text in example.texts]
        scores = parts[start].scores(example.query)
        others = [texts[start + i] for i in find_best(scores, own, count)]
        gains = (*(example.gains or [1.0] * len(own)), *[0.0] * len(others))
        found.append(replace(example, texts=(*example.texts, *others), gains=gains))
    return found


def _key(text: str) -> str:
    return " ".join(text.split())


def find_best(scores: Array, own: Sequence[int], count: int) -> list[int]:
    """The numbers of the best that are not one's own; of equal ones those that follow one's own, in a ring.

    So queries that share no word with any other text do not all get the first ones.
    """
    scores = scores.astype(np.float64)
    scores[[place for place in own if 0 <= place < len(scores)]] = -np.inf
    count = min(count, int(np.isfinite(scores).sum()))
    if not count:
        return []
    worst = np.partition(scores, len(scores) - count)[len(scores) - count]
    kept = np.flatnonzero(scores >= worst)
    after = (kept - own[0] - 1) % len(scores)
    return [int(i) for i in kept[np.lexsort((after, -scores[kept]))[:count]]]
