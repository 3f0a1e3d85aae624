"""Pretraining for some minutes: how many steps those are, a plan that is kept, and one that must be shortened."""

import json
import re

import pytest
import safetensors.torch
import torch
from deadline_made import Clock
from pretraining_made import SHORT, SMALL, STEPS, Stop, assert_same, pretrain

import bertsmith
from bertsmith.errors import BertsmithError, Stopped
from bertsmith.pretraining import tell_fitted
from bertsmith.training import timing
from bertsmith.training.deadline import Deadline
from bertsmith.training.devices import Ranks
from bertsmith.training.pretraining_settings import Pretraining
from bertsmith.training.progress import Speed
from bertsmith.training.recipes import fit_to_cpu

pytestmark = pytest.mark.usefixtures("one_thread")


def test_a_run_by_minutes_keeps_its_plan(corpus, tmp_path, monkeypatch):
    """The clock is looked at once: what it said stands in plan.json, and from then on only the step counts."""
    pretrain(corpus, tmp_path / "by-steps", "smith", **SHORT)
    by_minutes = {name: value for name, value in SHORT.items() if name != "max_steps"}
    seconds = 60 * 2.0 * timing.MARGIN / (STEPS + 0.5)
    monkeypatch.setattr(timing.Pace, "mean_step", lambda *_: seconds)
    monkeypatch.setattr("bertsmith.pretraining.count_read", lambda *_: timing.Scoring())
    monkeypatch.setattr(timing, "find_pace", lambda *_: (timing.Pace(((1.0,),), 0.0), 256))
    with pytest.raises(RuntimeError):
        pretrain(corpus, tmp_path / "out", "smith", minutes=2.0, **by_minutes, watchers=[Stop(6, RuntimeError)])
    assert json.loads((tmp_path / "out" / "plan.json").read_text())["steps"] == STEPS

    def never(*_):
        raise AssertionError("the clock was asked again")

    monkeypatch.setattr(timing, "find_pace", never)
    pretrain(corpus, tmp_path / "out", "smith", minutes=2.0, **by_minutes)
    assert_same(tmp_path / "out", tmp_path / "by-steps")
    with pytest.raises(AssertionError, match="asked again"):
        pretrain(corpus, tmp_path / "out", "smith", minutes=2.0, **by_minutes, overwrite=True)
    assert not (tmp_path / "out" / "plan.json").exists()


def test_what_is_read_to_be_scored_takes_steps_off_the_plan(corpus, tmp_path, monkeypatch):
    """Evaluations and the pseudo-perplexity are foreseen, and smaller where they would take much of the time."""
    monkeypatch.setattr(timing, "now", lambda: 0.0)
    monkeypatch.setattr(timing, "find_pace", lambda *_: (timing.Pace(((0.5,),), 0.0), 256))
    training, steps = Pretraining(tokens=512, pass_tokens=256, lengths="32"), {}
    for passes, samples in ((0, 0), (1, 64), (64, 1024)):
        folder = tmp_path / str(passes)
        folder.mkdir()
        most = timing.Scoring(10, passes, samples, 32)
        steps[passes] = timing.plan_steps(folder, training, 1.0, None, None, Ranks(), print, most)
        found = timing.read_scoring(folder, most)
        # A pass of 256 tokens is read in a quarter of a second, a row of 32 in a thirty-second.
        assert (found.passes, found.samples) == {0: (0, 0), 1: (1, 64), 64: (2, 64)}[passes]
    assert steps == {0: 58, 1: 54, 64: 51}  # of 58.8 seconds 2.5 or 5 for evaluations, and 2 at the end


@pytest.mark.parametrize("every, evaluations", [(1, 59), (2, 30), (20, 3)])
def test_evaluations_are_planned_as_often_as_they_are_asked_for(tmp_path, monkeypatch, every, evaluations):
    """Ten were, however many there were to be: a run that has one every few steps was planned far too long."""
    monkeypatch.setattr(timing, "now", lambda: 0.0)
    monkeypatch.setattr(timing, "find_pace", lambda *_: (timing.Pace(((0.5,),), 0.0), 256))
    training = Pretraining(tokens=512, pass_tokens=256, lengths="32", evaluate_every=every)
    most = timing.Scoring(10, 64, 0, 32)
    steps = timing.plan_steps(tmp_path, training, 1.0, None, None, Ranks(), print, most)
    found = timing.read_scoring(tmp_path, most)
    assert found.evaluations == evaluations and found.passes == max(1, int(0.1 * 58.8 / evaluations / 0.25))
    assert steps == int(58.8 - min(58.8 / 4, evaluations * found.passes * 0.25) - found.at_end)


