"""Checkpoints that are written while training goes on: whole or not there, and what the run was when it was saved."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import safetensors.torch
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from pretraining_made import SHORT, STEPS, Stop, assert_same, pretrain

import bertsmith
from bertsmith import pretraining
from bertsmith.errors import BertsmithError
from bertsmith.models.checkpoint import save_checkpoint
from bertsmith.training.background import Background
from bertsmith.training.devices import Ranks
from bertsmith.training.folder import RunFolder
from bertsmith.training.pretraining_start import prepare
from bertsmith.training.progress import Watcher
from bertsmith.training.recipes import find_recipe
from bertsmith.training.snapshot import Snapshot

PATIENCE = 600  # seconds until something that should have happened has hung


pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module")
def whole(corpus, tmp_path_factory):
    """What an undisturbed run leaves."""
    out = tmp_path_factory.mktemp("whole") / "out"
    pretrain(corpus, out, "electra", **SHORT)
    return out


@settings(deadline=None, max_examples=50)
@given(st.lists(st.booleans(), max_size=8))
def test_pieces_are_done_in_turn_and_each_error_comes_up_once(fails):
    background, done, caught = Background(), [], 0

    def work(number):
        done.append(number)
        if fails[number]:
            raise BertsmithError("a made mistake")

    for number in range(len(fails)):
        try:
            background.start(lambda number=number: work(number))
        except BertsmithError:  # of the piece before
            caught += 1
            background.start(lambda number=number: work(number))
    try:
        background.wait()
    except BertsmithError:
        caught += 1
    background.wait()
    assert done == list(range(len(fails))) and caught == sum(fails)


@pytest.mark.parametrize("name", ["smith", "bert", "electra"])
def test_a_snapshot_is_written_as_the_model_was(corpus, tmp_path, name):
    """To the byte, whatever happens to the model; tables that two networks share are shared in it."""
    start = prepare(corpus, find_recipe(name, {"depth": 2, "width": 32, "heads": 4, "inner": 64, "lengths": "32"}),
                    Ranks())  # fmt: skip
    networks = [start.checkpoint, *([start.made.generator] if start.made.generator else [])]
    snapshot = Snapshot(networks)
    for _ in range(2):
        snapshot.take()
        folders = []
        for number, one in enumerate(networks):
            folders.append(tmp_path / f"{number}")
            folders[-1].mkdir(exist_ok=True)
            save_checkpoint(one, folders[-1])
        with torch.no_grad():
            for parameter in start.checkpoint.network.parameters():
                parameter.add_(1.0)
        for folder, twin in zip(folders, snapshot.checkpoints, strict=True):
            (folder / "again").mkdir(exist_ok=True)
            save_checkpoint(twin, folder / "again")
            for file in ("config.json", "model.safetensors"):
                assert (folder / file).read_bytes() == (folder / "again" / file).read_bytes()
    if name == "electra":
        one, other = (twin.network.embed.tokens.weight for twin in snapshot.checkpoints)
        assert one.data_ptr() == other.data_ptr()


class Slow(Watcher):
    """Lets the first checkpoint be written only when training has gone on for some steps."""

    def __init__(self, until):
        self.until, self.may_write, self.first, self.seen = until, threading.Event(), True, []

    def hold(self, write):
        def holds(start, folder):
            if self.first and folder.name.startswith(".last-"):
                self.first = False
                assert self.may_write.wait(PATIENCE)
            write(start, folder)

        return holds

    def stepped(self, step, record, speed):
        checkpoints = sorted(path.name for path in self.out.glob("checkpoints/last-*"))
        self.seen.append((step, checkpoints))
        if step == self.until:
            self.may_write.set()


def test_training_goes_on_while_a_checkpoint_is_written(corpus, whole, tmp_path, monkeypatch):
    """The one of step 4 is written behind step 7, and is what the run was at step 4: from it, it ends the same."""
    slow = Slow(7)
    slow.out = tmp_path / "out"
    monkeypatch.setattr(pretraining, "write_folder", slow.hold(pretraining.write_folder))
    with pytest.raises(RuntimeError):
        pretrain(corpus, slow.out, "electra", **SHORT, watchers=[slow, Stop(8, RuntimeError)])
    assert [names for _, names in slow.seen[:7]] == [[]] * 7
    state = json.loads((slow.out / "checkpoints" / "last-000004" / "state.json").read_text())
    log = (slow.out / "log.jsonl").read_bytes()
    assert state["step"] == 4 and state["log_bytes"] < len(log)
    assert log[: state["log_bytes"]].splitlines()[-1].startswith(b'{"step": 4,')
    said = []
    pretrain(corpus, slow.out, "electra", **SHORT, say=said.append)
    assert "going on from last-000004." in said
    assert_same(slow.out, whole)


def test_an_interrupt_waits_for_the_checkpoint(corpus, whole, tmp_path, monkeypatch):
    slow = Slow(6)
    slow.out = tmp_path / "out"
    monkeypatch.setattr(pretraining, "write_folder", slow.hold(pretraining.write_folder))
    with pytest.raises(BertsmithError, match="stopped at step 6 of 12; the same command goes on from there"):
        pretrain(corpus, slow.out, "electra", **SHORT, watchers=[slow, Stop(6, KeyboardInterrupt)])
    assert [path.name for path in (slow.out / "checkpoints").iterdir()] == ["last-000006"]


@pytest.mark.parametrize("bad, first, kept", [(4, 8, None), (8, 12, 4), (12, 13, 8)])
def test_a_full_disk_comes_up_at_the_next_save_or_at_the_end(corpus, tmp_path, monkeypatch, bad, first, kept):
    write, steps, out = pretraining.write_folder, [], tmp_path / "out"

    def full(start, folder):
        if folder.name == f".last-{bad:06d}.part":
            raise OSError(28, "No space left on device")
        write(start, folder)

    class Steps(Watcher):
        def stepped(self, step, record, speed):
            steps.append(step)

    monkeypatch.setattr(pretraining, "write_folder", full)
    with pytest.raises(BertsmithError, match=rf"last-{bad:06d} cannot be written: No space left on device\.$"):
        pretrain(corpus, out, "electra", **SHORT, watchers=[Steps()])
    assert steps[-1] == min(first, STEPS)
    assert not list(out.glob("checkpoints/.*"))  # what was half written would only take up room
    if kept is None:
        assert not out.exists()
    else:
        assert RunFolder(out).find_last().name == f"last-{kept:06d}"


LIMITED = """
import resource, sys
sys.path.insert(0, {tests!r})
from pathlib import Path
resource.setrlimit(resource.RLIMIT_FSIZE, (60_000, 60_000))
from pretraining_made import SHORT, pretrain
pretrain(Path(sys.argv[1]), Path(sys.argv[2]), "bert", **SHORT)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="limits are POSIX")
def test_files_that_the_system_cuts_off_end_in_a_sentence(corpus, tmp_path):
    """What the library raises then is no OSError."""
    code = LIMITED.format(tests=str(Path(__file__).parents[1]))
    ended = subprocess.run([sys.executable, "-c", code, corpus, tmp_path / "out"], capture_output=True, text=True,
                           timeout=PATIENCE, env={**os.environ, "PYTHONPATH": ":".join(sys.path)})  # fmt: skip
    last = ended.stderr.strip().splitlines()[-1]
    assert ended.returncode == 1 and re.match(r"bertsmith\.errors\.BertsmithError: .* cannot be written: ", last)


