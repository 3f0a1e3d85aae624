"""Whatever is asked of a text, two processes learn what one does, each with all weights (ddp) or a part of them (fsdp).

A run that stopped goes on with another number of processes.
"""

import json

import numpy as np
import pytest
import safetensors.torch
import torch
import transformers
from hypothesis import given, settings
from hypothesis import strategies as st
from pretraining_made import SMALL, make_corpus, pretrain
from training import pretraining_ranks
from training.pretraining_ranks import ASKED, CHUNKED, SPREAD, STOPPED

from bertsmith.training.devices import Ranks
from bertsmith.training.pretraining import PretrainingStudy
from bertsmith.training.pretraining_start import prepare
from bertsmith.training.recipes import find_recipe


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """With a teacher beside it."""
    corpus = make_corpus(tmp_path_factory.mktemp("spread"))
    pretrain(corpus, corpus.parent / "teacher", "bert", asks="masked", max_steps=4)
    return corpus


@pytest.fixture(scope="module")
def alone(corpus, tmp_path_factory):
    """Everything that is asked, in one process, for which ddp and fsdp are nothing."""
    folder = tmp_path_factory.mktemp("alone")
    for name in ASKED:
        pretraining_ranks.train(corpus, folder / name, f"{name}-ddp")
    return folder


@pytest.fixture(scope="module")
def spread(starter, corpus, tmp_path_factory):
    """The same in two processes, all in one start; some were begun by one process."""
    folder = tmp_path_factory.mktemp("ranks")
    for name in STOPPED:
        pretraining_ranks.stop(corpus, folder / f"{name}-begun-alone", name)
    ran = starter.run_ranks(["training.pretraining_ranks", corpus, folder, "spread"], folder)
    assert ran.returncode == 0, ran.stderr[-3000:]
    return folder


def read_log(run):
    return [json.loads(line) for line in (run / "log.jsonl").read_text().splitlines()]


def read_last(run):
    """Every tensor of the last checkpoint by file and name."""
    (last,) = run.glob("checkpoints/last-*")
    assert last.name == "last-000008"
    known = ("model", "optimizer", "generator/model", "aside/model")
    names = [name for name in known if (last / f"{name}.safetensors").exists()]
    files = {name: safetensors.torch.load_file(last / f"{name}.safetensors") for name in names}
    return {(name, key): tensor for name, file in files.items() for key, tensor in file.items()}


def assert_near(ours, theirs):
    """The logs and the last checkpoints of two runs, but for rounding."""
    logs = read_log(ours), read_log(theirs)
    assert len(logs[0]) == len(logs[1]) > 3
    for one, other in zip(*logs, strict=True):
        assert one.keys() == other.keys()
        for key in one.keys() - {"metrics", "split"}:
            assert one[key] == pytest.approx(other[key], rel=1e-3), key
    found, wanted = read_last(ours), read_last(theirs)
    assert found.keys() == wanted.keys()
    is_muon = theirs.name in ("muon", "few")
    for key, tensor in found.items():
        apart = (tensor - wanted[key]).abs().max()
        if is_muon and tensor.ndim == 2 and key[0] == "model":
            # Directions in which the gradient is next to nothing are what rounding makes of them, in full length.
            assert (tensor - wanted[key]).norm() < 0.04 * wanted[key].norm(), key
        else:
            assert apart < 2e-5 + 1e-3 * wanted[key].abs().max(), key


def assert_same_weights(ours, theirs):
    found, wanted = read_last(ours), read_last(theirs)
    assert found.keys() == wanted.keys()
    assert [key for key, tensor in found.items() if not torch.equal(tensor, wanted[key])] == []


@pytest.mark.parametrize("name", SPREAD)
def test_two_processes_are_one(spread, alone, name):
    assert_near(spread / name, alone / name.split("-")[0])


@pytest.mark.parametrize("name", CHUNKED)
def test_each_process_scores_in_as_many_parts_as_it_likes(spread, alone, name):
    assert_near(spread / f"{name}-chunked", alone / name.split("-")[0])


