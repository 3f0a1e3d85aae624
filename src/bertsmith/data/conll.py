"""Columns of words and tags become a table with a record a sentence. In: the text of a CoNLL-like or CoNLL-U file.

One word a line, a blank line between sentences. Cells are cut at tabs where a line has them, else at spaces. Columns
are called `words` (the first, or the second after running numbers) and `tags` (the last), those between `column 2`, …;
CoNLL-2003's are words, pos, chunk, tags, and CoNLL-U's have their own names. `-DOCSTART-` lines only end a sentence.
A line that begins with # is a comment where a sentence begins and the line has another width, or ends in what no other
line ends in, as `# id 17` does and `#Rome O` does not; in CoNLL-U always there.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise
from sys import intern
from typing import Any

from bertsmith.data.columns import KNOWN, normalize
from bertsmith.data.decoding import bare_lines
from bertsmith.data.table import Table
from bertsmith.errors import BertsmithError

UNIVERSAL = ("id", "form", "lemma", "upos", "xpos", "feats", "head", "deprel", "deps", "misc")
DOCUMENT = "-DOCSTART-"
TAG = re.compile(r"O|[BIESLUM]-\S+")
Sentence = tuple[int, list[list[str]]]  # the line where it begins, its words' cells


def read_conll(text: str, name: str) -> Table:
    universal = is_universal(text)
    sentences = list(_universal_sentences(text, name) if universal else _sentences(text, name))
    if not sentences:
        raise BertsmithError(f"{name} holds no sentences.")
    columns = UNIVERSAL if universal else _name_columns(sentences, DOCUMENT in text[:1000])
    records: list[dict[str, Any]] = [
        {column: list(cells) for column, cells in zip(columns, zip(*words, strict=True), strict=True)}
        for _, words in sentences
    ]
    return Table(name, columns, records, [line for line, _ in sentences], "line", "conll")


def is_universal(text: str) -> bool:
    """CoNLL-U: ten cells between tabs, the first a number."""
    for _, line in bare_lines(text):
        if line.strip() and not line.startswith("#"):
            cells = line.split("\t")
            return len(cells) == len(UNIVERSAL) and bool(re.fullmatch(r"\d+([-.]\d+)?", cells[0]))
    return False


def looks_like_conll(text: str) -> bool:
    """For files whose name does not tell: lines of one width, in blocks, that end in tags (O, B-…) or few values."""
    if is_universal(text):
        return True
    lines = [line for _, line in islice(bare_lines(text), 500)]
    while lines and not lines[0].strip():
        lines.pop(0)
    if not lines:
        return False
    if lines[0].startswith(DOCUMENT):
        return True
    if len(lines) == 500 and lines[-1].strip():
        lines.pop()  # the rest of a sentence may follow
    words = [_cut(line) for line in lines if line.strip() and not line.startswith(("#", DOCUMENT))]
    if not words or len({len(cells) for cells in words}) != 1 or len(words[0]) < 2:
        return False
    ends = [cells[-1] for cells in words]
    if sum(bool(TAG.fullmatch(end)) for end in ends) >= 0.95 * len(ends):
        return True
    if any(normalize(cell) in KNOWN for cell in words[0]):
        return False
    blocks = sum(1 for one, other in pairwise(lines) if one.strip() and not other.strip())
    return len(words) >= 20 and 2 <= blocks <= len(words) / 2 and len(set(ends)) <= len(ends) / 2


def _sentences(text: str, name: str) -> Iterator[Sentence]:
    width, first = 0, 0
    begin, words = 0, list[list[str]]()
    usual = _Usual.of(text) if "#" in text else None
    for number, line in bare_lines(text):
        if line.startswith(DOCUMENT) or not line.strip(" \t"):
            if words:
                yield begin, words
                words = []
            continue
        cells = _cut(line)
        if usual and line.startswith("#") and not words and usual.is_comment(cells):
            continue
        if not width:
            width, first = len(cells), number
        if len(cells) != width:
            raise _ragged(name, number, len(cells), f"line {first:,} has {width}")
        if not words:
            begin = number
        words.append([cells[0], *map(intern, cells[1:])])
    if words:
        yield begin, words


@dataclass(frozen=True)
class _Usual:
    """What lines that do not begin with # are like."""

    width: int  # of the first of them; 0: there is none
    ends: frozenset[str]  # their last cells
    are_tags: bool  # all of these are O, B-…

    @classmethod
    def of(cls, text: str) -> "_Usual":
        lines = (line for _, line in bare_lines(text) if line.strip(" \t") and not line.startswith(("#", DOCUMENT)))
        width, ends = 0, set[str]()
        for cells in map(_cut, lines):
            width = width or len(cells)
            ends.add(cells[-1])
        return cls(width, frozenset(ends), all(map(TAG.fullmatch, ends)))

    def is_comment(self, cells: Sequence[str]) -> bool:
        """`# id 17`, `# text = …`, but not `# # B-NP`, nor `#Rome NNP`, which is a word."""
        if self.width and len(cells) != self.width:
            return True
        if TAG.fullmatch(cells[-1]) or cells[-1] in self.ends:
            return False
        return self.are_tags or (cells[0] == "#" and cells[1:2] != ["#"])


def _cut(line: str) -> list[str]:
    # Not split(): the no-break space and its like may be words or stand in them.
    return line.rstrip("\t ").split("\t") if "\t" in line.rstrip("\t ") else [cell for cell in line.split(" ") if cell]


def _universal_sentences(text: str, name: str) -> Iterator[Sentence]:
    begin, words = 0, list[list[str]]()
    for number, line in bare_lines(text):
        if not line.strip():
            if words:
                yield begin, words
                words = []
        elif not line.startswith("#"):
            cells = line.split("\t")
            if len(cells) != len(UNIVERSAL):
                raise _ragged(name, number, len(cells), f"CoNLL-U has {len(UNIVERSAL)}")
            if not cells[0].isdecimal():  # 1-2 spans two words that follow; 1.1 is not in the text
                continue
            begin = begin if words else number
            words.append(list(map(intern, cells)))
    if words:
        yield begin, words


def _ragged(name: str, number: int, count: int, other: str) -> BertsmithError:
    columns = f"{count} column{'s' * (count != 1)}"
    return BertsmithError(
        f"{name}, line {number:,}: {columns} where {other}; each line holds one word with its tags, and a blank line "
        "stands between sentences."
    )


def _name_columns(sentences: Sequence[Sentence], news: bool) -> tuple[str, ...]:
    width = len(sentences[0][1][0])
    if news and width == 4:
        return ("words", "pos", "chunk", "tags")
    names = [f"column {i}" for i in range(1, width + 1)]
    numbered = width > 1 and all(
        [cells[0] for cells in words] == [str(i) for i in range(1, len(words) + 1)] for _, words in sentences[:50]
    )
    word = 1 if numbered else 0
    names[word] = "words"
    if width > word + 1:
        names[-1] = "tags"
    if numbered:
        names[0] = "id"
    return tuple(names)
