"""How well a search ranks. In: for each query what was found, best first, and what is relevant. Out: measures.

The definitions are those of trec_eval: gains are linear, the discount of rank r is log2(r + 1), average precision
divides by all that is relevant, and what was not found counts 0. Something found twice counts where it comes first.
"""

from collections.abc import Hashable, Mapping, Sequence
from math import log2

import numpy as np

from bertsmith.tasks.measures import Measure, mean

CUTS = (1, 5, 10, 100)

Gains = Mapping[Hashable, float]  # of what is relevant; anything else has none


def score_rankings(
    found: Sequence[Sequence[Hashable]], relevant: Sequence[Gains], cuts: Sequence[int] = CUTS, main: int = 10
) -> dict[str, Measure]:
    """mrr and ndcg at `main`, map, and the recall at each of `cuts`, each a mean over the queries."""
    gains = [list_gains(ranking, gold) for ranking, gold in zip(found, relevant, strict=True)]
    golds = [sorted((gain for gain in gold.values() if gain > 0), reverse=True) for gold in relevant]
    pairs = list(zip(gains, golds, strict=True))
    measures = {
        f"mrr@{main}": mean(np.array([reciprocal_rank(ranked, main) for ranked in gains])),
        f"ndcg@{main}": mean(np.array([discounted_gain(ranked, gold, main) for ranked, gold in pairs])),
        "map": mean(np.array([average_precision(ranked, len(gold)) for ranked, gold in pairs])),
    }
    for cut in cuts:
        measures[f"recall@{cut}"] = mean(np.array([recall(ranked, len(gold), cut) for ranked, gold in pairs]))
    return measures


def list_gains(ranking: Sequence[Hashable], gold: Gains) -> list[float]:
    """The gain at each rank."""
    return [max(gold.get(one, 0.0), 0.0) for one in dict.fromkeys(ranking)]


def reciprocal_rank(gains: Sequence[float], cut: int) -> float:
    """1 / the rank of the first that is relevant."""
    return next((1 / rank for rank, gain in enumerate(gains[:cut], 1) if gain), 0.0)


def recall(gains: Sequence[float], relevant: int, cut: int) -> float:
    """The share of all that is relevant among the first."""
    return sum(gain > 0 for gain in gains[:cut]) / relevant if relevant else 0.0


def average_precision(gains: Sequence[float], relevant: int) -> float:
    """The mean, over all that is relevant, of the precision at its rank."""
    hits, total = 0, 0.0
    for rank, gain in enumerate(gains, 1):
        if gain:
            hits += 1
            total += hits / rank
    return total / relevant if relevant else 0.0


def discounted_gain(gains: Sequence[float], ideal: Sequence[float], cut: int) -> float:
    """The discounted sum of gains, as a share of that of the best order there is (Järvelin & Kekäläinen 2002)."""
    best = _discount(ideal[:cut])
    return _discount(gains[:cut]) / best if best else 0.0


def _discount(gains: Sequence[float]) -> float:
    return sum(gain / log2(rank + 1) for rank, gain in enumerate(gains, 1))
