"""The guard: what counts as bad, a run that goes back and on with other rows, and one that cannot go on."""

import json
import math

import numpy as np
import pytest
import safetensors.torch
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from pretraining_made import Stop, pretrain
from training.poisoned import LONG, PASSES, poison, run_killed, run_ranks

import bertsmith
from bertsmith.errors import BertsmithError
from bertsmith.training.devices import Ranks
from bertsmith.training.guard import FEWEST, Guard
from bertsmith.training.loop import Watcher
from bertsmith.training.pretraining import PretrainingStudy
from bertsmith.training.pretraining_start import prepare
from bertsmith.training.progress import Progress
from bertsmith.training.recipes import find_recipe

NAN = float("nan")


pytestmark = pytest.mark.usefixtures("one_thread")


class Phases:
    """A study whose rows grow at a step."""

    def __init__(self, change=10**9):
        self.change = change

    def kind_at(self, step):
        return "long" if step >= self.change else "short"


def find_bad(losses, study=None, bound=8.0, every=1, precision="fp32", names=lambda step: ()):
    """The records, counted from 0, that a guard takes for bad."""
    guard, progress, found = Guard(bound, precision), Progress(), []
    for number, loss in enumerate(losses):
        progress.step = every * (number + 1)
        given_ = {"loss": loss, **dict.fromkeys(names(number), loss)}
        if guard.find_trouble(progress, given_, study or Phases()):
            found.append(number)
        progress.logged = progress.step
    return found


@settings(max_examples=60, deadline=None)
@given(
    st.integers(0, 10**6), st.sampled_from([("normal", 0.003), ("normal", 0.1), ("laplace", 0.03)]),
    st.sampled_from([0.0, 3.0, 8.0]), st.sampled_from([0.0, 1.0]),
)  # fmt: skip
def test_ordinary_noise_is_not_bad(seed, noise, fall, rise):
    """A loss that falls as losses do, with noise of so much of it; and climbs as a mask rate does that rises."""
    chance, time = np.random.default_rng(seed), np.arange(400)
    curve = 2.0 + fall * np.exp(-time / 40) + rise * time / len(time)
    assert find_bad(curve * (1 + getattr(chance, noise[0])(0, noise[1], len(time)))) == []


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.integers(FEWEST, 200), st.sampled_from([1.6, 3.0, 100.0]))
def test_what_breaks_out_is_bad(seed, at, times):
    losses = 2.5 * (1 + 0.02 * np.random.default_rng(seed).standard_normal(201))
    losses[at] *= times
    assert find_bad(losses) == [at]
    assert find_bad(losses, bound=0.0) == []


@pytest.mark.parametrize("value", [NAN, math.inf, -math.inf])
def test_what_is_not_finite_is_bad_from_the_first_record_on(value):
    assert find_bad([value, 3.0, value, *[2.9] * 40, value]) == [0, 2, 43]
    assert find_bad([value, 3.0], bound=0.0) == [0]
    assert find_bad([value, 3.0], precision="fp16") == []


def test_other_rows_or_other_questions_are_not_compared():
    """The loss doubles where rows become longer, or where another question is asked; a record may hold both."""
    losses = [2.0] * 40 + [4.0] * 40
    assert find_bad(losses) == [*range(40, 80)]
    assert find_bad(losses, Phases(40)) == []
    assert find_bad(losses, names=lambda number: ["masked" if number >= 40 else "next_token"]) == []
    assert find_bad([2.0] * 40 + [3.0] + [4.0] * 40, Phases(405), every=10) == []


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 38), st.integers(1, 39)), max_size=4))
def test_what_is_avoided_is_not_read_again(corpus, places):
    """Each time the run goes back it reads from there on what nobody has read, and before it what it read."""
    recipe = find_recipe("bert", {"depth": 1, "width": 16, "heads": 2, "inner": 16, "tokens": 512, "pass_tokens": 256,
                                  "lengths": "32:0.5,64:0.5", "first_tokens": 256, "ramp": 0.7})  # fmt: skip
    start = prepare(corpus, recipe, Ranks())
    study = PretrainingStudy(start.corpus, start.made.objective, recipe.training, 40, start.size, start.made.rows)

    def numbers(step):
        return [(one.phase, one.number + study._further(step)) for one in study.plan.passes(step)]

    read = set()
    for start_, length in places:
        behind = min(40, start_ + length)
        if study.detours and behind <= study.detours[-1][0]:  # up to there it did nothing that it had not done
            continue
        before = [numbers(step) for step in range(start_)]
        read |= {one for step in range(behind) for one in numbers(step)}
        study.avoid(start_, behind)
        assert [numbers(step) for step in range(start_)] == before
        assert not read & {one for step in range(start_, 40) for one in numbers(step)}
        study.detours = json.loads(json.dumps(study.detours))
    everything = [one for step in range(40) for one in numbers(step)]
    assert len(set(everything)) == len(everything)


