"""The one training loop: passes, gradients, a step, and every so often an evaluation and a checkpoint.

In: a network, a `Study` that says what a step holds and costs, settings, a run folder. Out: an `Outcome`; the best and
the last checkpoint are in the folder. Every random draw is a function of (seed, step, rank, pass).
"""

import copy
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from bertsmith.errors import BertsmithError, Stopped
from bertsmith.models.network import Network
from bertsmith.training.averaging import Averages
from bertsmith.training.devices import Ranks, choose_precision, whole, whole_weights
from bertsmith.training.folder import RunFolder
from bertsmith.training.guard import Guard
from bertsmith.training.interrupts import Interrupts
from bertsmith.training.optimizer import give_state, make_optimizer, named, set_rates, take_state, wake
from bertsmith.training.passes import make_passes
from bertsmith.training.progress import Outcome, OutOfTime, Progress, Speed, Watcher
from bertsmith.training.schedule import count_steps, layers_awake, rate_share
from bertsmith.training.settings import Training
from bertsmith.training.snapshot import copy_to_host
from bertsmith.training.study import Study

__all__ = ["Loop", "OutOfTime", "Outcome", "Progress", "Speed", "Watcher"]

# Tokens in a pass. Larger ones gain nothing on a CPU: at 8,192 rows of 250 tokens take more than twice the memory, and
# a fifth (8 x 640) to a half (6 x 384) more of the CPU's time, than at 2,048.
BUDGETS = {"cpu": 2048, "mps": 16384, "cuda": 65536}
SMALLEST = 64  # below this a pass cannot be split to save memory


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
    freeze: Callable[[], Callable[[Path], None]] | None = None  # gives what writes the model as it was then
    keeps_best: bool = True
    is_late: Callable[[int], bool] | None = None  # asked in the first process: whether to save and stop after a step
    opening: Mapping[str, Any] = field(default_factory=dict)  # the log's first record, where there is something to say
    progress: Progress = field(default_factory=Progress)
    speed: Speed = field(default_factory=Speed)

    def __post_init__(self) -> None:
        self.device = self.ranks.device
        self.precision = choose_precision(self.settings.precision, self.device)
        self.guard = Guard(getattr(self.settings, "guard", 0.0), self.precision)
        self.prepare()
        an_epoch = self.study.steps_an_epoch()
        self.steps = count_steps(an_epoch, self.settings)
        self.evaluate_every = self.settings.evaluate_every or an_epoch
        self.progress.budget = self.settings.batch_tokens or BUDGETS[self.device.type]

    def prepare(self) -> None:
        """All that is made from the weights as they are."""
        self.passes = make_passes(self.network, self.study, self.settings, self.device, self.precision, self.ranks)
        self.optimizer = make_optimizer(self.network, self.settings, self.passes.recorded)
        self.averages = Averages(self.optimizer, getattr(self.settings, "average", 0.0))
        # By the parameters that the optimizer knows: after an evaluation a sharded network may show whole ones.
        self.names = named(self.network)
        self.awake = -1  # layers that learn

    def run(self) -> Outcome:
        self.resume()
        self.speed.began = self.speed.began if self.speed.tokens else self.progress.step
        self.guard.remember(self)
        self.tell("started", self.progress.step, self.steps)
        # torchrun ends its processes by itself, each at another step: there a kept interrupt would only make them wait.
        interrupts = Interrupts(kept=self.ranks.count == 1)
        try:
            with interrupts:
                self._work(interrupts)
        except KeyboardInterrupt:
            self._stop(self.ranks.count == 1 and not interrupts.is_urgent, interrupts.number)
        finally:
            self.folder.close_log()
        self.averages.swap()  # for good: what was trained is the mean
        outcome = Outcome(self.progress, self.steps, self.speed)
        self.tell("finished", outcome)
        return outcome

    def _work(self, interrupts: Interrupts) -> None:
        """Train, evaluate and save in turn until all steps are done."""
        saved = time.monotonic()
        while self._owes_evaluation() or (self.progress.step < self.steps and not self.progress.stopped):
            if not self._owes_evaluation():
                self._train_until(min(self._next_stop(), self.steps), saved, interrupts)
            if self._owes_evaluation():
                with self.averages.in_place():
                    self._evaluate()
            if self.progress.step:  # the guard may have gone back to the beginning, of which there is nothing to keep
                self._save()
                self.guard.beginning = {}
            if self.is_late is not None and self.ranks.first_says(self._is_late()):
                raise OutOfTime(f"stopped at step {self.progress.step:,} of {self.steps:,}, for want of time.")
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
            self.averages.move(step)
            self.progress.step = step + 1
            logs = self.progress.step % self.settings.log_every == 0 or self.progress.step == stop
            record = self._log() if logs else None
            is_back = logs and record is None
            is_due = is_back or self._is_due(saved, logs)
            if logs or is_due:
                now = time.monotonic()
                self.speed.seconds, clock = self.speed.seconds + now - clock, now
            if not is_back:
                self.tell("stepped", self.progress.step, record, self.speed)
            interrupts.give_way()
            if is_due:
                return

    def _is_due(self, saved: float, logs: bool) -> bool:
        """Whether it is time to save: several processes wait for the first one at logs, and the guard judges there."""
        if (self.ranks.count > 1 or self.guard.bound) and not logs:
            return False
        is_long_ago = time.monotonic() - saved > 60 * self.settings.save_minutes
        return self.ranks.first_says(is_long_ago or self._is_late())

    def _is_late(self) -> bool:
        """Whether the first process thinks that this run must end sooner than at its last step."""
        return self.is_late is not None and self.ranks.is_first and self.is_late(self.progress.step)

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

    def _log(self) -> dict[str, Any] | None:
        """A record of the steps since the last one; None where their loss was bad and the run went back."""
        losses, norm, skipped = self.passes.report()
        self.progress.skipped += skipped
        if trouble := self.guard.find_trouble(self.progress, losses, self.study):
            self.guard.go_back(self, trouble)
            return None
        self.progress.logged = self.progress.step
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
        name, value = next(iter(metrics.items()))
        best, sign = self.progress.best_value, -1 if name.endswith("_loss") else 1
        is_better = best is None or sign * value > sign * best or (best != best and value == value)  # any is above NaN
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
        self.tell("evaluated", self.progress.step, metrics, is_best)

    def _save_best(self) -> None:
        if self.keeps_best:
            self._write_model(lambda: self.folder.save_best(self.progress.step, self.write_model))

    def _save(self) -> None:
        self.folder.wait()  # one checkpoint at a time is written, and its copy of the model is in use until then
        self.progress.scale, self.progress.since_log = self.passes.scale_state(), self.passes.open_sums()
        state, optimizer = copy.deepcopy(vars(self.progress)), self._give_optimizer()
        if self.freeze is None:
            self._write_model(lambda: self.folder.save_last(state["step"], self.write_model, optimizer, state))
        else:
            freeze = self.freeze
            self._write_model(lambda: self.folder.save_last(state["step"], freeze(), optimizer, state, is_later=True))

    def _give_optimizer(self) -> dict[str, Tensor]:
        """Its state on the host of the first process; one tensor at a time is whole on the device."""
        found: dict[str, Tensor] = {}
        for name, tensor in give_state(self.optimizer, self.names).items():
            entire = whole(tensor)  # all processes must ask
            if self.ranks.is_first:
                found[name] = entire.cpu() if self.freeze is None else copy_to_host({name: entire})[name]
        return found

    def _write_model(self, save: Callable[[], None]) -> None:
        """Every process gives its part, the first one writes."""
        with whole_weights(self.network):
            if self.ranks.is_first:
                save()
        self.ranks.wait()

    def resume(self) -> None:
        """Take the optimizer's state and the progress of the last checkpoint; its weights were loaded already."""
        last = self.folder.find_last()
        if last is not None:
            state, tensors = self.folder.read_last(last)
            self.progress = Progress(**{name: state[name] for name in vars(Progress()) if name in state})
            if self.progress.detours:
                self.study.detours = self.progress.detours  # type: ignore[attr-defined]  # only such a study has any
            self.passes.set_scale(*self.progress.scale)
            self.passes.set_open_sums(self.progress.since_log)
            take_state(self.optimizer, self.names, tensors)
            if self.ranks.is_first:
                self.folder.open_log(state["log_bytes"])
        elif self.ranks.is_first:
            self.folder.open_log(0)
            if self.opening:
                self.folder.log({"step": 0, **self.opening})
        self.ranks.wait()

    def tell(self, event: str, *facts: Any) -> None:
        if self.ranks.is_first:
            for watcher in self.watchers:
                getattr(watcher, event)(*facts)
