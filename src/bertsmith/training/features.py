"""Training on the features of a frozen encoder: its states are computed once and kept on disk, and only a head runs.

In: a network whose encoder does not learn, a task's rows. Out: a `FeatureStudy`, which the loop takes for any other,
and a predictor that scores development examples after each epoch without the encoder.
"""

import hashlib
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from bertsmith.data.batch import Batch
from bertsmith.errors import BertsmithError
from bertsmith.layers.mixing import FeatureShape, LayerMix
from bertsmith.models.featured import ENCODER
from bertsmith.models.files import take_folder
from bertsmith.models.network import Network
from bertsmith.tasks.predicting import BUDGETS, Predictor
from bertsmith.tasks.task import Row, Task
from bertsmith.tasks.trained import TrainedTask
from bertsmith.training.devices import Ranks, cast, choose_precision
from bertsmith.training.feature_files import FORMAT, FeatureFile
from bertsmith.training.folder import RunFolder
from bertsmith.training.preparing import Say
from bertsmith.training.settings import Training
from bertsmith.training.study import Array, Given, LeanRow, TaskStudy, Work

AT_ONCE = 1 << 28  # bytes of features in memory on their way to the disk


class FeatureStudy(TaskStudy):
    """A task's examples, with what the encoder says of them."""

    def __init__(
        self, task: TrainedTask[Any, Any], rows: Sequence[Sequence[Row]], settings: Training, features: Array
    ) -> None:
        """`features` (tokens, width) are those of all rows, end to end."""
        super().__init__(task, rows, settings)
        self.features = features
        self.starts = find_starts([row for some in self.rows for row in some])

    def _lay(self, rows: Sequence[LeanRow], gold: Array, filler: float, count: float) -> Work:
        work = super()._lay(rows, gold, filler, count)
        found = take_rows(self.features, self.starts, rows)
        return replace(work, given={**work.given, "features": Given(found, "token", 0.0)})

    def losses(
        self, network: Network, batch: Batch, given: Mapping[str, Tensor], work: Work | None = None
    ) -> dict[str, Tensor]:
        recalled: Any = Recalled(network, given["features"].float())
        return super().losses(recalled, batch, given, work)


@dataclass(frozen=True)
class Recalled:
    """Stands for a network whose encoder ran before: a task reads it like the network itself."""

    network: Network
    collected: Tensor  # (tokens, collected)

    def __call__(self, batch: Batch) -> Tensor:
        mix = self.network.mix
        found: Tensor = self.collected if mix is None else mix(self.collected, batch)
        return found

    def score(self, hidden: Tensor, batch: Batch, head: str, at: Tensor | None = None) -> Tensor:
        return self.network.score(hidden, batch, head, at)

    def __getattr__(self, name: str) -> Any:
        """Whatever else a task of a person's own may look at is the network's."""
        return getattr(self.network, name)


class Collect(Task[Any, Any]):
    """What is kept of each row's states, (tokens, collected)."""

    name = "features"

    def __init__(self, task: TrainedTask[Any, Any], mix: LayerMix) -> None:
        super().__init__(task.tokenizer, task.limit, "head")
        self.mix = mix

    def scores(self, network: Network, batch: Batch, rows: Sequence[Row]) -> list[Tensor]:
        return batch.split(self.mix.collect(network.states(batch)).float().cpu())


@dataclass(frozen=True)
class FeaturePredictor(Predictor):
    """Scores rows whose features were computed before, without the encoder."""

    features: Array = field(default_factory=lambda: np.zeros((0, 0)))
    starts: Mapping[int, int] = field(default_factory=dict)  # the same rows are scored after each epoch

    def _score(self, task: Task[Any, Any], rows: Sequence[Row]) -> list[Tensor]:
        batch = Batch.of([row.ids for row in rows], [row.segments for row in rows], self.device)
        collected = torch.from_numpy(take_rows(self.features, self.starts, rows)).to(self.device).float()
        recalled: Any = Recalled(self.network, collected)
        return task.scores(recalled, batch, rows)


