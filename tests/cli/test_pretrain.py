"""`bertsmith pretrain` from words to a folder: what a newcomer types, flags and files of settings, refusals."""

import json
import re
import subprocess
import sys
from dataclasses import fields

import pytest

import bertsmith
from bertsmith.cli import sentences
from bertsmith.cli.pretrain import RUN, TRAINING
from bertsmith.training.pretraining_settings import IDLE, Pretraining
from bertsmith.training.recipes import KINDS, Asking, Shape
from bertsmith.training.settings import Training

SMALL = ("--depth", 2, "--width", 32, "--lengths", 32, "--tokens", 256, "--threads", 1, "--device", "cpu")


@pytest.fixture
def caught(monkeypatch, real):
    """What `bertsmith pretrain` would give to `bertsmith.pretrain`, as far as it was asked for."""
    given = {}

    def catch_all(corpus, out, **named):
        given.update(named, corpus=corpus, out=out)

    monkeypatch.setattr(bertsmith, "pretrain", catch_all)

    def catch(*words):
        given.clear()
        ran = real("pretrain", *words)
        assert ran.status == 0, ran.err
        return {name: given[name] for name in given if name in (*KINDS, *RUN)}

    return catch


def test_a_newcomer_needs_few_flags(real, corpus, tmp_path):
    words = ("pretrain", "--corpus", corpus, "--out", tmp_path / "m", *SMALL, "--max-steps", 4)
    ran = real(*words)
    assert ran.status == 0, ran.err
    result = json.loads(ran.out)
    assert result["folder"] == str(tmp_path / "m")
    assert set(result["metrics"]) == {"masked_accuracy", "masked_loss", "pseudo_perplexity"}
    said = ran.err.splitlines()
    assert said[0] == "The encoder begins with random weights."
    assert sum(line.startswith("step ") and "tokens/s" in line for line in said) == 4
    held_out = r"^held out: masked_accuracy \d\.\d{4}, masked_loss \d\.\d{4}, pseudo_perplexity "
    assert re.search(held_out, ran.err, re.MULTILINE)
    use = said[-1].removeprefix("to use it: bertsmith ")
    assert use == f"fill 'It was a [MASK].' --model {tmp_path / 'm'}"
    used = real("fill", "It was a [MASK].", "--model", tmp_path / "m")
    assert used.status == 0 and len(used.records[0]["answers"]) == 5

    again = real(*words[:-2], "--steps", 4)  # the other name of that flag
    assert again.status == 0 and "holds this very run, finished; nothing to do" in again.err
    assert json.loads(again.out) == result
    other = real(*words, "--rate", "0.001")
    assert other.status == 1 and "rate was 0.002 and is now 0.001" in other.err and other.out == ""
    assert real(*words, "--rate", "0.001", "--overwrite", "--keep-checkpoints").status == 0
    assert list((tmp_path / "m" / "checkpoints").glob("last-*"))


def test_a_generator_is_what_one_asks(real, corpus, tmp_path):
    ran = real("pretrain", "--corpus", corpus, "--out", tmp_path / "m", "--recipe", "electra", *SMALL, "--max-steps", 1)
    assert ran.status == 0, ran.err
    assert ran.err.splitlines()[-1].endswith(f"--model {tmp_path / 'm' / 'generator'}")


def test_what_fills_no_masks_is_not_asked_to(real, corpus, tmp_path):
    words = ("--recipe", "bert", "--asks", "next", *SMALL, "--max-steps", 1)
    ran = real("pretrain", "--corpus", corpus, "--out", tmp_path / "m", *words)
    assert ran.status == 0, ran.err
    use = ran.err.splitlines()[-1].removeprefix("to use it: bertsmith ")
    assert use == f"info --model {tmp_path / 'm'}" and real(*use.split()).status == 0


