"""What a job gives back: the answers, what was cut to get them, and what is special to the job."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from bertsmith.errors import BertsmithError

NOT_FINITE = (
    "the model gave a score that is not a number (NaN or infinite): its weights are damaged, "
    "or the dtype is too narrow for them."
)


class NotFinite(BertsmithError):
    """What `check_finite` raises; who knows more of the cause says that instead."""


@dataclass(frozen=True)
class Result:
    """Iterates and indexes as its answers."""

    answers: list[Any]
    truncated: int = 0  # tokens of the input that the model did not see
    joint: list[dict[str, Any]] | None = None  # several masks: the best fillings of all of them together
    tags: list[str] | None = None  # tagging: the tag of each word
    no_answer: float | None = None  # questions: the probability that the text holds no answer

    def __iter__(self) -> Iterator[Any]:
        return iter(self.answers)

    def __getitem__(self, index: int) -> Any:
        return self.answers[index]

    def __len__(self) -> int:
        return len(self.answers)

    def as_dict(self) -> dict[str, Any]:
        special = {"joint": self.joint, "tags": self.tags, "no_answer": self.no_answer}
        given = {key: value for key, value in special.items() if value is not None}
        return {"answers": self.answers, "truncated": self.truncated, **given}


class Vectors(np.ndarray):
    """A float32 array that also says how many tokens of each input were cut: `.truncated`.

    One number for the array of one input, a list for the rows of several. Rows that are picked keep theirs; what is
    computed from vectors is a plain array.
    """

    truncated: Any

    def __new__(cls, values: "np.ndarray[Any, Any]", truncated: Any) -> "Vectors":
        made = np.asarray(values, dtype=np.float32).view(cls)
        made.truncated = truncated
        return made

    def __array_finalize__(self, source: Any) -> None:
        self.truncated = None  # a view may be anything, the rows in another order too

    def __getitem__(self, index: Any) -> Any:
        found = super().__getitem__(index)
        if isinstance(found, Vectors):
            several = isinstance(self.truncated, list)
            found.truncated = _pick(self.truncated, index, len(found)) if several else self.truncated
        return found

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, out: Any = (), **options: Any) -> Any:
        """The same on plain arrays; only `vectors += …` gives vectors again."""
        if out:
            options["out"] = tuple(map(_make_plain, out))
        found = getattr(ufunc, method)(*map(_make_plain, inputs), **options)
        return out[0] if len(out) == 1 else found

    def copy(self, order: Any = "C") -> "Vectors":
        copied = np.array(self, order=order, subok=True)
        assert isinstance(copied, Vectors)
        copied.truncated = list(self.truncated) if isinstance(self.truncated, list) else self.truncated
        return copied

    def __copy__(self) -> "Vectors":
        return self.copy()

    def __deepcopy__(self, memo: Any) -> "Vectors":
        return self.copy()

    def __reduce__(self) -> Any:
        made: Any = super().__reduce__()
        build, arguments, state = made
        return build, arguments, (state, self.truncated)

    def __setstate__(self, state: Any) -> None:
        super().__setstate__(state[0])
        self.truncated = state[1]


def _pick(truncated: list[int], index: Any, count: int) -> Any:
    """The numbers of the rows that an index picks; None where its result has other things than rows first."""
    parts: tuple[Any, ...] = index if isinstance(index, tuple) else (index,)
    rows, others = (parts or (Ellipsis,))[0], parts[1:]
    if rows is Ellipsis:  # with at most one index behind it, it stands for the rows
        rows = slice(None) if len(others) < 2 else None
    if isinstance(rows, slice):
        return truncated[rows]
    if rows is None or any(np.ndim(part) > 1 for part in parts):
        return None
    picked = np.array(truncated, dtype=np.int64)[rows if np.size(rows) else slice(0)]
    if picked.ndim > 1 or (picked.ndim == 1 and len(picked) != count):
        return None
    return picked.tolist()


def _make_plain(value: Any) -> Any:
    return value.view(np.ndarray) if isinstance(value, Vectors) else value


def check_finite(values: "np.ndarray[Any, Any]") -> None:
    """Refuses what is not a number before it goes anywhere as an answer."""
    if not np.isfinite(values).all():
        raise NotFinite(NOT_FINITE)
