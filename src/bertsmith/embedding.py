"""Vectors of texts, and texts by how alike their vectors are. In: a `Model` and texts. Out: `Vectors`, or `Result`s."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from bertsmith.answering import answer_all
from bertsmith.errors import BertsmithError
from bertsmith.tasks.embed import Embed, dress_inputs, rank_similar, take_dims
from bertsmith.tasks.result import Vectors
from bertsmith.tasks.texts import list_texts
from bertsmith.tasks.token_ids import TokenIds, list_inputs

if TYPE_CHECKING:
    from bertsmith.model import Model, Truncate


def embed_texts(
    model: "Model", texts: Any, prompt: str | None, truncate: str, normalize: bool | None, dims: int | None
) -> Vectors:
    """As `Model.embed` says."""
    given, is_single = list_inputs(texts, model.tokenizer)
    home = model.embedder
    pooling, width = home.sentence.pooling, home.vector_width
    width = width if dims is None else take_dims(dims, width)
    unit = pooling.normalize if normalize is None else normalize
    task = Embed(home.tokenizer, home.limit, truncate, pooling, unit, width)
    vectors = answer_all(home, task, _dress(home, given, prompt), "text")
    if is_single:
        found: Vectors = vectors[0]
        return found
    return Vectors(np.stack(vectors) if vectors else np.zeros((0, width)), [v.truncated for v in vectors])


def compare_texts(
    model: "Model", text: str | Sequence[str], others: str | Sequence[str], top_k: int | None, truncate: "Truncate"
) -> Any:
    """As `Model.similar` says."""
    texts = [others] if isinstance(others, str) else list_texts(others)
    if not texts:
        raise BertsmithError("there are no texts to compare with; give at least one.")
    vectors = model.embed(texts, truncate=truncate, normalize=True)
    asked = model.embed([text] if isinstance(text, str) else list_texts(text), truncate=truncate, normalize=True)
    answers = [rank_similar(one, vectors, texts, top_k) for one in asked]
    return answers[0] if isinstance(text, str) else answers


def _dress(model: "Model", texts: list[str | TokenIds], prompt: str | None) -> list[str | TokenIds]:
    """Texts as a sentence-transformers folder wants them; before token ids come those of the prompt."""
    if prompt is not None and not isinstance(prompt, str):
        raise BertsmithError(f"prompt must be a string, not {type(prompt).__name__}.")
    name = prompt if prompt is not None else model.sentence.default_prompt
    before = model.sentence.prompts.get(name, name) if name else ""
    return dress_inputs(texts, before, model.sentence.lower, model.tokenizer)
