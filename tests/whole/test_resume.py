"""A run that was killed, interrupted or failed, and started again, ends as one that was not, to the byte."""

import os
import shutil
import signal
from pathlib import Path

import pytest
from training.made import make_folder
from training.texts import make_texts
from whole.soak_resume import SETTINGS, Run, differences

from bertsmith.errors import BertsmithError, Stopped
from bertsmith.finetuning import finetune
from bertsmith.training.folder import RunFolder
from bertsmith.training.loop import Watcher
from bertsmith.training.study import TaskStudy

STEPS = 30


pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return make_folder(tmp_path_factory.mktemp("made") / "model")


def train(model: Path, out: Path, *watchers: Watcher, **settings) -> list[str]:
    """The run of soak_resume.py in this process, by default without its many saves; what it said."""
    said: list[str] = []
    chosen = {**SETTINGS, "save_minutes": 5.0, "max_steps": STEPS, **settings}
    finetune(
        "classify", make_texts(100), make_texts(20, seed=1), out=out, model=model, device="cpu", keep_checkpoints=True,
        watchers=watchers, say=said.append, **chosen,
    )  # fmt: skip
    return said


@pytest.fixture(scope="module")
def whole(model, tmp_path_factory):
    """What an undisturbed run leaves."""
    out = tmp_path_factory.mktemp("whole") / "out"
    train(model, out)
    return out


class Stop(Watcher):
    """Fails or interrupts at a step, before or after its evaluation."""

    def __init__(self, step: int, error: type[BaseException] = RuntimeError, event: str = "stepped") -> None:
        self.step, self.error, self.event = step, error, event

    def stepped(self, step, record, speed):
        self._stop("stepped", step)

    def evaluated(self, step, metrics, is_best):
        self._stop("evaluated", step)

    def _stop(self, event: str, step: int) -> None:
        if event == self.event and step == self.step:
            raise self.error("a made mistake")


@pytest.mark.parametrize("step, event", [(3, "stepped"), (17, "stepped"), (20, "evaluated"), (30, "stepped")])
def test_a_run_that_failed_goes_on_to_the_same_end(model, whole, tmp_path, step, event):
    with pytest.raises(RuntimeError, match="a made mistake"):
        train(model, tmp_path / "out", Stop(step, event=event))
    said = train(model, tmp_path / "out")
    assert (step > 10) == any(sentence.startswith("going on from last-0000") for sentence in said)
    assert differences(whole, tmp_path / "out") == []


@pytest.mark.parametrize("optimizer", ["lamb", "muon"])
def test_with_another_optimizer_too(model, tmp_path, optimizer):
    train(model, tmp_path / "whole", optimizer=optimizer)
    with pytest.raises(RuntimeError, match="a made mistake"):
        train(model, tmp_path / "out", Stop(17), optimizer=optimizer)
    assert any(sentence.startswith("going on") for sentence in train(model, tmp_path / "out", optimizer=optimizer))
    assert differences(tmp_path / "whole", tmp_path / "out") == []


@pytest.mark.parametrize(
    "step, event", [(1, "stepped"), (7, "stepped"), (10, "stepped"), (10, "evaluated"), (30, "stepped")]
)
def test_an_interrupt_saves_and_says_how_to_go_on(model, whole, tmp_path, step, event):
    wanted = rf"^stopped at step {step} of 30; the same command goes on from there\.$"
    with pytest.raises(BertsmithError, match=wanted):
        train(model, tmp_path / "out", Stop(step, KeyboardInterrupt, event))
    assert (tmp_path / "out" / "checkpoints" / f"last-{step:06d}").exists()
    assert f"going on from last-{step:06d}." in train(model, tmp_path / "out")
    assert differences(whole, tmp_path / "out") == []


class Signal(Watcher):
    """Ctrl-C, once or twice, while a step is at work."""

    def __init__(self, step: int, times: int = 1, number: int = signal.SIGINT) -> None:
        self.step, self.times, self.number = step, times, number

    def stepped(self, step, record, speed):
        if step == self.step:
            for _ in range(self.times):
                os.kill(os.getpid(), self.number)


def test_control_c_waits_for_the_end_of_a_step(model, whole, tmp_path):
    with pytest.raises(BertsmithError, match=r"^stopped at step 13 of 30; the same command goes on from there"):
        train(model, tmp_path / "out", Signal(13))
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    train(model, tmp_path / "out")
    assert differences(whole, tmp_path / "out") == []


def test_sigterm_saves_and_says_the_same(model, whole, tmp_path):
    with pytest.raises(Stopped, match=r"^stopped at step 13 of 30; the same command goes on from there") as caught:
        train(model, tmp_path / "out", Signal(13, number=signal.SIGTERM))
    assert caught.value.number == signal.SIGTERM and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    assert "going on from last-000013." in train(model, tmp_path / "out")
    assert differences(whole, tmp_path / "out") == []


def test_control_c_in_the_middle_of_a_step_lets_it_end(model, whole, tmp_path, monkeypatch):
    losses, seen = TaskStudy.losses, []

    def interrupts(self, network, batch, given, part):
        seen.append(1)
        if len(seen) == 20:
            os.kill(os.getpid(), signal.SIGINT)
        return losses(self, network, batch, given, part)

    monkeypatch.setattr(TaskStudy, "losses", interrupts)
    with pytest.raises(BertsmithError, match=r"^stopped at step \d+ of 30; the same command goes on from there"):
        train(model, tmp_path / "out")
    train(model, tmp_path / "out")
    assert differences(whole, tmp_path / "out") == []


