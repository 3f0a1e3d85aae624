"""A raw text is cut into words, so that offsets marked in it and words tagged in it are the same thing.

Cut at white space; every mark of punctuation and every ideograph is a word of its own. These are the words that BERT's
own tokenizer makes, so its models see what they were trained on. What is invisible (a byte-order mark, marks of
direction) belongs to a word only where it stands inside of one: who marks a name leaves out what nobody sees.
"""

import unicodedata
from functools import lru_cache

_IDEOGRAPHS = (
    (0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xF900, 0xFAFF), (0x20000, 0x2A6DF), (0x2A700, 0x2CEAF), (0x2F800, 0x2FA1F),
)  # fmt: skip
_JOINERS = "\u200c\u200d"  # they shape the letter before them


def split_words(text: str) -> tuple[tuple[int, int], ...]:
    """The first character of each word and the one after its last."""
    spans = []
    start, end = -1, 0  # of the word that is being read
    for i, character in enumerate(text):
        kind = _kind(character)
        if kind == "word":
            start, end = i if start < 0 else start, i + 1
        elif kind != "hidden" and start >= 0:
            spans.append((start, end))
            start = -1
        if kind == "alone":
            spans.append((i, i + 1))
    if start >= 0:
        spans.append((start, end))
    return tuple(spans)


@lru_cache(maxsize=65536)
def _kind(character: str) -> str:
    if character.isspace():
        return "space"
    code = ord(character)
    if code < 128:  # as BERT has it, $ + ^ and the like are punctuation
        return "word" if character.isalnum() else "alone" if character.isprintable() else "hidden"
    if unicodedata.category(character) in ("Cc", "Cf") and character not in _JOINERS:
        return "hidden"
    alone = unicodedata.category(character)[0] == "P" or any(first <= code <= last for first, last in _IDEOGRAPHS)
    return "alone" if alone else "word"
