"""How large an answer may become: some jobs give far more than was asked about, and one request must not fill memory.

In: a model, a job and its fields. Out: a `Refusal` where the answer would be too large to be held.
"""

from collections.abc import Mapping
from typing import Any

from bertsmith.model import Model
from bertsmith.searching import Index
from bertsmith.serving.asks import Refusal
from bertsmith.serving.fields import Job

LETTERS_A_TOKEN = 4  # about, before a text is cut into pieces
NUMBERS = 2**26  # in an answer of vectors for each token: 256 MiB, and as JSON about 700
BYTES = 2**28  # of what fills masks
PASSAGES = 2**18  # in an answer of searches; one has about 600 bytes
ENTRY = 400  # bytes of one such answer, beside the text that it repeats
FILLINGS = 5  # for each mask, where a request says nothing


def refuse_large(model: Model, job: Job, given: Mapping[str, Any]) -> None:
    if job.name == "hidden":
        refuse_many_vectors(model, given)
    elif job.name == "fill":
        refuse_many_fillings(model, given)


def refuse_many_vectors(model: Model, given: Mapping[str, Any]) -> None:
    """A vector for each token in each layer; a list of layers may be long, and name one more than once."""
    layers, config = given.get("layers"), model.checkpoint.config
    tokens = sum(min(len(text) // LETTERS_A_TOKEN + 1, model.limit) for text in _list(given["texts"]))
    deep = config.depth + 1 if layers == "all" else len(layers) if layers else 1
    if tokens * deep * config.width > NUMBERS:
        raise Refusal(
            "input",
            f"the vectors of about {tokens} tokens in {deep} layer{'s' * (deep != 1)} are too many for one answer, "
            f"which holds {NUMBERS} numbers; give fewer texts or layers at once.",
        )


def refuse_many_fillings(model: Model, given: Mapping[str, Any]) -> None:
    """Each filling of each mask comes with the whole text: twice as many masks are four times as much."""
    mask, targets = model.tokenizer.mask_token, given.get("targets")
    if not mask:
        return
    most = len(targets) if targets else min(given.get("top_k") or FILLINGS, model.tokenizer.size)
    texts = _list(given["text"])
    if sum(text.count(mask) * most * (len(text) + ENTRY) for text in texts) > BYTES:
        masks = sum(text.count(mask) for text in texts)
        raise Refusal(
            "input",
            f"{masks} masks with {most} fillings each, all with the text around them, are too much for one answer; "
            f"give fewer masks or texts at once, or a smaller top_k.",
        )


def refuse_many_passages(index: Index, given: Mapping[str, Any]) -> None:
    """Each query of a request may ask for the whole index."""
    queries, most = len(_list(given["query"])), min(given.get("top_k") or 10, len(index))
    if queries * most > PASSAGES:
        raise Refusal(
            "input",
            f"{queries} queries with {most} passages each are too many for one answer, which holds {PASSAGES}; give a "
            f"smaller top_k, or fewer queries at once.",
        )


def _list(texts: Any) -> list[str]:
    return [texts] if isinstance(texts, str) else texts
