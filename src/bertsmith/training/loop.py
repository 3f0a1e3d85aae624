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

from bertsmith.errors import BertsmithError, Stopped
from bertsmith.models.network import Network
from bertsmith.training.devices import Ranks, choose_precision, part_like, whole, whole_weights
from bertsmith.training.folder import RunFolder
from bertsmith.training.interrupts import Interrupts
from bertsmith.training.optimizer import give_state, make_optimizer, named, set_rates, take_state, wake
from bertsmith.training.passes import Passes, make_passes
from bertsmith.training.schedule import count_steps, layers_awake, rate_share
from bertsmith.training.settings import Training
from bertsmith.training.study import Study

BUDGETS = {"cpu": 8192, "mps": 16384, "cuda": 65536}  # tokens in a pass
SMALLEST = 64  # below this a pass cannot be split to save memory


@dataclass
class Progress:
    """Where a run stands; saved with each checkpoint."""

    step: int = 0
    evaluated: int = 0  # the step of the last evaluation
    best_step: int = 0
    best_value: float | None = None
    since_best: int = 0  # evaluations
    stopped: bool = False
    budget: int = 0
    skipped: int = 0  # steps whose gradient was not finite
    scale: tuple[float, int] = (65536.0, 0)  # of fp16 losses, and steps since it last changed
    since_log: dict[str, float] = field(default_factory=dict)  # what the next record of the log is made of


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
    opening: Mapping[str, Any] = field(default_factory=dict)  # the log's first record, where there is something to say
    progress: Progress = field(default_factory=Progress)
    speed: Speed = field(default_factory=Speed)

    def __post_init__(self) -> None:
        self.device = self.ranks.device
        self.precision = choose_precision(self.settings.precision, self.device)
        self.passes: Passes = make_passes(
            self.network, self.study, self.settings, self.device, self.precision, self.ranks
        )
        self.optimizer = make_optimizer(self.network, self.settings, self.passes.recorded)
        # By the parameters that the optimizer knows: after an evaluation a sharded network may show whole ones.
        self.names = named(self.network)
        self.awake = -1  # layers that learn
        an_epoch = self.study.steps_an_epoch()
        self.steps = count_steps(an_epoch, self.settings)
        self.evaluate_every = self.settings.evaluate_every or an_epoch
        self.progress.budget = self.settings.batch_tokens or BUDGETS[self.device.type]

    def run(self) -> Outcome:
        self._resume()
        self._tell("started", self.progress.step, self.steps)
        # torchrun ends its processes by itself, each at another step: there a kept interrupt would only make them wait.
        interrupts = Interrupts(kept=self.ranks.count == 1)
        try:
            with interrupts:
                self._work(interrupts)
        except KeyboardInterrupt:
            self._stop(self.ranks.count == 1 and not interrupts.is_urgent, interrupts.number)
        finally:
            self.folder.close_log()
        outcome = Outcome(self.progress, self.steps, self.speed)
        self._tell("finished", outcome)
        return outcome

    def _work(self, interrupts: Interrupts) -> None:
        """Train, evaluate and save in turn until all steps are done."""
        saved = time.monotonic()
        while self._owes_evaluation() or (self.progress.step < self.steps and not self.progress.stopped):
            if not self._owes_evaluation():
                self._train_until(min(self._next_stop(), self.steps), saved, interrupts)
            if self._owes_evaluation():
                self._evaluate()
            self._save()
            saved = time.monotonic()

    def _stop(self, can_save: bool, number: int) -> None:
        if can_save:
            self._save()
        where = f"stopped at step {self.progress.step:,} of {self.steps:,}"
        last = "there" if can_save else "the last checkpoint"
        raise Stopped(f"{where}; the same command goes on from {last}.", number) from None

    def _next_stop(self) -> int:
        return (self.progress.step // self.evaluate_every + 1) * self.evaluate_every

    def _owes_evaluation(self) -> bool:
        step = self.progress.step
        return step > self.progress.evaluated and (step % self.evaluate_every == 0 or step == self.steps)

    def _train_until(self, stop: int, saved: float, interrupts: Interrupts) -> None:
        """Train to this step, or until it is time to save."""
        self.network.train()
        clock = time.monotonic()
        while self.progress.step < stop:
            step = self.progress.step
            layers = layers_awake(step, self.study.steps_an_epoch(), len(self.network.blocks), self.settings)
            if layers != self.awake:
                self.awake = layers
                wake(self.optimizer, layers)
                self.passes.forget()
            set_rates(self.optimizer, self.settings.peak * rate_share(step, self.steps, self.settings))
            self._step(step)
            self.progress.step = step + 1
            logs = self.progress.step % self.settings.log_every == 0 or self.progress.step == stop
            record = self._log() if logs else None
            is_due = self._is_due(saved, logs)
            if logs or is_due:
                now = time.monotonic()
                self.speed.seconds, clock = self.speed.seconds + now - clock, now
            self._tell("stepped", self.progress.step, record, self.speed)
            interrupts.give_way()
            if is_due:
                return

    def _is_due(self, saved: float, logs: bool) -> bool:
        """Whether it is time to save; several processes ask the first one only where they wait for it anyway."""
        if self.ranks.count > 1 and not logs:
            return False
        return self.ranks.first_says(time.monotonic() - saved > 60 * self.settings.save_minutes)

    def _step(self, step: int) -> None:
        """The passes of one step, in as many parts as memory asks for, then the optimizer."""
        fits = False
        while not fits:
            works = self.study.works(step, self.ranks.rank, self.ranks.count, self.progress.budget)
            fits = True
            try:
                self.passes.run(works, step)
            except torch.OutOfMemoryError:
                fits = False
                if self.passes.sharded:  # the others are in the middle of a pass that needs this process
                    raise BertsmithError(
                        f"not enough memory on {self.device}; give batch_tokens below {self.progress.budget:,}."
                    ) from None
            # Where one process makes its passes again, all do; what the failed ones held is free only out here.
            fits = not self.ranks.most(int(not fits))
            if not fits:
                self._shrink()
        self.speed.tokens += sum(len(work.ids) for work in works)
        self.speed.examples += self.study.size(step)
        self.passes.finish(self.optimizer)

    def _shrink(self) -> None:
        """Half the tokens in a pass: a step then takes more of them, and comes to the same."""
        if getattr(self.study, "whole", False):
            raise BertsmithError(
                f"not enough memory on {self.device} for a whole step, whose {self.settings.batch:,} examples are "
                f"compared with each other; use a smaller batch, a shorter length or --recompute."
            )
        if self.progress.budget <= SMALLEST:
            raise BertsmithError(
                f"not enough memory on {self.device} for one row of this length; use a shorter length, --recompute or "
                f"a smaller model."
            )
        self.progress.budget //= 2
        self.passes.forget()
        if self.device.type == "cuda":
            torch.cuda.empty_cache()

    def _log(self) -> dict[str, Any]:
        losses, norm, skipped = self.passes.report()
        self.progress.skipped += skipped
        if not all(map(math.isfinite, losses.values())) and self.precision != "fp16":
            raise BertsmithError(
                f"the loss is not a number at step {self.progress.step}: the rate {self.settings.peak:g} may be too "
                f"high, or the data holds what the model cannot read."
            )
        record = {
            "step": self.progress.step,
            "epoch": round(self.progress.step / self.study.steps_an_epoch(), 4),
            **losses,
            "rate": self.settings.peak * rate_share(self.progress.step - 1, self.steps, self.settings),
            "norm": norm,
            "skipped": self.progress.skipped,
        }
        if self.ranks.is_first:
            self.folder.log(record)
        return record

    def _evaluate(self) -> None:
        if self.evaluate is None:
            self.progress.best_step = self.progress.evaluated = self.progress.step
            self._save_best()
            return
        self.network.eval()
        metrics = self.evaluate()
        value = next(iter(metrics.values()))
        best = self.progress.best_value
        is_better = best is None or value > best
        # Of equal ones the later is the better trained: a small development set is soon without a mistake.
        is_best = is_better or value == best
        self.progress.since_best = 0 if is_better else self.progress.since_best + 1
        if is_best:
            self.progress.best_step, self.progress.best_value = self.progress.step, value
            self._save_best()
        patience = self.settings.patience
        self.progress.stopped = bool(patience) and self.progress.since_best >= patience
        epoch = round(self.progress.step / self.study.steps_an_epoch(), 4)
        if self.ranks.is_first:
            self.folder.log({"step": self.progress.step, "epoch": epoch, "split": "dev", "metrics": metrics})
        self.progress.evaluated = self.progress.step
        self._tell("evaluated", self.progress.step, metrics, is_best)

    def _save_best(self) -> None:
        self._write_model(lambda write: self.folder.save_best(self.progress.step, write))

    def _save(self) -> None:
        optimizer = {name: whole(tensor).cpu() for name, tensor in give_state(self.optimizer, self.names).items()}
        self.progress.scale, self.progress.since_log = self.passes.scale_state(), self.passes.open_sums()
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
            self.passes.set_open_sums(self.progress.since_log)
            like = {name: parameter for parameter, name in self.names.items()}
            given = {
                key: part_like(tensor, like[key.split(".", 1)[1]]) if tensor.ndim else tensor.to(self.device)
                for key, tensor in tensors.items()
            }
            take_state(self.optimizer, self.names, given)
            if self.ranks.is_first:
                self.folder.open_log(state["log_bytes"])
        elif self.ranks.is_first:
            self.folder.open_log(0)
            if self.opening:
                self.folder.log({"step": 0, **self.opening})
        self.ranks.wait()

    def _tell(self, event: str, *facts: Any) -> None:
        if self.ranks.is_first:
            for watcher in self.watchers:
                getattr(watcher, event)(*facts)
