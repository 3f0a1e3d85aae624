"""Who looks on while a model trains: a bar on a terminal, a line an evaluation elsewhere, TensorBoard's files.

In: the events of the loop. Out: text for people on standard error, files in the run's folder; nothing over a network.
"""

import shutil
import sys
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from bertsmith.training.folder import RUN
from bertsmith.training.progress import Outcome, Speed, Watcher

if TYPE_CHECKING:
    from bertsmith.training.utilization import Utilization

Say = Callable[[str], None]
RECENT = 16  # records of the log by which the speed is told


class Mark(NamedTuple):
    """How far a run had come at a record of the log."""

    step: int
    seconds: float
    tokens: int


class ProgressBar(Watcher):
    """Steps, loss, tokens/s, MFU, time left and the last score on a terminal; `say` always gets a line an evaluation.

    A context manager, so that the bar goes away when training ends in an error.
    """

    def __init__(self, say: Say, terminal: bool | None = None) -> None:
        self.say = say
        self.terminal = sys.stderr is not None and sys.stderr.isatty() if terminal is None else terminal
        self.steps = self.first = 0
        self.best: float | None = None  # that was seen here
        self.facts: dict[str, str] = {}  # in the order in which the bar shows them
        self.utilization: Utilization | None = None  # of the device, where somebody counted what a token costs
        self._marks: deque[Mark] = deque(maxlen=RECENT)
        self._bar: Any = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self._stop()

    def started(self, step: int, steps: int) -> None:
        self.first, self.steps = step, steps
        self.facts = dict.fromkeys(("loss", "speed", "used", "left", "score"), "")
        self._marks = deque(list(self._marks)[-1:], maxlen=RECENT)  # a shorter plan counts on from where it was
        if self.terminal:
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

            columns = (TextColumn("training"), BarColumn(24), MofNCompleteColumn(), TextColumn("{task.fields[facts]}"))
            self._bar = Progress(*columns, console=Console(stderr=True), transient=True)
            self._bar.add_task("", total=steps, completed=step, facts="")
            self._bar.start()

    def stepped(self, step: int, record: Mapping[str, Any] | None, speed: Speed) -> None:
        if record is not None:
            if "loss" in record:
                self.facts["loss"] = f"loss {record['loss']:.4f}"
            self._marks.append(Mark(step, speed.seconds, speed.tokens))
            self._tell_speed()
        self._update(step)

    def _tell_speed(self) -> None:
        """By the last records: the first steps of a run may be slow, as kernels are made for them, or small."""
        last = self._marks[-1]
        before = self._marks[0] if len(self._marks) > 1 else Mark(self.first, 0.0, 0)
        seconds, tokens = last.seconds - before.seconds, last.tokens - before.tokens
        if seconds <= 0 or last.step <= before.step:
            return
        rate = tokens / seconds if self.utilization is None else self.utilization.rate(tokens, seconds)
        self.facts["speed"] = f"{rate:,.0f} tokens/s"
        if self.utilization is not None:
            self.facts["used"] = f"MFU {100 * self.utilization.share(tokens, seconds):.3g} %"
        self.facts["left"] = f"{show_time((self.steps - last.step) * seconds / (last.step - before.step))} left"

    def evaluated(self, step: int, metrics: Mapping[str, float], is_best: bool) -> None:
        name, value = next(iter(metrics.items()))
        self.facts["score"] = f"{name} {value:.4f}"
        self._update(step)
        best = ""
        if is_best:
            best = " (as good as the best so far)" if value == self.best else " (the best so far)"
            self.best = value
        shown = ["loss", "speed", "used", *(["left"] if self.utilization is not None and step < self.steps else [])]
        told = ", ".join(filter(None, (self.facts[name] for name in shown)))
        self.say(f"step {step:,} of {self.steps:,}: {name} {value:.4f}{best}" + (f"; {told}" if told else ""))

    def went_back(self, step: int, sentence: str) -> None:
        self._marks.clear()
        self._update(step)
        self.say(sentence)

    def finished(self, outcome: Outcome) -> None:
        self._stop()
        if outcome.progress.stopped:
            self.say(
                f"stopped at step {outcome.progress.step:,} of {outcome.steps:,}: no evaluation was better than that "
                f"of step {outcome.progress.best_step:,}."
            )

    def _update(self, step: int) -> None:
        if self._bar is not None:
            self._bar.update(self._bar.task_ids[0], completed=step, facts=" · ".join(filter(None, self.facts.values())))

    def _stop(self) -> None:
        if self._bar is not None:
            self._bar.stop()
            self._bar = None


class Events(Watcher):
    """Writes what TensorBoard shows into `events` in the run's folder; where TensorBoard is not installed, nothing.

    A context manager, so that a run that ended before it had anything to keep leaves nothing here either.
    """

    def __init__(self, run: Path) -> None:
        self.run, self.folder = run, run / "events"
        self._writer: Any = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        if self._writer is not None:
            self._writer.close()
            if not (self.run / RUN).exists():
                shutil.rmtree(self.folder, ignore_errors=True)
                with suppress(OSError):  # something else is in there
                    self.run.rmdir()

    def started(self, step: int, steps: int) -> None:
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError:
            return
        if step == 0:  # another run's curves must not go on in this one
            shutil.rmtree(self.folder, ignore_errors=True)
        # What was written behind the checkpoint that the run goes on from does not count.
        self._writer = SummaryWriter(str(self.folder), purge_step=step or None)

    def stepped(self, step: int, record: Mapping[str, Any] | None, speed: Speed) -> None:
        self._write("train", {name: value for name, value in (record or {}).items() if name != "step"}, step)

    def evaluated(self, step: int, metrics: Mapping[str, float], is_best: bool) -> None:
        self._write("dev", metrics, step)

    def _write(self, group: str, values: Mapping[str, float], step: int) -> None:
        if self._writer is not None:
            for name, value in values.items():
                self._writer.add_scalar(f"{group}/{name}", value, step)


def show_time(seconds: float) -> str:
    """As in `42 s`, `3 min` and `2 h 05 min`."""
    if seconds < 60:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02d} min"
