"""Whether labels can be learned: how they are spread, which look misspelt, which are no labels at all.

In: each example's labels, or the types of each sentence's tags. Out: facts and findings. Work grows with the number of
occurrences and of distinct labels, never with its square.
"""

import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from bertsmith.data.findings import SHOWN, Diagnosis, Placed, counted, quoted, share, shorten

FEW = 5  # examples of a class: with fewer nothing can be learned about it, nor measured
RARE = 20  # times rarer than its near twin: a misspelling rather than a class of its own
SHORTEST_TYPO = 5  # letters; shorter labels (NN and NNS, VBD and VBN) are often one letter apart by design
CLASSES_AT_MOST = 200  # distinct whole numbers that still pass for classes
MEASUREMENTS = 10  # distinct fractional numbers that do not
NO_LABELS = frozenset({"-", "--", "?", "n/a", "na", "#n/a", "null", "undefined", "(blank)"})
ENOUGH_TO_JUDGE = 8  # examples: with fewer, each label once may be chance


@dataclass(frozen=True)
class Labels:
    """`of[i]` are the labels of `examples[i]`."""

    examples: Sequence[Placed]
    of: Sequence[Sequence[str]]
    counts: Mapping[str, int]

    @classmethod
    def count(cls, examples: Sequence[Placed], of: Sequence[Sequence[str]]) -> "Labels":
        return cls(examples, of, Counter(label for labels in of for label in labels))

    def bearers(self, wanted: Iterable[str]) -> list[Placed]:
        """The examples with any of these labels."""
        chosen = set(wanted)
        rows = zip(self.examples, self.of, strict=True)
        return [example for example, labels in rows if not chosen.isdisjoint(labels)]

    @property
    def balance(self) -> dict[str, int]:
        """How often each occurs, the most frequent first."""
        return dict(sorted(self.counts.items(), key=lambda item: (-item[1], item[0])))


def report_nature(diagnosis: Diagnosis, labels: Labels) -> bool:
    """Errors where the labels are no classes: measurements, or as many values as rows. True: nothing more to say."""
    counts, total = labels.counts, sum(labels.counts.values())
    if are_measurements(counts):
        some = ", ".join(list(counts)[:SHOWN])
        diagnosis.add(
            "error",
            f"the labels are {len(counts):,} different numbers such as {some}: predicting a number is regression, not "
            f"classify; say --task regress, choose another label column, or group the numbers into classes",
            labels.examples[:1],
        )
        return True
    if total >= ENOUGH_TO_JUDGE and len(counts) > 0.8 * total:
        diagnosis.add(
            "error",
            f"{len(counts):,} different labels in {counted(len(labels.examples), 'example')}, such as "
            f"{quoted(list(counts)[:2])}: that is an id or a text, not a class; choose another label column",
            labels.examples[:1],
        )
        return True
    if len(counts) > CLASSES_AT_MOST and None not in map(_read_number, counts):
        diagnosis.add(
            "warning",
            f"the labels are {len(counts):,} different whole numbers: if they count or measure something, that is "
            f"regression, not classify",
        )
    return False


def are_measurements(labels: Iterable[str]) -> bool:
    """Whether all of these different labels are numbers, and so many of them no whole ones that they are no classes."""
    numbers = [_read_number(label) for label in labels]
    return None not in numbers and sum(number != int(number or 0) for number in numbers) >= MEASUREMENTS


def _read_number(label: str) -> float | None:
    try:
        number = float(label)
    except ValueError:
        return None
    return number if number - number == 0 else None  # neither infinite nor NaN


def report_balance(diagnosis: Diagnosis, labels: Labels, noun: str = "label", nouns: str = "") -> None:
    """One class only, classes too small to learn, and what answering the most frequent one would score."""
    counts, total = labels.counts, len(labels.examples)
    if len(counts) == 1:
        only = next(iter(counts))
        diagnosis.add("error", f'every example has the {noun} "{shorten(only)}": with one class there is nothing to '
                      f"learn; is this the right column?", labels.examples[:1])  # fmt: skip
        return
    small = sorted((label for label, count in counts.items() if count < FEW), key=lambda label: counts[label])
    if small:
        named = ", ".join(f'"{shorten(label)}" ({counts[label]})' for label in small[:SHOWN])
        more = f" and {len(small) - SHOWN:,} more" if len(small) > SHOWN else ""
        diagnosis.add("warning", f"fewer than {FEW} examples of {counted(len(small), noun, nouns)}: {named}{more}; "
                      f"too few to learn or to measure", labels.bearers(small))  # fmt: skip
    most, least = max(counts.values(), default=0), min(counts.values(), default=0)
    if len(counts) > 1 and most >= 3 * least:
        top = max(counts, key=lambda label: counts[label])
        diagnosis.add(
            "note",
            f'"{shorten(top)}" has {most / least:,.0f} times the examples of the rarest {noun}, and always answering '
            f"it would be right in {share(most, total)}: read macro F1 beside accuracy",
        )


