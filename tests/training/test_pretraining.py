"""Pretraining learns what the reference learns, and two processes what one does; what cannot be is refused."""

import json
import re

import numpy as np
import pytest
import safetensors.torch
import torch
import transformers
from hypothesis import given, settings
from hypothesis import strategies as st
from objectives.asking import labels_of, padded
from pretraining_made import SMALL
from torch.nn import functional as F
from training import pretraining_ranks

from bertsmith.errors import BertsmithError
from bertsmith.models.checkpoint import save_checkpoint
from bertsmith.training.devices import Ranks
from bertsmith.training.folder import RunFolder
from bertsmith.training.loop import Loop
from bertsmith.training.pretraining import PretrainingStudy
from bertsmith.training.pretraining_settings import IDLE, Pretraining
from bertsmith.training.pretraining_start import prepare
from bertsmith.training.recipes import RECIPES, find_recipe
from bertsmith.training.schedule import rate_share

STEPS = 50


def reference_losses(model, study, step):
    """What the reference pays for the very batches of a step, name -> mean over all of its passes."""
    totals = {}
    for work in study.works(step, 0, 1, 0):
        torch.manual_seed(work.seed)
        batch, given_ = work.on(torch.device("cpu"))
        asked = study.objective.ask(batch, given_, int(work.facts["ordinary"]), work.facts["done"])
        found = model(**padded(asked.batch))
        scores = found.logits if "logits" in found else found.prediction_logits
        gold = labels_of(batch, asked.given["at"], asked.given["gold"])
        both = {"masked": (scores.flatten(0, 1), gold.flatten())}
        if "pairs" in given_:
            both["next_sentence"] = found.seq_relationship_logits, given_["pairs"].long()
        for name, (scores, gold) in both.items():
            total, count = totals.get(name, (0.0, 0))
            totals[name] = total + F.cross_entropy(scores, gold, reduction="sum"), count + int((gold >= 0).sum())
    return {name: total / count for name, (total, count) in totals.items()}


def train_reference(model, study, chosen, last=1.0):
    decaying = [p for p in model.parameters() if p.ndim > 1]
    others = [p for p in model.parameters() if p.ndim <= 1]  # biases and norms
    groups = [{"params": decaying, "weight_decay": chosen.weight_decay}, {"params": others, "weight_decay": 0.0}]
    betas = (chosen.beta1, chosen.beta2)
    optimizer = torch.optim.AdamW(groups, lr=chosen.rate, betas=betas, eps=chosen.eps)
    curve = []
    for step in range(STEPS):
        for group in optimizer.param_groups:
            group["lr"] = chosen.rate * rate_share(step, STEPS, chosen)
        losses = reference_losses(model, study, step)
        optimizer.zero_grad()
        weights = {"next_sentence": 1 + (last - 1) * step / STEPS}
        sum(weights.get(name, 1.0) * loss for name, loss in losses.items()).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), chosen.clip)
        optimizer.step()
        curve.append({name: loss.item() for name, loss in losses.items()})
    return curve


@pytest.mark.parametrize(
    "asks, last, model_class",
    [
        ("masked", 1.0, transformers.BertForMaskedLM),
        ("masked+next", 1.0, transformers.BertForPreTraining),
        ("masked+next*1-0.2", 0.2, transformers.BertForPreTraining),
    ],
)
def test_fifty_steps_are_those_of_the_reference(corpus, tmp_path, asks, last, model_class):
    """Same data, same masks, same initial weights, no dropout: the same curve and the same weights.

    The log shows each loss as it is, whatever weight it has at that time.
    """
    given_ = {**SMALL, "asks": asks, "dropout": 0.0, "max_steps": STEPS, "log_every": 1, "rate": 2e-3, "warmup": 0.2,
              "weight_decay": 0.1}  # fmt: skip
    recipe = find_recipe("bert", given_)
    start = prepare(corpus, recipe, Ranks())
    (tmp_path / "start").mkdir()
    save_checkpoint(start.checkpoint, tmp_path / "start")
    study = PretrainingStudy(start.corpus, start.made.objective, recipe.training, STEPS, start.size, start.made.rows)
    model, said = model_class.from_pretrained(tmp_path / "start", output_loading_info=True)
    assert not said["missing_keys"] and not said["unexpected_keys"]
    assert len(study.works(0, 0, 1, 0)) == 2
    theirs = train_reference(model.train(), study, recipe.training, last)

    folder = RunFolder(tmp_path / "run")
    folder.claim({}, overwrite=False)
    Loop(start.checkpoint.network, study, recipe.training, folder, Ranks(), lambda to: save_checkpoint(
        start.checkpoint, to)).run()  # fmt: skip
    folder.lock.release()
    ours = folder.read_log()
    assert len(ours) == STEPS
    for name in theirs[0]:
        curve = [record[name if len(theirs[0]) > 1 else "loss"] if name in record else record["loss"]
                 for record in ours]  # fmt: skip
        assert np.abs(np.array(curve) - [record[name] for record in theirs]).max() < 1e-4
        if name == "masked":
            assert curve[0] > 4.5 and curve[-1] < 3.0
    (tmp_path / "end").mkdir()
    save_checkpoint(start.checkpoint, tmp_path / "end")
    for name, tensor in safetensors.torch.load_file(tmp_path / "end" / "model.safetensors").items():
        if not re.search(r"key\.bias$", name):  # has no gradient but rounding, which AdamW blows up
            torch.testing.assert_close(tensor, model.state_dict()[name], rtol=1e-2, atol=2e-3)


@pytest.fixture(scope="module")
def ranks_folder(starter, corpus, tmp_path_factory):
    """Every variant with two processes, all in one start."""
    folder = tmp_path_factory.mktemp("ranks")
    ran = starter.run_ranks(["training.pretraining_ranks", corpus, folder], folder)
    assert ran.returncode == 0, ran.stderr[-3000:]
    return folder