def test_a_step_that_does_not_fit_is_said_beside_what_is_left(tmp_path, monkeypatch):
    """Of 3 seconds 2.94 are planned with, of which scoring takes half; a step takes 2.5, less than the run."""
    monkeypatch.setattr(timing, "now", lambda: 0.0)
    monkeypatch.setattr(timing, "find_pace", lambda *_: (timing.Pace(((1.25,),), 0.0), 256))
    training = Pretraining(tokens=512, pass_tokens=256, lengths="32")
    told = r"a step of 512 tokens takes 2\.5 s, and of 3 s timing and scoring leave (\S+) s; give fewer tokens"
    with pytest.raises(BertsmithError, match=told) as caught:
        timing.plan_steps(tmp_path, training, 0.05, None, None, Ranks(), print, timing.Scoring(10, 64, 0, 32))
    assert float(re.search(told, str(caught.value))[1]) == pytest.approx(2.94 / 2, abs=0.01)


def test_minutes_are_turned_into_steps(corpus, tmp_path):
    said = []
    run = pretrain(corpus, tmp_path / "out", "electra", minutes=0.02, say=said.append, ramp=0.5, first_tokens=256)
    plan = json.loads((tmp_path / "out" / "plan.json").read_text())
    assert run.outcome.steps == plan["steps"] >= 1 and plan["seconds_a_step"] > 0 and plan["minutes"] == 0.02
    assert any("steps in 0.02 minutes" in sentence for sentence in said)


@pytest.mark.parametrize("recipe", [None, "bert", "albert", "electra"])
def test_on_a_cpu_minutes_are_for_a_tiny_encoder(corpus, tmp_path, recipe, monkeypatch):
    """The command of a GPU, as it stands, makes steps on a laptop; the same again leaves it alone."""
    said = []
    monkeypatch.setattr(timing.Pace, "mean_step", lambda *_: 1.0)
    monkeypatch.setattr("bertsmith.pretraining.count_read", lambda *_: timing.Scoring())
    monkeypatch.setattr(timing, "find_pace", lambda *_: (timing.Pace(((1.0,), (1.0,)), 0.0), 2048))
    run = bertsmith.pretrain(corpus, tmp_path / "out", recipe, minutes=0.05, device="cpu", say=said.append)
    assert said[0] == (
        "On a CPU minutes are for a tiny encoder, 4 layers of 128 and steps of 2,048 tokens; --depth, --width and "
        "--tokens say otherwise."
    )
    config = json.loads((tmp_path / "out" / "config.json").read_text())
    assert (config["num_hidden_layers"], config["hidden_size"]) == (4, 128) and run.outcome.steps >= 1
    bertsmith.pretrain(corpus, tmp_path / "out", recipe, minutes=0.05, device="cpu", say=said.append)
    assert "nothing to do" in said[-1]


@pytest.mark.parametrize(
    "given, is_fresh, fitted",
    [
        ({}, True, {"depth": 4, "width": 128, "tokens": 2048}),
        ({"depth": 2}, True, {"tokens": 2048}),
        ({"positions": 1024}, True, {"depth": 4, "width": 128, "tokens": 2048}),
        ({"preset": "modernbert-base"}, True, {"tokens": 2048}),
        ({"tokens": 512, "lengths": "128"}, True, {"depth": 4, "width": 128}),
        ({"lengths": "4096"}, True, {"depth": 4, "width": 128, "tokens": 4096}),
        ({}, False, {"tokens": 2048}),
        ({"first_tokens": 1024}, True, {"depth": 4, "width": 128, "tokens": 2048}),
        ({"first_tokens": 4096}, False, {"tokens": 4096}),
        ({"tokens": 512, "width": 64, "lengths": "128"}, True, {}),
    ],
)
def test_what_somebody_chose_is_left_alone(given, is_fresh, fitted):
    assert fit_to_cpu("smith", given, is_fresh) == fitted


def test_what_is_told_names_what_was_fitted():
    assert tell_fitted({"tokens": 2048}) == "On a CPU minutes are for steps of 2,048 tokens; --tokens says otherwise."


