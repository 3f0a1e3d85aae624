"""Choosing: the reference's scores and loss, any number of choices in any order, which passes keep together."""

import random

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tasks.made import WORDS, bert_pieces, open_both, wordpiece_files
from torch.nn import functional as F

from bertsmith.data.batch import Batch
from bertsmith.data.examples import ChoiceExample
from bertsmith.errors import BertsmithError
from bertsmith.models.checkpoint import load_checkpoint
from bertsmith.tasks.choose import Choose
from bertsmith.tasks.losses import Criterion
from bertsmith.tasks.task import Row
from bertsmith.training.recorded import Recording, Room
from bertsmith.training.settings import Training
from bertsmith.training.study import TaskStudy

WORD_LIST = WORDS.split()


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    return open_both(tmp_path_factory.mktemp("choose"), "bert", "choose", wordpiece_files(bert_pieces()))


def make_task(both, **more):
    made = {**Choose.settle([], {}), **more}
    return Choose(both.ours.tokenizer, 64, made["truncate"], made)


def make_examples(count, seed=0, choices=(2, 6)):
    chance = random.Random(seed)
    found = []
    for _ in range(count):
        number = chance.randint(*choices)
        words = [" ".join(chance.sample(WORD_LIST, chance.randint(1, 5))) + f" {i}" for i in range(number)]
        prompt = " ".join(chance.choices(WORD_LIST, k=chance.randint(1, 9)))
        found.append(ChoiceExample(prompt, tuple(words), chance.randrange(number)))
    return found


def reference_scores(both, example):
    """One row of logits of the reference, which wants as many choices in every example."""
    given = both.tokenizer([example.prompt] * len(example.choices), list(example.choices), return_tensors="pt",
                           padding=True)  # fmt: skip
    return both.reference(**{name: rows[None] for name, rows in given.items()}).logits[0]


def lay(task, examples, filler=0):
    """All rows in one pass, shuffled, with rows behind them that are filler."""
    rows = [row for some in task.rows(examples) for row in some]
    random.Random(1).shuffle(rows)
    gold = task.gold(rows)
    empty = [Row([2, 3], [0, 0]) for _ in range(filler)]
    gold = np.concatenate([gold, np.full((filler, 2), -100)])
    batch = Batch.of([r.ids for r in rows + empty], [r.segments for r in rows + empty])
    return batch, torch.from_numpy(gold)


def test_answers_are_the_references(both):
    for example in make_examples(4):
        with torch.no_grad():
            wanted = reference_scores(both, example).softmax(dim=-1)
        result = both.ours.choose(example.prompt, example.choices)
        assert [a["score"] for a in result] == sorted((a["score"] for a in result), reverse=True)
        for answer in result:
            assert answer["score"] == pytest.approx(wanted[answer["index"]].item(), abs=1e-5)
            assert answer["choice"] == example.choices[answer["index"]]
    many = make_examples(5)
    found = both.ours.choose([e.prompt for e in many], [e.choices for e in many])
    alone = [both.ours.choose(e.prompt, e.choices) for e in many]
    assert [[a["index"] for a in r] for r in found] == [[a["index"] for a in r] for r in alone]
    assert both.ours.choose([], []) == []


def test_the_loss_is_the_references(both):
    """Four choices each, as the reference takes them in one batch; its loss is the mean over examples."""
    task, network = make_task(both), both.ours.checkpoint.network
    examples = make_examples(6, choices=(4, 4))
    rows = [both.tokenizer([e.prompt] * 4, list(e.choices), padding="max_length", max_length=64, return_tensors="pt")
            for e in examples]  # fmt: skip
    given_rows = {name: torch.stack([row[name] for row in rows]) for name in rows[0]}
    batch, gold = lay(task, examples, filler=3)
    with torch.no_grad():
        theirs = both.reference(**given_rows, labels=torch.tensor([e.right for e in examples])).loss
        ours = task.loss(task.read(network, batch, None), gold, batch, Criterion())
    assert ours.sum().item() / 6 == pytest.approx(theirs.item(), rel=1e-5)
    assert (ours > 0).sum() == 6


