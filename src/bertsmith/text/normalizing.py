"""Raw text is cleaned. In: the text of a document. Out: the same in one Unicode form, with plain white space.

What is dropped carries no meaning for a reader: control characters, byte-order marks, soft hyphens, marks of direction
and of zero width; the joiners of Indic scripts and Persian stay. Cleaning a clean text changes nothing.
"""

import re
import unicodedata
from itertools import pairwise

_LINE_ENDS = re.compile("\r\n|[\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")
_UNSEEN = "\xad\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ufffe\uffff"
_DROPPED = re.compile(f"[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f{_UNSEEN}]")
_SUSPECT = {  # one look for all of these
    True: re.compile("[\x00-\x08\x0b-\x1f\x7f]"),
    False: re.compile(f"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff{_UNSEEN}]"),
}
_SURROGATES = re.compile("[\ud800-\udfff]")
_ODD_SPACE = re.compile("[\xa0\u1680\u2000-\u200a\u202f\u205f\u3000]")
_SPACES = re.compile(r"[^\S\n]+")
_AROUND_LINE_ENDS = re.compile(r" ?\n ?")
_BLANK_LINES = re.compile(r"\n{3,}")
# A file is hard-wrapped where its lines end about here, in the middle of a sentence.
_NARROWEST, _WIDEST = 45, 100
_LONGEST_WORD = 20  # on average, of a line
_SENTENCE_END = re.compile("[.!?:…][\"'”’»)]*$")


def normalize_text(text: str) -> str:
    """One form for what looks the same: NFC, a line feed a line, one space, no control characters."""
    if _SUSPECT[text.isascii()].search(text):
        text = _SURROGATES.sub("\ufffd", text)
        text = _LINE_ENDS.sub("\n", text)
        text = _DROPPED.sub("", text)
    if not text.isascii():
        text = unicodedata.normalize("NFC", text)
    if "\t" in text or "  " in text or (not text.isascii() and _ODD_SPACE.search(text)):
        text = _SPACES.sub(" ", text)
    if " \n" in text or "\n " in text:
        text = _AROUND_LINE_ENDS.sub("\n", text)
    if "\n\n\n" in text:
        text = _BLANK_LINES.sub("\n\n", text)
    return text.strip(" \n")


def cut_paragraphs(text: str) -> list[str]:
    """The paragraphs of a clean text: its lines, or what stands between blank lines where the lines are wrapped."""
    if "\n" not in text:
        return [text] if text else []
    blocks = text.split("\n\n")
    # Blank lines part paragraphs, so lines are not paragraphs; without them, only what was surely wrapped is not.
    looks_wrapped = _is_wrapped if len(blocks) > 1 else _is_filled
    paragraphs = []
    for block in blocks:
        lines = block.split("\n")
        paragraphs += [" ".join(lines)] if looks_wrapped(lines) else lines
    return paragraphs


def _is_wrapped(lines: list[str]) -> bool:
    if len(lines) < 2:
        return False
    widths = [len(line) for line in lines[:-1]]
    is_even = min(widths) >= _NARROWEST and max(widths) <= _WIDEST and len(lines[-1]) <= _WIDEST
    # What is written without spaces is not wrapped at them: lines of Chinese are paragraphs.
    return is_even and all(line.count(" ") * _LONGEST_WORD >= len(line) for line in lines[:-1])


def _is_filled(lines: list[str]) -> bool:
    """Most lines could not have taken the next one's first word, and few end as a sentence does; a title stays one."""
    if not _is_wrapped(lines) or not (len(lines) > 4 or any(line[:1].islower() for line in lines[1:])):
        return False
    width = max(map(len, lines))
    filled = sum(len(line) + 1 + len(after.split(" ", 1)[0]) > width for line, after in pairwise(lines))
    ended = sum(_SENTENCE_END.search(line) is not None for line in lines[:-1])
    return filled >= 0.8 * (len(lines) - 1) and ended <= 0.5 * (len(lines) - 1)
