"""What a `Reply` holds, in the parts that several kinds of client know.

In: a `Reply`. Out: plain values and arrays that become JSON.
"""

from typing import Any

import numpy as np

from bertsmith.serving.asks import Reply

ALL_LABELS = 1_000_000  # a number of answers that no head reaches: those under their thresholds are told, too


def list_rows(reply: Reply) -> list["np.ndarray[Any, Any]"]:
    """The vectors as plain arrays, whose bytes are what clients read."""
    return [np.ascontiguousarray(vector, dtype="<f4") for vector in reply.vectors or ()]


def tell_classes(result: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"score": answer["score"], "label": answer["label"]} for answer in result["answers"]]


def tell_usage(reply: Reply) -> dict[str, int]:
    return {"prompt_tokens": reply.tokens, "total_tokens": reply.tokens}
