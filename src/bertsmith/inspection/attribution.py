"""Which words made a model's answer: each word's share in the raw score, for every job.

In: a model, a job and what it is asked. Out: an `Attribution`, a picture of the words shaded by their shares.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from bertsmith.errors import BertsmithError
from bertsmith.inspection.aims import Able, Aim
from bertsmith.inspection.asking import ask
from bertsmith.inspection.attribution_drawing import draw_attribution
from bertsmith.inspection.gradients import (
    CLOSE,
    Array,
    Found,
    Scorer,
    Tell,
    choose_baseline,
    integrate_well,
    lay_baseline,
    multiply,
    occlude,
    open_network,
)
from bertsmith.inspection.picture import Picture
from bertsmith.inspection.words import Words
from bertsmith.tasks.result import check_finite
from bertsmith.tasks.texts import take_count

METHODS = {
    "integrated": "integrated gradients",
    "gradient": "gradient × input",
    "occlusion": "occlusion",
}


@dataclass(frozen=True)
class Part:
    """One row that was read, and what each of its words did."""

    name: str
    pieces: list[str]
    units: list[list[int]]  # the places of each word's pieces, or of a special token
    names: list[str]  # of the units
    sides: list[int | None]  # the text that each unit is of, 0 or 1; None: a special token
    score: float  # the number that is explained
    start: float  # the same of the baseline
    truncated: int
    found: Mapping[str, Found]  # method -> what it says

    @property
    def difference(self) -> float:
        return self.score - self.start

    def data(self) -> dict[str, Any]:
        return {
            "name": self.name, "score": self.score, "start": self.start, "truncated": self.truncated,
            "pieces": self.pieces, "units": self.units, "names": self.names, "sides": self.sides,
            "found": {
                method: {"pieces": one.pieces.tolist(), "units": one.units.tolist(), "sum": float(one.pieces.sum()),
                         "steps": one.steps, "missed": one.missed}
                for method, one in self.found.items()
            },
        }  # fmt: skip


class Attribution(Picture):
    """`.words` and `.values` are those of the first part and method; `.parts` has all."""

    kind: ClassVar[str] = "attribution"

    def __init__(self, job: str, target: str, explained: str, baseline: str, parts: list[Part]) -> None:
        self.job, self.target, self.explained, self.baseline, self.parts = job, target, explained, baseline, parts
        self.title = f"What made the answer: {job}"

    @property
    def words(self) -> list[str]:
        return self.parts[0].names

    @property
    def values(self) -> Array:
        """The share of each word, (words,)."""
        return next(iter(self.parts[0].found.values())).units

    @property
    def missed(self) -> float | None:
        """How far the sums of integrated gradients are from the differences that they explain, as a share of them."""
        found = [part.found["integrated"].missed for part in self.parts if "integrated" in part.found]
        return max((each for each in found if each is not None), default=None)

    @property
    def is_complete(self) -> bool:
        """Whether the sums are within 1 % of the differences."""
        return self.missed is None or self.missed <= CLOSE

    def data(self) -> dict[str, Any]:
        methods = {name: METHODS[name] for name in self.parts[0].found}
        return {
            "job": self.job, "target": self.target, "explained": self.explained, "baseline": self.baseline,
            "methods": methods, "parts": [part.data() for part in self.parts],
        }  # fmt: skip

    def svg(self) -> str:
        return draw_attribution(self.data())


def attribute(
    model: Able,
    job: str,
    *given: Any,
    target: str | int | None = None,
    at: int | str | None = None,
    labels: Sequence[str] | None = None,
    method: str = "integrated",
    steps: int | None = None,
    baseline: str | None = None,
    tell: Tell | None = None,
) -> Attribution:
    """What each word adds to the raw score of an answer: `attribute(m, "classify", "A wonderful film.")`.

    `given` is what the model's method `job` takes: fill (a text), follows (two), classify and score (a text or a pair),
    tag (a text), answer (question, context), choose (prompt, choices), rerank (query, texts), similar (two texts).
    `target` is the answer to explain, else the model's own: a label, a word for the mask, a part of the context, a
    choice. `at` says which mask, or which word's tag. `labels` are for classes that were never learnt.

    `method` is "integrated" (gradients, along the way from the baseline), "gradient" (× input), "occlusion" (how far
    the score falls without the word), or "all". `baseline` stands for words that are not there: "mask", "pad" or "zero"
    vectors; else the first that the tokenizer has. `steps` of the integral are doubled until its sum is right within
    1 %, unless they are given. One row is explained: what is cut from a long text is told in `truncated`. `tell` hears
    how far it is, as ("steps of the integral", done, all) or of pieces and words hidden: long texts take minutes.
    """
    methods = tuple(METHODS) if method == "all" else (method,)
    if any(each not in METHODS for each in methods):
        raise BertsmithError(f"method={method!r} is not a choice; use one of {', '.join(METHODS)}, or all.")
    steps = None if steps is None else take_count("steps", steps)
    chosen = choose_baseline(baseline, model.tokenizer)
    asked = ask(model, job, given, target=target, at=at, labels=labels)
    network, budget = open_network(asked.home.checkpoint.network), asked.home.predictor.budget
    scorers = [Scorer(network, aim, model.device, budget, tell) for aim in asked.aims]
    parts = [_explain(scorer, scorer.aim, methods, chosen, steps) for scorer in scorers]
    return Attribution(asked.job, asked.target, asked.explained, chosen, parts)


def _explain(scorer: Scorer, aim: Aim, methods: Sequence[str], baseline: str, steps: int | None) -> Part:
    words = Words.of_encoding(aim.encoding, aim.texts)
    units = words.units()
    given, base = lay_baseline(scorer, baseline)
    score, start = (float(scorer.measure(vectors[None])[0]) for vectors in (given, base))
    check_finite(np.array([score, start]))
    found: dict[str, Found] = {}
    for method in methods:
        if method == "integrated":
            pieces, taken, missed = integrate_well(scorer, given, base, score - start, steps)
            found[method] = Found(pieces, _add_up(pieces, units), taken, missed)
        elif method == "gradient":
            pieces = multiply(scorer, given)
            found[method] = Found(pieces, _add_up(pieces, units))
        else:
            pieces = occlude(scorer, given, base, score, [[place] for place in range(len(given))], "pieces hidden")
            found[method] = Found(pieces, occlude(scorer, given, base, score, units, "words hidden"))
        check_finite(found[method].pieces)
    encoding = aim.encoding
    firsts = [places[0] for places in units]
    owners = [words.of[place] for place in firsts]
    named = ["" if word is None else words.names[word] for word in owners]
    names = [name or encoding.pieces[place] for name, place in zip(named, firsts, strict=True)]
    sides = [encoding.sequences[place] for place in firsts]
    return Part(aim.name, encoding.pieces, units, names, sides, score, start, aim.row.dropped, found)


def _add_up(pieces: Array, units: Sequence[Sequence[int]]) -> Array:
    return np.array([pieces[list(places)].sum() for places in units])
