"""The doctor's questions to any kind of example: is it empty, damaged, there twice, in train and dev alike?

In: examples and what stands in them. Out: findings.
"""

import re
from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence

from bertsmith.data.findings import Diagnosis, Level, Placed, counted, share

TOO_MUCH_OVERLAP = 0.9  # of dev: scores on it would say how well train was learned by heart
MOST = 0.5  # of the examples: no accident but the wrong column or a broken file

_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\ufffe\uffff]")
# UTF-8 read as Latin-1 or Windows-1252, and what decoders put where they gave up.
_MOJIBAKE = re.compile("â€|Ã[\u0080-\u00bf\u0192\u0152-\u0178\u2013-\u2122]|Â[\u00a0-\u00bf]|ï»¿|\ufffd")
_TAGS = "a|b|i|u|p|br|hr|em|li|ul|ol|td|tr|th|h[1-6]|div|img|pre|code|span|table|strong|script|style|html|body|font"
_HTML = re.compile(rf"</?(?:{_TAGS})(?:\s[^<>]*)?/?>|&(?:amp|lt|gt|quot|nbsp|#\d{{2,5}});", re.IGNORECASE)
_SPREADSHEET = re.compile(r"^#(?:REF!|N/A|NAME\?|VALUE!|DIV/0!|NUM!|NULL!)$", re.MULTILINE)
_SIGNS: tuple[tuple[Level, re.Pattern[str], str], ...] = (
    ("warning", _CONTROL, "control characters, which are no text"),
    ("warning", _MOJIBAKE, "characters such as â€™ or \ufffd that come from a wrong encoding"),
    ("warning", _SPREADSHEET, "a spreadsheet's error such as #REF! or #N/A in place of a text"),
    ("note", _HTML, "HTML tags or entities, which the model will read as words"),
)


def report_empty(diagnosis: Diagnosis, examples: Sequence[Placed], texts: Sequence[str], side: str, noun: str) -> None:
    """No examples at all, and examples without a visible character."""
    if not examples:
        diagnosis.add("error", f"{side} has no examples")
        return
    empty = [example for example, text in zip(examples, texts, strict=True) if not text.strip()]
    if empty:
        most = len(empty) > MOST * len(examples)
        diagnosis.add("error" if most else "warning", f"{counted(len(empty), noun)} of {len(examples):,} "
                      f"{'is' if len(empty) == 1 else 'are'} empty{': is this the right column?' if most else ''}",
                      empty)  # fmt: skip


def report_unknown(diagnosis: Diagnosis, unknown: Sequence[Placed], side: str, noun: str) -> None:
    """Examples that cannot teach or measure, as their gold is not known."""
    if unknown:
        diagnosis.add("error", f"{counted(len(unknown), f'{side} example')} without {noun}", unknown)


def report_signs(diagnosis: Diagnosis, examples: Sequence[Placed], texts: Sequence[str]) -> None:
    """Control characters, text decoded with the wrong encoding, HTML."""
    for level, pattern, what in _SIGNS:
        hit = [example for example, text in zip(examples, texts, strict=True) if pattern.search(text)]
        if hit:
            size = f"{counted(len(hit), 'example')} ({share(len(hit), len(examples))})"
            diagnosis.add(level, f"{size} with {what}", hit)


def report_repeats(
    diagnosis: Diagnosis, examples: Sequence[Placed], keys: Sequence[Hashable], golds: Sequence[Hashable], noun: str,
    gold_noun: str,
) -> None:  # fmt: skip
    """The same input again: with the same gold it only counts double, with another it teaches nonsense."""
    groups: dict[Hashable, dict[Hashable, list[Placed]]] = defaultdict(lambda: defaultdict(list))
    for example, key, gold in zip(examples, keys, golds, strict=True):
        groups[key][gold].append(example)
    copies = [example for group in groups.values() for same in group.values() for example in same[1:]]
    conflicts = [group for group in groups.values() if len(group) > 1]
    if conflicts:
        rows = [example for group in conflicts for same in group.values() for example in same[:1]]
        diagnosis.add(
            "warning",
            f"the same {noun} with different {gold_noun}, {counted(len(conflicts), 'time')}: at most one can be right",
            rows,
        )
    if copies:
        again = "repeats" if len(copies) == 1 else "repeat"
        size = f"{counted(len(copies), 'example')} ({share(len(copies), len(examples))})"
        diagnosis.add("note", f"{size} {again} an earlier one word for word", copies)
    diagnosis.facts["train"] |= {"duplicates": len(copies), "conflicts": len(conflicts)}


def report_overlap(
    diagnosis: Diagnosis, held: Iterable[Hashable], examples: Sequence[Placed], keys: Sequence[Hashable], noun: str,
    side: str = "dev", holder: str = "train",
) -> None:  # fmt: skip
    """Examples of dev (or test) that train (or dev) holds too: a score on them is not one for new texts."""
    seen = set(held)
    shared = [example for example, key in zip(examples, keys, strict=True) if key in seen]
    diagnosis.facts[side]["overlap"] = len(shared)
    if not shared:
        return
    stand = "stands" if len(shared) == 1 else "stand"
    most = len(shared) >= TOO_MUCH_OVERLAP * len(examples)
    size = f"all {len(examples):,}" if len(shared) == len(examples) else f"{len(shared):,} of {len(examples):,}"
    what = f"{size} {side} {noun}s" if len(examples) > 1 else f"the only {side} {noun}"
    told = "be that of dev once more, which chose the model" if holder == "dev" else "measure memory, not skill"
    memory = f"the score would {told}; give {side} texts that {holder} does not hold"
    diagnosis.add(
        "error" if most else "warning",
        f"{what} ({share(len(shared), len(examples))}) {stand} in {holder} too: "
        f"{memory if most else 'the score will be too good by them'}",
        shared,
    )
