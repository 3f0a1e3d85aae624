"""The one training loop: passes, gradients, a step, and every so often an evaluation and a checkpoint.

In: a network, a `Study` that says what a step holds and costs, settings, a run folder. Out: an `Outcome`; the best and
the last checkpoint are in the folder. Every random draw is a function of (seed, step, rank, pass).
"""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from bertsmith.errors import BertsmithError
from bertsmith.models.network import Network
from bertsmith.training.devices import Ranks, choose_precision, part_like, whole
from bertsmith.training.folder import RunFolder
from bertsmith.training.optimizer import give_state, make_optimizer, named, set_rates, take_state, wake
from bertsmith.training.passes import Passes, make_passes
from bertsmith.training.schedule import layers_awake, rate_share
from bertsmith.training.settings import Training
from bertsmith.training.study import Study

BUDGETS = {"cpu": 8192, "mps": 16384, "cuda": 65536}  # tokens in a pass
SMALLEST = 64  # below this a pass cannot be split to save memory


@dataclass
class Progress:
    """Where a run stands; saved with each checkpoint."""

    step: int = 0
    best_step: int = 0
    best_value: float | None = None
    since_best: int = 0  # evaluations
    stopped: bool = False
    budget: int = 0
    skipped: int = 0  # steps whose gradient was not finite
    scale: tuple[float, int] = (65536.0, 0)  # of fp16 losses, and steps since it last changed


@dataclass
class Speed:
    """What training itself took, without evaluations and checkpoints."""

    seconds: float = 0.0
    tokens: int = 0
    examples: int = 0


@dataclass(frozen=True)
class Outcome:
    progress: Progress
    steps: int
    speed: Speed


@dataclass
class Watcher:
    """What may look on; override what you need. Called in the first process only."""

    def started(self, step: int, steps: int) -> None: ...

    def stepped(self, step: int, record: Mapping[str, Any] | None, speed: Speed) -> None:
        """After each step, with the record that went into the log, if one did."""

    def evaluated(self, step: int, metrics: Mapping[str, float], is_best: bool) -> None: ...

    def finished(self, outcome: Outcome) -> None: ...