def test_a_second_control_c_does_not_wait(model, whole, tmp_path):
    with pytest.raises(BertsmithError, match=r"^stopped at step 13 of 30; .* from the last checkpoint\.$"):
        train(model, tmp_path / "out", Signal(13, times=2))
    assert not (tmp_path / "out" / "checkpoints" / "last-000013").exists()
    assert "going on from last-000010." in train(model, tmp_path / "out")
    assert differences(whole, tmp_path / "out") == []


def cut(path: Path) -> None:
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size // 2)


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


@pytest.fixture(scope="module")
def two_checkpoints(model, tmp_path_factory):
    """A run that stopped behind its second checkpoint, the first still there."""
    out = tmp_path_factory.mktemp("two") / "out"
    for step in (15, 25):
        with pytest.raises(RuntimeError):
            train(model, out, Stop(step))
        if step == 15:
            shutil.copytree(out / "checkpoints" / "last-000010", out.parent / "older")
    shutil.copytree(out.parent / "older", out / "checkpoints" / "last-000010")
    return out


@pytest.mark.parametrize("damage", [cut, flip, Path.unlink])
@pytest.mark.parametrize("name", ["model.safetensors", "optimizer.safetensors", "state.json", "config.json"])
def test_a_damaged_checkpoint_is_never_loaded(two_checkpoints, tmp_path, name, damage):
    shutil.copytree(two_checkpoints, tmp_path / "out")
    folder = RunFolder(tmp_path / "out")
    assert folder.find_last() == folder.checkpoints / "last-000020"
    damage(folder.checkpoints / "last-000020" / name)
    assert folder.find_last() == folder.checkpoints / "last-000010"


def test_an_older_checkpoint_serves_as_well(model, whole, two_checkpoints, tmp_path):
    out = tmp_path / "out"
    shutil.copytree(two_checkpoints, out)
    cut(out / "checkpoints" / "last-000020" / "model.safetensors")
    assert "going on from last-000010." in train(model, out)
    assert differences(whole, out) == []


def test_a_longer_number_is_a_newer_checkpoint(two_checkpoints, tmp_path):
    shutil.copytree(two_checkpoints, tmp_path / "out")
    folder = RunFolder(tmp_path / "out")
    for step in (999998, 1000001):
        shutil.copytree(folder.checkpoints / "last-000020", folder.checkpoints / f"last-{step}")
    assert folder.find_last() == folder.checkpoints / "last-1000001"


def test_without_a_whole_checkpoint_it_starts_anew(model, whole, tmp_path):
    out = tmp_path / "out"
    with pytest.raises(RuntimeError):
        train(model, out, Stop(15))
    cut(out / "checkpoints" / "last-000010" / "optimizer.safetensors")
    assert not any(sentence.startswith("going on") for sentence in train(model, out))
    assert differences(whole, out) == []


def test_leftovers_of_a_kill_do_not_count(model, whole, tmp_path):
    out = tmp_path / "out"
    with pytest.raises(RuntimeError):
        train(model, out, Stop(15))
    last = out / "checkpoints" / "last-000010"
    shutil.copytree(last, last.with_name(".last-000020.part"))
    shutil.copytree(last, last.with_name("last-notastep"))
    (out / ".run.json.part").write_text("{")
    with (out / "log.jsonl").open("ab") as log:
        log.write(b'{"step": 12, "lo')
    assert "going on from last-000010." in train(model, out)
    shutil.rmtree(last.with_name("last-notastep"), ignore_errors=True)
    assert differences(whole, out) == []


@pytest.mark.parametrize("left", [0, 100])
def test_a_log_that_was_lost_does_not_spoil_the_run(model, tmp_path, left):
    out = tmp_path / "out"
    with pytest.raises(RuntimeError):
        train(model, out, Stop(15))
    os.truncate(out / "log.jsonl", left)
    train(model, out)
    lines = (out / "log.jsonl").read_bytes().splitlines()
    assert lines and all(line.startswith(b'{"step": ') and line.endswith(b"}") for line in lines)


def test_killed_three_times(starter, model, whole, tmp_path):
    """The short form of `make soak`: between two saves, in the middle of one, and while the results are written."""
    run = Run(model, tmp_path / "killed" / "out", STEPS)
    run.kill_at("step-5")
    assert run.step() in (4, 5) and not run.half_written
    run.kill_at("save-12")
    assert run.step() in (10, 11) and run.half_written == [".last-000012.part"]
    run.kill_when(run.moment("results"))  # or it was faster
    assert run.step() == STEPS
    run.finish(starter)
    assert differences(whole, run.out) == ["run.json"]  # it saved more often, which it was claimed with


def test_two_processes_killed_and_started_again(starter, model, tmp_path):
    undisturbed, run = (Run(model, tmp_path / name / "out", STEPS, ranks=2) for name in ("whole", "killed"))
    undisturbed.finish(starter)
    run.kill_at("save-12")
    assert run.step() in (10, 11) and run.half_written == [".last-000012.part"]
    run.finish()
    assert differences(undisturbed.out, run.out) == []
