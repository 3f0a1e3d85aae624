"""Several studies on one network: exact shares, pure functions of (seed, step), and H = F + λG to the gradient."""

import json
from collections import Counter

import numpy as np
import pytest
import safetensors.torch
import torch
import transformers
from hypothesis import given
from hypothesis import strategies as st
from training.looping import reference_loss
from training.made import make_rows, make_task

from bertsmith.errors import BertsmithError
from bertsmith.models.checkpoint import load_checkpoint
from bertsmith.models.members import Wanted, fit_members, open_members, write_members
from bertsmith.tasks.task import Row
from bertsmith.training.devices import Ranks
from bertsmith.training.folder import RunFolder
from bertsmith.training.loop import Loop, Watcher
from bertsmith.training.masking import MaskStudy
from bertsmith.training.mixing import MixStudy, choose_mixing, share_steps
from bertsmith.training.recorded import Recording, Room
from bertsmith.training.settings import Training
from bertsmith.training.study import Drawn, TaskStudy

WEIGHTS = {"one": 1.0, "two": 0.25, "words": 0.1}
KINDS = {"one": "classify", "two": "tag"}


class Counted(Drawn):
    """Examples without rows: enough to plan with."""

    def __init__(self, examples, batch=8, seed=0):
        self.examples, self.settings = examples, Training(batch=batch, seed=seed)


def plans(sizes, mixing, seed=0, temperature=2.0, epochs=3):
    members = {f"m{i}": Counted(size) for i, size in enumerate(sizes)}
    study = MixStudy(members, {}, mixing, seed, temperature)
    return study, [study.plan(step) for step in range(epochs * study.steps_an_epoch())]


sizes_of_mixes = st.lists(st.integers(1, 300), min_size=2, max_size=5)


