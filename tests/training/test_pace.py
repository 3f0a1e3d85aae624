"""What a pass takes, by a clock of the test's own: what is made once in a process is no part of it."""

from dataclasses import dataclass, field

import pytest
import torch

from bertsmith.errors import BertsmithError
from bertsmith.training import timing
from bertsmith.training.devices import Ranks
from bertsmith.training.pretraining_settings import Pretraining


class Staged:
    """A study whose passes ask another question from a quarter of the run on."""

    pass_size = 1000

    def __init__(self, steps):
        self.steps, self.objective = steps, self

    def parts(self):
        return {}

    def use_parts(self, parts):
        pass

    def works(self, step, rank, ranks, budget):
        return ["masked" if step >= self.steps / 4 else "onward"]


@dataclass
class Compiling:
    """Passes of a tenth of a second, and 30 seconds more when a question is new."""

    recorded = False
    wait: float = 0.0  # seconds that a host loses whenever it waits for the device
    clock: float = 0.0
    known: set = field(default_factory=set)

    def run(self, works, step):
        self.clock += 0.1 + 30.0 * (works[0] not in self.known)
        self.known.update(works)

    def report(self):
        self.clock += self.wait

    def finish(self, optimizer):
        self.clock += 0.01


def find_pace(monkeypatch, passes, most=5.0):
    monkeypatch.setattr(timing, "make_passes", lambda *_: passes)
    monkeypatch.setattr(timing, "make_optimizer", lambda *_: None)
    monkeypatch.setattr(timing, "now", lambda: passes.clock)
    training = Pretraining(lengths="128", precision="fp32")
    return timing.find_pace(training, lambda _, steps: Staged(steps), torch.nn.Linear(1, 1), Ranks(), most)


@pytest.mark.parametrize("most", [0.1, 5.0, 100.0])
def test_compiling_is_no_pace(monkeypatch, most):
    pace, size = find_pace(monkeypatch, Compiling(), most)
    assert size == 1000
    assert pace.passes == pytest.approx((0.1,)) and pace.step == pytest.approx(0.01)


def test_waiting_is_no_pace_where_there_is_time_to_find_out(monkeypatch):
    pace, _ = find_pace(monkeypatch, Compiling(wait=0.05), 100.0)
    assert pace.passes[0] + pace.step == pytest.approx(0.11 + 0.05 / timing.TIMED)
    pace, _ = find_pace(monkeypatch, Compiling(wait=0.05), 0.1)
    assert pace.passes[0] + pace.step == pytest.approx(0.21)


def test_no_room_is_told(monkeypatch):
    class Full(Compiling):
        def run(self, works, step):
            raise torch.OutOfMemoryError

    with pytest.raises(BertsmithError, match="not enough memory for a pass of 1,000 tokens"):
        find_pace(monkeypatch, Full())