@pytest.mark.parametrize("name", ASKED)
def test_all_of_them_learn(alone, name):
    """Else it would mean little that they come to the same."""
    whole = read_last(alone / name)
    moved = [key for key in whole if key[0] == "optimizer" and key[1].startswith("exp_avg.") and whole[key].any()]
    kept = [key for key in whole if key[0] == "optimizer" and key[1].startswith("exp_avg.")]
    assert len(moved) > 0.9 * len(kept) > 10
    assert len({record["loss"] for record in read_log(alone / name) if "loss" in record}) > 2


@pytest.mark.parametrize("name", ["masked", "next", "order", "causal", "distilled"])
def test_two_processes_of_a_pass_each_are_one_to_the_bit(spread, alone, name):
    """The sum of two numbers does not know their order."""
    assert_same_weights(spread / f"{name}-ddp", alone / name)


@pytest.mark.parametrize("name", STOPPED)
def test_two_processes_that_stopped_go_on_to_the_bit(spread, name):
    assert_same_weights(spread / f"{name}-again", spread / name)
    assert read_log(spread / f"{name}-again") == read_log(spread / name)


@pytest.mark.parametrize("name", STOPPED)
def test_what_two_processes_began_one_ends(corpus, spread, alone, name):
    stopped = spread / f"{name}-stopped"
    assert [path.name for path in stopped.glob("checkpoints/last-*")] == ["last-000004"]
    pretraining_ranks.train(corpus, stopped, name)
    assert_near(stopped, alone / name.split("-")[0])


@pytest.mark.parametrize("name", STOPPED)
def test_what_one_process_began_two_end(spread, alone, name):
    assert_near(spread / f"{name}-begun-alone", alone / name.split("-")[0])


def test_a_generator_in_parts_opens_elsewhere(spread):
    """With the tables that it has from the network."""
    run = spread / "replaced-fsdp"
    generator, said = transformers.ElectraForMaskedLM.from_pretrained(run / "generator", output_loading_info=True)
    assert not said["missing_keys"] and not said["unexpected_keys"]
    model = transformers.ElectraForPreTraining.from_pretrained(run)
    ours, theirs = (each.electra.embeddings.word_embeddings.weight for each in (model, generator))
    assert torch.equal(ours, theirs)


STEPS = 9


def gather(study, step, ranks):
    """What the processes read in a step and what is asked of it, by the seed of each pass; and what they count."""
    found, counts = {}, {}
    for rank in range(ranks):
        for work in study.works(step, rank, ranks, 0):
            torch.manual_seed(work.seed)
            batch, given_ = work.on(torch.device("cpu"))
            asked = study.objective.ask(batch, given_, int(work.facts["ordinary"]), work.facts["done"])
            for name, count in work.counts.items():
                counts[name] = counts.get(name, 0.0) + count
            if any(work.scales.values()):  # else it is a filler
                assert work.seed not in found  # nothing is read twice
                tensors = {"ids": batch.ids, "segments": batch.segments, "read": asked.batch.ids, **asked.given}
                found[work.seed] = work.lengths, {name: tensor.numpy() for name, tensor in tensors.items()}
    return found, counts


@settings(max_examples=40, deadline=None)
@given(
    st.sampled_from(["masked", "masked+next", "masked+order", "causal+masked"]), st.integers(0, 2**31),
    st.integers(0, STEPS - 1), st.integers(2, 8), st.sampled_from([256, 1024, 2304]), st.booleans(),
)  # fmt: skip
def test_a_step_is_the_same_for_any_number_of_processes(corpus, asks, seed, step, ranks, tokens, climbs):
    chosen = {**SMALL, "asks": asks, "seed": seed, "tokens": tokens, "pass_tokens": 128, "lengths": "32:0.5,64:0.5"}
    recipe = find_recipe("bert", chosen | ({"first_tokens": 128, "ramp": 0.7} if climbs else {}))
    start = prepare(corpus, recipe, Ranks())
    study = PretrainingStudy(start.corpus, start.made.objective, recipe.training, STEPS, start.size, start.made.rows)
    ours, theirs = gather(study, step, 1), gather(study, step, ranks)
    assert ours[1] == pytest.approx(theirs[1]) and min(ours[1].values()) > 0
    assert ours[0].keys() == theirs[0].keys()
    for key, (lengths, tensors) in ours[0].items():
        assert theirs[0][key][0] == lengths and theirs[0][key][1].keys() == tensors.keys()
        assert all(np.array_equal(theirs[0][key][1][name], array) for name, array in tensors.items())
