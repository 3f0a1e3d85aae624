"""What the loop decides: which checkpoint is best, when to stop, how to live with little memory, when to give up."""

import itertools
import json

import pytest
import safetensors.torch
import torch
from training import ranks
from training.looping import fit, make_loop
from training.made import make_rows, make_task
from training.texts import make_texts

from bertsmith.errors import BertsmithError
from bertsmith.finetuning import finetune
from bertsmith.models.checkpoint import load_checkpoint
from bertsmith.training.loop import SMALLEST, Watcher
from bertsmith.training.settings import Training


class Notes(Watcher):
    """Everything that a watcher is told, in order."""

    def __init__(self):
        self.heard = []

    def started(self, step, steps):
        self.heard.append(("started", step, steps))

    def stepped(self, step, record, speed):
        self.heard.append(("stepped", step, record is not None))

    def evaluated(self, step, metrics, is_best):
        self.heard.append(("evaluated", step, is_best))

    def finished(self, outcome):
        self.heard.append(("finished", outcome.progress.step))


@pytest.fixture
def make(small_model, tmp_path):
    """A loop of eight steps, two an epoch, whose evaluations give these values."""

    def build(values=None, watchers=(), rows=None, **settings):
        task = make_task(small_model, "classify")
        fitted = fit(load_checkpoint(small_model), task)
        given = iter(values or ())
        evaluate = None if values is None else lambda: {"made": next(given), "other": 0.0}
        chosen = Training(**{"epochs": 4, "batch": 8, "rate": 1e-3, **settings})
        made = rows or make_rows("classify", 16)
        return make_loop(tmp_path / "run", fitted, task, made, chosen, evaluate, watchers)

    return build


def test_watchers_hear_everything_in_order(make):
    notes = Notes()
    make([0.5, 0.7, 0.6, 0.7], [notes], log_every=3).run()
    assert notes.heard == [
        ("started", 0, 8),
        ("stepped", 1, False), ("stepped", 2, True), ("evaluated", 2, True),
        ("stepped", 3, True), ("stepped", 4, True), ("evaluated", 4, True),
        ("stepped", 5, False), ("stepped", 6, True), ("evaluated", 6, False),
        ("stepped", 7, False), ("stepped", 8, True), ("evaluated", 8, True),
        ("finished", 8),
    ]  # fmt: skip


def test_the_best_checkpoint_is_the_last_of_the_best(make):
    weights = {}

    class Keep(Watcher):
        def evaluated(self, step, metrics, is_best):
            weights[step] = loop.network.heads["classify"].out.weight.detach().clone()

    loop = make([0.7, 0.5, 0.7, 0.6], [Keep()])
    outcome = loop.run()
    assert (outcome.progress.best_step, outcome.progress.best_value) == (6, 0.7)
    assert [path.name for path in loop.folder.checkpoints.glob("best-*")] == ["best-000006"]
    saved = safetensors.torch.load_file(loop.folder.best(6) / "model.safetensors")
    assert torch.equal(saved["classifier.weight"], weights[6])
    assert not torch.equal(weights[2], weights[6])


def test_a_kill_behind_a_best_checkpoint_does_not_lose_the_one_before(make, monkeypatch):
    """The run goes on from before it, and on another machine, or by a GPU's other sums, may not come to it again."""
    loop = make([0.7, 0.8])
    save = loop.folder.save_last

    def kill(step, *more):
        if step == 4:
            raise KeyError("killed")
        save(step, *more)

    monkeypatch.setattr(loop.folder, "save_last", kill)
    with pytest.raises(KeyError):
        loop.run()
    again = make([0.6, 0.5, 0.4])
    outcome = again.run()
    assert outcome.progress.best_step == 2
    assert [path.name for path in again.folder.checkpoints.glob("best-*")] == ["best-000002"]
    assert (again.folder.best(2) / "model.safetensors").exists()


def test_a_value_that_is_no_number_is_worse_than_any(make):
    """As a correlation may be while all answers are the same."""
    nan = float("nan")
    outcome = make([nan, 0.2, nan, 0.1], patience=3).run()
    assert (outcome.progress.best_step, outcome.progress.best_value) == (4, 0.2)
    assert outcome.progress.since_best == 2


def test_training_stops_when_it_no_longer_helps(make):
    notes = Notes()
    outcome = make([0.5, 0.7, 0.6, 0.7], [notes], patience=1, epochs=9).run()
    assert outcome.progress.step == 6 and outcome.progress.stopped and outcome.progress.best_step == 4
    assert notes.heard[-1] == ("finished", 6)


def test_without_evaluations_the_last_is_the_best(make):
    loop = make()
    assert loop.run().progress.best_step == 8
    assert loop.folder.best(8).exists()


def test_evaluations_come_by_steps_and_at_the_end(make):
    notes = Notes()
    make([0.1, 0.2, 0.3], [notes], evaluate_every=3).run()
    assert [heard[1] for heard in notes.heard if heard[0] == "evaluated"] == [3, 6, 8]


def test_speed_counts_what_was_trained(make):
    rows = make_rows("classify", 19)
    speed = make(rows=rows, epochs=2).run().speed
    assert speed.examples == 38
    assert speed.tokens == 2 * sum(len(row.ids) for some in rows for row in some)
    assert speed.seconds > 0


