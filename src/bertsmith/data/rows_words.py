"""Which pieces of a vocabulary begin a word, for hiding whole words. In: a tokenizer. Out: a flag for each id."""

import json
from typing import Any

import numpy as np

from bertsmith.errors import BertsmithError
from bertsmith.text.tokenizer import Tokenizer

BYTE_LEVEL = ("Ġ", "Ċ", "ĉ", "č")  # how byte-level vocabularies spell a blank, a new line, a tab, a carriage return
SENTENCE_PIECE = ("▁",)


def begins_word(tokenizer: Tokenizer) -> np.ndarray[Any, Any]:
    """(vocabulary,) bool. A special token begins a word, and what stands behind one does too, whatever is said here."""
    model = json.loads(tokenizer._engine.to_str())["model"]
    if model.get("end_of_word_suffix"):
        raise BertsmithError("this tokenizer marks where words end and not where they begin; hide single pieces.")
    vocabulary = tokenizer._engine.get_vocab(with_added_tokens=True)
    goes_on = model.get("continuing_subword_prefix")
    if goes_on:
        begins = [id for piece, id in vocabulary.items() if not piece.startswith(goes_on) or piece == goes_on]
    else:
        # A vocabulary has one of the two, and may hold the other's sign as a character of its text.
        styles = (BYTE_LEVEL, SENTENCE_PIECE)
        marked = [[id for piece, id in vocabulary.items() if piece.startswith(marks)] for marks in styles]
        begins = max(marked, key=len) or list(vocabulary.values())
    flags = np.zeros(tokenizer.size, bool)
    flags[begins] = True
    flags[sorted(tokenizer.special_ids)] = True
    return flags