def test_a_flag_is_read_with_what_a_file_and_a_model_bring(real, corpus, tmp_path):
    """Steps of 64 tokens are too small for the rows of the recipe that would be taken without them."""
    (tmp_path / "run.toml").write_text('recipe = "electra"\nlengths = "32"\ndepth = 2\nwidth = 32\n')
    words = ("--tokens", 64, "--max-steps", 1, "--device", "cpu", "--threads", 1)
    ran = real("pretrain", "--corpus", corpus, "--out", tmp_path / "m", "--settings", tmp_path / "run.toml", *words)
    assert ran.status == 0, ran.err
    further = ("--model", tmp_path / "m", "--tokens", 256, "--max-steps", 1, "--device", "cpu", "--threads", 1)
    ran = real("pretrain", "--corpus", corpus, "--out", tmp_path / "n", *further)  # rows of 128, as ELECTRA's
    assert ran.status == 0, ran.err


def test_a_plan_tells_and_writes_nothing(real, corpus, tmp_path):
    ran = real("pretrain", "--corpus", corpus, "--out", tmp_path / "m", "--plan", *SMALL, "--minutes", 20)
    assert ran.status == 0 and ran.out == "" and not list(tmp_path.iterdir())
    for name in ("recipe", "encoder", "corpus", "a step", "how long", "optimizer", "memory", "device"):
        assert re.search(rf"^ *{name}: \S", ran.err, re.MULTILINE), name
    assert ran.err.endswith("This was a plan: nothing was trained and nothing written.\n")
    assert real("pretrain", "--corpus", corpus, "--plan").status == 0  # the folder is not needed yet


def test_each_setting_has_a_flag_and_a_sentence():
    shown = {*TRAINING, *(field.name for kind in (Asking, Shape) for field in fields(kind))}
    assert shown == set(KINDS) and not set(RUN) & shown
    assert sentences.PRETRAINING.keys() <= shown
    assert shown <= sentences.PRETRAINING.keys() | sentences.SETTINGS.keys()
    own = {field.name for field in fields(Pretraining)} - {field.name for field in fields(Training)}
    assert own <= sentences.PRETRAINING.keys()
    ran = subprocess.run([sys.executable, "-m", "bertsmith", "pretrain", "--help"], capture_output=True, text=True)
    flags = set(re.findall(r"^  --([a-z0-9-]+)", ran.stdout, re.MULTILINE))
    assert {name.replace("_", "-") for name in (*shown, *RUN)} <= flags
    assert not {name.replace("_", "-") for name in IDLE} & flags


def test_flags_win_over_a_file_of_settings(caught, tmp_path):
    path = tmp_path / "run.toml"
    path.write_text(
        'corpus = "there"\nout = "here"\nminutes = 3\nrecipe = "bert"\n[encoder]\ndepth = 3\nwidth = 48\n'
        '[asking]\nasks = "causal:1,masked:3"\n'
        'mask-rate = "0.3:0.2"\nwhole-words = true\n[training]\ntokens = 4096\noptimizer = "muon"\n'
    )
    given = caught("--settings", path, "--depth", "4", "--no-whole-words", "--out", "elsewhere", "--lengths", "64")
    assert given == {
        "corpus": "there", "out": "elsewhere", "minutes": 3, "recipe": "bert", "depth": 4, "width": 48,
        "mask_rate": "0.3:0.2", "whole_words": False, "tokens": 4096, "optimizer": "muon", "lengths": "64",
        "asks": "causal:1,masked:3",
    }  # fmt: skip


def test_a_flag_that_was_not_given_says_nothing(caught):
    assert caught("--corpus", "c", "--out", "o") == {"corpus": "c", "out": "o"}
    assert caught("--corpus", "c", "--out", "o", "--asks", "distilled", "--teacher", "t")["teacher"] == "t"


def test_a_file_is_read_with_the_flags_over_it(caught, real, tmp_path):
    """Steps too small for the recipe's rows are not so for those of the flags; what is wrong is said of who gave it."""
    path = tmp_path / "run.toml"
    path.write_text("tokens = 64\nmask-replace = 0.95\n")
    words = ("--corpus", "c", "--out", "o", "--settings", path, "--lengths", "32", "--random-replace", "0.05")
    assert caught(*words)["tokens"] == 64
    ran = real("pretrain", *words, "--rate", "-1")
    assert ran.status == 1 and ran.err.splitlines()[-1] == "error: rate is -1.0; it must be more than 0."
    ran = real("pretrain", *words[:6])
    assert ran.status == 1 and f"{path}: tokens is 64, less than a row of 512" in ran.err