def test_the_log_says_what_happened(make):
    loop = make([0.5, 0.6, 0.7, 0.8], log_every=1, schedule="constant", warmup=0.0)
    loop.run()
    records = [json.loads(line) for line in (loop.folder.path / "log.jsonl").read_text().splitlines()]
    steps = [record for record in records if "loss" in record]
    assert [record["step"] for record in steps] == list(range(1, 9))
    assert all(record["rate"] == 1e-3 and record["norm"] > 0 and record["skipped"] == 0 for record in steps)
    assert [record["epoch"] for record in steps] == [step / 2 for step in range(1, 9)]
    assert [record["metrics"]["made"] for record in records if record.get("split") == "dev"] == [0.5, 0.6, 0.7, 0.8]


def test_little_memory_comes_to_what_small_passes_come_to(small_model, tmp_path):
    ranks.run_short_of_memory(small_model, tmp_path / "short", rank="0", batch_tokens=200, batch=16)
    ranks.train("plain", small_model, tmp_path / "small", batch_tokens=50, batch=16)
    names = ("model.safetensors", "optimizer.safetensors")
    for name in names:
        ours, theirs = (
            safetensors.torch.load_file(next((tmp_path / out).glob("checkpoints/last-*")) / name)
            for out in ("short", "small")
        )
        assert all(torch.equal(ours[key], theirs[key]) for key in theirs)
    logs = [(tmp_path / out / "log.jsonl").read_text().splitlines() for out in ("short", "small")]
    # Evaluations have the budget that was asked for, and round in its way.
    losses = [[line for line in log if '"loss"' in line] for log in logs]
    assert len(losses[0]) == 4 and losses[0] == losses[1]


def test_no_memory_for_one_row_is_one_sentence(make, monkeypatch):
    loop = make(batch_tokens=4 * SMALLEST)

    def fails(*given):
        raise torch.OutOfMemoryError("a made one")

    monkeypatch.setattr(loop.study, "losses", fails)
    with pytest.raises(BertsmithError, match=r"^not enough memory on cpu for one row of this length; use [^.]*\.$"):
        loop.run()


def test_a_loss_that_is_no_number_ends_the_run(make, monkeypatch):
    loop = make(log_every=1, rate=0.5)
    losses = loop.study.losses

    def spoils(network, batch, given, part):
        found = losses(network, batch, given, part)
        return {"loss": found["loss"] * (float("nan") if loop.progress.step == 3 else 1.0)}

    monkeypatch.setattr(loop.study, "losses", spoils)
    with pytest.raises(BertsmithError, match=r"^the loss is not a number at step 4: the rate 0\.5 may be [^.]*\.$"):
        loop.run()
    assert all(parameter.isfinite().all() for parameter in loop.network.parameters())


def test_fp16_needs_a_gpu(make):
    with pytest.raises(BertsmithError, match=r"^precision fp16 needs a CUDA device; use bf16 or fp32 here\.$"):
        make(precision="fp16")


def tune(model, out, **more):
    chosen = {"epochs": 2, "batch": 8, "rate": 1e-3, "device": "cpu", **more}
    return finetune("classify", make_texts(40), make_texts(10, seed=1), out=out, model=model, **chosen)


@pytest.mark.parametrize("metric", ["f2", "ece"])
def test_an_unknown_metric_costs_nothing(small_model, tmp_path, metric):
    notes = Notes()
    with pytest.raises(BertsmithError, match=rf"^metric='{metric}' is not a choice for classify; use one of accura"):
        tune(small_model, tmp_path / "out", metric=metric, watchers=[notes])
    assert notes.heard == []
    tune(small_model, tmp_path / "out", metric="f1")  # the folder is free for the corrected command


def test_a_metric_by_name_chooses(small_model, tmp_path):
    run = tune(small_model, tmp_path / "out", metric="macro_f1", evaluate_every=2, keep_checkpoints=True)
    records = [json.loads(line) for line in (tmp_path / "out" / "log.jsonl").read_text().splitlines()]
    values = {record["step"]: record["metrics"]["macro_f1"] for record in records if "metrics" in record}
    best = max(values.values())
    assert run.outcome.progress.best_step == max(step for step, value in values.items() if value == best)
    assert run.outcome.progress.best_value == best == pytest.approx(run.metrics["dev"]["macro_f1"]["value"])


def test_class_weights_have_no_meaning_for_spans(small_model, tmp_path):
    task = make_task(small_model, "span")
    fitted = fit(load_checkpoint(small_model), task)
    with pytest.raises(BertsmithError, match="class_weights has no meaning for the task span; leave it out"):
        make_loop(tmp_path / "run", fitted, task, make_rows("span", 8), Training(class_weights="balanced"))


def test_a_checkpoint_comes_in_time_however_seldom_it_logs(make, monkeypatch):
    minutes = iter(range(10**6))
    monkeypatch.setattr("bertsmith.training.loop.time.monotonic", lambda: 60.0 * next(minutes))
    saved = []
    loop = make(epochs=20, evaluate_every=40, log_every=40, save_minutes=5.0)
    save = loop.folder.save_last
    monkeypatch.setattr(loop.folder, "save_last", lambda step, *given: saved.append(step) or save(step, *given))
    loop.run()
    gaps = [after - before for before, after in itertools.pairwise(saved)]
    assert saved[-1] == 40 and max(gaps) <= 6 and len(loop.folder.read_log()) == 1
