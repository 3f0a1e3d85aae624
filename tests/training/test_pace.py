"""What a pass takes, by a clock of the test's own: what is made once in a process is no part of it."""

import json
from dataclasses import dataclass, field

import pytest
import torch

from bertsmith.errors import BertsmithError
from bertsmith.training import timing
from bertsmith.training.devices import Ranks
from bertsmith.training.pretraining_settings import Pretraining


@dataclass
class Asking:
    counts: dict


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
        assert 0 <= step < self.steps
        return [Asking({"masked" if step >= self.steps / 4 else "onward": 1.0})]


@dataclass
class Compiling:
    """Passes of a tenth of a second, and 30 seconds more when a question is new."""

    recorded, settles = False, 2
    wait: float = 0.0  # seconds that a host loses whenever it waits for the device
    onward: float = 0.1  # seconds of a pass that asks for the next token
    hiccup: int = 0  # the pass before which memory is asked for, or Python clears up
    stall: float = 0.0  # seconds that the end of a step takes longer while passes are made one by one
    clock: float = 0.0
    count: int = 0
    known: set = field(default_factory=set)

    def run(self, works, step):
        (asked,) = works[0].counts
        self.count += 1
        self.clock += (self.onward if asked == "onward" else 0.1) + 30.0 * (asked not in self.known)
        self.clock += 2.0 * (self.count == self.hiccup)
        self.known.add(asked)

    def report(self):
        self.clock += self.wait

    def finish(self, optimizer):
        self.clock += 0.01 + self.stall * (self.count <= 2 * timing.TIMED)


class Blocks(Staged):
    """One whose rows are made a block at a time, the last two of them kept: a second for a block that is not there."""

    def __init__(self, steps, passes):
        super().__init__(steps)
        self.passes, self.kept = passes, []

    def works(self, step, rank, ranks, budget):
        block = step // 300
        self.passes.clock += 1.0 * (block not in self.kept)
        self.kept = [*[one for one in self.kept if one != block][-1:], block]
        return super().works(step, rank, ranks, budget)


class Several(Ranks):
    """Processes of which each thinks what the first does."""

    def first_says(self, flag):
        return flag


def find_pace(monkeypatch, passes, most=5.0, lengths="128", study=Staged, ranks=None):
    monkeypatch.setattr(timing, "make_passes", lambda *_: passes)
    monkeypatch.setattr(timing, "make_optimizer", lambda *_: None)
    monkeypatch.setattr(timing, "now", lambda: passes.clock)
    training = Pretraining(lengths=lengths, precision="fp32")
    return timing.find_pace(training, lambda _, steps: study(steps), torch.nn.Linear(1, 1), ranks or Ranks(), most)


@pytest.mark.parametrize("most", [0.1, 5.0, 100.0])
def test_compiling_is_no_pace(monkeypatch, most):
    pace, size = find_pace(monkeypatch, Compiling(), most)
    assert size == 1000
    assert pace.passes == (pytest.approx([0.1] * timing.TIMED),) and pace.step == pytest.approx(0.01)


def test_waiting_is_no_pace_where_there_is_time_to_find_out(monkeypatch):
    pace, _ = find_pace(monkeypatch, Compiling(wait=0.05), 100.0)
    assert [each + pace.step for each in pace.passes[0]] == pytest.approx([0.11 + 0.05 / timing.TIMED] * timing.TIMED)
    pace, _ = find_pace(monkeypatch, Compiling(wait=0.05), 0.1)
    assert [each + pace.step for each in pace.passes[0]] == pytest.approx([0.21] * timing.TIMED)


@pytest.mark.parametrize("hiccup", range(13, 73))
def test_what_happens_once_is_no_pace(monkeypatch, hiccup):
    """Two seconds in one of the rows, whichever: by a mean of six passes the plan would be four times too short."""
    pace, _ = find_pace(monkeypatch, Compiling(hiccup=hiccup), 100.0)
    assert pace.passes[0] == pytest.approx([0.1] * timing.TIMED)


