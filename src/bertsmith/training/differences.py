"""In what a run that a folder holds differs from the one that is asked for. In: what both are known by. Out: words."""

import json
import re
from collections.abc import Mapping
from typing import Any

# Of what is asked: written down since a version that others may have begun their runs with, and what those had of it.
LATER: dict[str, Any] = {"weights": ..., "optimizer": "adamw", "momentum": 0.95}  # ...: nobody knows
CHECKSUM = re.compile("[0-9a-f]{16}")


def name_differences(known: Mapping[str, Any], asked: Mapping[str, Any]) -> list[str]:
    """The settings in which two runs differ; what a run of before did not write down is what all had then."""
    names = {**known, **asked}
    return [name for name in names if known.get(name, LATER.get(name)) not in (..., asked.get(name))]


def tell_differences(known: Mapping[str, Any], asked: Mapping[str, Any]) -> list[str]:
    names = name_differences(known, asked)
    return [tell_difference(name, known.get(name, LATER.get(name)), asked.get(name)) for name in names]


def tell_difference(name: str, was: Any, now: Any) -> str:
    """A checksum tells a person nothing: in its place stands what it was made of."""
    if not (_is_checksum(was) and _is_checksum(now)):
        return f"{name} was {_short(was)} and is now {_short(now)}"
    if name == "weights":
        return "the weights of the model are others than they were"
    member, _, what = name.rpartition(".")
    of = f"the {what}" if what in ("data", "corpus") else what
    return f"the content of {of}{f' of {member}' if member else ''} is another than it was"


def _is_checksum(value: Any) -> bool:
    return isinstance(value, str) and CHECKSUM.fullmatch(value) is not None


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else text[:57] + "…"
