"""What is asked of a text, as a person writes it. In: `masked+order*0.5`. Out: stages of weighted questions.

    masked+order*0.5              two questions about each row, the second at half weight
    masked+order*1-0              its weight goes from 1 to 0 over the run
    causal:0.25,masked:0.75       one after the other, each for its share of the run

Nothing here imports torch: `--help` reads it.
"""

import math
import re
from dataclasses import dataclass
from difflib import get_close_matches

from bertsmith.errors import BertsmithError

# Question -> the heads of a family that answer it.
HEADS: dict[str, tuple[str, ...]] = {
    "masked": ("mask",),
    "next": ("follows",),
    "order": ("follows",),
    "causal": ("mask",),
    "replaced": ("replaced",),
    "distilled": ("mask",),
    "relations": (),
}
ALTERING = ("masked", "causal", "replaced", "distilled")  # each changes what is read
TAUGHT = ("distilled", "relations")
PAIRED = ("next", "order")
NUMBER = r"(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?"
WEIGHT = re.compile(rf"({NUMBER})(?:-({NUMBER}))?")

Weight = float | tuple[float, float]  # the same throughout, or from the first to the second in a straight line


@dataclass(frozen=True)
class Term:
    question: str
    weight: Weight = 1.0


@dataclass(frozen=True)
class Stage:
    """Questions that are asked together, for a share of the run."""

    terms: tuple[Term, ...]
    share: float

    @property
    def questions(self) -> list[str]:
        return [term.question for term in self.terms]


def read_asks(text: str, causal_share: float = 0.25) -> list[Stage]:
    """`causal_share` is for `causal+masked`, which is short for these two one after the other."""
    if is_onward_first(text):
        text = f"causal:{causal_share!r},masked:{1 - causal_share!r}"
    parts = [part.strip().partition(":") for part in text.split(",")]
    given = [sign != "" for _, sign, _ in parts]
    if any(given) and not all(given):
        raise BertsmithError(f"asks is {text!r}: give each stage its share of the run, or none of them.")
    shares = [_read_share(share, text) if sign else 1.0 for _, sign, share in parts]
    stages = [
        Stage(tuple(_read_term(term, text) for term in terms.split("+")), share / math.fsum(shares))
        for (terms, _, _), share in zip(parts, shares, strict=True)
    ]
    for stage in stages:
        _check(stage, text)
    if set(PAIRED) <= set(name_questions(stages)):
        raise BertsmithError(f"asks is {text!r}: next and order need other pairs of sentences; ask one in a run.")
    return stages


def is_onward_first(text: str) -> bool:
    return "".join(text.split()) == "causal+masked"


def name_questions(stages: list[Stage]) -> list[str]:
    """Each question of a run once."""
    return list(dict.fromkeys(name for stage in stages for name in stage.questions))


def name_heads(stages: list[Stage]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(head for name in name_questions(stages) for head in HEADS[name]))


def _read_share(share: str, text: str) -> float:
    if not re.fullmatch(NUMBER, share.strip()) or not 0 < float(share) < math.inf:
        raise BertsmithError(
            f"asks is {text!r}: {share.strip()!r} behind a colon must be a share of the run above 0, as in "
            f"causal:0.25,masked:0.75; a weight stands behind a star, as in masked+order*0.5."
        )
    return float(share)


def _read_term(term: str, text: str) -> Term:
    question, sign, weight = (part.strip() for part in term.partition("*"))
    if question not in HEADS:
        near = get_close_matches(question, HEADS, 1)
        guess = f" (did you mean {near[0]}?)" if near else ""
        raise BertsmithError(
            f"asks is {text!r}, and {question!r} is no question{guess}; the questions are {', '.join(HEADS)}."
        )
    if not sign:
        return Term(question)
    found = WEIGHT.fullmatch(weight)
    numbers = [float(number) for number in found.groups() if number is not None] if found else []
    if not numbers or not 0 < max(numbers) < math.inf:
        raise BertsmithError(
            f"asks is {text!r}: {weight!r} behind a star must be a weight above 0, or two of them as in order*1-0."
        )
    return Term(question, numbers[0] if len(numbers) == 1 else (numbers[0], numbers[1]))


def _check(stage: Stage, text: str) -> None:
    named = stage.questions
    twice = next((name for name in named if named.count(name) > 1), None)
    if twice is not None:
        raise BertsmithError(f"asks is {text!r}: {twice} is asked twice at once; give it one weight.")
    altering = [name for name in named if name in ALTERING]
    if len(altering) > 1:
        one, other = altering[:2]
        raise BertsmithError(
            f"asks is {text!r}: {one} and {other} each change what is read, so they cannot be asked together; ask them "
            f"one after the other, as in {one}:0.5,{other}:0.5."
        )
    paired = next((name for name in named if name in PAIRED), None)
    if "causal" in named and paired:
        raise BertsmithError(
            f"asks is {text!r}: {paired} is answered at the first token, which sees nothing else where causal reads "
            f"onward; ask them one after the other."
        )