class Heard(Watcher):
    def __init__(self):
        self.sentences = []

    def went_back(self, step, sentence):
        self.sentences.append((step, sentence))


def read_log(out):
    return [json.loads(line) for line in (out / "log.jsonl").read_text().splitlines()]


def assert_same(one, other, log=True):
    if log:
        assert (one / "log.jsonl").read_bytes() == (other / "log.jsonl").read_bytes()
    else:
        ours, theirs = ([record for record in read_log(out) if "went_back" not in record] for out in (one, other))
        assert ours == theirs
    names = {str(path.relative_to(one)) for path in one.rglob("*.safetensors")}
    assert names == {str(path.relative_to(other)) for path in other.rglob("*.safetensors")} and len(names) >= 3
    for name in names:
        ours, theirs = (safetensors.torch.load_file(run / name) for run in (one, other))
        assert ours.keys() == theirs.keys()
        assert [key for key in ours if not torch.equal(ours[key], theirs[key])] == [], name


def pretrain_around(corpus, out, detours, monkeypatch, **more):
    """An undisturbed run over the very rows that a run reads which went back."""
    plain = PretrainingStudy.__init__

    def begin(self, *given_):
        plain(self, *given_)
        self.detours = detours

    with monkeypatch.context() as patch:
        patch.setattr(PretrainingStudy, "__init__", begin)
        pretrain(corpus, out, **more)


@pytest.mark.parametrize(
    "recipe, bad, back, rows",
    [
        ("smith", {27: 30.0}, 20, 20),  # a spike
        ("bert", {13: NAN}, 10, 10),
        ("electra", {27: 30.0}, 20, 20),
        ("electra", {3: NAN}, 0, 0),  # before there is a checkpoint
        ("bert", {0: NAN}, 0, 0),
    ],
)
def test_the_run_goes_back_and_on_with_other_rows(corpus, tmp_path, monkeypatch, recipe, bad, back, rows):
    heard, more = Heard(), {**LONG, "recipe": recipe, "average": 0.9}
    with poison(bad):
        run = pretrain(corpus, tmp_path / "out", watchers=[heard], **more)
    at = next(iter(bad)) + 1
    told = [record for record in read_log(tmp_path / "out") if "went_back" in record]
    assert [(one["step"], one["went_back"]["from"], one["went_back"]["other_rows"]) for one in told] == [
        (back, at, rows)
    ]
    assert heard.sentences == [(back, told[0]["went_back"]["why"])]
    assert f"back to step {back}, and from step {rows} on with other rows (1 of 3" in heard.sentences[0][1]
    losses = [record["loss"] for record in read_log(tmp_path / "out") if "loss" in record]
    assert len(losses) == 40 and all(map(math.isfinite, losses)) and all(map(math.isfinite, run.metrics.values()))
    assert run.outcome.progress.skipped == 0
    detours = [[rows, PASSES * (at - rows)]]
    pretrain_around(corpus, tmp_path / "around", detours, monkeypatch, **more)
    assert_same(tmp_path / "out", tmp_path / "around", log=False)


def test_only_the_bad_stretch_is_replaced(corpus, tmp_path, monkeypatch):
    """From a checkpoint long before it, the run takes the very steps that it took, up to 20 before the bad one."""
    more = {**LONG, "evaluate_every": 40}
    with poison({33: 30.0}):
        pretrain(corpus, tmp_path / "out", **more)
    assert [one["went_back"]["other_rows"] for one in read_log(tmp_path / "out") if "went_back" in one] == [14]
    pretrain_around(corpus, tmp_path / "around", [[14, PASSES * 20]], monkeypatch, **more)
    assert_same(tmp_path / "out", tmp_path / "around", log=False)
    # With a later checkpoint it is the same run.
    with poison({33: 30.0}), pytest.raises(BertsmithError, match="stopped at step 12"):
        pretrain(corpus, tmp_path / "other", **more, watchers=[Stop(12, KeyboardInterrupt)])
    with poison({33: 30.0}):
        pretrain(corpus, tmp_path / "other", **more)
    assert_same(tmp_path / "other", tmp_path / "around", log=False)


@pytest.fixture(scope="module")
def disturbed(corpus, tmp_path_factory):
    """Bad twice: the second time in rows that were planned for no step that early."""
    out = tmp_path_factory.mktemp("disturbed") / "out"
    with poison({17: NAN, 33: 30.0}):
        pretrain(corpus, out, "smith", **LONG)
    assert len([record for record in read_log(out) if "went_back" in record]) == 1  # the rows of 33 came elsewhere
    return out


