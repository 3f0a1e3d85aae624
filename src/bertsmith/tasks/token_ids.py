"""Texts that come as token ids, as some clients send them: the tokens of the text, special ones around them or not.

In: what a caller gave for texts. Out: texts and `TokenIds`, and the rows that ids become.
"""

from collections.abc import Mapping, Sequence
from numbers import Integral
from typing import Any

from bertsmith.errors import BertsmithError
from bertsmith.tasks.task import Row, too_long
from bertsmith.tasks.texts import is_iterable, list_texts
from bertsmith.text.tokenizer import Tokenizer
from bertsmith.text.truncation import keep, slide

TokenIds = tuple[int, ...]  # of one text, without special tokens around them


def list_inputs(given: Any, tokenizer: Tokenizer) -> tuple[list[str | TokenIds], bool]:
    """The texts, each as it is or in ids, and whether it was one that was given."""
    if isinstance(given, str):
        return [given], True
    if isinstance(given, bytes | Mapping) or not is_iterable(given):
        return [*list_texts(given)], False  # which refuses it
    listed = list(given)
    if listed and _is_number(listed[0]):
        return [take_ids(listed, tokenizer, "the text")], True
    if all(isinstance(one, str) for one in listed):
        return listed, False
    found: list[str | TokenIds] = []
    for number, one in enumerate(listed, 1):
        if isinstance(one, str):
            found.append(one)
        elif isinstance(one, bytes | Mapping) or not is_iterable(one):
            raise BertsmithError(f"text {number} must be a string, not {type(one).__name__}.")
        else:
            found.append(take_ids(list(one), tokenizer, f"text {number}"))
    return found, False


def take_ids(ids: Sequence[Any], tokenizer: Tokenizer, what: str) -> TokenIds:
    """Ids of the vocabulary, less the special tokens that stand around them already."""
    if not ids:
        raise BertsmithError(f"{what} has no token ids; give at least one.")
    for one in ids:
        if not _is_number(one):
            raise BertsmithError(f"{what} is a list of token ids, but {str(one)[:40]!r} is not a whole number.")
        if not 0 <= one < tokenizer.size:
            raise BertsmithError(
                f"{what} has the token id {one}, but the vocabulary of this model has 0 to {tokenizer.size - 1:,}."
            )
    before, after = _around(tokenizer)
    start = len(before) if before and tuple(ids[: len(before)]) == before else 0
    stop = len(ids) - (len(after) if after and tuple(ids[start:][-len(after) :]) == after else 0)
    return tuple(int(one) for one in ids[start:stop])


def lay_ids(tokenizer: Tokenizer, ids: TokenIds, length: int, truncate: str) -> list[Row]:
    """One row of ids with special tokens around them, or with truncate="windows" several side by side."""
    room = length - tokenizer.template.specials(paired=False)
    if truncate == "error" and len(ids) > room:
        raise too_long(len(ids) + length - room, length, windows=True)
    if truncate == "windows":
        return [_row(tokenizer, ids[start:stop], 0) for start, stop in slide(len(ids), room, 0)]
    kept = [id for start, stop in keep([len(ids)], room, truncate)[0] for id in ids[start:stop]]
    return [_row(tokenizer, kept, len(ids) - len(kept))]


def _row(tokenizer: Tokenizer, ids: Sequence[int], dropped: int) -> Row:
    laid: list[int] = []
    segments: list[int] = []
    for slot in tokenizer.template.slots(paired=False, specials=True):
        more = [slot.id] if slot.sequence is None else ids
        laid += more
        segments += [slot.segment] * len(more)
    return Row(laid, segments, dropped=dropped)


def _around(tokenizer: Tokenizer) -> tuple[TokenIds, TokenIds]:
    """The special tokens before and behind a text."""
    slots = tokenizer.template.slots(paired=False, specials=True)
    middle = next((place for place, slot in enumerate(slots) if slot.sequence is not None), len(slots))
    return tuple(slot.id for slot in slots[:middle]), tuple(slot.id for slot in slots[middle + 1 :])


def _is_number(value: Any) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)