def report_strays(
    diagnosis: Diagnosis, train: Labels, dev: Labels, noun: str = "label", tolerated: float = 0.0, side: str = "dev"
) -> None:
    """Labels of one side only. Unseen ones are an error unless they are at most `tolerated` of what dev holds.

    `side` is what dev is called: test is judged alike.
    """
    unseen = [label for label in dev.balance if label not in train.counts]
    if unseen:
        times = sum(dev.counts[label] for label in unseen)
        small = times <= tolerated * sum(dev.counts.values())
        hints = [(label, _guess_spelling(label, train.counts)) for label in unseen[:SHOWN]]
        guesses = [f'"{shorten(label)}" may be a misspelt "{shorten(near)}"' for label, near in hints if near]
        rest = f"; {', '.join(guesses)}" if guesses else ""
        diagnosis.add(
            "warning" if small else "error",
            f"{side} has the {noun}{'s' * (len(unseen) > 1)} {quoted(unseen)}, which train never shows, so "
            f"{counted(times, f'{side} answer')} can never be right{rest}",
            dev.bearers(unseen),
        )
    missing = [label for label in train.balance if label not in dev.counts]
    if missing:
        diagnosis.add("note", f"{side} never asks for the {noun}{'s' * (len(missing) > 1)} {quoted(missing)}")


def _guess_spelling(label: str, known: Iterable[str]) -> str | None:
    """The known label that this may stand for; one with digits names itself."""
    near = get_close_matches(label, list(known)[:CLASSES_AT_MOST], n=1, cutoff=0.8)
    return near[0] if near and not any(c.isdigit() for c in label + near[0]) else None


def report_typos(diagnosis: Diagnosis, labels: Labels, noun: str = "label") -> None:
    """Labels that differ by case, spaces or one letter, where one is likely the other misspelt."""
    counts = labels.counts
    for rare, common, how in [*find_variants(counts), *find_misspellings(counts)]:
        if rare not in counts or common not in counts:
            continue
        diagnosis.add(
            "warning",
            f'the {noun} "{shorten(rare)}" ({counts[rare]:,} {"time" if counts[rare] == 1 else "times"}) and '
            f'"{shorten(common)}" ({counts[common]:,}) differ {how}: are they one?',
            labels.bearers([rare]),
        )


def find_variants(counts: Mapping[str, int]) -> list[tuple[str, str, str]]:
    """(rarer, commoner, how they differ) for labels that are the same but for case, spaces, hyphens, underscores.

    And for those that are one number: 1 and 1.0, as a column with gaps in it becomes on its way through a data frame;
    and for those that look alike: é as one character and as two, a sign without width behind the last letter.
    """
    groups: dict[Any, list[str]] = defaultdict(list)
    for label in counts:
        number = _read_number(label)
        letters = "".join(_as_seen(label).casefold().replace("_", " ").replace("-", " ").split())
        groups[letters if number is None else number].append(label)
    found = []
    for kind, group in groups.items():
        common, *others = sorted(group, key=lambda label: (-counts[label], label))
        for other in others:
            one, same = _as_seen(other), _as_seen(common)
            how = "only by case" if one.casefold() == same.casefold() else "only by spaces or hyphens"
            how = "only in how their letters are encoded" if one == same else how
            found.append((other, common, how if isinstance(kind, str) else "only in how a number is written"))
    return found


def _as_seen(label: str) -> str:
    """Without what the eye does not see: signs of no width, and which of its codes a letter has."""
    if label.isascii():
        return label
    return "".join(c for c in unicodedata.normalize("NFKC", label) if unicodedata.category(c) != "Cf").strip()


def report_blanks(diagnosis: Diagnosis, labels: Labels) -> None:
    """Labels that stand where there is none, as SNLI's "-" where those who were asked did not agree."""
    blank = [label for label in labels.counts if label.casefold() in NO_LABELS]
    if blank:
        diagnosis.add("warning", f"the label {quoted(blank)} often means that there is none, and would be learnt as a "
                      f"class: take these rows out unless it is one", labels.bearers(blank))  # fmt: skip


def find_misspellings(counts: Mapping[str, int]) -> list[tuple[str, str, str]]:
    """(rare, common, how) for labels one edit apart; digits are names of classes, not slips."""
    neighbours = defaultdict(list)
    for label in counts:
        if len(label) >= SHORTEST_TYPO:
            for short in {label, *(label[:i] + label[i + 1 :] for i in range(len(label)))}:
                neighbours[short].append(label)
    pairs = set()
    for group in neighbours.values():
        common = max(group, key=lambda label: counts[label])
        # Against the most frequent only: a misspelling is rare beside the right form.
        pairs |= {(other, common) for other in group if counts[other] * RARE <= counts[common]}
    slips = sorted(pair for pair in pairs if _is_slip(*pair))
    return [(rare, common, "by one letter") for rare, common in slips]


def _is_slip(one: str, other: str) -> bool:
    """Whether a letter was added, lost, changed, or changed places with its neighbour."""
    if one.casefold() == other.casefold() or len(one.split()) != len(other.split()):
        return False
    start = next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    rest, rest_other = one[start:], other[start:]
    if any(c.isdigit() for c in rest[:1] + rest_other[:1]):
        return False
    swapped = rest[:2] == rest_other[:2][::-1] and rest[2:] == rest_other[2:]
    return swapped or rest[1:] == rest_other[1:] or rest[1:] == rest_other or rest == rest_other[1:]


def balance_facts(labels: Labels, places: Sequence[str] | None = None) -> dict[str, Any]:
    """The counts of each label, and the accuracy of always giving the most frequent one.

    `places`: where an example is asked for many labels, the right one of each time.
    """
    balance, total = labels.balance, len(labels.examples if places is None else places)
    top = max((labels.counts if places is None else Counter(places)).values(), default=0)
    return {"labels": balance, "majority": round(top / total, 4) if total else 0.0}