def assert_near(ours, theirs):
    """The logs and the last checkpoints of two runs, but for rounding."""
    logs = [[json.loads(line) for line in (out / "log.jsonl").read_text().splitlines()] for out in (ours, theirs)]
    assert len(logs[0]) == len(logs[1]) > 3
    for one, other in zip(*logs, strict=True):
        assert one.keys() == other.keys()
        for key in one.keys() - {"metrics", "split"}:
            assert one[key] == pytest.approx(other[key], rel=2e-3), key
    for out in ("model.safetensors", "optimizer.safetensors"):
        one, other = (safetensors.torch.load_file(next(run.glob("checkpoints/last-*")) / out) for run in (ours, theirs))
        assert one.keys() == other.keys()
        for key, tensor in one.items():
            least = 1e-3 if out.startswith("model") else 1e-4
            torch.testing.assert_close(tensor, other[key], rtol=1e-2, atol=least, msg=lambda text, key=key: key + text)


@pytest.fixture(scope="module")
def alone(corpus, tmp_path_factory):
    """The same in one process."""
    folder = tmp_path_factory.mktemp("alone")
    for name in pretraining_ranks.VARIANTS:
        pretraining_ranks.train(corpus, folder / name, name)
    return folder


@pytest.mark.parametrize("name", pretraining_ranks.VARIANTS)
def test_two_processes_are_one(ranks_folder, alone, name):
    assert_near(ranks_folder / name, alone / name)


@pytest.mark.parametrize("name", ["pairs", "electra", "parts"])
def test_a_run_that_stopped_on_two_goes_on_in_one(corpus, ranks_folder, alone, name):
    stopped = ranks_folder / f"{name}-stopped"
    assert [path.name for path in stopped.glob("checkpoints/last-*")] == ["last-000004"]
    pretraining_ranks.train(corpus, stopped, name)
    assert_near(stopped, alone / name)


def test_the_same_words_are_hidden_for_any_number_of_processes(corpus):
    recipe = find_recipe("bert", {**SMALL, "tokens": 1024})
    start = prepare(corpus, recipe, Ranks())
    study = PretrainingStudy(start.corpus, start.made.objective, recipe.training, 9, start.size, start.made.rows)

    def hidden(ranks):
        found = {}
        for rank in range(ranks):
            for work in study.works(3, rank, ranks, 0):
                torch.manual_seed(work.seed)
                batch, given_ = work.on(torch.device("cpu"))
                asked = study.objective.ask(batch, given_, int(work.facts["ordinary"]), work.facts["done"])
                if any(work.scales.values()):  # else it is a filler
                    found[work.seed] = asked.batch.ids.tolist(), asked.given["at"].tolist()
        return found

    assert len(hidden(1)) == 4 and hidden(1) == hidden(2) == hidden(3) == hidden(7)


@settings(max_examples=60, deadline=None)
@given(st.integers(32, 5000), st.one_of(st.none(), st.integers(32, 5000)), st.integers(32, 5000), st.floats(0, 1))
def test_steps_are_whole_passes(tokens, first, wanted, ramp):
    chosen = Pretraining(tokens=tokens, first_tokens=first, pass_tokens=wanted, ramp=ramp, lengths="32")
    size = chosen.pass_size("cpu")
    assert 32 <= size <= max(32, wanted + 7)
    for step in (0, 3, 9):
        held = chosen.tokens_at(step, 10, size)
        assert held % size == 0 and held > 0
    assert abs(chosen.tokens_at(9, 10, size) - (tokens if ramp <= 0.9 else held)) <= max(size / 2, 7)


@pytest.mark.parametrize("name", IDLE)
def test_settings_of_fine_tuning_are_refused(name):
    with pytest.raises(BertsmithError, match=f"^{name} is a setting of fine-tuning and has no meaning in pretraining"):
        find_recipe("bert", {name: 1})


@pytest.mark.parametrize(
    "given_, sentence",
    [
        ({"tokens": 64}, "tokens is 64, less than a row of 512"),
        ({"pass_tokens": 64}, "pass_tokens is 64, less than a row of 512"),
        ({"lengths": "many"}, "lengths is 'many'; give a number"),
        ({"lengths": "4"}, "lengths has '4'; a row needs 8 tokens"),
        ({"lengths": "128:0"}, "share above 0"),
        ({"ramp": 2.0}, "ramp is 2.0; it must be from 0 to 1"),
        ({"mask_rate": "1.5"}, "mask_rate is '1.5'; give a share"),
        ({"asks": "nothing"}, "'nothing' is no question; the questions are masked"),
        ({"asks": "distilled"}, "distilled needs a teacher"),
        ({"depth": 0}, "depth is 0; it must be at least 1"),
        ({"depht": 3}, "depht is not a setting; did you mean depth"),
        ({"learning_rate": 3}, "did you mean rate"),
        ({"rate": -1.0}, "rate is -1.0; it must be more than 0"),
    ],
)
def test_what_cannot_be_is_refused(given_, sentence):
    with pytest.raises(BertsmithError, match=re.escape(sentence)):
        find_recipe("bert", given_)


def test_recipes_are_found_and_changed():
    with pytest.raises(BertsmithError, match="there is no recipe 'smth'; the recipes are bert, roberta"):
        find_recipe("smth", {})
    for name, recipe in RECIPES.items():
        assert find_recipe(name, {}) == recipe
    changed = find_recipe("smith", {"tokens": 4096, "mask_rate": 0.2, "lengths": 64, "depth": 2})
    assert changed.training.first_tokens is None and changed.asking.rates() == 0.2
    assert changed.training.longest == 64 and changed.changed == {"depth": 2}
