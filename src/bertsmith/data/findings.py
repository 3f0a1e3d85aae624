"""What the doctor says about data: findings by level, each one sentence that names rows, and the facts behind them."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from bertsmith.errors import BertsmithError

Level = Literal["error", "warning", "note"]
LEVELS: tuple[Level, ...] = ("error", "warning", "note")
SHOWN = 3  # rows or labels that a sentence names before it says how many more there are
_PLACE = re.compile(r"(?P<name>.*), (?P<unit>[a-z]+) (?P<number>[\d,]+)(?: \(id .*\))?", re.DOTALL)


class Placed(Protocol):
    """Anything that knows where it stood: an example."""

    @property
    def where(self) -> str: ...


@dataclass(frozen=True)
class Finding:
    """An error would waste a run, a warning costs accuracy or trust, a note is good to know."""

    level: Level
    sentence: str
    where: str = ""  # the first place it speaks of

    def as_dict(self) -> dict[str, str]:
        return {"level": self.level, "sentence": self.sentence, "where": self.where}


@dataclass
class Diagnosis:
    """`facts` is plain JSON: the task, and for "train" and "dev" the counts, labels and lengths."""

    findings: list[Finding] = field(default_factory=list)
    facts: dict[str, Any] = field(default_factory=dict)

    @property
    def errors(self) -> list[Finding]:
        return [finding for finding in self.findings if finding.level == "error"]

    @property
    def warnings(self) -> list[Finding]:
        return [finding for finding in self.findings if finding.level == "warning"]

    def add(self, level: Level, sentence: str, examples: Sequence[Placed] = ()) -> None:
        """One more finding; the places of `examples`, where they have any, go to the end of the sentence."""
        where = next((example.where for example in examples if example.where), "")
        found = places([example.where for example in examples])
        end = "?" if sentence.endswith("?") else "."
        whole = sentence.removesuffix("?") + (f" ({found})" if found else "") + end
        self.findings.append(Finding(level, whole[:1].upper() + whole[1:], where))

    def settle(self) -> "Diagnosis":
        """Itself with the findings in the order of their weight."""
        self.findings.sort(key=lambda finding: LEVELS.index(finding.level))
        return self

    def stop(self) -> None:
        """Raises where something would waste the run, naming the first few."""
        errors = [finding.sentence.removesuffix(".") for finding in self.errors]
        if not errors:
            return
        if len(errors) == 1:
            raise BertsmithError(_end(errors[0]))
        named = "; ".join(f"({number}) {sentence}" for number, sentence in enumerate(errors[:SHOWN], 1))
        more = f"; and {len(errors) - SHOWN} more" if len(errors) > SHOWN else ""
        raise BertsmithError(_end(f"{len(errors)} things in the data would waste the run: {named}{more}"))

    def as_dict(self) -> dict[str, Any]:
        return {
            "errors": len(self.errors),
            "findings": [finding.as_dict() for finding in self.findings],
            "facts": self.facts,
        }


def _end(sentence: str) -> str:
    return sentence if sentence.endswith("?") else f"{sentence}."


def places(wheres: Iterable[str], shown: int = SHOWN) -> str:
    """As in `reviews.csv, rows 12, 40, 57 and 17 more`; two files are told apart."""
    given = [where for where in wheres if where]
    some, more = given[:shown], len(given) - shown
    end = f" and {more:,} more" if more > 0 else ""
    parsed = [_PLACE.fullmatch(where) for where in some]
    heads = {(match["name"], match["unit"]) for match in parsed if match}
    if len(some) > 1 and len(heads) == 1 and all(parsed):
        ((name, unit),) = heads
        # Without the commas of thousands, which a list of numbers would be lost in.
        numbers = [match["number"].replace(",", "") for match in parsed if match]
        joined = ", ".join(numbers) if end else " and ".join([", ".join(numbers[:-1]), numbers[-1]])
        return f"{name}, {unit}s {joined}{end}"
    return "; ".join(some) + end


def quoted(values: Iterable[str], shown: int = SHOWN) -> str:
    """As in `"joy", "anger", "fear" and 4 more`; long ones are shortened."""
    given = list(values)
    some = ", ".join(f'"{shorten(value)}"' for value in given[:shown])
    return some + (f" and {len(given) - shown:,} more" if len(given) > shown else "")


def shorten(value: str, most: int = 60) -> str:
    """A value as one line of a message shows it."""
    plain = value if value.isprintable() else "".join(c if c.isprintable() else repr(c)[1:-1] for c in value)
    return plain if len(plain) <= most else plain[: most - 1] + "…"


def counted(number: int, noun: str, nouns: str = "") -> str:
    """As in `1 text` and `1,204 texts`."""
    return f"{number:,} {noun if number == 1 else nouns or noun + 's'}"


def share(part: int, whole: int) -> str:
    """As in `12.5 %`; never 0 or 100 where that is not the whole truth."""
    percent = 100 * part / whole if whole else 0.0
    if 0 < part < whole:
        percent = min(max(percent, 0.1), 99.9)
    return f"{percent:.1f} %" if percent not in (0.0, 100.0) else f"{percent:.0f} %"
