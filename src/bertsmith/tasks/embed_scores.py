"""How well vectors do: does each text find its own pair, do cosines follow the numbers of pairs?

In: for each example the vectors of its texts, (texts, width). Out: measures, and the mistakes that a report shows.
Texts are compared in blocks, so memory grows with the texts and not with their square.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from bertsmith.data.examples import PairExample
from bertsmith.errors import BertsmithError
from bertsmith.tasks import correlations
from bertsmith.tasks.measures import Array, Measure, mean
from bertsmith.tasks.retrieval import score_rankings
from bertsmith.tasks.trained import MISTAKES

BLOCK = 256  # texts whose cosines with all candidates are in memory
DEEP = 10  # candidates that a ranking holds


def to_units(vectors: Array) -> Array:
    return np.asarray(vectors / np.maximum(np.linalg.norm(vectors, axis=-1, keepdims=True), 1e-12))


def score_pairs(answers: Sequence[Array], examples: Sequence[PairExample]) -> dict[str, Measure]:
    """Each text ranks the pairs and negatives of all examples; right are the pairs of all texts equal to it.

    Itself, where it is another one's pair or negative, it does not rank: it would always be the nearest.
    """
    right, _ = find_right(examples)
    found = [ranking for ranking, _ in rank_all(answers, examples)]
    measures = score_rankings(found, [dict.fromkeys(some, 1.0) for some in right], cuts=(DEEP,))
    first = mean(np.array([ranking[0] in some for ranking, some in zip(found, right, strict=True)], dtype=np.float64))
    return {
        "mrr@10": measures["mrr@10"], "ndcg@10": measures["ndcg@10"], "accuracy@1": first,
        "recall@10": measures["recall@10"],
    }  # fmt: skip


def find_right(examples: Sequence[PairExample]) -> tuple[list[set[int]], list[str]]:
    """For each example the numbers of the candidates that belong to it; and the candidates, each text once."""
    places: dict[str, int] = {}
    own: dict[str, set[int]] = {}
    for example in examples:
        for text in (example.pair, *example.negatives):
            places.setdefault(text.strip(), len(places))
        own.setdefault(example.text.strip(), set()).add(places[example.pair.strip()])
    return [own[example.text.strip()] for example in examples], list(places)


def rank_all(answers: Sequence[Array], examples: Sequence[PairExample]) -> Iterator[tuple[list[int], float]]:
    """For each text its best candidates by cosine, and the best one's; its equal is none, unless it belongs to it."""
    places: dict[str, int] = {}
    rows: list[Array] = []
    selves = {example.text.strip() for example in examples if example.text.strip() == example.pair.strip()}
    for vectors, example in zip(answers, examples, strict=True):
        for vector, text in zip(np.asarray(vectors)[1:], (example.pair, *example.negatives), strict=True):
            if places.setdefault(text.strip(), len(places)) == len(rows):
                rows.append(vector)
    if not rows:
        return
    candidates = to_units(np.stack(rows))
    for start in range(0, len(answers), BLOCK):
        asked = to_units(np.stack([np.asarray(vectors)[0] for vectors in answers[start : start + BLOCK]]))
        for example, cosines in zip(examples[start : start + BLOCK], asked @ candidates.T, strict=True):
            own = places.get(example.text.strip())
            count = min(DEEP, len(cosines))
            if own is not None and example.text.strip() not in selves:
                cosines[own], count = -np.inf, min(DEEP, len(cosines) - 1)
            best = np.argpartition(-cosines, count - 1)[:count]
            best = best[np.lexsort((best, -cosines[best]))]
            yield best.tolist(), float(cosines[best[0]])


def score_numbers(answers: Sequence[Array], examples: Sequence[PairExample]) -> dict[str, Measure]:
    found, gold = cosines_of(answers), take_numbers(examples)
    return {"spearman": correlations.spearman(found, gold), "pearson": correlations.pearson(found, gold)}


def cosines_of(answers: Sequence[Array]) -> Array:
    """Of each text with its pair."""
    units = [to_units(np.asarray(vectors)[:2]) for vectors in answers]
    return np.array([float(one @ other) for one, other in units], dtype=np.float64)


def take_numbers(examples: Sequence[PairExample]) -> Array:
    unknown = next((e.where for e in examples if e.number is None), None)
    if unknown is not None:
        raise BertsmithError(f"{unknown or 'An example'} has no number to score by; give one or take it out.")
    return np.array([e.number for e in examples], dtype=np.float64)


def missed(answers: Sequence[Array], examples: Sequence[PairExample]) -> list[dict[str, Any]]:
    """The texts that are nearest to another's pair, the surest first."""
    right, candidates = find_right(examples)
    errors: list[dict[str, Any]] = [
        {"text": e.text, "where": e.where, "predicted": candidates[ranking[0]], "gold": e.pair, "score": cosine}
        for e, own, (ranking, cosine) in zip(examples, right, rank_all(answers, examples), strict=True)
        if ranking[0] not in own
    ]
    return sorted(errors, key=lambda error: -error["score"])[:MISTAKES]


def far_off(
    answers: Sequence[Array], examples: Sequence[PairExample], ends: tuple[float, float]
) -> list[dict[str, Any]]:
    """The pairs whose rank by cosine is farthest from that by number."""
    found, gold = cosines_of(answers), take_numbers(examples)
    farthest = np.argsort(-np.abs(correlations.rank(found) - correlations.rank(gold)), kind="stable")[:MISTAKES]
    return [
        {"text": examples[i].text, "pair": examples[i].pair, "where": examples[i].where,
         "predicted": f"{found[i]:.3f}", "gold": f"{gold[i]:.4g} of {ends[0]:g} to {ends[1]:g}"}
        for i in farthest.tolist()
    ]  # fmt: skip
