"""A pass laid into the room of a recording is the same pass: the same words hidden, the same losses and gradients."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from pretraining_made import SMALL

from bertsmith.data.batch import room_of_rows, round_size
from bertsmith.models.checkpoint import save_checkpoint
from bertsmith.objectives.choosing import choose
from bertsmith.training.compiled import TwinPasses
from bertsmith.training.devices import Ranks
from bertsmith.training.optimizer import make_optimizer
from bertsmith.training.pretraining import PretrainingStudy
from bertsmith.training.pretraining_start import prepare
from bertsmith.training.recipes import find_recipe
from bertsmith.training.replaying import Replay, Room, lay

CPU, STEPS = torch.device("cpu"), 6
PLAIN = {name: SMALL[name] for name in ("depth", "width", "heads", "tokens", "lengths") if name in SMALL}
WAYS = {
    "masked": ("bert", {"asks": "masked"}),
    "next sentence": ("bert", {"asks": "masked+next"}),
    "sentence order alone": ("bert", {"asks": "order"}),
    "spans and order": ("albert", {"optimizer": "adamw", "rate": 1e-3}),
    "static": ("bert", {"asks": "masked", "static": True}),
    "whole words": ("bert", {"asks": "masked", "whole_words": True}),
    "falling": ("smith", {"optimizer": "adamw", "rate": 1e-3}),
    "onward, then masked": ("smith", {"asks": "causal:0.5,masked:0.5", "optimizer": "adamw", "rate": 1e-3}),
    "weights that change": ("bert", {"asks": "masked+next*1:0.1"}),
}


def open_study(corpus, way, **more):
    recipe, given_ = WAYS[way]
    given_ = {**given_, **more}
    chosen = find_recipe(recipe, {**PLAIN, "pass_tokens": 256, "dropout": 0.0, "max_steps": STEPS, **given_})
    start = prepare(corpus, chosen, Ranks())
    study = PretrainingStudy(start.corpus, start.made.objective, chosen.training, STEPS, start.size, start.made.rows)
    return start.checkpoint.network.train(), study, chosen.training


def train(corpus, way, records, **more):
    network, study, training = open_study(corpus, way, **more)
    passes = TwinPasses(network, study, training, CPU, "fp32", Ranks(0, 1, CPU), compiles=False, records=records)
    optimizer, losses = make_optimizer(network, training), []
    for step in range(STEPS):
        works = study.works(step, 0, 1, 0)
        assert len(works) > 1
        passes.run(works, step)
        passes.finish(optimizer)
        losses.append(passes.report()[0])
    return network, passes, losses


@pytest.fixture(scope="module")
def teacher(corpus, tmp_path_factory):
    folder = tmp_path_factory.mktemp("teacher")
    start = prepare(corpus, find_recipe("bert", {**PLAIN, "asks": "masked", "seed": 9}), Ranks())
    save_checkpoint(start.checkpoint, folder)
    start.corpus.tokenizer().save(folder)
    return str(folder)


@pytest.mark.parametrize("way", WAYS)
def test_a_room_changes_nothing(corpus, way):
    assert_same(train(corpus, way, records=False), train(corpus, way, records=True))


@pytest.mark.parametrize("masked", [False, True])
def test_a_teacher_says_the_same_in_a_room(corpus, teacher, masked):
    given_ = {"asks": "distilled", "teacher": teacher, "distil_masked": masked}
    assert_same(*(train(corpus, "masked", records, **given_) for records in (False, True)))


def test_what_needs_lengths_is_not_laid_out(corpus, teacher):
    given_ = {"asks": "relations", "teacher": teacher}
    (_, _, losses), (_, passes, others) = (train(corpus, "masked", records, **given_) for records in (False, True))
    assert losses == others and not passes.replays


@pytest.mark.parametrize("asks", ["masked", "replaced", "masked+next"])
def test_shares_of_rows_that_change_are_not_recorded(corpus, asks):
    """A recording would keep the share of the pass that it was made of."""
    recipe = "electra" if asks == "replaced" else "bert"
    given_ = {**PLAIN, "pass_tokens": 256, "max_steps": STEPS, "asks": asks, "static": True, "mask_rate": "0.3:0.15"}
    start = prepare(corpus, find_recipe(recipe, given_), Ranks())
    assert start.made.objective.outline(200, 8, 0.5) is None


def test_kinds_that_take_turns_keep_their_recordings(corpus):
    """A new kind drops what the others had, as their memory is needed; one that comes again does not."""
    network, study, training = open_study(corpus, "masked")
    passes = TwinPasses(network, study, training, CPU, "fp32", Ranks(0, 1, CPU), compiles=False, records=True)
    (work, *_), kept = study.works(0, 0, 1, 0), []
    others = [replace(work, outline=(name, *work.outline[1:])) for name in ("one", "other")]
    for step in range(6):
        passes.run([others[step % 2]], step)
        kept.append([room.outline[0] for room in passes.replays])
    assert kept == [["one"], ["other"], ["other", "one"], ["other", "one"], ["other", "one"], ["other", "one"]]


def assert_same(one, other):
    (plain, _, losses), (laid, passes, others) = one, other
    assert len(losses[0]) and len(passes.replays) > 1
    for one, other in zip(losses, others, strict=True):
        assert other == pytest.approx(one, rel=1e-5)
    for (name, one), (_, other) in zip(plain.named_parameters(), laid.named_parameters(), strict=True):
        assert torch.allclose(one, other, atol=1e-5), name


def test_a_generator_learns_the_same_in_a_room(corpus):
    """Its own draws are of more places, so what it makes up differs; what it is asked does not."""
    WAYS["replaced"] = ("electra", {"stay_hidden": 0.0})
    try:
        (_, _, plain), (_, _, laid) = (train(corpus, "replaced", records) for records in (False, True))
    finally:
        del WAYS["replaced"]
    assert laid[0]["generator"] == pytest.approx(plain[0]["generator"], rel=1e-5)
    assert laid[-1]["replaced"] == pytest.approx(plain[-1]["replaced"], rel=0.3)


@pytest.mark.parametrize("way", WAYS)
def test_few_rooms_are_enough(corpus, way):
    """Of one room, passes have the same shapes; and the rows of a batch are those of the pass."""
    _, study, _ = open_study(corpus, way)
    rooms = {}
    for step in range(STEPS):
        for number, work in enumerate(study.works(step, 0, 1, 0)):
            room, laid = Room.of(work, number == 0), lay(work, CPU)
            shapes = {name: tuple(tensor.shape) for name, tensor in laid.items()}
            assert rooms.setdefault(room, shapes) == shapes
            replay = Replay(laid, study.names)
            batch, given_, _ = replay.read(work, room)
            plain, _ = work.on(CPU)
            assert torch.equal(batch.ids, plain.ids) and torch.equal(batch.positions, plain.positions)
            assert torch.equal(batch.owners, plain.owners)
            rows = len(work.lengths)
            assert torch.equal(batch.firsts[:rows], plain.firsts) and torch.equal(batch.counts[:rows], plain.counts)
            assert len(batch.lengths) == room_of_rows(work.lengths) == len(batch.counts)
            asked = study.objective.ask(batch, given_, int(work.facts["ordinary"]), work.facts["done"])
            sizes = {name: tuple(tensor.shape) for name, tensor in asked.given.items()}
            assert rooms.setdefault((room, "asked"), sizes) == sizes
    assert len(rooms) / 2 < sum(len(study.works(step, 0, 1, 0)) for step in range(STEPS))


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_what_the_device_counts_is_what_the_host_counts(data):
    """As many as asked for, and the same, whatever room there is."""
    size = data.draw(st.integers(1, 40))
    starts = torch.tensor(data.draw(st.lists(st.booleans(), min_size=size, max_size=size)))
    units = torch.where(starts, torch.arange(size), 0).cummax(0).values
    ordinary = torch.tensor(data.draw(st.lists(st.booleans(), min_size=size, max_size=size)))[units]
    scores = torch.rand(size, generator=torch.Generator().manual_seed(data.draw(st.integers(0, 99))))[units]
    count = data.draw(st.integers(1, size))
    room = data.draw(st.integers(count, size + 5))
    at, chosen = choose(units, scores, ordinary, count)
    others, theirs = choose(units, scores, ordinary, room, torch.tensor([count]))
    assert at[chosen].tolist() == others[theirs].tolist()


@given(st.integers(1, 10**6), st.sampled_from([1, 8, 64, 128]), st.sampled_from([8, 16]))
def test_sizes_are_rounded_up_by_little(number, least, parts):
    size = round_size(number, least, parts)
    assert number <= size < number + max(least, number / parts + 1)
    assert round_size(size, least, parts) == size