@pytest.mark.parametrize("moment", ["model", "optimizer", "state", "name"])
def test_a_kill_while_it_is_written_leaves_the_one_before(starter, corpus, whole, tmp_path, moment):
    ended = starter.run(["training.killed_save", corpus, tmp_path / "out", moment], tmp_path)
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    assert list((tmp_path / "out" / "checkpoints").glob(".last-000008.part"))
    assert RunFolder(tmp_path / "out").find_last().name == "last-000004"
    said = []
    pretrain(corpus, tmp_path / "out", "electra", **SHORT, say=said.append)
    assert "going on from last-000004." in said
    assert_same(tmp_path / "out", whole)


def test_pretraining_keeps_no_best_state_but_knows_which_it_was(whole):
    assert [path.name for path in (whole / "checkpoints").iterdir()] == [f"last-{STEPS:06d}"]
    state = json.loads((whole / "checkpoints" / f"last-{STEPS:06d}" / "state.json").read_text())
    log = [json.loads(line) for line in (whole / "log.jsonl").read_text().splitlines()]
    values = {record["step"]: next(iter(record["metrics"].values())) for record in log if "metrics" in record}
    assert values[state["best_step"]] == state["best_value"] == max(values.values())


def test_the_last_checkpoint_is_the_result(whole):
    ours, theirs = (safetensors.torch.load_file(folder / "model.safetensors") for folder in
                    (whole, whole / "checkpoints" / f"last-{STEPS:06d}"))  # fmt: skip
    assert all(torch.equal(ours[name], theirs[name]) for name in theirs)
    assert bertsmith.load(whole).tokenizer is not None
