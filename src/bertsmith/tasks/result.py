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
