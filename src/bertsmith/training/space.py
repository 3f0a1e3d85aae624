"""The settings a sweep tries: some fixed, some with several values, some with a range.

In: settings by name. Out: a `Space`, whose combinations come in the same order every time.
"""

import itertools
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from types import NoneType
from typing import Any, get_args, get_type_hints

from bertsmith.errors import BertsmithError
from bertsmith.training.choices import COLUMNS, TaskChoices, plain_value, sort_choices, suggest
from bertsmith.training.settings import Training

LOGARITHMIC = ("rate", "eps")  # where a factor means more than a difference
MOST = 10_000  # combinations


@dataclass(frozen=True)
class Range:
    low: float
    high: float
    log: bool
    whole: bool


@dataclass(frozen=True)
class Space:
    fixed: Mapping[str, Any]
    lists: Mapping[str, Sequence[Any]]
    ranges: Mapping[str, Range]

    def combinations(self) -> list[dict[str, Any]]:
        """All of them; the last setting changes fastest."""
        size = 1
        for values in self.lists.values():
            size *= len(values)
        if size > MOST:
            raise BertsmithError(f"these lists make {size:,} combinations, more than {MOST:,}; try fewer values.")
        return [dict(zip(self.lists, values, strict=True)) for values in itertools.product(*self.lists.values())]


def kinds_of(name: str) -> tuple[Any, ...]:
    """The types that a setting takes, None aside; nothing for a name that is no setting."""
    for kind in (TaskChoices, Training):
        hint = get_type_hints(kind).get(name)
        if hint is not None:
            parts = [part for part in get_args(hint) if part is not NoneType] if NoneType in get_args(hint) else [hint]
            return tuple(parts)
    return ()


def make_space(settings: Mapping[str, Any]) -> Space:
    """Lists are tried, `"LOW:HIGH"` of a number is a range, the rest is fixed; each value alone is looked at."""
    fixed: dict[str, Any] = {}
    lists: dict[str, list[Any]] = {}
    ranges: dict[str, Range] = {}
    for name, value in settings.items():
        _refuse(name, value)
        if (found := parse_range(name, value)) is not None:
            ranges[name] = found
        elif isinstance(value, list | tuple) and name not in COLUMNS:
            values = _check_list(name, [plain_value(name, one) for one in value])
            if len(values) > 1:
                lists[name] = values
            else:
                fixed[name] = values[0]
        else:
            fixed[name] = plain_value(name, value)
    sort_choices(fixed)
    for name, values in lists.items():
        for value in values:
            sort_choices({**fixed, name: value})
    for name, span in ranges.items():
        for end in (span.low, span.high):
            sort_choices({**fixed, name: int(end) if span.whole else end})
    return Space(fixed, lists, ranges)


def _refuse(name: str, value: Any) -> None:
    known = [field.name for kind in (TaskChoices, Training) for field in fields(kind)]
    if name not in known and name not in COLUMNS:
        raise BertsmithError(f"{name} is not a setting{suggest(name, [*known, *COLUMNS])}")
    if name == "seed":
        raise BertsmithError("seed cannot be chosen for a sweep: give seeds, which each combination is run with.")
    if name == "metric" and isinstance(value, list | tuple):
        raise BertsmithError("metric is what the combinations are compared by; give one.")


def _check_list(name: str, values: Sequence[Any]) -> list[Any]:
    if not values:
        raise BertsmithError(f"{name} is an empty list; give the values to try.")
    for place, value in enumerate(values):
        if value in values[:place]:
            raise BertsmithError(f"{name} has {value!r} twice; name each value once.")
    return list(values)


def parse_range(name: str, value: Any) -> Range | None:
    """None where it is no range."""
    kinds = kinds_of(name)
    if not isinstance(value, str) or ":" not in value or not {int, float} & set(kinds):
        return None
    whole = float not in kinds
    try:
        low, high = ((int if whole else float)(part) for part in value.split(":"))
    except ValueError:
        kind = "whole numbers" if whole else "numbers"
        raise BertsmithError(f"{name} is {value!r}; a range is two {kind}, as in LOW:HIGH.") from None
    if not low < high:
        raise BertsmithError(f"{name} is {value!r}; a range goes from a lower number to a higher one.")
    if name in LOGARITHMIC and low <= 0:
        raise BertsmithError(f"{name} is {value!r}; its range must begin above 0.")
    return Range(low, high, name in LOGARITHMIC, whole)


def draw(combinations: Sequence[dict[str, Any]], samples: int | None, seed: int) -> list[dict[str, Any]]:
    """So many of them, the same ones for the same seed, in the order in which they were."""
    if samples is None:
        return list(combinations)
    if isinstance(samples, bool) or not isinstance(samples, int) or samples < 1:
        raise BertsmithError(f"samples is {samples!r}; it must be at least 1.")
    if samples >= len(combinations):
        return list(combinations)
    places = random.Random(seed).sample(range(len(combinations)), samples)
    return [combinations[place] for place in sorted(places)]
