"""From scores of pieces to words and entities, in the five ways of Hugging Face's token-classification pipeline.

`first`: a word is what its first piece says, as it was trained. `average`, `max`: the mean of its pieces'
probabilities, or those of its surest piece. `simple`: each piece for itself, neighbours that belong together joined.
`none`: each piece for itself. In the first three a word has one tag and the tags of a sentence are well-formed.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from bertsmith.data.schemes import OUTSIDE, read_spans
from bertsmith.tasks.measures import Array

MODES = ("none", "simple", "first", "average", "max")
BY_PIECE = ("none", "simple")
Answers = list[dict[str, Any]]


def merge_pieces(chances: Array, words: Array, count: int, mode: str) -> Array:
    """Probabilities of pieces, (pieces, labels), as those of words, (count, labels); NaN for one without pieces."""
    merged = np.full((count, chances.shape[1]), np.nan)
    known = words >= 0
    chances, words = chances[known], words[known]
    if mode == "average":
        sums, sizes = np.zeros_like(merged), np.zeros(count)
        np.add.at(sums, words, chances)
        np.add.at(sizes, words, 1)
        merged[sizes > 0] = sums[sizes > 0] / sizes[sizes > 0, None]
        return merged
    # Of several values for one place the last one stays: the surest piece, or the first.
    order = np.argsort(chances.max(axis=1)[::-1], kind="stable") if mode == "max" else np.arange(len(words))
    merged[words[::-1][order]] = chances[::-1][order]
    return merged


def list_entities(
    text: str, spans: Sequence[tuple[int, int]], tags: Sequence[str], scores: Array, scheme: str
) -> Answers:
    """One answer an entity; of plain tags one a word. The score is the mean of its words'."""
    return [
        describe(text, kind, scores[first:end], spans[first][0], spans[end - 1][1])
        for first, end, kind in read_spans(tags, scheme)
    ]


def list_groups(
    text: str, offsets: Sequence[tuple[int, int]], tags: Sequence[str], scores: Array, scheme: str
) -> Answers:
    """One answer for each run of pieces that belong together."""
    groups = []
    for first, last, kind in read_spans(tags, "bare" if scheme == "plain" else scheme):
        covered = [(start, end) for start, end in offsets[first:last] if text[start:end].strip()]
        if covered:  # a piece may stand for spaces only
            groups.append(describe(text, kind, scores[first:last], covered[0][0], covered[-1][1]))
    return groups


def list_pieces(
    text: str, offsets: Sequence[tuple[int, int]], tags: Sequence[str], scores: Array, places: Sequence[int]
) -> Answers:
    """One answer a piece that is not outside: `entity` is its tag as it is, `index` its place in the row."""
    return [
        {"entity": tag, "score": float(score), "index": place, "word": text[start:end], "start": start, "end": end}
        for (start, end), tag, score, place in zip(offsets, tags, scores, places, strict=True)
        if tag != OUTSIDE and text[start:end].strip()
    ]


def describe(text: str, kind: str, scores: Array, start: int, end: int) -> dict[str, Any]:
    score = float(np.mean(scores))
    return {"entity_group": kind, "score": score, "word": text[start:end], "start": start, "end": end}
