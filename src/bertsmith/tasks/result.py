"""What a job gives back: the answers, what was cut to get them, and what is special to the job."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Result:
    """Iterates and indexes as its answers."""

    answers: list[Any]
    truncated: int = 0  # tokens of the input that the model did not see
    joint: list[dict[str, Any]] | None = None  # several masks: the best fillings of all of them together

    def __iter__(self) -> Iterator[Any]:
        return iter(self.answers)

    def __getitem__(self, index: int) -> Any:
        return self.answers[index]

    def __len__(self) -> int:
        return len(self.answers)

    def as_dict(self) -> dict[str, Any]:
        joint = {} if self.joint is None else {"joint": self.joint}
        return {"answers": self.answers, "truncated": self.truncated, **joint}


class Vectors(np.ndarray):
    """A float32 array that also says how many tokens of each input were cut: `.truncated`."""

    truncated: Any

    def __new__(cls, values: "np.ndarray[Any, Any]", truncated: Any) -> "Vectors":
        made = np.asarray(values, dtype=np.float32).view(cls)
        made.truncated = truncated
        return made

    def __array_finalize__(self, source: Any) -> None:
        self.truncated = getattr(source, "truncated", None)

    def __getitem__(self, index: Any) -> Any:
        found = super().__getitem__(index)
        if isinstance(found, Vectors) and isinstance(index, int) and isinstance(self.truncated, list):
            found.truncated = self.truncated[index]
        return found
