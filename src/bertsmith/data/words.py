"""A raw text is cut into words, so that offsets marked in it and words tagged in it are the same thing.

Cut at white space; every mark of punctuation and every ideograph is a word of its own. These are the words that BERT's
own tokenizer makes, so its models see what they were trained on.
"""

import unicodedata
from functools import lru_cache

_IDEOGRAPHS = (
    (0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xF900, 0xFAFF), (0x20000, 0x2A6DF), (0x2A700, 0x2CEAF), (0x2F800, 0x2FA1F),
)  # fmt: skip


def split_words(text: str) -> tuple[tuple[int, int], ...]:
    """The first character of each word and the one after its last."""
    spans = []
    start = -1  # of the word that is being read
    for i, character in enumerate(text):
        kind = _kind(character)
        if kind != "word" and start >= 0:
            spans.append((start, i))
            start = -1
        if kind == "alone":
            spans.append((i, i + 1))
        elif kind == "word" and start < 0:
            start = i
    if start >= 0:
        spans.append((start, len(text)))
    return tuple(spans)


@lru_cache(maxsize=65536)
def _kind(character: str) -> str:
    if character.isspace():
        return "space"
    code = ord(character)
    if code < 128:  # as BERT has it, $ + ^ and the like are punctuation
        return "word" if character.isalnum() or not character.isprintable() else "alone"
    alone = unicodedata.category(character)[0] == "P" or any(first <= code <= last for first, last in _IDEOGRAPHS)
    return "alone" if alone else "word"
