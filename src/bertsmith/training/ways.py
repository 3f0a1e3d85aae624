"""How a fine-tuning uses an encoder: all of it learns, or an adapter beside it does, or a head on its frozen features.

A `Way` opens a model to train from, writes what a run keeps, and opens that again.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bertsmith.layers.mixing import FeatureShape
from bertsmith.models.adapter_folders import find_base, find_members, is_adapter, is_member
from bertsmith.models.adapters import go_on_from, open_checkpoint, read_adapter, take_adapter, write_adapter
from bertsmith.models.checkpoint import Checkpoint, load_checkpoint, save_checkpoint
from bertsmith.models.featured import ENCODER
from bertsmith.models.fitting import fit_head, keeps_head
from bertsmith.models.lora import LoraShape, put_lora
from bertsmith.tasks.trained import TrainedTask
from bertsmith.text.tokenizer import Tokenizer
from bertsmith.training.settings import Training


@dataclass(frozen=True)
class Way:
    """All of the network learns."""

    source: Path  # the folder of the model to begin with
    task: TrainedTask[Any, Any]
    training: Training

    def start(self, last: Path | None) -> tuple[Checkpoint, str]:
        """The network to train, from the base or from a checkpoint of this run, and where its head is from."""
        return self._fit(open_checkpoint(self.source) if last is None else load_checkpoint(last), last is None)

    def open(self, folder: Path) -> Checkpoint:
        """What was written, to predict with."""
        return load_checkpoint(folder)

    def write(self, checkpoint: Checkpoint, tokenizer: Tokenizer, folder: Path) -> None:
        save_checkpoint(checkpoint, folder)
        tokenizer.save(folder)

    def _fit(
        self, checkpoint: Checkpoint, is_fresh: bool, features: FeatureShape | None = None
    ) -> tuple[Checkpoint, str]:
        task, training = self.task, self.training
        fitted, where = fit_head(
            checkpoint, task.head, task.labels, seed=training.seed, dropout=training.dropout, problem=task.problem,
            features=features,
        )  # fmt: skip
        if is_fresh and keeps_head(checkpoint, task.head, task.labels, features):
            task.unfold(fitted.network)
        members = find_members(self.source)
        if members:
            left = f"its members' heads are left out (--model {members[0]} goes on with one)"
            where = f"{where.removesuffix('.')}; {left}."
        return fitted, where


class AdapterWay(Way):
    """The base stays as it is; thin matrices beside its own learn, and the head. An adapter goes on with its own."""

    @property
    def base(self) -> Path:
        return find_base(self.source) if is_adapter(self.source) else self.source

    def start(self, last: Path | None) -> tuple[Checkpoint, str]:
        base = open_checkpoint(self.base)
        is_on = is_adapter(self.source)
        fitted, where = self._fit(read_adapter(self.source, base, is_bare=True) if is_on else base, True)
        shape = LoraShape(self.training.lora, self.training.lora_alpha, self.training.lora_targets)
        put_lora(fitted, shape, self.training.seed)
        if last is not None:
            take_adapter(fitted, last)
        elif is_on and not is_member(self.source):
            go_on_from(fitted, self.source)
            where = f"{where.removesuffix('.')}; the adapter's own matrices go on."
        count = sum(p.numel() for p in fitted.network.parameters() if p.requires_grad)
        beside = " and the head" if self.task.head else ""
        return fitted, f"{where.removesuffix('.')}; {count:,} numbers of an adapter{beside} learn."

    def open(self, folder: Path) -> Checkpoint:
        return read_adapter(folder, open_checkpoint(self.base))

    def write(self, checkpoint: Checkpoint, tokenizer: Tokenizer, folder: Path) -> None:
        """Without a tokenizer, which the base has."""
        write_adapter(checkpoint, folder, self.base)


class FeatureWay(Way):
    """The encoder stays as it is; a head learns on what its layers say, with what stands between the two."""

    def start(self, last: Path | None) -> tuple[Checkpoint, str]:
        shape = FeatureShape(self.training.features, self.training.recurrent)
        checkpoint = open_checkpoint(self.source) if last is None else load_checkpoint(last)
        fitted, where = self._fit(checkpoint, last is None, None if shape.is_plain else shape)
        for name, parameter in fitted.network.named_parameters():
            parameter.requires_grad_(not name.startswith(ENCODER))
        count = sum(p.numel() for p in fitted.network.parameters() if p.requires_grad)
        return fitted, f"{where.removesuffix('.')}; its {count:,} numbers learn, the encoder does not."


def choose_way(source: Path, task: TrainedTask[Any, Any], training: Training) -> Way:
    kind = FeatureWay if training.features != "none" else AdapterWay if training.lora else Way
    return kind(source, task, training)
