"""Everything a person may choose about the training of an encoder on plain text; checked once, here, without torch."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bertsmith.errors import BertsmithError
from bertsmith.training.settings import Training

if TYPE_CHECKING:
    from bertsmith.data.rows_plan import Phase

PASSES = {"cpu": 4096, "mps": 16384, "cuda": 65536}  # tokens in a pass, unless it is said
EVEN = 8  # tokens that the size of a pass is a multiple of, where a step does not divide into equal passes

# Settings of fine-tuning that mean nothing here -> what does, where something does.
IDLE = {
    "batch": "tokens (in an optimizer step)",
    "batch_tokens": "pass_tokens (in one pass)",
    **dict.fromkeys(("unfreeze", "class_weights", "focal", "smoothing", "r_drop", "metric", "graphs"), ""),
    **dict.fromkeys(("adversarial", "adversarial_reach"), ""),
    **dict.fromkeys(("lora", "lora_alpha", "lora_targets", "features", "recurrent", "cache"), ""),
}


@dataclass(frozen=True)
class Pretraining(Training):
    """Everything about the training of a fresh encoder; the defaults are BERT's, a recipe changes them."""

    rate: float | None = 1e-4
    warmup: float = 0.01
    dropout: float | None = None
    tokens: int = 32_768  # in an optimizer step
    first_tokens: int | None = None  # in the first one: the size climbs to `tokens` over `ramp` of the run
    ramp: float = 0.0
    pass_tokens: int | None = None  # in one pass; None: what the device likes
    lengths: str = "128"  # of rows; "128:0.9,512:0.1": nine tenths of the run with the first, the rest with the second
    zero_outputs: bool = False  # a fresh encoder's blocks add nothing to the stream at first
    adam_rate: float | None = None  # the rate of what Muon leaves to AdamW; None: the same
    embedding_rate: float = 1.0  # the share of the rate at which the embedding learns
    head_rate: float = 1.0  # and the heads
    average: float = 0.0  # how much a mean of the weights keeps in a step; it is scored and saved; 0: none
    guard: float = 8.0  # a loss so many spreads above the recent ones takes the run back (guard.py); 0: never
    compile: bool = True  # on CUDA: compile a block once, for all layers
    graphs: bool = False  # passes that are compiled (`compile`) are recorded in another way

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("tokens", "first_tokens", "pass_tokens"):
            self._need(name, getattr(self, name) is None or getattr(self, name) >= 1, "at least 1")
        for name, high in (("ramp", 1.0), ("average", 0.999999)):
            self._need(name, 0 <= getattr(self, name) <= high, f"from 0 to {high:g}")
        for name in ("adam_rate", "embedding_rate", "head_rate"):
            self._need(name, getattr(self, name) is None or getattr(self, name) > 0, "more than 0")
        self._need("guard", self.guard == 0 or self.guard >= 1, "0, or at least 1")
        for name in ("tokens", "first_tokens", "pass_tokens"):
            given = getattr(self, name)
            if given is not None and given < self.longest:
                told = f"{name} is {given}, less than a row of {self.longest}"
                raise BertsmithError(f"{told}; give more of them, or shorter rows (lengths).")

    @property
    def longest(self) -> int:
        """Tokens in the longest row."""
        return max(length for length, _ in self._lengths())

    def phases(self) -> "list[Phase]":
        """`lengths` as parts of the run."""
        from bertsmith.data.rows_plan import Phase

        return [Phase(length, share) for length, share in self._lengths()]

    def _lengths(self) -> list[tuple[int, float]]:
        found = []
        for part in self.lengths.split(","):
            length, _, share = part.strip().partition(":")
            try:
                found.append((int(length), float(share) if share else 1.0))
            except ValueError:
                told = f'lengths is {self.lengths!r}; give a number, or as in "128:0.9,512:0.1".'
                raise BertsmithError(told) from None
            if found[-1][0] < 8 or not 0 < found[-1][1] < float("inf"):
                raise BertsmithError(f"lengths has {part.strip()!r}; a row needs 8 tokens and a share above 0.")
        return found

    def pass_size(self, device: str) -> int:
        """Tokens in a pass: as many as are wanted at most, so that the smallest step has a whole number of passes."""
        least = min(self.tokens, self.first_tokens or self.tokens)
        wanted = min(max(self.pass_tokens or PASSES[device], self.longest), least)
        size = -(-least // -(-least // wanted))
        return max(self.longest, size if least % size == 0 else -(-size // EVEN) * EVEN)

    def steps_to_read(self, tokens: float) -> int:
        """So many steps hold so many tokens, of which the first may be smaller."""
        first, ramp = self.first_tokens or self.tokens, min(1.0, self.ramp)
        return max(1, math.ceil(tokens / (self.tokens - ramp * (self.tokens - first) / 2)))

    def tokens_at(self, step: int, steps: int, size: int) -> int:
        """How many tokens a step holds, in whole passes."""
        first = self.first_tokens or self.tokens
        over = min(1.0, step / max(1.0, self.ramp * steps)) if self.ramp else 1.0
        return max(1, round((first + (self.tokens - first) * over) / size)) * size
