"""Everything a person may choose about training, with the defaults that fine-tuning wants; checked once, here."""

import math
from dataclasses import dataclass, fields
from typing import Any, Literal, get_args, get_type_hints

from bertsmith.errors import BertsmithError

Schedule = Literal["linear", "cosine", "constant", "trapezoid"]
Precision = Literal["auto", "fp32", "bf16", "fp16"]
Spread = Literal["auto", "ddp", "fsdp"]
Optimizer = Literal["adamw", "lamb", "muon"]


@dataclass(frozen=True)
class Training:
    epochs: float | None = None  # None: 3, or as many as make 100 steps of small data, 20 at most
    max_steps: int | None = None  # stop after so many steps, the schedule with them
    batch: int = 32  # examples in an optimizer step, however many devices and passes it takes
    batch_tokens: int | None = None  # most tokens in one pass; None: what the device likes
    rate: float | None = None  # None: 5e-5; of an adapter 5e-4, of a head on frozen features 5e-3
    schedule: Schedule = "linear"
    warmup: float = 0.1  # the share of all steps in which the rate climbs
    cooldown: float = 0.2  # the share in which a trapezoid falls
    optimizer: Optimizer = "adamw"
    momentum: float = 0.95  # Muon's
    weight_decay: float = 0.01
    beta1: float = 0.9
    beta2: float = 0.999
    eps: float = 1e-8
    clip: float = 1.0  # the longest gradient; 0: any
    layer_decay: float = 1.0  # each layer below the head learns this much slower than the one above it
    unfreeze: float = 0.0  # epochs until the next layer from the top starts to learn; 0: all from the start
    dropout: float | None = None  # None: as the model's config says
    precision: Precision = "auto"
    recompute: bool = False  # gradient checkpointing: less memory, a third more work
    deterministic: bool = False  # on CUDA: kernels that add in the same order each time; a CPU's do so anyway
    class_weights: Literal["none", "balanced"] = "none"
    focal: float = 0.0
    smoothing: float = 0.0
    r_drop: float = 0.0
    adversarial: float = 0.0  # how strongly the answer to a text that was moved is drawn to that of the text itself
    adversarial_reach: float = 0.03  # how far it is moved, as a share of its vectors' lengths
    seed: int = 42
    evaluate_every: int | None = None  # steps; None: after each epoch
    metric: str | None = None  # of the task; chooses the best checkpoint
    patience: int = 0  # evaluations without a better one until training stops; 0: never
    save_minutes: float = 5.0
    log_every: int = 10  # steps
    spread: Spread = "auto"  # over the processes of torchrun
    graphs: bool = True  # on CUDA: record a step once and replay it
    lora: int = 0  # the rank of an adapter to train in place of the whole network; 0: the whole network
    lora_alpha: float | None = None  # what the adapter adds is scaled by this / its rank; None: by 2
    lora_targets: Literal["all", "attention", "query-value"] = "all"  # the matrices that get one
    features: Literal["none", "last", "sum4", "concat4", "mix"] = "none"  # of a frozen encoder, that a head reads
    recurrent: int = 0  # with features: the width of a two-layer BiLSTM below the output layer; 0: none
    cache: str | None = None  # a folder in which features are kept for other runs; None: only for this one

    def __post_init__(self) -> None:
        check_types(self)
        for name in ("batch", "log_every", "max_steps", "batch_tokens", "evaluate_every"):
            self._need(name, getattr(self, name) is None or getattr(self, name) >= 1, "at least 1")
        self._need("epochs", self.epochs is None or self.epochs <= 1e6, "at most 1,000,000")
        for name in ("epochs", "rate", "eps", "layer_decay"):
            self._need(name, getattr(self, name) is None or getattr(self, name) > 0, "more than 0")
        for name in ("weight_decay", "clip", "unfreeze", "focal", "r_drop", "adversarial", "patience", "save_minutes",
                     "seed", "lora", "recurrent"):  # fmt: skip
            self._need(name, getattr(self, name) >= 0, "at least 0")
        self._need("momentum", 0 <= self.momentum <= 0.9999, "from 0 to 0.9999")
        self._need("adversarial_reach", 0 < self.adversarial_reach <= 1, "more than 0 and at most 1")
        self._need("lora_alpha", self.lora_alpha is None or self.lora_alpha > 0, "more than 0")
        self._refuse_together()
        self._need("seed", self.seed < 2**63, "less than 2 to the power of 63")
        for name in ("warmup", "cooldown"):
            self._need(name, 0 <= getattr(self, name) <= 1, "between 0 and 1")
        for name in ("beta1", "beta2", "smoothing", "dropout"):
            self._need(name, getattr(self, name) is None or 0 <= getattr(self, name) < 1, "at least 0 and less than 1")

    @property
    def peak(self) -> float:
        """The highest rate: few fresh numbers learn faster than a whole trained network bears."""
        if self.rate is not None:
            return self.rate
        return 5e-3 if self.features != "none" else 5e-4 if self.lora else 5e-5

    def _refuse_together(self) -> None:
        if self.features != "none" and (self.lora or self.unfreeze):
            other = "lora" if self.lora else "unfreeze"
            raise BertsmithError(f"features are read from an encoder that does not learn; leave {other} out.")
        if self.optimizer == "muon" and (self.lora or self.features != "none"):
            name = "lora" if self.lora else "features"
            raise BertsmithError(f"optimizer muon turns whole matrices of the blocks, and with {name} none learns; "
                                 f"use adamw, or leave {name} out.")  # fmt: skip
        if self.optimizer != "muon" and self.momentum != type(self).momentum:
            told = f"momentum is for optimizer muon, and optimizer is {self.optimizer!r}"
            raise BertsmithError(f"{told}; leave it out, or give optimizer muon.")
        for name in ("lora_alpha", "lora_targets"):
            if not self.lora and getattr(self, name) not in (None, "all"):
                raise BertsmithError(f"{name} is given, but no adapter is trained; give lora (its rank) too.")
        if not self.adversarial and self.adversarial_reach != type(self).adversarial_reach:
            raise BertsmithError("adversarial_reach is given, but not how much it counts; give adversarial too, as 1.")
        if self.adversarial and self.spread == "fsdp":
            raise BertsmithError("adversarial needs whole weights, which fsdp cuts up; use spread ddp or leave it out.")
        for name in ("recurrent", "cache"):
            if self.features == "none" and getattr(self, name):
                raise BertsmithError(f"{name} is for features of a frozen encoder; give features too, or leave it out.")

    def _need(self, name: str, fine: bool, what: str) -> None:
        if not fine:
            raise BertsmithError(f"{name} is {getattr(self, name)}; it must be {what}.")


def check_types(settings: Any) -> None:
    """Stop at the first field of a dataclass whose value is not of its type."""
    hints = get_type_hints(type(settings))
    for field in fields(settings):
        _check_type(field.name, hints[field.name], getattr(settings, field.name))


def _check_type(name: str, hint: Any, value: Any) -> None:
    choices = get_args(hint)
    if type(None) in choices and len(choices) == 2:  # one kind, or nothing
        if value is None:
            return
        hint = choices[0]
        choices = get_args(hint)
    if choices and all(isinstance(choice, str) for choice in choices):
        if value not in choices:
            raise BertsmithError(f"{name} is {value!r}, which is not a choice; use one of {', '.join(choices)}.")
        return
    kinds = choices or (hint,)
    if isinstance(value, float) and not math.isfinite(value):
        raise BertsmithError(f"{name} is {value}; it must be a finite number.")
    if float in kinds and isinstance(value, int) and not isinstance(value, bool):
        return
    if (isinstance(value, bool) and bool not in kinds) or not isinstance(value, kinds):
        wanted = {float: "a number", int: "a whole number", bool: "true or false", str: "a word"}
        raise BertsmithError(f"{name} is {value!r}; it must be {wanted.get(kinds[0], kinds[0].__name__)}.")
