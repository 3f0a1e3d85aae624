"""A cross-encoder reads query and passage together. In: a `Rerank` task and its predictor. Out: a score a passage."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bertsmith.data.examples import RankExample
from bertsmith.tasks.measures import Array
from bertsmith.tasks.predicting import Predictor
from bertsmith.tasks.rerank import Rerank


@dataclass(frozen=True)
class Reranker:
    task: Rerank
    predictor: Predictor

    def scores(self, query: str, texts: Sequence[str]) -> Array:
        """In the order of the texts."""
        if not texts:
            return np.zeros(0)
        (result,) = self.predictor.predict(self.task, [RankExample(query, tuple(texts))])
        scores = np.empty(len(texts))
        scores[[answer["index"] for answer in result]] = [answer["score"] for answer in result]
        return scores
