"""Whose folder it is: the same run goes on, a finished one says so, another is refused, nobody's files are touched."""

import json
import shutil
import signal
import subprocess
import sys

import pytest
from training.texts import make_texts

from bertsmith.errors import BertsmithError
from bertsmith.finetuning import finetune
from bertsmith.training.differences import name_differences
from bertsmith.training.folder import RunFolder
from bertsmith.training.loop import Watcher


def tune(model, out, texts=40, **more):
    said = []
    chosen = {"epochs": 1, "batch": 8, "rate": 1e-3, "device": "cpu", **more}
    run = finetune(
        "classify", make_texts(texts), make_texts(10, seed=1), out=out, model=model, say=said.append, **chosen
    )
    return run, said


class Fail(Watcher):
    def __init__(self, step):
        self.step = step

    def stepped(self, step, record, speed):
        if step == self.step:
            raise RuntimeError


@pytest.fixture(scope="module")
def finished(small_model, tmp_path_factory):
    out = tmp_path_factory.mktemp("finished") / "out"
    return out, tune(small_model, out)[0]


@pytest.fixture
def begun(small_model, tmp_path):
    """A run that stopped behind its first checkpoint."""
    with pytest.raises(RuntimeError):
        tune(small_model, tmp_path / "out", evaluate_every=2, watchers=[Fail(3)])
    return tmp_path / "out"


def test_a_finished_run_says_so_and_gives_its_metrics(small_model, finished):
    out, first = finished
    before = {path: path.stat().st_mtime_ns for path in out.iterdir()}
    run, said = tune(small_model, out)
    assert said == [f"{out} holds this very run, finished; nothing to do (--overwrite starts anew)."]
    assert run.outcome is None and run.metrics == first.metrics
    assert {path: path.stat().st_mtime_ns for path in out.iterdir()} == before
    assert not (out / "checkpoints").exists()


@pytest.mark.parametrize(
    "change, difference",
    [
        ({"rate": 2e-3}, r"rate was 0\.001 and is now 0\.002"),
        ({"seed": 7, "batch": 4}, r"batch was 8 and is now 4; seed was 42 and is now 7"),
        ({"texts": 41}, "the content of the data is another than it was"),
        ({"length": 12}, r"length was null and is now 12"),
    ],
)
def test_another_run_is_refused_with_its_difference(small_model, finished, change, difference):
    wanted = rf"holds a run with other settings \({difference}\); give another folder, the same settings to go on with "
    with pytest.raises(BertsmithError, match=wanted):
        tune(small_model, finished[0], **change)


def test_another_run_is_refused_where_one_has_a_checkpoint(small_model, begun):
    with pytest.raises(BertsmithError, match="holds a run with other settings"):
        tune(small_model, begun, evaluate_every=2, rate=2e-3)


@pytest.mark.parametrize("is_replaced", [False, True])
def test_a_kill_while_a_checkpoint_makes_room_for_the_same_step_loses_nothing(small_model, begun, is_replaced):
    """Before the new one had its name, or behind that: what was moved away comes back, or is gone."""
    (last,) = (begun / "checkpoints").glob("last-*")
    old = last.with_name(f".{last.name}.old")
    shutil.copytree(last, old) if is_replaced else last.rename(old)
    (begun / "checkpoints" / ".last-000099.part").mkdir()
    _, said = tune(small_model, begun, evaluate_every=2, keep_checkpoints=True)
    assert f"going on from {last.name}." in said
    assert not list((begun / "checkpoints").glob(".*"))


def test_a_run_without_a_checkpoint_makes_room_for_another(small_model, tmp_path):
    with pytest.raises(RuntimeError):
        tune(small_model, tmp_path / "out", watchers=[Fail(2)])
    tune(small_model, tmp_path / "out", rate=2e-3)
    assert json.loads((tmp_path / "out" / "run.json").read_text())["asked"]["rate"] == 2e-3


def test_overwrite_starts_anew(small_model, begun):
    own = begun / "notes.txt"
    own.write_text("mine")
    _, said = tune(small_model, begun, rate=2e-3, overwrite=True)
    assert not any("going on" in sentence for sentence in said)
    assert own.read_text() == "mine"
    assert json.loads((begun / "run.json").read_text())["finished"]


def test_overwriting_takes_the_old_model_away_first(small_model, tmp_path):
    out = tmp_path / "out"
    tune(small_model, out)
    with pytest.raises(RuntimeError):
        tune(small_model, out, rate=2e-3, overwrite=True, watchers=[Fail(2)])
    assert sorted(path.name for path in out.iterdir()) == ["checkpoints", "log.jsonl", "run.json"]


