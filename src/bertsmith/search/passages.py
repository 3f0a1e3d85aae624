"""A document becomes passages. In: its text, a tokenizer. Out: spans of characters of about so many tokens.

Paragraphs end at blank lines; short neighbours are put together, long ones are cut, at the end of a sentence where
there is one. Each character that is not a space is in exactly one passage. Some things stay by themselves: the front
matter of Markdown, and the lines of a file that has a text a line (no blank lines, nine of ten lines end a sentence).
A Markdown heading goes with what follows it, and a blank line inside a code block ends nothing.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from bertsmith.data.decoding import cut_lines
from bertsmith.text.tokenizer import Tokenizer

LONGEST = 8192  # characters read at once: a file without a line end must not become one list of tokens
TOGETHER = 256  # paragraphs in one call of the tokenizer
ENDS, CLOSERS, WIDE_ENDS = ".!?…", "\"'”’»)]", "。！？"
_FENCE = re.compile(r" {0,3}(```+|~~~+)")
_HEADING = re.compile(r" {0,3}#{1,6}\s")
_WORD_END = re.compile(r"\s\S*\Z")

Span = tuple[int, int]


@dataclass(frozen=True)
class Block:
    start: int
    end: int
    alone: bool = False


def cut_passages(text: str, tokenizer: Tokenizer, tokens: int, markdown: bool = False) -> list[Span]:
    """Spans of at most about `tokens` tokens each, special ones included."""
    room = max(tokens - tokenizer.template.specials(False), 1)
    found: list[Span] = []
    count, closed = 0, True  # tokens of the last span; whether nothing may be added to it
    for block, offsets in _read(text, find_blocks(text, markdown), tokenizer):
        if not closed and not block.alone and count + len(offsets) <= room:
            found[-1] = (found[-1][0], block.end)
            count += len(offsets)
        elif len(offsets) <= room:
            found.append((block.start, block.end))
            count, closed = len(offsets), block.alone
        else:
            parts = _split(text[block.start : block.end], offsets, room)
            spans = (_trim(text, block.start + start, block.start + end) for start, end in parts)
            found += [span for span in spans if span[0] < span[1]]
            closed = True
    return found


def find_blocks(text: str, markdown: bool = False) -> list[Block]:
    if not markdown and _has_text_a_line(text):
        return [Block(*span, alone=True) for span in _lines(text) if span[0] < span[1]]
    blocks: list[Block] = []
    start: int | None = None  # of the block that is open
    fence, heads, at = "", False, 0  # what closes the code block; whether the block is a heading so far
    if markdown and (at := _front_matter(text)):
        blocks.append(Block(*_trim(text, 0, at), alone=True))
    for line in cut_lines(text[at:] if at else text):
        begin, at = at, at + len(line)
        mark = _FENCE.match(line) if markdown else None
        is_heading = markdown and not fence and bool(_HEADING.match(line))
        if start is not None and not fence and ((not line.strip() and not heads) or (is_heading and not heads)):
            blocks.append(Block(*_trim(text, start, begin)))
            start = None
        if line.strip():
            start = begin if start is None else start
            heads = is_heading
        if mark and (not fence or mark[1].startswith(fence)):
            fence = "" if fence else mark[1]
    if start is not None:
        blocks.append(Block(*_trim(text, start, len(text))))
    return blocks


def _lines(text: str) -> Iterator[Span]:
    at = 0
    for line in cut_lines(text):
        begin, at = at, at + len(line)
        yield _trim(text, begin, at)


def _has_text_a_line(text: str) -> bool:
    body = text.strip()
    ends = 0
    lines = 0
    for line in cut_lines(body):
        line = line.strip()
        if not line:
            return False
        lines += 1
        ends += line.rstrip(CLOSERS)[-1:] in tuple(ENDS + WIDE_ENDS)
    return lines > 1 and ends >= 0.9 * lines


def _front_matter(text: str) -> int:
    """How many characters of settings stand before a Markdown page."""
    found = re.match(r"---[ \t]*\r?\n.*?\n(---|\.\.\.)[ \t]*(\r?\n|\Z)", text, re.DOTALL)
    return found.end() if found else 0


def _trim(text: str, start: int, end: int) -> Span:
    inner = text[start:end]
    start += len(inner) - len(inner.lstrip())
    return start, start + len(inner.strip())


def _read(text: str, blocks: Sequence[Block], tokenizer: Tokenizer) -> Iterator[tuple[Block, list[Span]]]:
    """Each block with the offsets of its tokens; very long ones in parts."""
    parts = (part for block in blocks for part in _shorten(text, block))
    while some := list(islice(parts, TOGETHER)):
        encodings = tokenizer.encode_many([text[part.start : part.end] for part in some], specials=False)
        for part, encoding in zip(some, encodings, strict=True):
            yield part, encoding.offsets


def _shorten(text: str, block: Block) -> Iterator[Block]:
    start = block.start
    while block.end - start > LONGEST:
        space = _WORD_END.search(text, start + LONGEST // 2, start + LONGEST)
        cut = space.start() if space else start + LONGEST
        first = _trim(text, start, cut)
        if first[0] < first[1]:
            yield Block(*first, alone=block.alone)
        start = cut
    last = _trim(text, start, block.end)
    if last[0] < last[1]:
        yield Block(*last, alone=block.alone)


def _split(text: str, offsets: Sequence[Span], room: int) -> list[Span]:
    """Parts of about equal length, none of more than `room` tokens, cut at the best places that there are."""
    parts: list[Span] = []
    start = at = 0
    while len(offsets) - at > room:
        rest = len(offsets) - at
        aim = at + -(-rest // -(-rest // room))
        ranked = [(rank, -abs(i - aim), i) for i in range(at + 1, at + room + 1)
                  if (rank := _rank(text, offsets, i, start)) is not None]  # fmt: skip
        # A sentence that ends at once makes a passage of three words: near the aim or not at all.
        near = [(rank if i - at >= room // 3 else 0, distance, i) for rank, distance, i in ranked]
        chosen = max(near, default=(0, 0, 0))[2]
        if not chosen:  # one long character cluster: take the whole rest up to the next place
            later = (i for i in range(at + room + 1, len(offsets)) if _rank(text, offsets, i, start) is not None)
            chosen = next(later, len(offsets))
            if chosen == len(offsets):
                break
        parts.append((start, offsets[chosen][0]))
        start, at = offsets[chosen][0], chosen
    return [*parts, (start, len(text))]


def _rank(text: str, offsets: Sequence[Span], i: int, start: int) -> int | None:
    """How good it is to cut before token i: 2 between sentences, 1 between words, 0 inside; None: it cannot be."""
    before, after = offsets[i - 1][1], offsets[i][0]
    if after < before or after <= start or before <= start:
        return None
    gap = text[before:after]
    last = text[max(before - 3, start) : before].rstrip(CLOSERS)[-1:]
    if "\n" in gap or (last and (last in WIDE_ENDS or (gap and last in ENDS))):
        return 2
    return 1 if gap else 0
