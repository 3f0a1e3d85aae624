"""What a caller may give: texts, one or several in any iterable, and counts; all else is refused in one sentence."""

from collections.abc import Mapping
from numbers import Integral
from typing import Any

from bertsmith.errors import BertsmithError

THREADS = 1024  # more than any machine's cores


def list_texts(given: Any) -> list[str]:
    """The texts of a list, a tuple, a generator, a column of a table."""
    if isinstance(given, str):
        raise BertsmithError("give a list of texts, not a single one.")
    if isinstance(given, (bytes, Mapping)) or not is_iterable(given):
        raise BertsmithError(f"give a text or a list of texts, not {type(given).__name__}.")
    texts = list(given)
    for number, text in enumerate(texts, 1):
        if not isinstance(text, str):
            raise BertsmithError(f"text {number} must be a string, not {type(text).__name__}.")
    # Answers repeat them, and NumPy's own kind of string prints as np.str_('…') and is refused by writers of YAML.
    return [text if type(text) is str else str.__str__(text) for text in texts]


def list_names(called: str, given: Any) -> list[str]:
    """Some of a set of names; `called` is what the caller knows the list by."""
    names = None if isinstance(given, (str, bytes, Mapping)) or not is_iterable(given) else list(given)
    if names is None or not all(isinstance(name, str) for name in names):
        raise BertsmithError(f"{called} is {given!r}; it must be a list of names.")
    return names


def is_iterable(given: Any) -> bool:
    """Whether it can be gone through; an array without dimensions is an `Iterable`, but cannot."""
    try:
        iter(given)
    except TypeError:
        return False
    return True


def take_count(name: str, given: Any) -> int:
    """A whole number of at least 1, NumPy's too; `name` is what the caller knows it by."""
    if isinstance(given, bool) or not isinstance(given, Integral) or given < 1:
        raise BertsmithError(f"{name} is {given!r}; it must be a whole number of at least 1.")
    return int(given)


def take_threads(given: Any) -> int:
    """Threads of the CPU; torch ends the process where there are far too many."""
    count = take_count("threads", given)
    if count > THREADS:
        raise BertsmithError(f"threads is {count:,}; it must be at most {THREADS:,}, best as many as there are cores.")
    return count


def pair_up(job: str, firsts: Any, seconds: Any) -> tuple[list[tuple[str, Any]], bool]:
    """First texts with their seconds (None: there are none), and whether it was a single pair that was given."""
    if isinstance(firsts, str):
        if seconds is not None and (isinstance(seconds, bytes) or not is_iterable(seconds)):
            raise BertsmithError(f"the second text must be a string, not {type(seconds).__name__}.")
        if seconds is not None and not isinstance(seconds, str):
            raise BertsmithError(f"{job} takes two texts or two lists of texts, not one of each.")
        return [(firsts, seconds)], True
    if isinstance(seconds, str):
        raise BertsmithError(f"{job} takes two texts or two lists of texts, not one of each.")
    ones = list_texts(_refuse_pairs(job, firsts) if seconds is None else firsts)
    others = [None] * len(ones) if seconds is None else list_texts(seconds)
    if len(ones) != len(others):
        raise BertsmithError(f"{job} got {len(ones)} first texts and {len(others)} second ones; give as many of each.")
    return list(zip(ones, others, strict=True)), False


def pair_lists(job: str, firsts: Any, lists: Any, names: tuple[str, str], what: str) -> list[tuple[str, Any]]:
    """Several texts, each with its own list of `what`; `names` are what one and more of the texts are called."""
    ones = list_texts(firsts)
    listed = [lists] if isinstance(lists, str) or not is_iterable(lists) else list(lists)
    for one in listed:
        if isinstance(one, str) or not is_iterable(one):
            raise BertsmithError(f"give a list of {what} for each {names[0]}, not {type(one).__name__}.")
    if len(listed) != len(ones):
        raise BertsmithError(f"{job} got {len(ones)} {names[1]} and {len(listed)} lists of {what}; give one each.")
    return list(zip(ones, listed, strict=True))


def _refuse_pairs(job: str, given: Any) -> Any:
    """What was given; where it holds pairs, an error that says how these are given."""
    if isinstance(given, (bytes, Mapping)) or not is_iterable(given):
        return given
    listed = list(given)
    for number, one in enumerate(listed, 1):
        if isinstance(one, tuple | list) and len(one) == 2 and all(isinstance(text, str) for text in one):
            raise BertsmithError(
                f"text {number} is a pair of texts; give the second texts apart, as in {job}(firsts, pair=seconds)."
            )
    return listed