@pytest.mark.parametrize("removed", [0, 1])
def test_a_kill_while_overwriting_leaves_the_old_run(tmp_path, monkeypatch, removed):
    """Killed before or behind the removal, the old settings find nothing that is not theirs."""
    folder = RunFolder(tmp_path / "out")
    folder.claim({"rate": 1}, overwrite=False)
    folder.save_last(4, lambda to: None, {}, {})
    monkeypatch.setattr(folder, "_start", lambda asked: None)
    if not removed:
        monkeypatch.setattr("shutil.rmtree", lambda path, ignore_errors=False: None)
    folder.claim({"rate": 2}, overwrite=True)
    folder.lock.release()  # as a kill does
    known = json.loads((tmp_path / "out" / "run.json").read_text())
    assert known == {"asked": {"rate": 1}, "finished": False}
    again = RunFolder(tmp_path / "out")
    assert again.claim({"rate": 1}, overwrite=False) is False
    assert (again.find_last() is None) == bool(removed)


def test_a_kill_at_the_very_start_leaves_the_folder_free(tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / ".run.json.part").write_text('{"asked"')
    assert RunFolder(tmp_path / "out").claim({"rate": 1}, overwrite=False) is False


def test_a_kill_as_it_finishes_does_not_lose_the_run(tmp_path, monkeypatch):
    folder = RunFolder(tmp_path / "out")
    folder.claim({"rate": 1}, overwrite=False)
    folder.save_last(4, lambda to: None, {}, {})

    def killed(path, ignore_errors=False):
        raise SystemExit

    monkeypatch.setattr("shutil.rmtree", killed)
    with pytest.raises(SystemExit):
        folder.finish({"rate": 1}, keep=False)
    folder.lock.release()  # as a kill does
    assert RunFolder(tmp_path / "out").claim({"rate": 1}, overwrite=False) is True


HOLDS = """
import sys, time
from pathlib import Path
from bertsmith.training.folder import RunFolder
RunFolder(Path(sys.argv[1])).claim({"rate": 1}, overwrite=False)
print("held", flush=True)
time.sleep(600)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="locks are POSIX")
def test_a_folder_that_another_process_writes_to_is_refused_until_that_is_killed(small_model, tmp_path):
    out = tmp_path / "out"
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDS, out], stdout=subprocess.PIPE, text=True, env={"PYTHONPATH": ":".join(sys.path)}
    )
    with holder:
        assert holder.stdout.readline() == "held\n"
        for overwrite in (False, True):
            with pytest.raises(BertsmithError, match=r"out is being written by another process; wait for it, or "):
                tune(small_model, out, overwrite=overwrite)
        holder.send_signal(signal.SIGKILL)
        holder.wait(timeout=600)
    assert (out / ".lock").exists()
    run, _ = tune(small_model, out)
    assert run.outcome and not (out / ".lock").exists()


@pytest.mark.skipif(sys.platform == "win32", reason="locks are POSIX")
def test_a_lock_is_one_runs_and_ends_with_it(tmp_path):
    first, second = RunFolder(tmp_path), RunFolder(tmp_path)
    first.lock.take()
    first.lock.take()  # has it
    with pytest.raises(BertsmithError, match="another process"):
        second.lock.take()
    second.lock.release()  # has nothing to give
    assert (tmp_path / ".lock").exists()
    first.lock.release()
    second.lock.take()
    second.lock.release()
    assert not list(tmp_path.iterdir())


def test_a_file_is_no_folder(small_model, tmp_path):
    (tmp_path / "out").write_text("mine")
    with pytest.raises(BertsmithError, match=r"out is a file; give a folder for the model\.$"):
        tune(small_model, tmp_path / "out")


@pytest.mark.parametrize("overwrite", [False, True])
def test_somebody_elses_folder_is_left_alone(small_model, tmp_path, overwrite):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "thesis.tex").write_text("mine")
    with pytest.raises(BertsmithError, match=r"is not empty and holds no run of bertsmith; give another folder\.$"):
        tune(small_model, tmp_path / "out", overwrite=overwrite)
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["thesis.tex"]


def test_a_full_disk_is_one_sentence(tmp_path):
    folder = RunFolder(tmp_path / "out")
    folder.claim({}, overwrite=False)

    def full(to):
        raise OSError(28, "No space left on device")

    with pytest.raises(BertsmithError, match=r"last-000004 cannot be written: No space left on device\.$"):
        folder.save_last(4, full, {}, {})
    assert folder.find_last() is None


def test_a_plan_leaves_nothing(small_model, tmp_path):
    run, said = tune(small_model, tmp_path / "out", dry_run=True)
    assert run is None and not (tmp_path / "out").exists()
    assert any("5 of 8 examples, 5 an epoch" in sentence for sentence in said)


def test_a_run_of_before_a_setting_was_there_had_what_all_had_then():
    """Its folder does not tell of the optimizer: it goes on with AdamW, and with no other."""
    known = {"rate": 1e-4}
    assert name_differences(known, {**known, "optimizer": "adamw", "momentum": 0.95, "weights": "0" * 16}) == []
    assert name_differences(known, {**known, "optimizer": "muon"}) == ["optimizer"]
    assert name_differences({**known, "optimizer": "muon"}, known) == ["optimizer"]
    assert name_differences({**known, "weights": "0" * 16}, {**known, "weights": "1" * 16}) == ["weights"]
    assert name_differences(known, {**known, "seed": 1}) == ["seed"]
