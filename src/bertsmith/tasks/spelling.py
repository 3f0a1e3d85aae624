"""Words and pieces where a mask stands: a word cut into its pieces there, a text with a predicted piece put there."""

from collections.abc import Sequence

from bertsmith.errors import BertsmithError
from bertsmith.text.tokenizer import Tokenizer

NEAR = 64  # characters to each side that may change how a word is spelled

Span = tuple[int, int]  # start and end of a mask in the text, in characters


def spell(tokenizer: Tokenizer, text: str, mask: Span, word: str) -> list[int]:
    """The pieces of a word in the mask's place, as the tokenizer cuts it between its neighbours."""
    start, end = mask
    left, right = text[max(0, start - NEAR) : start], text[end : end + NEAR]
    if _keeps_space(tokenizer, left):
        left = ""
    # Where the word would melt into a neighbour ("un[MASK]ly"), it is spelled without it.
    for before, after in ((left, right), (left, ""), ("", "")):
        pieces = _pieces_between(tokenizer, before, word.strip(), after)
        if pieces:
            break
    if not pieces or tokenizer.special_ids.intersection(pieces):
        raise BertsmithError(f"the target {word!r} cannot be spelled with this model's vocabulary.")
    return pieces


def _pieces_between(tokenizer: Tokenizer, before: str, word: str, after: str) -> list[int]:
    """The pieces of `word` between the two texts; none when one of them reaches over its edges."""
    start, end = len(before), len(before) + len(word)
    row = tokenizer.encode(before + word + after, specials=False)
    if any(s < start < e or s < end < e for s, e in row.offsets):
        return []
    # A piece without width at the start is the space before the word (SentencePiece) and belongs to it.
    return [id for id, (s, e) in zip(row.ids, row.offsets, strict=True) if start <= s < end and e <= end]


def _keeps_space(tokenizer: Tokenizer, left: str) -> bool:
    """Whether the space before a mask is a piece of its own: byte-level, with a mask that does not swallow it."""
    assert tokenizer.mask_token is not None
    before = tokenizer.encode(left[-NEAR:] + tokenizer.mask_token, specials=False).ids[:-1]
    return bool(before) and not tokenizer.decode(before[-1:], skip_specials=False).strip()


def write(tokenizer: Tokenizer, text: str, fillings: Sequence[tuple[Span, int]]) -> str:
    """The text with a piece in the place of each of these masks, all else as it was."""
    done, rest = "", 0
    for (start, end), id in fillings:
        done, rest = _append(tokenizer, done + text[rest:start], id), end
    return done + text[rest:]


def _append(tokenizer: Tokenizer, left: str, id: int) -> str:
    """`left` with a piece behind it: joined to the word there or a word of its own, as the piece itself says."""
    anchor = tokenizer.mask_id
    assert anchor is not None
    alone = tokenizer.decode([anchor], skip_specials=False)
    written = tokenizer.decode([anchor, id], skip_specials=False)[len(alone) :]
    if not written:
        return left
    if not written.startswith(" "):
        joined = left.endswith(" ") and not _keeps_space(tokenizer, left)
        return (left.rstrip(" ") if joined else left) + written
    # WordPiece spells no spaces, so "([MASK]" stays as it is; the others do, and their masks swallow the one before.
    apart = left and not left[-1].isspace() and tokenizer.piece(id)[0] in "Ġ▁"
    return left + (written if apart else written[1:])
