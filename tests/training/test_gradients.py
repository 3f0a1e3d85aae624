"""A step in many passes is a step in one; what a mistake costs is what the formulas say."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch.nn import functional as F
from training.looping import fit, gradients, make_loop
from training.made import make_rows, make_task

from bertsmith.data.batch import Batch
from bertsmith.models.checkpoint import load_checkpoint
from bertsmith.training.adversary import find_worst_step, fit_to_rows
from bertsmith.training.settings import Training

CASES = {
    "classify": ("classify", {}, {}),
    "balanced": ("classify", {}, {"class_weights": "balanced"}),
    "several": ("classify", {"several": True}, {"class_weights": "balanced"}),
    "tag": ("tag", {}, {}),
    "tag balanced": ("tag", {}, {"class_weights": "balanced", "focal": 2.0}),
    "span": ("span", {}, {"smoothing": 0.1}),
    "R-Drop": ("tag", {}, {"r_drop": 1.0}),
}


@pytest.fixture
def make(small_model, tmp_path):
    """A loop over 32 rows of unequal lengths in one step."""

    def build(name, of_task, dropout=0.0, **settings):
        task = make_task(small_model, name, **of_task)
        fitted = fit(load_checkpoint(small_model), task, dropout)
        rows = make_rows(name, 32, several=bool(of_task.get("several")))
        return make_loop(tmp_path / "run", fitted, task, rows, Training(batch=32, epochs=1, **settings))

    return build


@pytest.mark.parametrize("name, of_task, settings", CASES.values(), ids=CASES)
def test_four_passes_are_one(make, name, of_task, settings):
    whole = make(name, of_task, **settings)
    tokens = sum(len(row.ids) for rows in whole.study.rows for row in rows)
    parts = make(name, of_task, batch_tokens=tokens // 4 + 12, **settings)
    works = parts.study.works(0, 0, 1, parts.progress.budget)
    assert len(works) == 4 and len({len(work.lengths) for work in works}) > 1
    assert len(whole.study.works(0, 0, 1, whole.progress.budget)) == 1
    ours, theirs = gradients(parts), gradients(whole)
    largest = max(gradient.abs().max() for gradient in theirs.values())
    assert set(ours) == set(theirs)
    for key, gradient in theirs.items():
        assert (ours[key] - gradient).abs().max() < 2e-6 * largest, key
    assert parts.passes.now["loss"].item() == pytest.approx(whole.passes.now["loss"].item(), rel=1e-6)


def loss_of(loop):
    gradients(loop)
    return loop.passes.now["loss"].item()


def scores_of(loop, name):
    """The scores of all rows in the order of one pass, with its gold."""
    (work,) = loop.study.works(0, 0, 1, 10**6)
    batch, given = work.on(torch.device("cpu"))
    with torch.no_grad():
        return loop.study.task.read(loop.network, batch, given.get("at")), given["gold"], batch


def test_class_weights_and_smoothing_are_those_of_torch(make):
    loop = make("classify", {}, class_weights="balanced", smoothing=0.1)
    scores, gold, _ = scores_of(loop, "classify")
    there = torch.bincount(gold, minlength=3)
    weights = 32 / (3 * there)
    assert loss_of(loop) == pytest.approx(F.cross_entropy(scores, gold, weights, label_smoothing=0.1).item(), rel=1e-5)


def test_tags_count_by_token_and_fillers_not_at_all(make):
    loop = make("tag", {})
    scores, gold, _ = scores_of(loop, "tag")
    assert (gold < 0).any()
    assert loss_of(loop) == pytest.approx(F.cross_entropy(scores, gold, ignore_index=-1).item(), rel=1e-5)


def test_several_labels_weigh_by_how_rare_they_are(make):
    loop = make("classify", {"several": True}, class_weights="balanced")
    scores, gold, _ = scores_of(loop, "classify")
    rare = (len(gold) - gold.sum(0)) / gold.sum(0)
    wanted = F.binary_cross_entropy_with_logits(scores, gold, pos_weight=rare)
    assert loss_of(loop) == pytest.approx(wanted.item(), rel=1e-5)


def test_a_label_that_is_always_there_weighs_as_without_weights(small_model, tmp_path):
    """Negatives over positives would be 0: what it costs would be 0 too, and it would never be learnt."""
    task, rows = make_task(small_model, "classify", several=True), make_rows("classify", 32, several=True)
    for row in rows:
        row[0].gold[:, 0] = 1
    fitted = fit(load_checkpoint(small_model), task, 0.0)
    settings = Training(batch=32, epochs=1, class_weights="balanced")
    loop = make_loop(tmp_path / "run", fitted, task, rows, settings)
    scores, gold, _ = scores_of(loop, "classify")
    rare = (len(gold) - gold.sum(0)) / gold.sum(0)
    assert rare[0] == 0
    rare[0] = 1.0
    wanted = F.binary_cross_entropy_with_logits(scores, gold, pos_weight=rare)
    assert loss_of(loop) == pytest.approx(wanted.item(), rel=1e-5)


def test_focal_loss_is_its_formula(make):
    loop = make("tag", {}, focal=2.0)
    scores, gold, _ = scores_of(loop, "tag")
    scores, gold = scores[gold >= 0], gold[gold >= 0]
    right = scores.softmax(-1)[torch.arange(len(gold)), gold]
    assert loss_of(loop) == pytest.approx((-((1 - right) ** 2) * right.log()).mean().item(), rel=1e-5)


def test_a_span_costs_the_mean_of_its_ends(make):
    loop = make("span", {})
    scores, gold, batch = scores_of(loop, "span")
    costs = []
    for row, ends in zip(scores.split(list(batch.lengths)), gold, strict=True):
        costs += [F.cross_entropy(row[None, :, side], ends[side][None]) for side in range(2)]
    assert loss_of(loop) == pytest.approx(torch.stack(costs).mean().item(), rel=1e-5)


@pytest.mark.parametrize("name", ["classify", "tag", "span"])
def test_r_drop_adds_nothing_where_nothing_is_dropped(make, name):
    plain, twice = make(name, {}), make(name, {}, r_drop=3.0)
    ours, theirs = gradients(twice), gradients(plain)
    largest = max(gradient.abs().max() for gradient in theirs.values())
    assert all((ours[key] - theirs[key]).abs().max() < 1e-5 * largest for key in theirs)
    assert twice.passes.now["loss"].item() == pytest.approx(plain.passes.now["loss"].item(), rel=1e-6)


def test_r_drop_is_its_formula(make):
    """arXiv 2106.14448, equation 3, with the mean of the two losses in place of their sum."""
    loop = make("classify", {}, dropout=0.3, r_drop=2.0)
    seen = []
    read = loop.study.task.read
    loop.study.task.read = lambda *given: seen.append(read(*given)) or seen[-1]
    loss = loss_of(loop)
    one, other = (scores.detach().double() for scores in seen)
    (work,) = loop.study.works(0, 0, 1, 10**6)
    gold = torch.from_numpy(work.given["gold"].values)
    p, q = one.log_softmax(-1), other.log_softmax(-1)
    apart = F.kl_div(p, q, log_target=True, reduction="batchmean") + F.kl_div(
        q, p, log_target=True, reduction="batchmean"
    )
    mean = (F.cross_entropy(one, gold) + F.cross_entropy(other, gold)) / 2
    assert apart > 1e-4
    assert loss == pytest.approx((mean + 2.0 * apart / 2).item(), rel=1e-5)


def sides(loop):
    """How a pass under `adversarial` reads the rows: as they are, moved at random, moved the worst way; and the
    gradients of a step."""
    moves, readings, read = [], [], loop.study.task.read

    def keep(network, batch, at):
        moves.append(None if batch.shift is None else batch.shift.detach().clone())
        readings.append(read(network, batch, at))
        return readings[-1]

    loop.study.task.read = keep
    found = gradients(loop)
    loop.study.task.read = read
    return moves, [scores.detach() for scores in readings], found


def spread_apart(one, other):
    """The symmetric Kullback-Leibler divergence of each row, by torch."""
    p, q = one.double().log_softmax(-1), other.double().log_softmax(-1)
    both = F.kl_div(p, q, log_target=True, reduction="none") + F.kl_div(q, p, log_target=True, reduction="none")
    return both.sum(-1) / 2


def test_adversarial_is_its_formula(make):
    """arXiv 1911.03437, equation 3: the loss of the text, and how far the worst reading near it is from its own."""
    loop = make("classify", {}, adversarial=2.0, adversarial_reach=0.1)
    moves, (plain, _, worst), _ = sides(loop)
    (work,) = loop.study.works(0, 0, 1, 10**6)
    gold = torch.from_numpy(work.given["gold"].values)
    wanted = F.cross_entropy(plain, gold) + 2.0 * spread_apart(plain, worst).mean()
    assert loop.passes.now["loss"].item() == pytest.approx(wanted.item(), rel=1e-5)
    assert moves[0] is None
    for some in torch.stack(moves[1:]).split(list(work.lengths), dim=1):  # of each row the same reach
        assert torch.allclose(some.square().sum(-1).mean(-1).sqrt(), torch.tensor(0.1), rtol=1e-5)


@pytest.mark.parametrize("name", ["classify", "tag", "span"])
def test_the_worst_step_is_worse_than_steps_at_random(make, name):
    loop = make(name, {}, adversarial=1.0, adversarial_reach=0.02)
    moves, _, _ = sides(loop)
    (work,) = loop.study.works(0, 0, 1, 10**6)
    batch, given = work.on(torch.device("cpu"))
    loop.network.eval()

    def measure(step):
        with torch.no_grad():
            plain, moved = (loop.study.task.read(loop.network, rows, given.get("at")) for rows in (batch, step))
            return loop.study.task.diverge(plain, moved, batch).sum().item()

    chances = [measure(batch.moved(fit_to_rows(torch.randn_like(moves[1]), batch, 0.02))) for _ in range(20)]
    assert measure(batch.moved(moves[-1])) > 2 * max(chances) > 0


def test_half_precision_keeps_the_direction_of_a_small_slope():
    batch, width = Batch.of([[1, 2, 3], [4, 5]]), 4
    slope = torch.linspace(1.0, 2.0, 5 * width).view(5, width)

    def apart(step):
        return ((step.half() * slope.half()).float() * 3e-8).sum()  # the way back is half, where 3e-8 is nothing

    found = find_worst_step(batch, width, 0.1, apart)
    assert torch.allclose(found, fit_to_rows(slope, batch, 0.1), rtol=1e-2)


@pytest.mark.parametrize("name", ["classify", "tag", "span"])
def test_a_step_of_next_to_nothing_changes_nothing(make, name):
    """Nor does looking for the worst one leave a gradient behind."""
    plain, moved = make(name, {}), make(name, {}, adversarial=1.0, adversarial_reach=1e-4)
    ours, theirs = gradients(moved), gradients(plain)
    largest = max(gradient.abs().max() for gradient in theirs.values())
    assert set(ours) == set(theirs)
    assert all((ours[key] - theirs[key]).abs().max() < 1e-3 * largest for key in theirs)
    assert moved.passes.now["loss"].item() == pytest.approx(plain.passes.now["loss"].item(), rel=1e-5)


@pytest.mark.parametrize("settings", [{"recompute": True}, {"batch_tokens": 120}, {"lora": 2}], ids=str)
def test_adversarial_goes_with_other_ways_of_a_pass(make, settings):
    """Each pass draws its own random step, so parts of a batch end near the whole, not at it."""
    loops = [make("classify", {}, adversarial=1.0, adversarial_reach=0.02, **some) for some in (settings, {})]
    ours, theirs = (gradients(loop) for loop in loops)
    assert all(gradient.isfinite().all() for gradient in ours.values())
    assert loops[0].passes.now["loss"].item() == pytest.approx(loops[1].passes.now["loss"].item(), rel=1e-3)
    if settings == {"recompute": True}:
        assert all(torch.allclose(ours[key], theirs[key], atol=1e-6) for key in theirs)


def test_half_precision_learns(make, tmp_path):
    loop = make("classify", {}, precision="bf16", rate=3e-3, schedule="constant", warmup=0.0, log_every=1)
    loop.settings = replace(loop.settings, epochs=30)
    loop.steps = 30
    loop.run()
    losses = [record["loss"] for record in loop.folder.read_log() if "loss" in record]
    assert loop.precision == "bf16" and losses[-1] < 0.5 * losses[0]
    assert {parameter.dtype for parameter in loop.network.parameters()} == {torch.float32}


def test_bf16_gradients_are_near_those_of_full_precision(make):
    half, full = make("tag", {}, precision="bf16"), make("tag", {})
    ours, theirs = gradients(half), gradients(full)
    largest = max(gradient.abs().max() for gradient in theirs.values())
    far = max(((ours[key] - theirs[key]).abs().max() / largest).item() for key in theirs)
    assert 1e-6 < far < 0.05


def test_an_epoch_holds_each_example_once(make):
    loop = make("classify", {})
    study = type(loop.study)(loop.study.task, make_rows("classify", 50), Training(batch=8))
    assert study.steps_an_epoch() == 7
    orders = [[i for step in range(7) for i in study.chosen(7 * epoch + step)] for epoch in range(3)]
    assert all(sorted(order) == list(range(50)) for order in orders)
    assert orders[0] != orders[1] and orders[1] != orders[2]
    assert [study.size(step) for step in (0, 6, 7)] == [8, 2, 8]


def test_ranks_share_the_rows_of_a_step_without_loss(make):
    study = make("classify", {}).study
    one = study.works(0, 0, 1, 10**6)[0]
    parts = [study.works(0, rank, 3, 10**6)[0] for rank in range(3)]
    assert sum(part.counts["loss"] for part in parts) == one.counts["loss"] == 32
    assert sorted(np.concatenate([part.ids for part in parts])) == sorted(one.ids)
    assert max(len(part.ids) for part in parts) - min(len(part.ids) for part in parts) < 20
    lone = study.works(0, 40, 64, 10**6)[0]
    assert lone.counts["loss"] == 0 and (lone.given["gold"].values < 0).all()