def test_the_same_run_again_is_the_same_to_the_bit(corpus, disturbed, tmp_path):
    with poison({17: NAN, 33: 30.0}):
        pretrain(corpus, tmp_path / "out", "smith", **LONG)
    assert_same(tmp_path / "out", disturbed)


@pytest.mark.parametrize("step, after", [(15, 0), (12, 1), (24, 1), (40, 1)])
def test_a_killed_run_goes_on_to_the_same_end(starter, corpus, disturbed, tmp_path, step, after):
    """Before it goes back, right after, behind the next checkpoint, and at the end."""
    bad = {17: NAN, 33: 30.0}
    run_killed(starter, corpus, tmp_path / "out", step, bad, after, recipe="smith", **LONG)
    with poison(bad):
        pretrain(corpus, tmp_path / "out", "smith", **LONG)
    assert_same(tmp_path / "out", disturbed)


def test_a_bad_loss_in_an_open_record_does_not_come_back(corpus, tmp_path):
    """An interrupt between two records, behind the bad step: the checkpoint knows a sum that is not a number."""
    more = {**LONG, "log_every": 10}
    with poison({13: NAN}), pytest.raises(BertsmithError, match="stopped at step 16"):
        pretrain(corpus, tmp_path / "out", **more, watchers=[Stop(16, KeyboardInterrupt)])
    with poison({13: NAN}):
        pretrain(corpus, tmp_path / "out", **more)
    told = [record["went_back"] for record in read_log(tmp_path / "out") if "went_back" in record]
    assert [one["from"] for one in told] == [20]
    assert all(math.isfinite(record["loss"]) for record in read_log(tmp_path / "out") if "loss" in record)


def test_with_nothing_else_to_read_it_ends_and_keeps_the_checkpoint(corpus, tmp_path):
    heard, last = Heard(), tmp_path / "out" / "checkpoints" / "last-000020"
    sentence = rf"is not a number at step 27, though the run went back 3 times and on .* is kept in {last}, to go on"
    with poison({}, always_from=26 / 40), pytest.raises(BertsmithError, match=sentence):
        pretrain(corpus, tmp_path / "out", **LONG, watchers=[heard])
    assert [step for step, _ in heard.sentences] == [20, 20, 20]
    assert all(tensor.isfinite().all() for tensor in safetensors.torch.load_file(last / "model.safetensors").values())
    more = {"model": last, "max_steps": 2, "lengths": "32", "tokens": 512, "device": "cpu"}
    run = bertsmith.pretrain(corpus, tmp_path / "again", **more)
    assert math.isfinite(run.metrics["masked_loss"])


def test_without_a_guard_the_first_one_ends_the_run(corpus, tmp_path):
    with poison({3: NAN}), pytest.raises(BertsmithError, match=r"not a number at step 4: the rate 0\.005 may be"):
        pretrain(corpus, tmp_path / "out", **LONG, guard=0.0)
    assert not (tmp_path / "out").exists()
    with pytest.raises(BertsmithError, match=r"guard is 0\.5; it must be 0, or at least 1"):
        find_recipe("bert", {"guard": 0.5})


TOGETHER = {
    name: {**LONG, "recipe": "bert", "dropout": 0.0, "eps": 1e-4, **more}
    for name, more in {"average": {"average": 0.9}, "fsdp": {"spread": "fsdp"}}.items()
}


@pytest.fixture(scope="module")
def together(starter, corpus, tmp_path_factory):
    """With two processes, all in one start."""
    folder = tmp_path_factory.mktemp("together")
    run_ranks(starter, corpus, folder, TOGETHER, {13: NAN})
    return folder


@pytest.mark.parametrize("name", TOGETHER)
def test_two_processes_go_back_together(corpus, together, tmp_path, name):
    one, other = ((together / name / f"rank-{rank}").read_text() for rank in (0, 1))
    assert one == other
    assert [one["went_back"]["from"] for one in read_log(together / name) if "went_back" in one] == [14]
    with poison({13: NAN}):
        pretrain(corpus, tmp_path / "alone", **TOGETHER[name])
    for file in ("model.safetensors", "checkpoints/last-000040/model.safetensors"):
        ours, theirs = (safetensors.torch.load_file(run / file) for run in (together / name, tmp_path / "alone"))
        for key, tensor in theirs.items():
            torch.testing.assert_close(ours[key], tensor, rtol=1e-2, atol=2e-3)
