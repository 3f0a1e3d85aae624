"""Many runs: side by side as one after the other, a failure and a killed process among them, and what is done once."""

import json
import os

import pytest
from whole.tiny import reviews

import bertsmith
from bertsmith.errors import BertsmithError, Stopped
from bertsmith.many import RESULT, Job, Many, read_done, refuse_other, share_threads, take_seeds

LEARN = {"batch": 8, "rate": 2e-3, "max_steps": 6, "device": "cpu"}

pytestmark = pytest.mark.usefixtures("one_thread")  # as the workers have it


@pytest.fixture
def make(tmp_path, encoder):
    """A job; `name` is its folder's."""

    def make_job(name, train="the", task="classify", **given):
        data = {"task": task, "train": reviews(train), "dev": reviews("a"), "model": encoder}
        modes = {each: given.pop(each) for each in ("keep_model", "overwrite", "shown") if each in given}
        asked = {"train": train, **LEARN, **given}
        return Job(name, tmp_path / name, asked, {**data, **LEARN, **given}, **modes)

    return make_job


def run_all(jobs, count=1):
    said = []
    with Many(count, None, said.append, len(jobs)) as many:
        return many.run(refuse_other(jobs)), said


def files(folder):
    return {path.name for path in folder.rglob("*") if path.is_file()}


def test_a_run_is_what_finetune_gives_and_is_done_once(make, tmp_path, encoder):
    (done,), said = run_all([make("one", seed=7)])
    run = bertsmith.finetune("classify", reviews("the"), reviews("a"), out=tmp_path / "two", model=encoder, threads=1,
                             check=False, seed=7, **LEARN)  # fmt: skip
    assert done.metrics == run.metrics and done.metric == "accuracy" and done.error is None and not done.before
    assert done.value("accuracy") == run.metrics["dev"]["accuracy"]["value"]
    assert said[0].startswith(f"[1/1] one: accuracy {done.value('accuracy'):.4f} in ")
    there = files(tmp_path / "one")
    assert {RESULT, "metrics.json", "report.html"} <= there and not any(name.endswith(".safetensors") for name in there)

    before = (tmp_path / "one" / RESULT).stat().st_mtime_ns
    (again,), said = run_all([make("one", seed=7)])
    assert again.metrics == done.metrics and again.before and said[0].endswith("(finished before)")
    assert (tmp_path / "one" / RESULT).stat().st_mtime_ns == before


def test_weights_that_are_wanted_later_are_made_again(make, tmp_path):
    (first,), _ = run_all([make("one")])
    (second,), _ = run_all([make("one", keep_model=True)])
    assert not second.before and second.metrics == first.metrics
    assert "model.safetensors" in files(tmp_path / "one")
    (third,), _ = run_all([make("one", keep_model=True)])
    assert third.before
    assert bertsmith.load(tmp_path / "one", device="cpu").classify("the film was good").answers


def test_other_settings_are_refused_unless_they_may_overwrite(make):
    run_all([make("one")])
    with pytest.raises(BertsmithError, match=r"one holds a run with other settings \(rate was 0\.002 and is now"):
        run_all([make("one", rate=1e-3)])
    (done,), _ = run_all([make("one", rate=1e-3, overwrite=True)])
    assert done.error is None and not done.before
    assert json.loads((make("one").folder / RESULT).read_text())["asked"]["rate"] == 1e-3


def test_a_failure_and_a_killed_process_leave_the_others_alone(make, tmp_path):
    """Two workers; what they find is what one process finds."""
    jobs = [
        make("killed", train="this", task="whole.killer:Killer"), make("fine", seed=1),
        make("broken", metric="f3"), make("fine too", seed=2), make("last", seed=3),
    ]  # fmt: skip
    done, said = run_all(jobs, 2)
    assert [each.error is None for each in done] == [False, True, False, True, True]
    assert done[0].error == "its process was killed by SIGKILL (often: not enough memory)."
    assert done[2].error.startswith("metric='f3' is not a choice for classify")
    assert len(said) == 5 and any(line.split("] ")[1].startswith("killed: failed: its process") for line in said)
    assert read_done(jobs[0]) is None and read_done(jobs[2]) is None

    alone = [make(f"alone {i}", seed=i) for i in (1, 2, 3)]
    assert [each.metrics for each in run_all(alone)[0]] == [done[i].metrics for i in (1, 3, 4)]

    again, _ = run_all([make("killed", train="the", task="whole.killer:Killer"), *jobs[1:2]])
    assert again[0].error is None and again[1].before


def test_a_score_that_does_not_exist_is_a_failure(make):
    (done,), said = run_all([make("one", shown=("accuracy", "pearson"))])
    assert done.error == "it has no pearson on the development set." and "failed: it has no pearson" in said[0]


def test_what_is_no_mistake_of_the_user_is_one_line_too(make, monkeypatch):
    def broken(**given):
        raise RuntimeError("a line\nand another")

    monkeypatch.setattr("bertsmith.many.finetune", broken)
    (done,), _ = run_all([make("one")])
    assert done.error == "RuntimeError: a line"


@pytest.mark.parametrize("kept, said", [(True, "the same command goes on."), (False, "starts anew (with out it")])
def test_an_interrupt_is_no_failure(make, monkeypatch, kept, said):
    def stop(**given):
        raise Stopped("stopped at step 3.", 15)

    monkeypatch.setattr("bertsmith.many.finetune", stop)
    with pytest.raises(Stopped) as ended, Many(1, None, lambda sentence: None, 2, kept) as many:
        many.run([make("one"), make("two")])
    assert str(ended.value).startswith("stopped; 0 of 2 runs are finished, and the same command ")
    assert said in str(ended.value) and ended.value.number == 15


@pytest.mark.parametrize("given, seeds", [(3, [1, 2, 3]), ([5], [5]), ((4, 2), [4, 2])])
def test_seeds(given, seeds):
    assert take_seeds(given) == seeds


@pytest.mark.parametrize(
    "given, said",
    [
        (0, "seeds is 0; there must be at least one run"),
        (20261119, "for the seed 20261119 itself give [20261119] (--seeds 20261119,)"),
        ([], "there must be at least one run"),
        ([1, 2, 1], "seeds has 1 more than once"),
        ([-1], "seeds has -1; each must be a whole number"),
        ([1.5], "seeds has 1.5"),
        ("12", "seeds is '12'; give how many"),
        (True, "seeds is True; give how many"),
        (None, "seeds is None; give how many"),
    ],
)
def test_seeds_that_are_none(given, said):
    with pytest.raises(BertsmithError) as error:
        take_seeds(given)
    assert said in str(error.value)


def test_workers_share_the_cores(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "8")
    assert [share_threads(jobs) for jobs in (1, 2, 3, 20)] == [8, 4, 2, 1]
    monkeypatch.delenv("OMP_NUM_THREADS")
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    assert share_threads(1) == cores
