"""Rows of many tasks, heads and adapters in one pass have the scores that each has in a pass of its own."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import bertsmith
from bertsmith.data.examples import TextExample
from bertsmith.layers.mixing import FeatureShape
from bertsmith.models.fitting import fit_head
from bertsmith.serving.passes import Together, Wanted, find_encoder
from bertsmith.tasks.alignment import split_text
from bertsmith.tasks.classify import Classify
from bertsmith.tasks.embed import Embed, Hidden
from bertsmith.tasks.fill import Fill
from bertsmith.tasks.tag import Tag

TEXTS = ["the film was good", "a plot", "ann lives in oslo and works at the river", "very very sad", "bob met eve"]


@pytest.fixture(scope="module")
def resident(heads, adapters):
    return bertsmith.load(heads["bare"], device="cpu", adapters=adapters)


@pytest.fixture(scope="module")
def both(heads):
    return bertsmith.load(heads["follows"], device="cpu")


def asked(model, name):
    """A task of the model, and the model that it is of."""
    made = (model.tokenizer, model.limit, "head")
    if name == "embed":
        return Embed(*made, model.sentence.pooling, True), model
    if name == "hidden":
        return Hidden(*made), model
    if name == "layers":
        return Hidden(*made, [0, -1 % (model.checkpoint.config.depth + 1)]), model
    home = model.adapters[name]
    kind = Tag if name == "names" else Classify
    return kind(*made, home.task_settings(kind)), home


def rows_of(task, text):
    if isinstance(task, Tag):
        return task.rows([split_text(text)])[0]
    if isinstance(task, Classify):
        return task.rows([TextExample(text, "it was bad" if task.settings.get("pairs") else None)])[0]
    return task.rows([text])[0]


NAMES = st.sampled_from(["embed", "hidden", "layers", "liked", "better", "names"])


@settings(max_examples=40)
@given(st.lists(st.tuples(NAMES, st.sampled_from(TEXTS)), min_size=1, max_size=12))
def test_rows_read_together_and_apart_have_the_same_scores(resident, given):
    device = torch.device("cpu")
    wanted = []
    for name, text in given:
        task, home = asked(resident, name)
        wanted += [Wanted(row, task, home.checkpoint.network) for row in rows_of(task, text)]
    assert len({find_encoder(one.network) for one in wanted}) == 1
    with torch.inference_mode():
        found = Together(device).score(wanted)
        for one, scores in zip(wanted, found, strict=True):
            (alone,) = Together(device).score([one])
            torch.testing.assert_close(scores, alone, rtol=0, atol=2e-6)


def test_the_encoder_reads_once(resident, monkeypatch):
    """Three adapters, two kinds of vectors: one pass, however many tasks."""
    calls = []
    plain = type(resident.checkpoint.network).encode

    def encode(self, batch):
        calls.append(len(batch.lengths))
        return plain(self, batch)

    monkeypatch.setattr(type(resident.checkpoint.network), "encode", encode)
    wanted = []
    for name in ("embed", "hidden", "liked", "better", "names", "liked"):
        task, home = asked(resident, name)
        wanted += [Wanted(row, task, home.checkpoint.network) for row in rows_of(task, TEXTS[2])]
    with torch.inference_mode():
        Together(torch.device("cpu")).score(wanted)
    assert calls == [len(wanted)]


def test_an_adapter_forgets_the_batch_before(resident):
    """Its places in one batch mean nothing in the next."""
    together = Together(torch.device("cpu"))
    with torch.inference_mode():
        for names in (["liked", "names", "embed"], ["embed", "better"], ["hidden", "embed"], ["names", "liked"]):
            wanted = []
            for name in names:
                task, home = asked(resident, name)
                wanted += [Wanted(row, task, home.checkpoint.network) for row in rows_of(task, TEXTS[0])]
            for one, scores in zip(wanted, together.score(wanted), strict=True):
                (alone,) = Together(torch.device("cpu")).score([one])
                torch.testing.assert_close(scores, alone, rtol=0, atol=2e-6)


def test_masks_with_and_without_targets_share_a_pass(both):
    """The likeliest pieces of one row, those of a word in another: neither changes what the other gets."""
    network, made = both.checkpoint.network, (both.tokenizer, both.limit, "head")
    tasks = [Fill(*made, 3), Fill(*made, 5, ["good", "bad"]), Fill(*made, 7), Fill(*made, 5, ["film"])]
    wanted = [Wanted(row, task, network) for task in tasks for row in next(task.talk("the [MASK] was good", []))]
    with torch.inference_mode():
        found = Together(torch.device("cpu")).score(wanted)
        for one, scores in zip(wanted, found, strict=True):
            (alone,) = Together(torch.device("cpu")).score([one])
            torch.testing.assert_close(scores, alone, rtol=0, atol=2e-6)


@pytest.mark.parametrize("layers", ["mix", "last"])
def test_a_head_that_reads_several_layers_has_its_own_beside_tasks_that_read_the_last(both, layers):
    shape = FeatureShape(layers, recurrent=0 if layers == "mix" else both.checkpoint.config.width // 2)
    network = fit_head(both.checkpoint, "classify", ["good", "bad"], features=shape)[0].network.eval()
    made = (both.tokenizer, both.limit, "head")
    tasks = [Classify(*made, {"labels": ["good", "bad"], "several": False}), Hidden(*made)]
    wanted = [Wanted(row, task, network) for task in tasks for text in TEXTS for row in rows_of(task, text)]
    with torch.inference_mode():
        found = Together(torch.device("cpu")).score(wanted)
        for one, scores in zip(wanted, found, strict=True):
            (alone,) = Together(torch.device("cpu")).score([one])
            torch.testing.assert_close(scores, alone, rtol=0, atol=2e-6)