@pytest.mark.parametrize(
    "words, sentence",
    [
        (("--out", "m"), "--corpus is missing"),
        (("--corpus", "c"), "--out is missing"),
        (("--corpus", "c", "--out", "m", "--recipe", "brt"), "there is no recipe 'brt'"),
        (("--corpus", "c", "--out", "m", "--preset", "bert-bass"), "there is no preset 'bert-bass'"),
        (("--corpus", "c", "--out", "m", "--minutes", 1, "--max-steps", 2), "leave --max-steps and --epochs out"),
        (("--corpus", "c", "--out", "m", "--rate", "-1"), "rate is -1.0; it must be more than 0"),
        (("--corpus", "c", "--out", "m", "--lengths", "long"), "lengths is 'long'"),
        (("--corpus", "c", "--out", "m", "--tokens", "100"), "less than a row of 512"),
        (("--corpus", "c", "--out", "m", "--asks", "masked+ordr"), "'ordr' is no question (did you mean order?)"),
        (("--corpus", "c", "--out", "m", "--asks", "masked+order:x"), "a weight stands behind a star"),
        (("--corpus", "c", "--out", "m", "--distil-weights", "1"), "give three numbers as in"),
        (("--corpus", "c", "--out", "m", "--batch", "8"), "No such option"),
    ],
)
def test_a_mistake_in_the_command(real, words, sentence):
    ran = real("pretrain", *words)
    assert ran.status == 2 and sentence in " ".join(ran.err.split())


@pytest.mark.parametrize(
    "text, sentence",
    [
        ("batch = 8\n", "run.toml: batch is a setting of fine-tuning and has no meaning in pretraining; give tokens"),
        ("dept = 8\n", "run.toml has dept, which is not a setting; did you mean depth"),
        ('minutes = "long"\n', "run.toml: minutes is 'long'; it must be a number"),
        ("corpus = 1\n", "run.toml: corpus is 1; it must be text"),
        ("depth = 1.5\n", "run.toml: depth is 1.5; it must be a whole number"),
        ("rate = -1\n", "run.toml: rate is -1; it must be more than 0"),
        ('recipe = "berd"\n', "run.toml: there is no recipe 'berd'"),
        ("asks = 3\n", 'run.toml: asks is 3; it must be text, as in "masked"'),
    ],
)
def test_a_mistake_in_a_file_of_settings(real, corpus, tmp_path, text, sentence):
    (tmp_path / "run.toml").write_text(text)
    ran = real("pretrain", "--settings", tmp_path / "run.toml", "--corpus", corpus, "--out", tmp_path / "m")
    assert ran.status == 1 and sentence in ran.err and not (tmp_path / "m").exists()


def test_what_nothing_reads_is_refused_by_what_flags_and_file_say_together(real, corpus, tmp_path):
    path, out = tmp_path / "run.toml", tmp_path / "m"
    words = ("--corpus", corpus, "--out", out, *SMALL, "--max-steps", 1)
    ran = real("pretrain", *words, "--temperature", 2)  # its default, which would be ignored all the same
    assert ran.status == 1 and "temperature is for distilled, and asks is 'masked'; leave it out" in ran.err
    path.write_text("momentum = 0.9\nmask-rate = 0.2\n")  # both for smith
    ran = real("pretrain", *words, "--settings", path, "--asks", "causal")
    assert ran.status == 1 and "mask_rate is for masked, replaced and distilled, and asks is 'causal'" in ran.err
    ran = real("pretrain", *words, "--settings", path, "--recipe", "bert")
    assert ran.status == 1 and "momentum is for optimizer muon, and optimizer is 'adamw'" in ran.err
    assert not out.exists()
    words += ("--settings", path, "--recipe", "bert", "--optimizer", "muon")
    ran = real("pretrain", *words)
    assert ran.status == 0, ran.err
    assert "nothing to do" in real("pretrain", *words).err


def test_a_corpus_that_is_not_there(real, tmp_path):
    ran = real("pretrain", "--corpus", tmp_path / "c", "--out", tmp_path / "m")
    assert ran.status == 1 and "is not there; make one with `bertsmith corpus build`" in ran.err
    assert not (tmp_path / "m").exists()
