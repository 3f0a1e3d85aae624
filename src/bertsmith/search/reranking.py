"""A cross-encoder reads query and passage together. In: a model with a head for classes. Out: a score a passage.

A head of one output gives the score itself (as a share, by the sigmoid), one of two the probability of the one that
means yes.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from bertsmith.data.examples import TextExample
from bertsmith.errors import BertsmithError
from bertsmith.models.checkpoint import Checkpoint
from bertsmith.tasks.classes import positive_label
from bertsmith.tasks.classify import Classify
from bertsmith.tasks.measures import Array
from bertsmith.tasks.predicting import Predictor
from bertsmith.text.tokenizer import Tokenizer


class Reranker:
    def __init__(
        self, folder: Path, checkpoint: Checkpoint, tokenizer: Tokenizer, limit: int, predictor: Predictor
    ) -> None:
        outputs = checkpoint.network.heads["classify"].shape.outputs  # type: ignore[union-attr]
        if outputs not in (1, 2):
            raise BertsmithError(
                f"{folder} has a head of {outputs} classes; a cross-encoder that reranks has one output or two."
            )
        labels = list(checkpoint.labels or [f"LABEL_{number}" for number in range(int(outputs))])
        # Without the problem_type: a number that says how well a passage fits ranks as its sigmoid does.
        self._task = Classify(tokenizer, limit, "head", Classify.settings_from(labels, None))
        self._wanted = labels[positive_label(labels) if len(labels) == 2 else 0]
        self._predictor = predictor

    def scores(self, query: str, texts: Sequence[str]) -> Array:
        results = self._predictor.predict(self._task, [TextExample(query, text) for text in texts])
        found = [next(a["score"] for a in result.answers if a["label"] == self._wanted) for result in results]
        return np.array(found, dtype=np.float64)
