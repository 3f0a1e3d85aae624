"""What a public function was given, held against its annotations: a wrong type is one sentence, not an error far below.

    @checked()
    def load(source: str | Path | None = None, ...): ...

Texts, labels and other lists of words or numbers are left alone: `list_texts` and its like take them from anything and
name the one at fault. So are values that have the right type and are no choice, too small, or not there.
"""

import inspect
import os
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, wraps
from numbers import Integral, Real
from pathlib import Path
from typing import Any, Literal, ParamSpec, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np

from bertsmith.data.folders import refuse_name
from bertsmith.errors import BertsmithError
from bertsmith.tasks.texts import is_iterable

Given = ParamSpec("Given")
Returned = TypeVar("Returned")
NAMES = {
    str: "a string", Path: "a path", bool: "True or False", int: "a whole number", float: "a number", type: "a class",
    Mapping: "a mapping of names", Sequence: "a list of such", Callable: "a function",
}  # fmt: skip
PLAIN = (str, int, Any)


def checked(*own: str) -> Callable[[Callable[Given, Returned]], Callable[Given, Returned]]:
    """Makes a function refuse arguments of a wrong type first; those called `own` it looks at itself."""

    def decorate(function: Callable[Given, Returned]) -> Callable[Given, Returned]:
        signature = inspect.signature(function)
        named = [name for name, one in signature.parameters.items() if one.kind is not one.VAR_KEYWORD]

        @cache
        def read_hints() -> dict[str, Any]:
            try:
                hints = get_type_hints(function)
            except NameError:  # a module that stays light names it in a string
                from bertsmith.model import Model

                hints = get_type_hints(function, localns={"Model": Model})
            return {name: hint for name, hint in hints.items() if name in named and name not in own}

        @wraps(function)
        def check(*args: Given.args, **kwargs: Given.kwargs) -> Returned:
            try:
                given = signature.bind(*args, **kwargs).arguments
            except TypeError:  # an argument too many or too few: Python's own error says whose it is
                return function(*args, **kwargs)
            for name in read_hints().keys() & given.keys():
                _refuse_other(name, given[name], _list_kinds(read_hints()[name]))
            return function(*args, **kwargs)

        return check

    return decorate


def _refuse_other(name: str, value: Any, kinds: Sequence[Any]) -> None:
    if Path not in kinds and any(get_origin(kind) is Sequence and get_args(kind)[0] in PLAIN for kind in kinds):
        return
    if not any(_fits(value, kind) for kind in kinds):
        wanted = " or ".join(dict.fromkeys(_describe(kind) for kind in kinds if kind is not type(None)))
        raise BertsmithError(f"{name} is {_show(value)}; it must be {wanted}.")
    if Path in kinds and isinstance(value, str | os.PathLike):
        refuse_name(value)


def _list_kinds(hint: Any) -> tuple[Any, ...]:
    """The types that a hint joins with `|`."""
    return get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)


def _fits(value: Any, kind: Any) -> bool:
    kind, inner = get_origin(kind) or kind, get_args(kind)
    if kind is Any:
        return True
    if kind is Literal:
        return isinstance(value, str)
    if kind is bool:
        return isinstance(value, bool | np.bool_)
    if kind in (int, float):
        return isinstance(value, Integral if kind is int else Real) and not isinstance(value, bool)
    if kind is Path:
        return isinstance(value, os.PathLike)
    if kind is type:
        return isinstance(value, type) and issubclass(value, get_origin(inner[0]) or inner[0])
    if kind is Callable:
        return callable(value)
    if kind is Mapping:
        return isinstance(value, Mapping) and _all_fit(value.keys(), inner[0]) and _all_fit(value.values(), inner[1])
    if kind is Sequence:
        if isinstance(value, str | bytes | Mapping) or not is_iterable(value):
            return False
        return iter(value) is value or _all_fit(value, inner[0])  # an iterator can be gone through only once
    return isinstance(value, kind)


def _all_fit(values: Iterable[Any], hint: Any) -> bool:
    return all(any(_fits(value, kind) for kind in _list_kinds(hint)) for value in values)


def _describe(kind: Any) -> str:
    kind, inner = get_origin(kind) or kind, get_args(kind)
    if kind is Literal:
        return f"one of {', '.join(map(repr, inner))}"
    if kind is Sequence and isinstance(inner[0], type):
        return f"a list of {inner[0].__name__}s"
    if getattr(kind, "_is_protocol", False):  # what is looked into
        return "a model that bertsmith.load gave"
    return NAMES.get(kind) or f"a {kind.__name__}"


def _show(value: Any) -> str:
    """On one line, and not all of what is long."""
    shown = " ".join(repr(value).split())
    return shown if len(shown) <= 60 else f"{shown[:59]}…"
