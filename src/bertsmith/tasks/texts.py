"""What a caller may give as texts: one, or several in any iterable; all else is refused in one sentence."""

from collections.abc import Iterable, Mapping
from typing import Any

from bertsmith.errors import BertsmithError


def list_texts(given: Any) -> list[str]:
    """The texts of a list, a tuple, a generator, a column of a table."""
    if isinstance(given, (str, bytes, Mapping)) or not isinstance(given, Iterable):
        raise BertsmithError(f"give a text or a list of texts, not {type(given).__name__}.")
    texts = list(given)
    for number, text in enumerate(texts, 1):
        if not isinstance(text, str):
            raise BertsmithError(f"text {number} must be a string, not {type(text).__name__}.")
    return texts
