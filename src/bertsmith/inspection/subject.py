"""What is looked into: the parts of a model that this folder reads. `bertsmith.Model` is one."""

from typing import Protocol, runtime_checkable

import torch

from bertsmith.models.checkpoint import Checkpoint
from bertsmith.tasks.predicting import Predictor
from bertsmith.text.tokenizer import Tokenizer


@runtime_checkable
class Subject(Protocol):
    checkpoint: Checkpoint
    device: torch.device
    predictor: Predictor

    @property
    def tokenizer(self) -> Tokenizer: ...

    @property
    def limit(self) -> int: ...