@dataclass
class Features:
    """Computes and keeps the features of a run's rows; where there are several processes the first does it for all."""

    network: Network
    task: TrainedTask[Any, Any]
    settings: Training
    folder: RunFolder
    ranks: Ranks
    say: Say

    def study(self, rows: Sequence[Sequence[Row]]) -> FeatureStudy:
        return FeatureStudy(self.task, rows, self.settings, self.keep([row for some in rows for row in some], "train"))

    def predictor(self, rows: Sequence[Sequence[Row]]) -> Predictor:
        """One for these rows of development examples alone, which must stay the same objects."""
        flat = [row for some in rows for row in some]
        return FeaturePredictor(
            self.network, self.ranks.device, self._budget, True, self.keep(flat, "dev"), find_starts(flat)
        )

    def keep(self, rows: Sequence[Row], side: str) -> Array:
        device, precision = self.ranks.device, choose_precision(self.settings.precision, self.ranks.device)
        mix = self.network.mix or LayerMix(self.network.config, FeatureShape("last"))
        # Half of the bytes where products are in half precision anyway. The sums of a pre-norm encoder outgrow float16.
        dtype = "float32" if precision == "fp32" or self.network.config.pre_norm else "float16"
        shape = (sum(len(row.ids) for row in rows), mix.collected)
        key = find_key(self._encoder, rows, f"{mix.shape.layers} {dtype} {precision} {device.type}")
        file = FeatureFile(self.place, key, shape, dtype)
        predictor = Predictor(self.network, device, self._budget, keeps_grads=True)
        if self.ranks.is_first:
            self.network.eval()
            what = f"{shape[0]:,} tokens with {shape[1]:,} numbers each, {file.size / 1e6:,.0f} MB"

            def begin() -> Iterator[Array]:
                self.say(f"The encoder reads {side} once for its features: {what}.")
                return compute(predictor, Collect(self.task, mix), rows, dtype)

            with cast(precision, device):
                found, was_there = file.keep(begin)
            if was_there:
                self.say(f"The encoder's features of {side} are there already: {what}.")
        self.ranks.wait()
        theirs = found if self.ranks.is_first else file.read()
        if theirs is None:
            raise BertsmithError(f"{file.path} cannot be read by all processes; give a cache that they share.")
        return theirs

    @property
    def place(self) -> Path:
        """With the checkpoints, or where the features serve other runs."""
        cache = self.settings.cache
        return self.folder.checkpoints / "features" if cache is None else take_folder(cache)

    def forget(self) -> None:
        """Remove what only this run could use."""
        if self.settings.cache is None and self.ranks.is_first:
            shutil.rmtree(self.place, ignore_errors=True)

    @property
    def _budget(self) -> int:
        return self.settings.batch_tokens or BUDGETS[self.ranks.device.type]

    @cached_property
    def _encoder(self) -> str:
        return fingerprint_encoder(self.network)


def compute(predictor: Predictor, task: Collect, rows: Sequence[Row], dtype: str) -> Iterator[Array]:
    """The features of all rows in order, in parts that memory holds."""
    most = max(1, AT_ONCE // (4 * task.mix.collected))  # tokens
    predictor = replace(predictor, budget=min(predictor.budget, most))
    some: list[Row] = []
    waiting = 0  # tokens
    for row in rows:
        if some and waiting + len(row.ids) > most:
            yield _run(predictor, task, some, dtype)
            some, waiting = [], 0
        some.append(row)
        waiting += len(row.ids)
    if some:
        yield _run(predictor, task, some, dtype)


def _run(predictor: Predictor, task: Collect, rows: Sequence[Row], dtype: str) -> Array:
    found: Array = torch.cat(predictor.run(task, rows)).to(getattr(torch, dtype)).numpy()
    return found


def fingerprint_encoder(network: Network) -> str:
    """The same for the same weights, sizes and version of torch."""
    still = replace(network.config, dropout=0.0, attention_dropout=0.0, head_dropout=0.0)
    digest = hashlib.sha256(f"{FORMAT} {torch.__version__} {still}".encode())
    for name in network.names:
        if name.startswith(ENCODER):
            digest.update(name.encode())
            digest.update(network.tensor(name).detach().cpu().contiguous().numpy().data)
    return digest.hexdigest()


def find_key(encoder: str, rows: Sequence[Row], more: str) -> str:
    """The same for the same encoder, rows and layers: all that the numbers depend on."""
    digest = hashlib.sha256(f"{encoder} {more}".encode())
    for row in rows:
        digest.update(np.asarray([len(row.ids), *row.ids, *row.segments], np.int64).data)
    return digest.hexdigest()[:32]


def find_starts(rows: Sequence[Row] | Sequence[LeanRow]) -> dict[int, int]:
    """By the identity of a row, where it begins among all that lie end to end."""
    starts = accumulate((len(row.ids) for row in rows), initial=0)
    return {id(row): start for row, start in zip(rows, starts, strict=False)}


def take_rows(features: Array, starts: Mapping[int, int], rows: Sequence[Row] | Sequence[LeanRow]) -> Array:
    """The features of some rows, end to end."""
    places = [(starts[id(row)], len(row.ids)) for row in rows]
    return np.concatenate([features[start : start + length] for start, length in places])