@given(sizes_of_mixes, st.integers(0, 5))
def test_in_proportion_each_example_is_read_once_an_epoch(sizes, seed):
    study, plan = plans(sizes, "proportional", seed)
    epoch = study.steps_an_epoch()
    assert epoch == sum(-(-size // 8) for size in sizes)
    for start in range(0, len(plan), epoch):
        steps = [step[0] for step in plan[start : start + epoch]]
        read = Counter((name, i) for name, own in steps for i in study.members[name].chosen(own))
        assert read == Counter((f"m{number}", i) for number, size in enumerate(sizes) for i in range(size))


@given(sizes_of_mixes, st.sampled_from([1.0, 2.0, 5.0, 1e6]))
def test_a_temperature_gives_each_epoch_its_exact_shares(sizes, temperature):
    study, plan = plans(sizes, "temperature", temperature=temperature)
    epoch = study.steps_an_epoch()
    counts = [Counter(name for ((name, _),) in plan[start : start + epoch]) for start in range(0, len(plan), epoch)]
    assert all(count == counts[0] for count in counts)
    assert sum(counts[0].values()) == epoch and min(counts[0][f"m{i}"] for i in range(len(sizes))) >= 1
    wanted = np.array([size ** (1 / temperature) for size in sizes])
    wanted = epoch * wanted / wanted.sum()
    if (wanted >= 1).all():  # else those that would get none are given one
        assert all(abs(counts[0][f"m{i}"] - share) <= 1 for i, share in enumerate(wanted))


@given(sizes_of_mixes, st.sampled_from(["proportional", "temperature", "round-robin", "together"]))
def test_a_member_goes_through_its_own_steps_in_order(sizes, mixing):
    _, plan = plans(sizes, mixing)
    seen: dict[str, int] = {}
    for step in plan:
        for name, own in step:
            assert own == seen.get(name, 0)
            seen[name] = own + 1


@given(sizes_of_mixes, st.sampled_from(["proportional", "temperature"]), st.randoms(use_true_random=False))
def test_a_step_is_a_function_of_the_seed_and_its_number(sizes, mixing, chance):
    _, plan = plans(sizes, mixing, seed=5)
    study, _ = plans(sizes, mixing, seed=5, epochs=0)
    steps = list(range(len(plan)))
    chance.shuffle(steps)
    assert all(study.plan(step) == plan[step] for step in steps)
    if mixing == "proportional" and min(sizes) > 80:
        assert plans(sizes, mixing, seed=6)[1] != plan


def test_in_turn_and_together():
    study, plan = plans([40, 8, 16], "round-robin")
    assert [name for ((name, _),) in plan[:6]] == ["m0", "m1", "m2"] * 2
    assert study.shares() == pytest.approx({"m0": 1 / 3, "m1": 1 / 3, "m2": 1 / 3})
    study, plan = plans([40, 8, 16], "together")
    assert study.steps_an_epoch() == 5 and all([name for name, _ in step] == ["m0", "m1", "m2"] for step in plan)
    assert study.shares() == {"m0": 1.0, "m1": 1.0, "m2": 1.0}


@given(st.lists(st.floats(0.01, 100), min_size=1, max_size=6), st.integers(0, 400))
def test_steps_are_shared_without_rest(sizes, more):
    steps = len(sizes) + more
    found = share_steps(sizes, steps)
    assert sum(found) == steps and min(found) >= 1


def test_mixing_has_a_default_and_no_unknown_ways():
    assert choose_mixing(None, [30, 30]) == "together" and choose_mixing(None, [30, 31]) == "proportional"
    with pytest.raises(BertsmithError, match=r"^mixing is 'shuffled', which is not a choice; use one of together, "):
        choose_mixing("shuffled", [])


@pytest.fixture
def make(small_model, tmp_path):
    """A loop over a classifier, a tagger and masked tokens on one encoder; `write` as a run's checkpoints are."""

    def build(mixing="together", folder="run", last=None, count=24, watchers=(), **settings):
        training = Training(**{"batch": 8, "epochs": 1, "dropout": 0.0, **settings})
        tasks = {name: make_task(small_model, kind) for name, kind in KINDS.items()}
        for name, task in tasks.items():
            task.head = name
        wanted = {name: Wanted(KINDS[name], task.labels) for name, task in tasks.items()} | {"words": Wanted("mask")}
        if last is None:
            fitted, _ = fit_members(load_checkpoint(small_model), wanted, seed=1, dropout=training.dropout)
        else:
            fitted = open_members(last, list(wanted), training.dropout)
        rows = {"one": make_rows("classify", count), "two": make_rows("tag", count // 2, seed=1)}
        studies = {name: TaskStudy(task, rows[name], training) for name, task in tasks.items()}
        texts = [row for (row,) in make_rows("classify", count, seed=2)]
        words = MaskStudy(texts, task.tokenizer.special_ids, 4, 90, training, head="words")
        study = MixStudy({**studies, "words": words}, WEIGHTS, mixing, training.seed)
        run = RunFolder(tmp_path / folder)
        run.claim({}, overwrite=False)
        run.lock.release()

        def write(to):
            write_members(fitted, to)

        loop = Loop(fitted.network, study, training, run, Ranks(), write, None, watchers)
        loop.fitted, loop.all_rows = fitted, {**rows, "words": [[row] for row in texts]}
        return loop

    return build


def references(fitted, folder):
    """Each member as a model of transformers: the encoder of the folder and the tensors of the adapter, by name."""
    write_members(fitted, folder)
    encoder = safetensors.torch.load_file(folder / "model.safetensors")
    classes = {"one": transformers.BertForSequenceClassification, "two": transformers.BertForTokenClassification,
               "words": transformers.BertForMaskedLM}  # fmt: skip
    found = {}
    for name, model_class in classes.items():
        own = safetensors.torch.load_file(folder / "adapters" / name / "adapter_model.safetensors")
        own = {key.removeprefix("base_model.model."): tensor for key, tensor in own.items()}
        config = transformers.BertConfig.from_pretrained(folder, num_labels=3)
        model = model_class(config)
        state = {f"bert.{key}": tensor for key, tensor in encoder.items()} | own
        missing, unexpected = model.load_state_dict(state, strict=False)
        assert not unexpected and {key.split(".decoder")[0] for key in missing} <= {"cls.predictions"}
        model.tie_weights()
        found[name] = model.eval()
    return found


def masked_reference(model, work):
    """The mean cross-entropy at the hidden places, row by row."""
    total, place, start = torch.zeros(()), 0, 0
    ats, golds = work.given["at"].values, work.given["gold"].values
    for length in work.lengths:
        ids = torch.from_numpy(work.ids[start : start + length])[None]
        kinds = torch.from_numpy(work.segments[start : start + length])[None]
        labels = torch.full((1, length), -100)
        while place < len(ats) and ats[place] < start + length:
            labels[0, ats[place] - start] = int(golds[place])
            place += 1
        if (labels >= 0).any():
            count = (labels >= 0).sum()
            total = total + count * model(input_ids=ids, token_type_ids=kinds, labels=labels).loss
        start += length
    return total / len(golds)


def test_a_step_descends_the_weighted_sum_of_what_transformers_computes(make, tmp_path):
    """H = F + λG + μM: the encoder's gradient is the weighted sum of theirs, a head's is its own one, weighted."""
    loop = make(precision="fp32")
    models = references(loop.fitted, tmp_path / "written")
    loop.network.train()
    works = loop.study.works(1, 0, 1, 10**6)
    assert [work.part for work in works] == ["one", "two", "words"]
    loop.passes.run(works, 1)
    ours = {name: p.grad for name, p in loop.network.named_parameters()}
    losses = {}
    for name, kind in KINDS.items():
        chosen = [loop.all_rows[name][i][0] for i in loop.study.members[name].chosen(1)]
        losses[name] = reference_loss(models[name], kind, chosen)
    losses["words"] = masked_reference(models["words"], works[2])
    for name, loss in losses.items():
        (WEIGHTS[name] * loss).backward()
        assert loop.passes.now[f"loss/{name}"].item() == pytest.approx(WEIGHTS[name] * loss.item(), rel=1e-5)
    shared = {"embed.tokens.weight": "embeddings.word_embeddings.weight",
              "blocks.0.feed.up.weight": "encoder.layer.0.intermediate.dense.weight",
              "blocks.1.attention_norm.bias": "encoder.layer.1.attention.output.LayerNorm.bias"}  # fmt: skip
    for mine, theirs in shared.items():
        wanted = sum(model.bert.get_parameter(theirs).grad for model in models.values())
        assert (ours[mine] - wanted).abs().max() < 2e-6 * wanted.abs().max() + 1e-8, mine
    for name, parameter in (("one", "classifier.weight"), ("two", "classifier.weight")):
        wanted = models[name].get_parameter(parameter).grad
        assert torch.allclose(ours[f"heads.{name}.out.weight"], wanted, rtol=1e-4, atol=1e-7)
    wanted = models["words"].get_parameter("cls.predictions.bias").grad
    assert torch.allclose(ours["heads.words.out.bias"], wanted, rtol=1e-4, atol=1e-7)


def test_a_head_that_a_step_leaves_out_has_no_slope(make):
    loop = make("round-robin")
    loop.network.train()
    loop.passes.run(loop.study.works(1, 0, 1, 10**6), 1)
    slopes = {name: p.grad.abs().max().item() for name, p in loop.network.named_parameters()}
    assert slopes["heads.two.out.weight"] > 0
    assert slopes["heads.one.out.weight"] == slopes["heads.words.out.bias"] == 0


def test_many_passes_are_one(make):
    whole, parts = make(folder="whole"), make(folder="parts", batch_tokens=40)
    for loop in (whole, parts):
        loop.network.train()
        loop.passes.run(loop.study.works(0, 0, 1, loop.progress.budget), 0)
    assert len(parts.study.works(0, 0, 1, 40)) > 6
    for (name, one), (_, other) in zip(whole.network.named_parameters(), parts.network.named_parameters(), strict=True):
        assert (one.grad - other.grad).abs().max() < 3e-6 * one.grad.abs().max() + 1e-7, name


def test_the_log_has_the_mean_over_the_steps_that_had_a_member(make):
    """Round-robin with a record every four of three members: each mean is over one step or two, before its weight."""
    loop = make("round-robin", max_steps=8, log_every=4)
    seen = []
    run = loop.passes.run

    def watches(works, step):
        run(works, step)
        (name,) = {work.part for work in works}
        seen.append((name, loop.passes.now[f"loss/{name}"].item()))

    loop.passes.run = watches
    loop.run()
    records = [record for record in loop.folder.read_log() if "loss" in record]
    assert len(records) == 2
    for number, record in enumerate(records):
        some = seen[4 * number : 4 * number + 4]
        assert record["loss"] == pytest.approx(sum(value for _, value in some) / 4, rel=1e-6)
        for name, weight in WEIGHTS.items():
            mine = [value / weight for who, value in some if who == name]
            assert record[f"loss/{name}"] == pytest.approx(sum(mine) / len(mine), rel=1e-6)


def test_a_loss_that_no_step_had_is_not_in_the_record(make):
    loop = make("round-robin", max_steps=3, log_every=1)
    loop.run()
    found = [{key for key in record if key.startswith("loss/")} for record in loop.folder.read_log()]
    assert found[:3] == [{"loss/one"}, {"loss/two"}, {"loss/words"}]


class Stop(Watcher):
    def stepped(self, step, record, speed):
        if step == 6:
            raise KeyboardInterrupt


@pytest.mark.parametrize("mixing", ["together", "proportional", "temperature", "round-robin"])
def test_a_run_that_stops_between_two_records_goes_on_to_the_same_bytes(make, mixing):
    settings = {"epochs": None, "max_steps": 9, "log_every": 4, "evaluate_every": 9, "dropout": 0.1}
    whole = make(mixing, folder="whole", **settings)
    whole.run()
    loop = make(mixing, folder="stopped", watchers=[Stop()], **settings)
    with pytest.raises(BertsmithError, match=r"^stopped at step 6 of 9"):
        loop.run()
    again = make(mixing, folder="stopped", last=loop.folder.find_last(), **settings)
    again.run()
    ours, theirs = (dict(loop.network.named_parameters()) for loop in (again, whole))
    assert list(ours) == list(theirs)
    assert (whole.folder.path / "log.jsonl").read_bytes() == (again.folder.path / "log.jsonl").read_bytes()
    assert all(torch.equal(ours[name], theirs[name]) for name in theirs)


def test_what_is_hidden_is_drawn_anew_and_the_same_again(make):
    study = make().study.members["words"]
    epoch = study.steps_an_epoch()
    first = [work.ids.tolist() for work in study.works(0, 0, 1, 10**6)]
    assert first == [work.ids.tolist() for work in study.works(0, 0, 1, 10**6)]
    later = {i: step for step in range(epoch, 2 * epoch) for i in study.chosen(step)}
    rows = [(study._hide(step, [study.rows[i]])[0] for step in (0, later[i])) for i in study.chosen(0)]
    assert sum((one.ids != other.ids).any() for one, other in rows) >= 4  # of eight, short ones


@pytest.mark.parametrize("mixing", ["together", "proportional"])
def test_ranks_share_the_rows_of_a_step_without_loss(make, mixing):
    study = make(mixing).study
    for step in range(study.steps_an_epoch()):
        one = study.works(step, 0, 1, 10**6)
        for count in (3, 20):
            parts = [work for rank in range(count) for work in study.works(step, rank, count, 10**6)]
            for name in study.names:
                mine, all_of_it = (sum(work.counts.get(name, 0) for work in works) for works in (parts, one))
                assert mine == all_of_it
            assert {work.part for work in study.works(step, count - 1, count, 10**6)} == {work.part for work in one}


def test_a_recorded_pass_has_room_for_all_that_is_asked_and_little_more(make):
    """Masked tokens are a share of a pass: a room for all tokens would score each of them against the vocabulary."""
    study = make(batch=24).study
    for work in study.works(0, 0, 1, 10**6):
        recording = Recording(Room.of(work), work, torch.device("cpu"))
        recording.lay(work, recording.flat.numpy())
        found = recording.given()
        for name, wanted in work.given.items():
            assert found[name][: len(wanted.values)].tolist() == wanted.values.tolist()
            assert set(found[name][len(wanted.values) :].tolist()) == {wanted.filler}
        assert (len(found["gold"]) < 0.3 * recording.room.tokens) == (work.part in ("one", "words"))


@given(rows=st.lists(st.integers(1, 60), min_size=1, max_size=40))
def test_masked_places_never_outgrow_their_room(rows):
    texts = [Row([7] * length, [0] * length) for length in rows]
    study = MaskStudy(texts, {0}, 4, 90, Training(batch=40))
    (work,) = study.works(0, 0, 1, 10**6)
    recording = Recording(Room.of(work), work, torch.device("cpu"))
    assert len(work.given["at"].values) <= len(recording.given()["at"]) <= recording.room.tokens


def test_a_folder_of_members_opens_as_it_was_written(make, tmp_path):
    loop = make()
    write_members(loop.fitted, tmp_path / "out")
    again = open_members(tmp_path / "out", ["one", "two", "words"])
    theirs = dict(loop.network.named_parameters())
    assert list(theirs) == [name for name, _ in again.network.named_parameters()]
    assert all(torch.equal(parameter, theirs[name]) for name, parameter in again.network.named_parameters())
    settings = json.loads((tmp_path / "out" / "config.json").read_text())
    assert settings["architectures"] == ["BertModel"] and "id2label" not in settings
    _, said = transformers.AutoModel.from_pretrained(tmp_path / "out", output_loading_info=True)
    assert not said["unexpected_keys"] and all(key.startswith("pooler.") for key in said["missing_keys"])
    with pytest.raises(BertsmithError, match=r"has no head of the member three; copy it again\.$"):
        open_members(tmp_path / "out", ["one", "three"])
