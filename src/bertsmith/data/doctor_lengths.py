"""How long examples are, and what a limit would cut off.

In: the lengths of examples in tokens, or in words where no tokenizer is there, and the longest row that a model reads.
Out: facts (percentiles, a histogram, what is cut) and the findings that follow from them.
"""

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from bertsmith.data.examples import ChoiceExample, PairExample, RankExample, SpanExample, TagExample
from bertsmith.data.findings import Diagnosis, Placed, counted, share
from bertsmith.text.tokenizer import Tokenizer

CHUNK = 4096  # texts tokenized at once, so that memory stays bounded
EDGES = (8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192)  # upper ends of the histogram's bars
FAR_TOO_LONG = 20  # times the limit: a whole book among reviews, or a file whose sentences were never separated
MOSTLY = 0.5  # this share of examples cut: the limit, not the data, is what should change


def measure_lengths(lengths: Sequence[int], limit: int | None, unit: str) -> dict[str, Any]:
    """The facts; `cut` counts the examples longer than the limit and `dropped` what of them does not fit."""
    ordered = sorted(lengths)
    if not ordered:
        return {"unit": unit, "total": 0}
    facts: dict[str, Any] = {"unit": unit, "total": sum(ordered), "least": ordered[0], "most": ordered[-1]}
    facts["mean"] = round(facts["total"] / len(ordered), 1)
    facts |= {f"p{p}": ordered[-(-p * len(ordered) // 100) - 1] for p in (50, 90, 95, 99)}
    facts["histogram"] = list_bars(ordered)
    if limit is not None:
        over = [length - limit for length in ordered[bisect_left(ordered, limit + 1) :]]
        facts |= {"limit": limit, "cut": len(over), "dropped": sum(over)}
    return facts


def list_bars(ordered: Sequence[int]) -> list[dict[str, int | None]]:
    """Bars of a histogram over sorted lengths; each counts lengths from `from` to `to`, both included."""
    bars: list[dict[str, int | None]] = []
    before, start = 0, 0
    for edge in EDGES:
        upto = bisect_left(ordered, edge + 1)
        bars.append({"from": start, "to": edge, "count": upto - before})
        before, start = upto, edge + 1
        if before == len(ordered):
            return bars
    return [*bars, {"from": start, "to": None, "count": len(ordered) - before}]


def report_lengths(
    diagnosis: Diagnosis, examples: Sequence[Placed], lengths: Sequence[int], facts: dict[str, Any],
    nouns: tuple[str, str],
    cuts: str = "would be cut",
) -> None:  # fmt: skip
    """Findings on what is longer than the limit; `cuts` says what becomes of it."""
    limit, cut = facts.get("limit"), facts.get("cut", 0)
    if not limit or not cut:
        return
    unit = facts["unit"]
    size = f"{counted(cut, *nouns)} of {len(examples):,}"
    lost = f"{share(facts['dropped'], facts['total'])} of all {unit}"
    least = "" if unit == "tokens" else "at least "  # a word is one token or more
    longest = max(range(len(lengths)), key=lengths.__getitem__)
    far = [i for i, length in enumerate(lengths) if length > FAR_TOO_LONG * limit]
    if far:
        far.sort(key=lengths.__getitem__, reverse=True)
        diagnosis.add(
            "warning",
            f"{counted(len(far), *nouns)} of more than {FAR_TOO_LONG * limit:,} {unit}, the longest of "
            f"{lengths[far[0]]:,}, where the model reads {limit:,} at a time: is that one {nouns[0]} each?",
            [examples[i] for i in far],
        )
    diagnosis.add(
        "warning" if cut > MOSTLY * len(examples) and "windows" not in cuts else "note",
        f"{least}{size} {'is' if cut == 1 else 'are'} longer than {limit:,} tokens; {lost} {cuts}; "
        f"the longest has {lengths[longest]:,}",
        [examples[longest]],
    )


def report_tokenless(
    diagnosis: Diagnosis, examples: Sequence[Any], lengths: Sequence[int], words: Sequence[int],
    measure: Callable[[Sequence[Any]], Sequence[int]], nouns: tuple[str, str],
) -> None:  # fmt: skip
    """Texts that look full but of which the tokenizer leaves nothing: zero-width signs, control characters."""
    bare = measure([_emptied(example) for example in examples])  # special tokens alone
    rows = zip(examples, lengths, words, bare, strict=True)
    none = [example for example, length, some, least in rows if some and length <= least]
    if none:
        most = len(none) > MOSTLY * len(examples)
        diagnosis.add("error" if most else "warning", f"{counted(len(none), *nouns)} of {len(examples):,} without a "
                      f"token that the model could read, as in a text of invisible characters only", none)  # fmt: skip


def _emptied(example: Any) -> Any:
    if isinstance(example, SpanExample):
        return replace(example, question="", context="")
    if isinstance(example, ChoiceExample):
        return replace(example, prompt="", choices=("",))
    if isinstance(example, RankExample):
        return replace(example, query="", texts=("",))
    if isinstance(example, PairExample):
        return replace(example, text="", pair="", negatives=())
    if isinstance(example, TagExample):
        return replace(example, text="", spans=())
    return replace(example, text="", pair=None if example.pair is None else "")


def count_tokens(tokenizer: Tokenizer, examples: Sequence[Any]) -> list[int]:
    """How long each example's row would be, were it not cut; special tokens count."""
    rows = [_texts(example) for example in examples]
    distinct = list(dict.fromkeys(text for row in rows for text in row))  # a context has many questions
    pieces: dict[str, int] = {}
    for start in range(0, len(distinct), CHUNK):
        some = distinct[start : start + CHUNK]
        pieces |= zip(some, map(len, tokenizer.encode_many(some, specials=False)), strict=True)
    specials = [0, tokenizer.template.specials(False), tokenizer.template.specials(True)]
    return [specials[len(row)] + sum(pieces[text] for text in row) for row in rows]


def _texts(example: Any) -> tuple[str, ...]:
    """What a row is made of."""
    if isinstance(example, SpanExample):
        return example.question, example.context
    if isinstance(example, PairExample):  # its texts have a row each
        return (max(example.text, example.pair, *example.negatives, key=len),)
    pair = getattr(example, "pair", None)
    return (example.text,) if pair is None else (example.text, pair)
