"""What people see while a model trains: a bar on a terminal, lines elsewhere, TensorBoard's files."""

import os
import subprocess
import sys

import pytest

from bertsmith.training.loop import Outcome, Progress, Speed
from bertsmith.training.watching import Events, ProgressBar, show_time

RECORD = {"step": 10, "epoch": 0.5, "loss": 0.25, "rate": 1e-5, "norm": 1.0, "skipped": 0}


def train(*watchers, stopped=False):
    """Twenty steps, an evaluation in the middle and one at the end."""
    outcome = Outcome(Progress(step=20, best_step=10, stopped=stopped), 20, Speed(4.0, 2000, 40))
    for watcher in watchers:
        watcher.started(0, 20)
        for step in range(1, 21):
            watcher.stepped(
                step, {**RECORD, "step": step} if step % 10 == 0 else None, Speed(step / 5, 100 * step, step)
            )
            if step % 10 == 0:
                watcher.evaluated(step, {"accuracy": step / 40, "f1": 0.5}, step == 10)
        watcher.finished(outcome)


def test_without_a_terminal_each_evaluation_is_a_line(capsys):
    said = []
    with ProgressBar(said.append, terminal=False) as bar:
        train(bar, stopped=True)
    assert said == [
        "step 10 of 20: accuracy 0.2500 (the best so far); loss 0.2500, 500 tokens/s",
        "step 20 of 20: accuracy 0.5000; loss 0.2500, 500 tokens/s",
        "stopped at step 20 of 20: no evaluation was better than that of step 10.",
    ]
    assert capsys.readouterr() == ("", "")


def test_a_tie_is_not_called_better():
    said = []
    bar = ProgressBar(said.append, terminal=False)
    bar.started(0, 4)
    for step, (value, is_best) in enumerate([(0.5, True), (0.5, True), (0.4, False), (0.6, True)], 1):
        bar.evaluated(step, {"accuracy": value}, is_best)
    assert [line.partition("accuracy ")[2] for line in said] == [
        "0.5000 (the best so far)", "0.5000 (as good as the best so far)", "0.4000", "0.6000 (the best so far)",
    ]  # fmt: skip


@pytest.mark.skipif(sys.platform == "win32", reason="pseudo-terminals are POSIX")
def test_a_terminal_gets_a_bar_that_goes_away(place, tmp_path):
    import pty

    ours, theirs = pty.openpty()
    words = ["finetune", "--train", "reviews.csv", "--model", "encoder", "--out", tmp_path / "m", "--epochs", "6"]
    there = {**os.environ, "COLUMNS": "120", "TERM": "xterm", "PYTHONPATH": os.pathsep.join(sys.path)}
    process = subprocess.Popen(
        [sys.executable, "-m", "bertsmith", *map(str, words), "--threads", "1"], cwd=place, env=there, stderr=theirs,
        stdout=subprocess.DEVNULL,
    )  # fmt: skip
    os.close(theirs)
    seen = b""
    try:
        while part := os.read(ours, 4096):
            seen += part
    except OSError:  # how Linux says that the other side is closed
        pass
    os.close(ours)
    assert process.wait(timeout=300) == 0
    assert b"12/12" in seen and b"tokens/s" in seen and b"left" in seen and "━".encode() in seen
    assert b"step 12 of 12: accuracy" in seen and seen.rstrip().endswith(b"--model " + str(tmp_path / "m").encode())
    assert seen.rindex(b"\x1b[?25h") > seen.rindex(b"\x1b[?25l")  # the cursor is there again


def test_an_error_takes_the_bar_away():
    bar = ProgressBar(print, terminal=True)
    with pytest.raises(KeyboardInterrupt), bar:
        bar.started(0, 20)
        assert bar._bar is not None
        raise KeyboardInterrupt
    assert bar._bar is None


@pytest.mark.filterwarnings("ignore")  # tensorboard's own
def test_tensorboard_reads_the_events(tmp_path):
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    (tmp_path / "run.json").touch()
    (tmp_path / "events").mkdir()
    (tmp_path / "events" / "events.out.tfevents.1.old").write_bytes(b"another run")
    with Events(tmp_path) as events:
        train(events)
    found = EventAccumulator(str(tmp_path / "events")).Reload()
    assert [(event.step, event.value) for event in found.Scalars("train/loss")] == [(10, 0.25), (20, 0.25)]
    assert [event.value for event in found.Scalars("dev/accuracy")] == [0.25, 0.5]
    assert len(list((tmp_path / "events").iterdir())) == 1


@pytest.mark.filterwarnings("ignore")
def test_a_run_that_has_nothing_to_keep_leaves_no_events(tmp_path):
    pytest.importorskip("tensorboard")
    (tmp_path / "m").mkdir()
    with pytest.raises(KeyboardInterrupt), Events(tmp_path / "m") as events:
        events.started(0, 20)
        assert list((tmp_path / "m" / "events").iterdir())
        raise KeyboardInterrupt
    assert not list(tmp_path.iterdir())


def test_without_tensorboard_nothing_is_written(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    with Events(tmp_path) as events:
        train(events)
    assert not list(tmp_path.iterdir())


def test_times():
    assert [show_time(seconds) for seconds in (0.2, 59, 61, 3599, 7500)] == [
        "0 s",
        "59 s",
        "1 min",
        "1 h 00 min",
        "2 h 05 min",
    ]
