"""What was measured without labels, for people: rows of tables, in percent, and the sentences that belong under them.

In: the plain JSON of `bertsmith.evaluate_blimp`, `…_masked` and `…_perplexity`. Out: rows of text.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from bertsmith.data.findings import counted
from bertsmith.evaluation.tables import Row, percent
from bertsmith.training.watching import show_time

BLIMP_NUMBERS = ("%", "95 % interval", "sets", "pairs")
MASKED_NUMBERS = ("value", "95 % interval", "n")
WEAKEST = 5  # sets that are named under the table
WAYS = {
    "plain": "plain pseudo-log-likelihood: each token masked alone",
    "within-word": "within-word pseudo-log-likelihood: the later pieces of its word masked with each token",
}


def between(one: Mapping[str, Any], show: Callable[[float | None], str] = percent) -> str:
    return f"{show(one['low'])} – {show(one['high'])}"


def plain_number(value: float | None) -> str:
    return "too large" if value is None else f"{value:,.2f}"


def blimp_rows(result: Mapping[str, Any], with_sets: bool = False) -> list[Row]:
    """The phenomena, the fields, then all; on asking the sets before them."""
    kinds = [("set", "sets")] if with_sets else []
    kinds += [("phenomenon", "phenomena"), ("field", "fields")]
    rows = [{"": kind, "of": one[kind], **_cells(one)} for kind, many in kinds for one in result[many]]
    return [*rows, {"": "mean", "of": "all sets", **_cells(result["accuracy"])}]


def _cells(one: Mapping[str, Any]) -> Row:
    values = (percent(one["value"]), between(one), f"{one['sets']:,}", f"{one['n']:,}")
    return dict(zip(BLIMP_NUMBERS, values, strict=True))


def blimp_notes(result: Mapping[str, Any]) -> list[str]:
    notes = [
        f"Accuracy in percent, {WAYS[result['way']]}; means are of the sets' accuracies, intervals over their pairs.",
        f"{counted(result['ties'], 'tie')} of {counted(result['pairs'], 'pair')} "
        f"{'counts' if result['ties'] == 1 else 'count'} as wrong.",
    ]
    if len(result["sets"]) > WEAKEST:
        weakest = sorted(result["sets"], key=lambda one: one["value"])[:WEAKEST]
        notes.append("Weakest sets: " + ", ".join(f"{one['set']} ({percent(one['value'])})" for one in weakest) + ".")
    if result["skipped"]:
        left = f"{counted(result['skipped'], 'pair')} {'is' if result['skipped'] == 1 else 'are'} left out"
        notes.append(f"{left}: a sentence is longer than the model reads.")
    if result["subset"]:
        notes.append(f"A subset, not to be compared with published numbers: {result['subset']}.")
    return [*notes, f"{counted(result['pairs'], 'pair')} in {show_time(result['seconds'])}."]


def masked_rows(result: Mapping[str, Any]) -> list[Row]:
    """Accuracy in percent, pseudo-perplexity as it is."""
    rows, what = [], "codes" if "codes" in result else "words"
    for name, one in result["accuracy"].items():
        rows.append(("first guess right, %", f"{name} {what}", percent(one["value"]), between(one), one["n"]))
    for one in result["bands"]:
        rows.append(("first guess right, %", name_band(one, what), percent(one["value"]), between(one), one["n"]))
    return [*_name_cells(rows), *perplexity_rows(result)]


def perplexity_rows(result: Mapping[str, Any]) -> list[Row]:
    return _name_cells(
        [
            ("pseudo-perplexity", f"a {name}", plain_number(one["value"]), between(one, plain_number), one["n"])
            for name, one in result["perplexity"].items()
        ]
    )


def _name_cells(rows: Sequence[tuple[str, str, str, str, int]]) -> list[Row]:
    names = ("measure", "of", *MASKED_NUMBERS)
    return [dict(zip(names, (*row[:-1], f"{row[-1]:,}"), strict=True)) for row in rows]


def name_band(band: Mapping[str, Any], what: str = "words") -> str:
    if band["from"] is None:
        return f"{what} that the counts lack"
    return f"{what} of rank {band['from']:,} to {band['to']:,}"


def masked_notes(result: Mapping[str, Any]) -> list[str]:
    if "codes" in result:
        ranks = "A code's rank is its place by frequency in the rows for training."
        return [_tell_codes(result), ranks, _took(result)]
    whole = "all" if result["is_whole"] else f"a sample (seed {result['seed']}) of"
    notes = [
        f"Words one at a time, all pieces masked, the likeliest piece at each mask in one pass: {whole} the "
        f"{counted(result['words'], 'word')} of {counted(result['documents'], 'document')}.",
        "Content words are all that are not in a short list of English function words; a word's rank is its place by "
        f"frequency in {result['counts'] or 'the text itself'}.",
        _tell_sample(result),
    ]
    if result["skipped"]:
        left = "word is left out: it has" if result["skipped"] == 1 else "words are left out: they have"
        notes.append(f"{result['skipped']:,} {left} no pieces, or more than the model reads.")
    return [*notes, _took(result)]


def perplexity_notes(result: Mapping[str, Any]) -> list[str]:
    if "codes" in result:
        return [_tell_codes(result), _took(result)]
    count, seed = result["documents"], result["seed"]
    drawn = "" if result["is_whole"] else f" A sample (seed {seed}) of {counted(count, 'document')}."
    return [_tell_sample(result) + drawn, _took(result)]


def _took(result: Mapping[str, Any]) -> str:
    return f"Measured in {show_time(result['seconds'])}."


def _tell_codes(result: Mapping[str, Any]) -> str:
    drawn = "all" if result["is_whole"] else f"{result['samples']:,} (drawn by seed {result['seed']}) of"
    among = f"{drawn} the {counted(result['codes'], 'code')} of {counted(result['documents'], 'row')}"
    read = f"at most {result['length']:,} ids are read at once"
    return f"Each code masked alone: {among} that training never saw; {read}."


def _tell_sample(result: Mapping[str, Any]) -> str:
    return (
        f"Pseudo-perplexity by {WAYS[result['way']]}; from {result['unit_samples']:,} of {result['units']:,} words and "
        f"marks; a word's counts the marks in. At most {result['length']:,} tokens are read at once."
    )
