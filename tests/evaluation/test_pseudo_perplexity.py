"""The pseudo-perplexity of held-out text: as its definition has it, computed one token at a time by `transformers`."""

import json
import math

import numpy as np
import pytest
import torch
import transformers
from pretraining_made import SHORT, make_corpus, pretrain

import bertsmith
from bertsmith.data.rows_plan import Phase, open_passes
from bertsmith.data.shards import Corpus
from bertsmith.evaluation.pseudo_perplexity import hide_each, measure_pseudo_perplexity
from bertsmith.models.checkpoint import load_checkpoint

CPU = torch.device("cpu")
LENGTH = 32


@pytest.fixture(scope="module")
def runs(corpus, tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    for name in ("bert", "smith", "electra"):
        pretrain(corpus, folder / name, name, **SHORT)
    return folder


@pytest.fixture(scope="module")
def held_out(corpus):
    return Corpus.open(corpus, "held-out")


def all_rows(corpus):
    """The rows of the one pass that is as long as the text."""
    rows = open_passes(corpus, [Phase(LENGTH)], max(LENGTH, len(corpus.tokens)))[0].rows_of(0)
    ends = np.cumsum(rows.lengths)
    return [rows.ids[end - length : end].tolist() for end, length in zip(ends, rows.lengths, strict=True)]


@torch.no_grad()
def reference(folder, corpus):
    """exp of the mean of -log P over all tokens, each hidden alone; and how many they are."""
    model = transformers.AutoModelForMaskedLM.from_pretrained(folder).eval()
    specials = {*corpus.header["special_ids"]} - {corpus.specials["unk"]}
    chances = []
    for ids in all_rows(corpus):
        for place, wanted in enumerate(ids):
            if wanted not in specials:
                hidden = torch.tensor([[*ids[:place], corpus.specials["mask"], *ids[place + 1 :]]])
                chances.append(model(input_ids=hidden).logits[0, place].log_softmax(-1)[wanted].item())
    return math.exp(-sum(chances) / len(chances)), len(chances)


@pytest.mark.parametrize("name", ["bert", "smith"])
def test_every_token_hidden_alone(runs, held_out, name):
    wanted, count = reference(runs / name, held_out)
    network = load_checkpoint(runs / name).network
    found = measure_pseudo_perplexity(held_out, LENGTH, network, CPU, samples=10**6)
    assert found["n"] == count and found["value"] == pytest.approx(wanted, rel=1e-4)
    assert found["low"] < found["value"] < found["high"]


def test_a_run_tells_it(runs, held_out):
    facts = json.loads((runs / "bert" / "metrics.json").read_text())["metrics"]["held-out"]["pseudo_perplexity"]
    network = load_checkpoint(runs / "bert").network
    found = measure_pseudo_perplexity(held_out, LENGTH, network, CPU)
    assert facts["value"] == pytest.approx(found["value"], rel=1e-6) and facts["n"] == found["n"]
    assert "pseudo_perplexity" in (runs / "bert" / "report.html").read_text()
    assert "pseudo_perplexity" not in json.loads((runs / "electra" / "metrics.json").read_text())["metrics"]["held-out"]


def test_a_sample_is_always_the_same_and_never_repeats(held_out):
    mask = held_out.specials["mask"]
    first, again = ([(tuple(row.ids), row.at[0], row.wanted[0]) for row in hide_each(held_out, LENGTH, samples)]
                    for samples in (50, 50))  # fmt: skip
    assert first == again and len(set(first)) > 45
    for ids, at, wanted in first:
        assert ids[at] == mask and ids.count(mask) == 1 and wanted not in (mask, held_out.specials["cls"])
    everything = {(tuple(row.ids), row.at[0]) for row in hide_each(held_out, LENGTH, 10**6)}
    assert {(ids, at) for ids, at, _ in first} <= everything


def test_without_text_there_is_none(tmp_path, runs):
    bare = Corpus.open(make_corpus(tmp_path / "bare", documents=20, held_out=0.0), "held-out")
    assert measure_pseudo_perplexity(bare, LENGTH, load_checkpoint(runs / "bert").network, CPU) is None


def test_a_network_in_training_stays_in_training(runs, held_out):
    network = load_checkpoint(runs / "bert").network.train()
    measure_pseudo_perplexity(held_out, LENGTH, network, CPU, samples=4)
    assert network.training


def test_it_agrees_with_what_evaluate_says_of_texts(tmp_path, runs):
    """One document that fits into a row: the same number as `bertsmith.pseudo_likelihood` gives for its text."""
    text = "The river runs."
    (tmp_path / "texts.txt").write_text(text + "\n")
    bertsmith.build_corpus(tmp_path / "texts.txt", runs / "bert", tmp_path / "corpus", held_out=0.0, filters=False,
                           duplicates=False, near_duplicates=False)  # fmt: skip
    one = Corpus.open(tmp_path / "corpus")
    found = measure_pseudo_perplexity(one, LENGTH, load_checkpoint(runs / "bert").network, CPU, samples=10**6)
    likely = bertsmith.pseudo_likelihood(runs / "bert", text).answers[0]
    assert found["value"] == pytest.approx(likely["perplexity"], rel=1e-4)
