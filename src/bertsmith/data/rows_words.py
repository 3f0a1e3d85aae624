"""Which pieces of a vocabulary begin a word, for hiding whole words. In: a tokenizer. Out: a flag for each id.

Where a script puts no spaces between words, nothing but a dictionary knows them: there each piece is a word. Taken by
spaces, a Chinese paragraph would be one, and be hidden as a whole.
"""

import json
import re
from collections.abc import Iterator
from typing import Any

import numpy as np

from bertsmith.errors import BertsmithError
from bertsmith.text.tokenizer import Tokenizer
from bertsmith.text.wide import SPACELESS

BYTE_LEVEL = ("Ġ", "Ċ", "ĉ", "č")  # how byte-level vocabularies spell a blank, a new line, a tab, a carriage return
SENTENCE_PIECE = ("▁",)
_SPACELESS = re.compile(f"[{SPACELESS}]")
_PLAIN = (*range(33, 127), *range(161, 173), *range(174, 256))  # bytes that byte-level vocabularies spell as themselves
_OTHERS = [byte for byte in range(256) if byte not in _PLAIN]  # and those they spell as the characters from 256 on
_BYTES = {chr(byte): byte for byte in _PLAIN} | {chr(256 + place): byte for place, byte in enumerate(_OTHERS)}


def begins_word(tokenizer: Tokenizer) -> np.ndarray[Any, Any]:
    """(vocabulary,) bool. A special token begins a word, and what stands behind one does too, whatever is said here."""
    model = json.loads(tokenizer._engine.to_str())["model"]
    if model.get("end_of_word_suffix"):
        raise BertsmithError("this tokenizer marks where words end and not where they begin; hide single pieces.")
    vocabulary = tokenizer._engine.get_vocab(with_added_tokens=True)
    goes_on = model.get("continuing_subword_prefix")
    if goes_on:
        begins = [id for piece, id in vocabulary.items() if not piece.startswith(goes_on) or piece == goes_on]
        begins += _find_spaceless((piece.removeprefix(goes_on), id) for piece, id in vocabulary.items())
    else:
        # A vocabulary has one of the two, and may hold the other's sign as a character of its text.
        styles = (BYTE_LEVEL, SENTENCE_PIECE)
        marked = {marks: [id for piece, id in vocabulary.items() if piece.startswith(marks)] for marks in styles}
        marks = max(marked, key=lambda marks: len(marked[marks]))
        spelled = ((_read_bytes(piece) if marks == BYTE_LEVEL else piece, id) for piece, id in vocabulary.items())
        begins = [*marked[marks], *_find_spaceless(spelled)] if marked[marks] else list(vocabulary.values())
    flags = np.zeros(tokenizer.size, bool)
    flags[begins] = True
    flags[sorted(tokenizer.special_ids)] = True
    return flags


def _find_spaceless(pieces: Iterator[tuple[str, int]]) -> list[int]:
    return [id for piece, id in pieces if _SPACELESS.match(piece)]


def _read_bytes(piece: str) -> str:
    """How the text of a byte-level piece begins. A character that it holds the first bytes of stands for its script;
    what goes on with one begins nothing."""
    raw = bytes(_BYTES.get(character, 0) for character in piece[:4])
    return "" if 0x80 <= raw[0] < 0xC0 else (raw + b"\x80\x80").decode("utf-8", "ignore")
