"""A text or a pair of texts becomes one row, or several windows where it is long.

In: examples with `text` and `pair`, and their gold. Out: rows of at most `length` ids.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

from bertsmith.data.examples import NumberExample, TextExample
from bertsmith.errors import BertsmithError
from bertsmith.tasks.task import Row, too_long
from bertsmith.text.encoding import Encoding
from bertsmith.text.tokenizer import Tokenizer


class Texts(Protocol):
    """An example of one text or two."""

    @property
    def text(self) -> str: ...

    @property
    def pair(self) -> str | None: ...

    @property
    def where(self) -> str: ...


def settle_pairs(examples: Sequence[Texts]) -> dict[str, bool]:
    """The setting that says whether a model learnt from pairs of texts; none where it learnt from both."""
    found = {example.pair is not None for example in examples}
    return {"pairs": found.pop()} if len(found) == 1 else {}


def refuse_other(examples: Sequence[Texts], settings: Mapping[str, Any]) -> None:
    """A pair where single texts were learnt, or the reverse, would get an answer that means nothing."""
    pairs = settings.get("pairs")
    other = next((e for e in examples if (e.pair is not None) != pairs), None) if pairs is not None else None
    if other is not None:
        told = "pairs of texts, but this is one text; give the second too (pair=, --pair)" if pairs else (
            "single texts, but this is a pair; leave the second text out")  # fmt: skip
        raise BertsmithError(f"{other.where + ': ' if other.where else ''}the model was trained on {told}.")


def add_swapped(examples: Sequence[Any]) -> list[Any]:
    """Each pair, and behind them each the other way round, with the same gold."""
    lone = next((e for e in examples if not isinstance(e, TextExample | NumberExample) or e.pair is None), None)
    if lone is not None:
        where = getattr(lone, "where", "")
        raise BertsmithError(
            f"{where + ': ' if where else ''}swap is for pairs of texts, and this is none; leave swap out, or name the "
            "column of the second text (pair)."
        )
    return [*examples, *(replace(e, text=e.pair, pair=e.text, where=f"{e.where}, swapped") for e in examples)]


def find_turned(examples: Sequence[Any], others: Sequence[Any]) -> list[bool]:
    """Of each pair that stands among others the other way round, whether it has the same gold there."""
    known = {(other.pair, other.text): other for other in others}
    found = [(e, known[e.text, e.pair]) for e in examples if (e.text, e.pair) in known]
    return [replace(other, text=e.text, pair=e.pair, where=e.where) == e for e, other in found]


def lay_out(
    tokenizer: Tokenizer, examples: Sequence[Texts], golds: Sequence[Any], length: int, truncate: str,
    windows: bool = True,
) -> list[list[Row]]:  # fmt: skip
    """One row an example; with truncate="windows" a long one becomes several that share a quarter of their text.

    Of a pair the first text stands whole in each window and the second one slides. Each has the example's gold.
    `windows`: whether these may be chosen, for the error that an example is too long.
    """
    cut = None if truncate in ("error", "windows") else length
    encodings = [[encoding] for encoding in _encode(tokenizer, examples, cut, truncate if cut else "head")]
    for i, (encoding,) in enumerate(encodings):
        if len(encoding.ids) > length:
            encodings[i] = _part(tokenizer, examples[i], len(encoding.ids), length, truncate, windows)
    return [
        [Row(e.ids, e.segments, dropped=e.dropped, gold=gold) for e in parts]
        for parts, gold in zip(encodings, golds, strict=True)
    ]


def _encode(tokenizer: Tokenizer, examples: Sequence[Texts], length: int | None, truncate: str) -> list[Encoding]:
    texts, pairs = [e.text for e in examples], [e.pair for e in examples if e.pair is not None]
    if len(pairs) in (0, len(texts)):  # all in one parallel call
        return tokenizer.encode_many(texts, pairs or None, length=length, truncate=truncate)
    return [tokenizer.encode(e.text, e.pair, length=length, truncate=truncate) for e in examples]


def _part(
    tokenizer: Tokenizer, example: Texts, tokens: int, length: int, truncate: str, windows: bool
) -> list[Encoding]:
    """The windows of an example that is too long, or the error that it is."""
    if truncate == "error":
        raise too_long(tokens, length, windows, example.where)
    where = f"{example.where}: " if example.where else ""
    first = ("",) if example.pair is None else (example.text, "")
    room = length - len(tokenizer.encode(*first).ids)
    if room < 1:
        raise BertsmithError(
            f"{where}special tokens and the first text take {length - room:,} of {length:,} tokens and "
            f"leave no room for windows over the second; swap the two, shorten the first, or use another truncate."
        )
    return tokenizer.windows(example.text, example.pair, length=length, overlap=room // 4)