@dataclass
class Loop:
    network: Network
    study: Study
    settings: Training
    folder: RunFolder
    ranks: Ranks
    write_model: Callable[[Path], None]
    evaluate: Callable[[], dict[str, float]] | None = None  # the metric that chooses first
    watchers: Sequence[Watcher] = ()
    progress: Progress = field(default_factory=Progress)
    speed: Speed = field(default_factory=Speed)

    def __post_init__(self) -> None:
        self.device = self.ranks.device
        self.precision = choose_precision(self.settings.precision, self.device)
        self.passes: Passes = make_passes(
            self.network, self.study, self.settings, self.device, self.precision, self.ranks
        )
        self.optimizer = make_optimizer(self.network, self.settings, self.passes.recorded)
        an_epoch = self.study.steps_an_epoch()
        self.steps = self.settings.max_steps or max(1, round(self.settings.epochs * an_epoch))
        self.evaluate_every = self.settings.evaluate_every or an_epoch
        self.progress.budget = self.settings.batch_tokens or BUDGETS[self.device.type]

    def run(self) -> Outcome:
        self._resume()
        self._tell("started", self.progress.step, self.steps)
        saved = time.monotonic()
        try:
            while self.progress.step < self.steps and not self.progress.stopped:
                self._train_until(min(self._next_stop(), self.steps), saved)
                if self._is_evaluation() or self.progress.step == self.steps:
                    self._evaluate()
                self._save()
                saved = time.monotonic()
        except KeyboardInterrupt:
            self._save()
            raise BertsmithError(
                f"stopped at step {self.progress.step:,} of {self.steps:,}; the same command goes on from there."
            ) from None
        outcome = Outcome(self.progress, self.steps, self.speed)
        self._tell("finished", outcome)
        return outcome

    def _next_stop(self) -> int:
        return (self.progress.step // self.evaluate_every + 1) * self.evaluate_every

    def _is_evaluation(self) -> bool:
        return self.progress.step % self.evaluate_every == 0

    def _train_until(self, stop: int, saved: float) -> None:
        """Train to this step, or until it is time to save."""
        self.network.train()
        clock, awake = time.monotonic(), -1
        while self.progress.step < stop:
            step = self.progress.step
            layers = layers_awake(step, self.study.steps_an_epoch(), len(self.network.blocks), self.settings)
            if layers != awake:
                awake = layers
                wake(self.optimizer, awake)
                self.passes.forget()
            set_rates(self.optimizer, self.settings.rate * rate_share(step, self.steps, self.settings))
            self._step(step)
            self.progress.step = step + 1
            record = None
            if self.progress.step % self.settings.log_every == 0 or self.progress.step in (stop, self.steps):
                record = self._log()
                now = time.monotonic()
                self.speed.seconds, clock = self.speed.seconds + now - clock, now
                due = now - saved > 60 * self.settings.save_minutes
                if self.ranks.first_says(due):
                    self._tell("stepped", self.progress.step, record, self.speed)
                    return
            self._tell("stepped", self.progress.step, record, self.speed)

    def _step(self, step: int) -> None:
        """The passes of one step, in as many parts as memory asks for, then the optimizer."""
        while True:
            try:
                works = self.study.works(step, self.ranks.rank, self.ranks.count, self.progress.budget)
                self.passes.run(works, step)
                break
            except torch.OutOfMemoryError as error:
                self._shrink(error)
        self.speed.tokens += sum(len(work.ids) for work in works)
        self.speed.examples += self.settings.batch
        self.passes.finish(self.optimizer)

    def _shrink(self, error: Exception) -> None:
        """Half the tokens in a pass: a step then takes more of them, and comes to the same."""
        if self.progress.budget <= SMALLEST:
            raise BertsmithError(
                f"not enough memory on {self.device} for one row of this length; use a shorter length, --recompute or "
                f"a smaller model."
            ) from error
        self.progress.budget //= 2
        self.passes.forget()
        if self.device.type == "cuda":
            torch.cuda.empty_cache()

    def _log(self) -> dict[str, Any]:
        losses, norm, skipped = self.passes.report()
        self.progress.skipped += skipped
        if not all(map(math.isfinite, losses.values())) and self.precision != "fp16":
            raise BertsmithError(
                f"the loss is not a number at step {self.progress.step}: the rate {self.settings.rate:g} may be too "
                f"high, or the data holds what the model cannot read."
            )
        record = {
            "step": self.progress.step,
            "epoch": round(self.progress.step / self.study.steps_an_epoch(), 4),
            **losses,
            "rate": self.settings.rate * rate_share(self.progress.step - 1, self.steps, self.settings),
            "norm": norm,
            "skipped": self.progress.skipped,
        }
        if self.ranks.is_first:
            self.folder.log(record)
        return record

    def _evaluate(self) -> None:
        if self.evaluate is None:
            self.progress.best_step = self.progress.step
            self._save_best()
            return
        self.network.eval()
        metrics = self.evaluate()
        value = next(iter(metrics.values()))
        is_best = self.progress.best_value is None or value > self.progress.best_value
        self.progress.since_best = 0 if is_best else self.progress.since_best + 1
        if is_best:
            self.progress.best_step, self.progress.best_value = self.progress.step, value
            self._save_best()
        patience = self.settings.patience
        self.progress.stopped = bool(patience) and self.progress.since_best >= patience
        epoch = round(self.progress.step / self.study.steps_an_epoch(), 4)
        if self.ranks.is_first:
            self.folder.log({"step": self.progress.step, "epoch": epoch, "split": "dev", "metrics": metrics})
        self._tell("evaluated", self.progress.step, metrics, is_best)

    def _save_best(self) -> None:
        self._write_model(lambda write: self.folder.save_best(self.progress.step, write))

    def _save(self) -> None:
        names = named(self.network)
        optimizer = {name: whole(tensor).cpu() for name, tensor in give_state(self.optimizer, names).items()}
        self.progress.scale = self.passes.scale_state()
        state = vars(self.progress)
        self._write_model(lambda write: self.folder.save_last(self.progress.step, write, optimizer, state))

    def _write_model(self, save: Callable[[Callable[[Path], None]], None]) -> None:
        """Every process gives its part, the first one writes."""
        with whole_weights(self.network):
            if self.ranks.is_first:
                save(self.write_model)
        self.ranks.wait()

    def _resume(self) -> None:
        """Take the optimizer's state and the progress of the last checkpoint; its weights were loaded already."""
        last = self.folder.find_last()
        if last is not None:
            state, tensors = self.folder.read_last(last)
            self.progress = Progress(**{name: state[name] for name in vars(Progress())})
            self.passes.set_scale(*self.progress.scale)
            names = named(self.network)
            like = {name: parameter for parameter, name in names.items()}
            given = {
                key: part_like(tensor, like[key.split(".", 1)[1]]) if tensor.ndim else tensor.to(self.device)
                for key, tensor in tensors.items()
            }
            take_state(self.optimizer, names, given)
            if self.ranks.is_first:
                self.folder.open_log(state["log_bytes"])
        elif self.ranks.is_first:
            self.folder.open_log(0)
        self.ranks.wait()

    def _tell(self, event: str, *facts: Any) -> None:
        if self.ranks.is_first:
            for watcher in self.watchers:
                getattr(watcher, event)(*facts)


class whole_weights:
    """Inside, the network's parameters are plain whole tensors, even where each process holds a part of them."""

    def __init__(self, network: Network) -> None:
        self.network = network
        self.parts: dict[str, Any] = {}

    def __enter__(self) -> None:
        for name, parameter in self.network.named_parameters():
            if hasattr(parameter, "full_tensor"):
                self.parts[name] = parameter
        for name, parameter in self.parts.items():
            _put(self.network, name, torch.nn.Parameter(whole(parameter), requires_grad=False))

    def __exit__(self, *_: object) -> None:
        for name, parameter in self.parts.items():
            _put(self.network, name, parameter)


def _put(network: Network, name: str, parameter: Any) -> None:
    module, _, leaf = name.rpartition(".")
    network.get_submodule(module)._parameters[leaf] = parameter
