"""The errors a run should be judged by: those the model was surest of, each with the text and what was expected."""

from collections.abc import Sequence
from itertools import pairwise

from bertsmith.evaluation.report.excerpts import choose_words, cut_around, cut_middle, cut_name
from bertsmith.evaluation.report.facts import Mistake
from bertsmith.evaluation.report.markup import escape, isolate, tag
from bertsmith.evaluation.report.numbers import is_number

SHOWN, FOLDED = 12, 60  # open, and at most in all
LONGEST = 600  # characters of one marked answer


def list_mistakes(task: str, errors: Sequence[Mistake]) -> str:
    """The surest first; most of them folded away."""
    ordered = sorted(errors, key=_surety, reverse=True)[:FOLDED]
    show = {"tag": _show_tags, "span": _show_answer}.get(task, _show_labels)
    items = [tag("article", show(error), {"class": "mistake"}) + "\n" for error in ordered]
    more = items[SHOWN:]
    folded = tag("details", tag("summary", f"{len(more)} more") + "".join(more)) if more else ""
    return "".join(items[:SHOWN]) + folded


def _surety(error: Mistake) -> float:
    score = error.get("score")
    return float(score) if is_number(score) else float("-inf")


def _facts(error: Mistake) -> str:
    """What is said of every mistake: how sure, and where it stands."""
    sure = [f"{error['score']:.3f} sure"] if is_number(error.get("score")) else []
    places = [escape(cut_middle(error["where"], 80, 60))] if error.get("where") else []
    return tag("span", " · ".join(sure + places), {"class": "quiet n"}) if sure or places else ""


def _names(value: object) -> list[str]:
    if value is None or value == "":
        return []
    return [str(one) for one in value] if isinstance(value, list | tuple) else [str(value)]


def _chips(names: Sequence[str], style: str) -> str:
    return "".join(tag("b", isolate(cut_name(name)), {"class": f"chip {style}"}) for name in names)


def _paragraph(inside: str, style: str = "text") -> str:
    """From the right where its script runs so; what `bdi` isolates would not count for that."""
    return tag("p", inside, {"class": style, "dir": "auto"})


def _show_labels(error: Mistake) -> str:
    """Classification: what was said for what; with several labels, which were missed and which are too many."""
    gold, said = _names(error.get("gold")), _names(error.get("predicted"))
    if isinstance(error.get("gold"), list | tuple):
        missed, added = [one for one in gold if one not in said], [one for one in said if one not in gold]
        both = [one for one in gold if one in said]
        groups = [("missed", missed, "gold"), ("added", added, "said"), ("right", both, "both")]
    else:
        groups = [("said", said, "said"), ("gold", gold, "gold")]
    shown = "".join(tag("span", f"{word} {_chips(names, style)}") for word, names, style in groups if names)
    texts = [error.get("text"), error.get("pair")]
    return tag("header", shown + _facts(error)) + "".join(
        _paragraph(escape(cut_middle(text))) for text in texts if text
    )


def _show_tags(error: Mistake) -> str:
    """Tagging: the wrong words with both tags under them, and their neighbours."""
    words, gold, said = error.get("words", []), _names(error.get("gold")), _names(error.get("predicted"))
    length = min(len(words), len(gold), len(said))
    wrong = [i for i in range(length) if gold[i] != said[i]]
    parts, after = [], 0
    for low, high in choose_words(wrong, length):
        parts.append(_gap(low - after, "words"))
        parts += [_show_word(words[i], gold[i], said[i]) for i in range(low, high)]
        after = high
    parts.append(_gap(len(words) - after, "words"))
    count = f"{len(wrong)} of {length:,} tags wrong" if len(wrong) != 1 else f"1 of {length:,} tags wrong"
    return tag("header", tag("span", count) + _facts(error)) + tag(
        "p", " ".join(p for p in parts if p), {"class": "words"}
    )


def _show_word(word: str, gold: str, said: str) -> str:
    shown = isolate(cut_middle(word, 40, 10))
    if gold != said:
        under = tag("small", escape(said), {"class": "said"}) + tag("small", escape(gold), {"class": "gold"})
        return tag("span", shown + under, {"class": "word bad"})
    return tag("span", shown + tag("small", escape(gold) if gold != "O" else "", {"class": "quiet"}), {"class": "word"})


def _gap(count: int, unit: str) -> str:
    return tag("span", f" … {count:,} {unit} … ", {"class": "quiet"}) if count > 0 else ""


def _show_answer(error: Mistake) -> str:
    """Questions: both answers, marked in the part of the context that holds them."""
    gold = list(dict.fromkeys(name for name in _names(error.get("gold")) if name))  # several people may say the same
    said, context = str(error.get("predicted") or ""), error.get("context", "")
    shown = tag("span", "said " + (_chips([said], "said") if said else "no answer"))
    shown += tag("span", "gold " + (_chips(gold[:4], "gold") if gold else "no answer"))
    places = [_place(context, gold[0] if gold else "", error.get("gold_start"), "gold"),
              _place(context, said, error.get("predicted_start"), "said")]  # fmt: skip
    question = _paragraph(escape(cut_middle(error.get("question", ""))), "text strong")
    marked = _mark(context, [place for place in places if place])
    return tag("header", shown + _facts(error)) + question + (_paragraph(marked) if marked else "")


def _place(context: str, answer: str, start: int | None, style: str) -> tuple[int, int, str] | None:
    """Where the answer stands; without an offset, where it stands first."""
    if not answer:
        return None
    at = start if start is not None and context[start : start + len(answer)] == answer else context.find(answer)
    return (at, min(at + len(answer), at + LONGEST), style) if at >= 0 else None


def _mark(context: str, places: Sequence[tuple[int, int, str]]) -> str:
    """The context around the places, with each of them marked; where two overlap, both marks."""
    parts, after = [], 0
    for low, high in cut_around(context, [place[:2] for place in places]):
        parts.append(_gap(low - after, "characters"))
        inner = {edge for start, end, _ in places for edge in (start, end) if low < edge < high}
        edges = [low, *sorted(inner), high]
        for start, end in pairwise(edges):
            styles = sorted({style for first, last, style in places if first <= start and end <= last})
            piece = escape(context[start:end])
            parts.append(tag("mark", piece, {"class": " ".join(styles)}) if styles else piece)
        after = high
    parts.append(_gap(len(context) - after, "characters"))
    return "".join(parts)