def test_each_question_has_its_own_pace(monkeypatch):
    """A run that begins with what takes long is not taken for a slow one, and is no shorter than it need be."""
    pace, size = find_pace(monkeypatch, Compiling(onward=0.3), 100.0, "32:0.5,64:0.5")
    assert pace.passes[0] == pytest.approx([0.3, 0.3, 0.3, 0.1, 0.1, 0.1])
    assert pace.passes[1] == pytest.approx([0.1] * timing.TIMED)
    chosen = Pretraining(lengths="32:0.5,64:0.5", tokens=size, pass_tokens=size)
    costs = [pace.cost(chosen, size, step, 100) for step in range(100)]
    assert costs == pytest.approx([0.31] * 25 + [0.11] * 75)


def test_each_question_is_timed_however_little_time_there_is(monkeypatch):
    pace, _ = find_pace(monkeypatch, Compiling(onward=0.7), 0.1)
    assert pace.passes[0] == pytest.approx([0.7, *[0.1] * (timing.TIMED - 1)])


def test_making_rows_of_another_part_of_the_text_is_no_pace(monkeypatch):
    """Sentence order in two minutes had 2,600 steps of the 6,500 that fitted."""
    passes = Compiling()
    pace, _ = find_pace(monkeypatch, passes, 100.0, study=lambda steps: Blocks(steps, passes))
    assert pace.passes[0] == pytest.approx([0.1] * timing.TIMED)


def test_the_end_of_a_step_takes_no_more_than_both(monkeypatch):
    """A machine with other work let a pass take no time at all, by which the plan of what is scored then divided."""
    pace, size = find_pace(monkeypatch, Compiling(stall=0.5), 100.0)
    assert [each + pace.step for each in pace.passes[0]] == pytest.approx([0.11] * timing.TIMED)
    assert min(pace.passes[0]) > 0
    most = timing.Scoring(10, 64, 1000, 128)
    assert timing.plan_scoring(most, 60.0, timing.FORWARD * pace.passes[-1][-1], size)[0].passes >= 1


@pytest.mark.parametrize("lengths", ["128:0.99,512:0.01", "128:0.999,512:0.001"])
def test_a_short_last_part_is_timed_within_the_run(monkeypatch, lengths):
    pace, _ = find_pace(monkeypatch, Compiling(), 100.0, lengths)
    assert pace.passes[1] == pytest.approx([0.1] * timing.TIMED)


def test_fewer_passes_than_processes_take_as_long_as_one(monkeypatch):
    """A step of one pass was thought to take an eighth of it on eight GPUs, and a run by minutes planned so."""
    pace, size = find_pace(monkeypatch, Compiling(), 100.0, ranks=Several(0, 4))
    for passes, rounds in ((1, 1), (4, 1), (5, 2), (8, 2)):
        chosen = Pretraining(tokens=passes * size, pass_tokens=size)
        assert pace.cost(chosen, size, 0, 10) == pytest.approx(rounds * 0.1 + 0.01)
    kept = json.loads(json.dumps({"seconds_a_pass": pace.passes, "apart": pace.step, "ranks": pace.ranks}))
    assert timing.Pace.of(kept) == pace


def test_a_plan_of_before_is_read():
    assert timing.Pace.of({"seconds_a_pass": [0.5, 2.0], "apart": 0.1}) == timing.Pace(((0.5,), (2.0,)), 0.1)
    assert timing.Pace.of({"seconds_a_pass": [[0.5, 1.0]], "apart": 0.1}) == timing.Pace(((0.5, 1.0),), 0.1)


def test_no_room_is_told(monkeypatch):
    class Full(Compiling):
        def run(self, works, step):
            raise torch.OutOfMemoryError

    with pytest.raises(BertsmithError, match="not enough memory for a pass of 1,000 tokens"):
        find_pace(monkeypatch, Full())