def test_the_mean_step_of_a_run_counts_ramps_and_phases():
    """A tenth of the run has rows that cost thrice as much; over half of it steps grow from two passes to four."""
    chosen = Pretraining(tokens=1024, first_tokens=512, ramp=0.5, pass_tokens=256, lengths="32:0.9,64:0.1")
    found = timing.Pace(((1.0,), (3.0,)), 0.5).mean_step(chosen, 256)
    passes = [round(2 + 2 * min(1.0, step / 500)) for step in range(1000)]
    wanted = sum(count * (1 if step < 900 else 3) + 0.5 for step, count in enumerate(passes)) / 1000
    assert found == pytest.approx(wanted, rel=1e-3)


def run_by_minutes(corpus, out, monkeypatch, seconds, *more, first=0.0, **settings):
    """Steps are thought to take a second, and take `seconds`; the first one takes `first` more."""
    clock = Clock(seconds, first)
    with monkeypatch.context() as patched:
        clock.put_in(patched.setattr)
        said = []
        run = pretrain(corpus, out, "smith", minutes=1.0, keep_checkpoints=True, evaluate_every=10, say=said.append,
                       watchers=more, **settings)  # fmt: skip
    return run, clock, said


def test_a_slow_run_is_shortened_and_ends_in_time(corpus, tmp_path, monkeypatch):
    run, clock, said = run_by_minutes(corpus, tmp_path / "out", monkeypatch, 2.0)
    plan = json.loads((tmp_path / "out" / "plan.json").read_text())
    assert plan["at_first"] == 58 and run.outcome.steps == plan["steps"] < 31
    assert 50 < clock.time <= 60
    assert f"steps are slower than the first ones were: {plan['steps']} of them, not 58" in "\n".join(said)
    log = [json.loads(line) for line in (tmp_path / "out" / "log.jsonl").read_text().splitlines()]
    assert log[-2]["step"] == plan["steps"] and log[-2]["rate"] < 0.2 * SMALL["rate"]  # fully decayed


def test_a_shortened_run_goes_on_to_the_same_end(corpus, tmp_path, monkeypatch):
    run_by_minutes(corpus, tmp_path / "whole", monkeypatch, 2.0)
    with pytest.raises(RuntimeError):
        run_by_minutes(corpus, tmp_path / "out", monkeypatch, 2.0, Stop(25, RuntimeError))
    run_by_minutes(corpus, tmp_path / "out", monkeypatch, 1.0)
    assert (tmp_path / "out" / "log.jsonl").read_bytes() == (tmp_path / "whole" / "log.jsonl").read_bytes()
    ours, theirs = (safetensors.torch.load_file(tmp_path / name / "model.safetensors") for name in ("out", "whole"))
    assert all(torch.equal(ours[key], theirs[key]) for key in theirs)


def test_a_run_that_is_fast_enough_keeps_its_plan(corpus, tmp_path, monkeypatch):
    run, clock, said = run_by_minutes(corpus, tmp_path / "out", monkeypatch, 0.9)
    assert run.outcome.steps == 58 and clock.time < 60 and not any("slower" in sentence for sentence in said)


@pytest.mark.parametrize("stop", [13, 28, 40])
def test_the_first_step_of_a_run_that_goes_on_is_no_pace(corpus, tmp_path, monkeypatch, stop):
    """It compiles, and makes rows for many: just before a look at the clock all others were thought to take as long."""
    with pytest.raises(Stopped):
        run_by_minutes(corpus, tmp_path / "out", monkeypatch, 1.0, Stop(stop, KeyboardInterrupt))
    run, clock, _ = run_by_minutes(corpus, tmp_path / "out", monkeypatch, 1.0, first=8.0)
    assert 58 - 8 - 2 <= run.outcome.steps <= 58 - 6 and stop + clock.time <= 60


@pytest.mark.parametrize("passes, shorter", [(0, None), (4, 95)])
def test_evaluations_before_a_run_was_taken_up_again_took_time(tmp_path, monkeypatch, passes, shorter):
    """Half of 100 steps were made before: of 118.8 s they took 50, and five evaluations of four passes 10 more."""
    clock = [0.0]
    monkeypatch.setattr(timing, "now", lambda: clock[0])
    plan = {"steps": 100, "minutes": 2.0, "seconds_a_pass": [[1.0]], "apart": 0.0}
    timing.write_plan(tmp_path / timing.PLAN, {**plan, "scoring": {"evaluations": 10, "passes": passes}})
    settings = Pretraining(lengths="32", tokens=256, pass_tokens=256)
    deadline = Deadline(tmp_path / timing.PLAN, settings, 256, 0.0)
    deadline.started(50, 100)
    deadline.stepped(50, None, Speed())
    clock[0] = 25 * 1.3
    assert deadline.is_late(75) == (shorter is not None) and deadline.shorter == shorter
