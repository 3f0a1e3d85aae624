"""What passes between a process that speaks HTTP and the one that holds the models.

In: an `Ask`, plain JSON. Out: a `Reply`, or a `Refusal` that says whose fault it is.
"""

from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

import numpy as np

# input: the request is at fault; job: this model cannot do that; model: no such model; overloaded: too much waits, ask
# again later; unavailable: nobody is there to answer; timeout: the answer would come too late; internal: our fault.
Kind = Literal["input", "job", "model", "overloaded", "unavailable", "timeout", "internal"]


class Refusal(Exception):
    """Why there is no answer; `retry_after` is in seconds, where asking again can help."""

    def __init__(self, kind: Kind, message: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.kind: Kind = kind
        self.message = message
        self.retry_after = retry_after


@dataclass(frozen=True)
class Ask:
    job: str  # a key of `jobs.JOBS`
    given: dict[str, Any]  # the job's fields by name
    model: str = ""  # the id of a served model; "": the default
    timeout: float | None = None  # seconds until nobody waits for the answer


@dataclass
class Reply:
    model: str  # the id of the one that answered
    results: list[Any]  # one an input: what `Result.as_dict` gives, or a plain value; none where there are vectors
    single: bool  # whether one input was given, not a list of one
    vectors: list["np.ndarray[Any, Any]"] | None = None  # one an input, float32
    truncated: list[int] = field(default_factory=list)  # tokens of each input that the model did not see
    tokens: int = 0  # that the model read
    queued: float = 0.0  # seconds that the work waited
    worked: float = 0.0  # seconds in batches, shared with others


@dataclass(frozen=True)
class Card:
    """What a served model is: plain JSON, so that any process can tell of it."""

    id: str
    jobs: tuple[str, ...]  # what it can be asked
    pipeline: str  # what Hugging Face would call its main job: text-classification, fill-mask, feature-extraction, …
    labels: tuple[str, ...]
    limit: int  # the longest row, special tokens included
    width: int  # of a vector
    pooling: str
    dtype: str
    device: str
    family: str
    batch_tokens: int
    revision: str  # a checksum of the weights
    created: int  # seconds since 1970
    prompts: tuple[str, ...] = ()  # the names of what can be put in front of a text
    mask: str = ""  # how a masked word is written, where the tokenizer has one
    vector_limit: int = 0  # the longest row that becomes a vector
    kind: str = "embedding"  # what text-embeddings-inference would take it for: embedding, classifier or reranker

    @property
    def main_limit(self) -> int:
        """The longest row of what it is mainly for, as servers with one job a model tell it."""
        return self.vector_limit if self.kind == "embedding" else self.limit


class Backend(Protocol):
    """Whoever answers: the models in this process, or those in another."""

    async def ask(self, ask: Ask) -> Reply:
        """Raises a `Refusal`. A caller that is cancelled takes its work out of the queue."""
        ...

    def cards(self) -> list[Card]:
        """Of the models that are served, the default first."""
        ...

    def is_ready(self) -> bool:
        """Whether a request would be answered now."""
        ...

    def load(self) -> dict[str, float]:
        """How busy it is: `waiting` requests, `tokens` that wait, `seconds` that a short request would wait."""
        ...

    def admits(self, size: int) -> float | None:
        """Seconds after which to ask again where too much waits for a request of `size` bytes; None: come in."""
        ...