@settings(deadline=None)
@given(st.lists(st.integers(2, 6), min_size=1, max_size=8), st.integers(0, 4), st.integers(0, 1000))
def test_the_loss_is_cross_entropy_over_each_examples_rows(sizes, filler, seed):
    """Also its slope, in whatever order the rows stand, and none of it on filler."""
    chance = np.random.default_rng(seed)
    groups = np.repeat(np.arange(len(sizes)), sizes)
    right = {g: int(chance.integers(size)) for g, size in enumerate(sizes)}
    within = np.concatenate([np.arange(size) for size in sizes])
    gold = np.stack([np.where(within == [right[g] for g in groups], 0, -1), groups], axis=1)
    order = chance.permutation(len(gold))
    gold = torch.from_numpy(np.concatenate([gold[order], np.full((filler, 2), -100)]))
    scores = torch.from_numpy(chance.normal(size=(len(gold), 1)) * 20).requires_grad_()
    cost = Choose.loss(None, scores, gold, None, Criterion())
    (grad,) = torch.autograd.grad(cost.sum(), scores)
    back = torch.from_numpy(np.argsort(order))
    parts = scores[: len(order), 0].float()[back].split(sizes)
    wanted = sum(F.cross_entropy(part[None], torch.tensor([right[g]])) for g, part in enumerate(parts))
    (slope,) = torch.autograd.grad(wanted, scores)
    assert torch.allclose(cost.sum(), wanted, atol=1e-4) and torch.allclose(grad, slope, atol=1e-5)
    assert not cost[len(order) :].any() and not grad[len(order) :].any()


@settings(deadline=None, max_examples=25)
@given(st.data())
def test_the_order_of_choices_changes_nothing(both, data):
    choices = data.draw(st.lists(st.sampled_from(WORD_LIST), min_size=2, max_size=6, unique=True))
    prompt = " ".join(data.draw(st.lists(st.sampled_from(WORD_LIST), max_size=6)))
    other = data.draw(st.permutations(choices))
    one = {a["choice"]: a["score"] for a in both.ours.choose(prompt, choices)}
    two = {a["choice"]: a["score"] for a in both.ours.choose(prompt, other)}
    assert two == pytest.approx(one, abs=1e-6)
    task = make_task(both)
    costs = []
    for some in (choices, other):
        batch, gold = lay(task, [ChoiceExample(prompt, tuple(some), some.index(choices[0]))])
        with torch.no_grad():
            read = task.read(both.ours.checkpoint.network, batch, None)
            costs.append(task.loss(read, gold, batch, Criterion()).sum())
    assert costs[0].item() == pytest.approx(costs[1].item(), abs=1e-5)


@pytest.mark.parametrize(("budget", "ranks"), [(40, 1), (100, 1), (10**6, 1), (60, 3), (100, 40)])
def test_passes_never_part_an_example(both, budget, ranks):
    task, examples = make_task(both), make_examples(17)
    rows = task.rows(examples)
    study = TaskStudy(task, rows, Training(batch=17))
    seen, total = [], 0.0
    for rank in range(ranks):
        works = study.works(0, rank, ranks, budget)
        for work in works:
            total += work.counts["loss"]
            assert list(work.lengths) == sorted(work.lengths, reverse=True)
            gold = work.given["gold"].values
            if not work.counts["loss"]:
                assert (gold == -100).all()
                continue
            starts = np.cumsum(work.lengths) - work.lengths
            texts = [tuple(work.ids[s : s + n]) for s, n in zip(starts, work.lengths, strict=True)]
            for group in range(gold[:, 1].max() + 1):
                mine = [i for i in range(len(gold)) if gold[i, 1] == group]
                assert (gold[mine, 0] == 0).sum() == 1
                seen.append(frozenset(texts[i] for i in mine))
            assert len(work.ids) <= budget or work.counts["loss"] == 1
    assert total == 17
    assert sorted(map(hash, seen)) == sorted(hash(frozenset(tuple(row.ids) for row in some)) for some in rows)


def test_a_recorded_pass_costs_the_same(both):
    """Fixed rooms are filled up behind the last row."""
    task = make_task(both)
    (work,) = TaskStudy(task, task.rows(make_examples(7)), Training(batch=7)).works(0, 0, 1, 10**6)
    recording = Recording(Room.of(work), work, torch.device("cpu"))
    recording.lay(work, recording.flat.numpy())
    gold, plain = recording.given()["gold"], torch.from_numpy(work.given["gold"].values)
    assert len(gold) > len(plain) and (gold[len(plain) :] == -100).all()
    scores = torch.randn(len(gold), 1)
    cost = task.loss(scores, gold, None, Criterion())
    assert torch.allclose(cost[: len(plain)], task.loss(scores[: len(plain)], plain, None, Criterion()), atol=1e-6)
    assert not cost[len(plain) :].any()


def test_gradients_are_the_same_in_one_pass_or_in_many(both):
    task, examples = make_task(both), make_examples(9)
    study = TaskStudy(task, task.rows(examples), Training(batch=9))
    found = []
    for budget in (30, 10**6):
        trained = load_checkpoint(both.ours.folder).network.eval()
        trained.requires_grad_(True)
        for work in study.works(0, 0, 1, budget):
            batch, given_arrays = work.on(torch.device("cpu"))
            study.losses(trained, batch, given_arrays)["loss"].backward()
        found.append(torch.cat([p.grad.flatten() for p in trained.parameters() if p.grad is not None]))
    assert torch.allclose(*found, rtol=1e-3, atol=1e-4 * found[1].abs().max().item())


def test_training_that_compares_nothing_is_refused(both):
    task = make_task(both)
    for setting in ({"r_drop": 1.0}, {"adversarial": 1.0}, {"focal": 1.0}, {"class_weights": "balanced"}):
        with pytest.raises(BertsmithError, match=f"{next(iter(setting))} has no meaning for the task choose"):
            TaskStudy(task, task.rows(make_examples(2)), Training(**setting))


def test_long_inputs(both):
    long = ChoiceExample("the " * 90, ("a dog", "a cat"), 0, "train.csv, row 3")
    (rows,) = make_task(both).rows([long])
    assert [len(row.ids) for row in rows] == [64, 64] and all(row.dropped > 0 for row in rows)
    with pytest.raises(BertsmithError, match=r"train.csv, row 3: a choice with its prompt has \d+ tokens but at most"):
        make_task(both, truncate="error").rows([long])
    with pytest.raises(BertsmithError, match="choose has no meaning for truncate='windows'"):
        make_task(both, truncate="windows")


@pytest.mark.parametrize(
    ("prompt", "choices", "why"),
    [
        ("x", [], "there are no choices; give at least two."),
        ("x", ["a"], "one choice is no choice; give at least two."),
        ("x", ["a", "b", "a"], "the choice 'a' is there twice; give each once."),
        ("x", "ab", "give a list of texts, not a single one."),
        ("x", ["a", 3], "text 2 must be a string, not int."),
        (["x", "y"], [["a", "b"]], "choose got 2 prompts and 1 lists of choices; give one each."),
        (["x"], 3, "give a list of choices for each prompt, not int."),
        (["x"], None, "give a list of choices for each prompt, not NoneType."),
        (["x", "y"], ["a", "b", "c"], "give a list of choices for each prompt, not str."),
    ],
)
def test_bad_requests(both, prompt, choices, why):
    with pytest.raises(BertsmithError) as error:
        both.ours.choose(prompt, choices)
    assert str(error.value) == why


def test_accuracy_and_mistakes(both):
    task, examples = make_task(both), make_examples(12)
    answers = both.ours.predictor.predict(task, examples)
    right = [result[0]["index"] == e.right for result, e in zip(answers, examples, strict=True)]
    assert task.score(answers, examples)["accuracy"].point == pytest.approx(np.mean(right))
    errors = task.report(answers, examples)["errors"]
    sure = [error["score"] for error in errors]
    assert len(errors) == 12 - sum(right) and sure == sorted(sure, reverse=True)
    with pytest.raises(BertsmithError, match="An example has no answer to score by"):
        task.score(answers[:1], [ChoiceExample("x", ("a", "b"))])
