"""From a corpus to an encoder that others open: recipes, runs that stop and go on, trained models that learn on."""

import json
import re
import shutil
from dataclasses import replace

import pytest
import safetensors.torch
import torch
import transformers
from oracle import pad
from pretraining_made import ROUND, SHORT, SMALL, STEPS, Stop, assert_same, make_corpus, pretrain

import bertsmith
from bertsmith.cli.pretrain import find_use
from bertsmith.data.batch import Batch
from bertsmith.data.shards import Corpus
from bertsmith.errors import BertsmithError
from bertsmith.inspect import attribute
from bertsmith.models.checkpoint import load_checkpoint
from bertsmith.training.devices import Ranks
from bertsmith.training.pretraining import PretrainingStudy
from bertsmith.training.pretraining_start import prepare
from bertsmith.training.recipes import find_recipe, fit_to_trained

CLASSES = {
    "bert": "BertForPreTraining", "roberta": "RobertaForMaskedLM", "albert": "AlbertForPreTraining",
    "distilbert": "DistilBertForMaskedLM", "electra": "ElectraForPreTraining", "modernbert": "ModernBertForMaskedLM",
    "smith": "ModernBertForMaskedLM",
}  # fmt: skip
HEADS = {"bert": ("mask", "follows"), "albert": ("mask", "follows"), "electra": ("replaced",)}


pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module")
def trained(corpus, tmp_path_factory):
    """Each recipe, undisturbed."""
    folder = tmp_path_factory.mktemp("trained")
    for name in CLASSES:
        pretrain(corpus, folder / name, name, **SHORT)
    return folder


def scores_of(model, rows, family):
    ids = [torch.tensor(row) for row in rows]
    given = {"input_ids": pad(ids, model.config.pad_token_id, "right")}
    given["attention_mask"] = pad([torch.ones_like(row) for row in ids], 0, "right")
    with torch.no_grad():
        found = model.eval()(**given)
    names = {"bert": ("prediction_logits", "seq_relationship_logits"), "albert": ("prediction_logits", "sop_logits")}
    return [getattr(found, name) for name in names.get(family, ("logits",))]


@pytest.mark.parametrize("name", CLASSES)
def test_the_folder_opens_in_its_class_and_gives_the_same_scores(corpus, trained, name):
    model, said = getattr(transformers, CLASSES[name]).from_pretrained(trained / name, output_loading_info=True)
    assert not any(said[key] for key in ("missing_keys", "unexpected_keys", "mismatched_keys"))
    tokens = Corpus.open(corpus, "held-out").tokens
    rows = [[2, *tokens[start : start + size].tolist(), 3] for start, size in ((0, 20), (20, 7), (40, 13))]
    checkpoint = load_checkpoint(trained / name)
    assert not checkpoint.left_out and model.config.vocab_size == checkpoint.config.vocabulary
    batch = Batch.of(rows, [[0] * len(row) for row in rows])
    heads = HEADS.get(name, ("mask",))
    with torch.no_grad():
        hidden = checkpoint.network(batch)
        for head, theirs in zip(heads, scores_of(model, rows, name), strict=True):
            ours = checkpoint.network.score(hidden, batch, head)
            if head == "replaced":
                theirs = theirs[..., None]
            if head != "follows":
                theirs = torch.cat([row[: len(ids)] for row, ids in zip(theirs, rows, strict=True)])
            torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-5)


@pytest.mark.parametrize("name", CLASSES)
def test_the_folder_is_read_as_it_was_trained(corpus, trained, name):
    """Positions, windows and all other settings; what drops in a head for other tasks is theirs to say."""
    start = prepare(corpus, find_recipe(name, SMALL), Ranks())
    ours, read = (replace(c.config, head_dropout=0.0) for c in (start.checkpoint, load_checkpoint(trained / name)))
    assert ours == read
    if start.made.generator is not None:
        assert start.made.generator.config == load_checkpoint(trained / name / "generator").config


@pytest.mark.parametrize("name", CLASSES)
def test_words_are_filled(trained, name):
    folder = trained / name / "generator" if name == "electra" else trained / name
    found = bertsmith.load(folder).fill(f"{ROUND[0]} {ROUND[1]} [MASK] {ROUND[3]}.")
    assert len(found.answers) == 5 and found.answers[0]["token_str"]
    if name == "bert":
        assert bertsmith.load(folder).follows("the river", "bank runs").answers


@pytest.mark.parametrize(("family", "asked", "wrong"), [
    ("bert", "next", "random"), ("bert", "order", "swapped"), ("albert", "next", "random"),
    ("albert", "order", "swapped"),
])  # fmt: skip
def test_pairs_are_told_by_the_question_that_was_learnt(corpus, tmp_path, family, asked, wrong):
    pretrain(corpus, tmp_path / "made", family, asks=f"masked+{asked}", max_steps=1)
    model = transformers.AutoModelForPreTraining.from_pretrained(tmp_path / "made")
    model.save_pretrained(tmp_path / "theirs")
    transformers.AutoTokenizer.from_pretrained(tmp_path / "made").save_pretrained(tmp_path / "theirs")
    exported = bertsmith.export_model(tmp_path / "made", tmp_path / "compact", to="compact").folder
    for folder in (tmp_path / "made", tmp_path / "theirs", exported):
        opened = bertsmith.load(folder, device="cpu")
        assert {one["label"] for one in opened.follows("the river", "bank runs")} == {"follows", wrong}
        explained = attribute(opened, "follows", "the river", "bank runs", target=wrong, steps=2)
        assert explained.target == wrong


def test_a_model_that_goes_on_tells_what_it_was_asked_last(corpus, trained, tmp_path):
    given = {"max_steps": 1, "lengths": "32", "device": "cpu", "threads": 1}
    bertsmith.pretrain(corpus, tmp_path / "order", "bert", model=trained / "bert", asks="masked+order", **given)
    found = bertsmith.load(tmp_path / "order").follows("the river", "bank runs")
    assert {one["label"] for one in found} == {"follows", "swapped"}
    bertsmith.pretrain(corpus, tmp_path / "words", "bert", model=tmp_path / "order", asks="masked", **given)
    assert "pairs" not in json.loads((tmp_path / "words/config.json").read_text())


def test_a_generator_opens_elsewhere_too(trained):
    model, said = transformers.ElectraForMaskedLM.from_pretrained(
        trained / "electra" / "generator", output_loading_info=True
    )
    assert not said["missing_keys"] and not said["unexpected_keys"]
    ours = safetensors.torch.load_file(trained / "electra" / "model.safetensors")
    word_table = "electra.embeddings.word_embeddings.weight"
    assert torch.equal(model.state_dict()[word_table], ours[word_table])  # one table for both


def test_what_a_run_leaves(trained):
    facts = json.loads((trained / "bert" / "metrics.json").read_text())
    assert set(facts["metrics"]["held-out"]) == {
        "masked_accuracy", "masked_loss", "next_sentence_accuracy", "next_sentence_loss", "pseudo_perplexity"
    }  # fmt: skip
    assert facts["settings"]["steps"] == STEPS and facts["speed"]["tokens_per_second"] > 0
    assert "temperature" not in facts["settings"] and "momentum" not in facts["settings"]  # nothing here read them
    assert {path.name for path in (trained / "bert").iterdir()} >= {"README.md", "report.html", "log.jsonl", "run.json"}
    assert "<svg" in (trained / "bert" / "report.html").read_text()
    log = [json.loads(line) for line in (trained / "bert" / "log.jsonl").read_text().splitlines()]
    assert [record["step"] for record in log if record.get("split") == "dev"] == [4, 8, 12]


def test_the_loss_falls_where_there_is_something_to_learn(corpus, tmp_path):
    """A dozen words in their order: who knows the neighbours knows the word."""
    run = pretrain(corpus, tmp_path / "out", "smith", max_steps=250, rate=1e-2, tokens=1024, pass_tokens=1024,
                   evaluate_every=250, log_every=10)  # fmt: skip
    log = [json.loads(line) for line in (tmp_path / "out" / "log.jsonl").read_text().splitlines()]
    losses = [record["loss"] for record in log if "loss" in record]
    assert losses[0] > 3.5 and sum(losses[-5:]) / 5 < 1.0
    assert run.metrics["masked_accuracy"] > 0.7
    model = run.model
    answers = model.fill(f"{ROUND[3]} {ROUND[4]} [MASK] {ROUND[6]} {ROUND[7]}.").answers
    assert answers[0]["token_str"] == ROUND[5]


@pytest.mark.parametrize("step, error", [(6, RuntimeError), (7, KeyboardInterrupt), (12, RuntimeError)])
@pytest.mark.parametrize("name", ["smith", "bert", "electra"])
def test_a_run_that_stopped_goes_on_to_the_same_end(corpus, trained, tmp_path, name, step, error):
    with pytest.raises((RuntimeError, BertsmithError)):
        pretrain(corpus, tmp_path / "out", name, **SHORT, watchers=[Stop(step, error)])
    said = []
    pretrain(corpus, tmp_path / "out", name, **SHORT, say=said.append)
    went_on = {6: 4, 7: 7, 12: 8}[step]
    assert f"going on from last-{went_on:06d}." in said
    assert_same(tmp_path / "out", trained / name)


def test_the_same_run_again_is_left_alone_and_another_refused(corpus, trained, tmp_path):
    out = tmp_path / "out"
    shutil.copytree(trained / "electra", out)
    said = []
    run = pretrain(corpus, out, "electra", **SHORT, say=said.append)
    assert run.outcome is None and run.metrics["replaced_accuracy"] > 0
    assert any("holds this very run, finished" in sentence for sentence in said)
    with pytest.raises(BertsmithError, match=r"holds a run with other settings \(rate was 0.005 and is now 0.001\)"):
        pretrain(corpus, out, "electra", **{**SHORT, "rate": 1e-3})
    other = pretrain(corpus, out, "bert", **{**SHORT, "max_steps": 2}, overwrite=True)
    assert other.outcome.steps == 2 and not (out / "generator").exists()


def test_other_weights_in_the_folder_of_the_model_are_another_run(corpus, trained, tmp_path):
    base, given = tmp_path / "base", {"max_steps": 1, "lengths": "32", "tokens": 256, "device": "cpu"}
    shutil.copytree(trained / "bert", base)
    bertsmith.pretrain(corpus, tmp_path / "out", model=base, **given)
    assert bertsmith.pretrain(corpus, tmp_path / "out", model=base, **given).outcome is None
    run = json.loads((tmp_path / "out" / "run.json").read_text())
    older = {**run, "asked": {name: value for name, value in run["asked"].items() if name != "weights"}}
    (tmp_path / "out" / "run.json").write_text(json.dumps(older))  # as versions before wrote it
    assert bertsmith.pretrain(corpus, tmp_path / "out", model=base, **given).outcome is None
    (tmp_path / "out" / "run.json").write_text(json.dumps(run))
    shutil.copyfile(tmp_path / "out" / "model.safetensors", base / "model.safetensors")
    with pytest.raises(BertsmithError, match=r"holds a run with other settings \(the weights of the model are others"):
        bertsmith.pretrain(corpus, tmp_path / "out", model=base, **given)


@pytest.mark.parametrize("settings", [{"max_steps": 2}, {"minutes": 1}])
def test_a_plan_writes_nothing(corpus, tmp_path, settings):
    said = []
    assert pretrain(corpus, tmp_path / "out", "smith", plan=True, say=said.append, **settings) is None
    assert not list(tmp_path.iterdir())
    told = "\n".join(said)
    assert "2 layers of 32" in told and "FLOP in matrix products" in told
    assert re.search(r"about (\d+) MiB, of which \d+ MiB for weights, gradients and the optimizer", told)
    by_steps = r"2 steps, .* about \d+ s to learn and \d+ s to be scored here"
    assert re.search(by_steps if "max_steps" in settings else r"1 minute, .* about [\d,]+ steps", told)


@pytest.mark.parametrize("recipe, asks", [("electra", "replaced"), ("smith", "masked:0.5,replaced:0.5")])
def test_a_plan_counts_what_learns_beside_the_encoder_apart(corpus, tmp_path, recipe, asks):
    said = []
    pretrain(corpus, tmp_path / "out", recipe, plan=True, say=said.append, asks=asks, max_steps=2)
    run = pretrain(corpus, tmp_path / "out", recipe, asks=asks, max_steps=2)
    held = safetensors.torch.load_file(tmp_path / "out" / "model.safetensors")
    told = "\n".join(said)
    assert run.outcome.steps == 2 and f"{sum(tensor.numel() for tensor in held.values()):,} parameters" in told
    beside = safetensors.torch.load_file(next((tmp_path / "out").glob("*/model.safetensors")))
    own = {name: tensor for name, tensor in beside.items() if ".embeddings." not in name}  # tables are the encoder's
    counts = [int(count.replace(",", "")) for count in re.findall(r"a (?:generator|judge) of ([\d,]+) param", told)]
    assert len(counts) == (1 if recipe == "electra" else 2)
    assert sum(counts) == sum(tensor.numel() for tensor in own.values())


def test_a_run_that_fails_before_its_first_checkpoint_leaves_nothing(corpus, tmp_path):
    with pytest.raises(BertsmithError, match="the loss is not a number"):
        pretrain(corpus, tmp_path / "out", "bert", max_steps=30, rate=1e30, clip=0.0, log_every=1)
    assert not (tmp_path / "out").exists()


@pytest.fixture(scope="module")
def strange(tmp_path_factory):
    """Corpora that lack something."""
    folder = tmp_path_factory.mktemp("strange")
    make_corpus(folder / "short", documents=1, held_out=0.0)
    make_corpus(folder / "bytes", kind="bytes", documents=20)
    make_corpus(folder / "all-seen", documents=20, held_out=0.0)
    (folder / "codes.jsonl").write_text("".join(json.dumps({"text": list(range(40))}) + "\n" for _ in range(30)))
    bertsmith.build_corpus(folder / "codes.jsonl", out=folder / "codes", codes=True, vocabulary=64, duplicates=False,
                           near_duplicates=False, filters=False)  # fmt: skip
    return folder


@pytest.mark.parametrize(
    "where, settings, sentence",
    [
        ("nowhere", {}, "nowhere is not there; make one with `bertsmith corpus build`"),
        ("codes", {"recipe": "smith", "whole_words": True}, "codes holds codes, in which there are no words; leave"),
        ("short/corpus", {"lengths": "128"}, "less than a row of 128; build it from more"),
        ("short/corpus", {"recipe": "bert", "lengths": "8"}, "is a single document"),
        ("all-seen/corpus", {"minutes": 1, "max_steps": 3}, "leave max_steps and epochs out"),
        ("all-seen/corpus", {"minutes": -1}, "minutes is -1; it must be a number above 0"),
        ("all-seen/corpus", {"recipe": "bert", "preset": "distilbert-base"}, "has no head for follows"),
        ("all-seen/corpus", {"positions": 16}, "that reads 16; give more positions, or shorter rows"),
        ("all-seen/corpus", {"asks": "masked+order"}, "next and order ask for; leave those out, or train a bert"),
        ("all-seen/corpus", {"heads": 3}, "width 32 does not divide into 3"),
        ("all-seen/corpus", {"heads": 32}, "rotary positions need an even number"),
        ("all-seen/corpus", {"z_loss": -1.0}, "z_loss is -1.0; it must be at least 0"),
        ("all-seen/corpus", {"preset": "bert-huge"}, "there is no preset 'bert-huge'"),
        ("all-seen/corpus", {"precision": "fp16"}, "precision fp16 needs a CUDA device"),
    ],
)
def test_bad_input_ends_in_a_sentence(strange, tmp_path, where, settings, sentence):
    with pytest.raises(BertsmithError, match=sentence):
        pretrain(strange / where, tmp_path / "out", **{"recipe": "smith", "lengths": "32", **settings})
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("name", ["smith", "albert", "electra"])
def test_a_card_tells_what_was_trained_and_how_others_open_it(corpus, trained, tmp_path, name, monkeypatch):
    """The sizes that others find in the folder: a width that was given changed more than itself."""
    if name == "smith":  # heads and inner follow the width
        sizes = {"depth": 2, "width": 64, "lengths": "32", "tokens": 64, "max_steps": 2}
        where = bertsmith.pretrain(corpus, tmp_path / "out", name, device="cpu", **sizes).folder
    else:
        where = trained / name
    facts, card = json.loads((where / "metrics.json").read_text()), (where / "README.md").read_text()
    theirs = transformers.AutoConfig.from_pretrained(where)
    said = facts["settings"]
    assert (said["depth"], said["heads"]) == (theirs.num_hidden_layers, theirs.num_attention_heads)
    assert (said["width"], said["inner"]) == (theirs.hidden_size, theirs.intermediate_size)
    model = getattr(transformers, CLASSES[name]).from_pretrained(where)
    unused = sum(p.numel() for part, p in model.named_parameters() if "pooler" in part) if name != "albert" else 0
    assert said["parameters"] == sum(p.numel() for p in model.parameters()) - unused
    text = Corpus.open(corpus)
    assert f"{len(text.tokens):,} tokens in {len(text):,} documents" in card
    if name == "electra":
        return
    block = next(part for part in re.findall(r"```python\n(.*?)```", card, re.S) if "transformers" in part)
    assert "pipeline_tag: fill-mask" in card
    monkeypatch.setattr("builtins.print", lambda found: said.update(found=found))
    exec(block.replace("path/to/this/folder", str(where)), {})  # as a person would paste it
    assert len(said["found"]) == 5


def test_a_plan_tells_of_the_teacher(corpus, trained, tmp_path):
    said = []
    pretrain(corpus, tmp_path / "out", "distilbert", teacher=str(trained / "bert"), plan=True, say=said.append)
    taught = sum(p.numel() for p in transformers.BertForPreTraining.from_pretrained(trained / "bert").parameters())
    assert f"   teacher: {taught:,} parameters, which do not learn" in said


def test_a_run_that_was_taken_up_again_tells_of_which_steps_its_time_is(corpus, tmp_path):
    with pytest.raises(RuntimeError):
        pretrain(corpus, tmp_path / "out", "bert", **{**SHORT, "save_minutes": 0.0, "log_every": 1},
                 watchers=[Stop(6, RuntimeError)])  # fmt: skip
    run = pretrain(corpus, tmp_path / "out", "bert", **{**SHORT, "save_minutes": 0.0, "log_every": 1})
    since = json.loads((run.folder / "metrics.json").read_text())["speed"]["since"]
    assert (
        since > 0 and f"since step {since}, where the run was taken up again" in (run.folder / "README.md").read_text()
    )


def test_a_corpus_without_held_out_text_is_no_mistake(strange, tmp_path):
    said = []
    run = pretrain(strange / "all-seen/corpus", tmp_path / "out", "bert", max_steps=2, say=said.append)
    assert run.metrics == {} and any("no text was held out" in sentence for sentence in said)
    assert (tmp_path / "out" / "model.safetensors").exists()


def test_codes_without_a_tokenizer(strange, tmp_path):
    """Rows of integers become an encoder too, which goes on with codes that mean the same and with nothing else."""
    run = pretrain(strange / "codes", tmp_path / "out", "smith", max_steps=3)
    assert load_checkpoint(run.folder).config.vocabulary == 64 + 5
    settings = {"model": run.folder, "max_steps": 1, "lengths": "32", "tokens": 64, "device": "cpu"}
    bertsmith.pretrain(strange / "codes", tmp_path / "on", **settings)
    # Of fewer codes, the mask would be one of the model's codes; of text, everything would.
    bertsmith.build_corpus(strange / "codes.jsonl", out=tmp_path / "fewer", codes=True, duplicates=False,
                           near_duplicates=False)  # fmt: skip
    make_corpus(tmp_path / "text", documents=20)
    large = pretrain(tmp_path / "text" / "corpus", tmp_path / "large", "smith", max_steps=1).folder
    for file in large.glob("*token*"):
        file.unlink()
    for corpus, model, sentence in (
        ("fewer", run.folder, "knows 69 ids, and .* holds 45, of which the last are special; .* vocabulary 64"),
        ("text/corpus", run.folder, "has no tokenizer, so nothing says what the ids of .* mean to it"),
        ("text/corpus", large, "has no tokenizer, .*; put its own into its folder"),
    ):
        with pytest.raises(BertsmithError, match=sentence):
            bertsmith.pretrain(tmp_path / corpus, tmp_path / "refused", **{**settings, "model": model})
    assert not (tmp_path / "refused").exists()


@pytest.mark.parametrize("name", ["bert", "smith", "electra"])
def test_a_trained_model_learns_on(corpus, trained, tmp_path, name):
    """With a rate of almost nothing it stays as it was; its own heads are taken over."""
    said = []
    settings = {key: SMALL[key] for key in ("lengths", "tokens", "pass_tokens")}
    run = bertsmith.pretrain(corpus, tmp_path / "out", model=trained / name, max_steps=1,
                             rate=1e-12, weight_decay=0.0, device="cpu", say=said.append,
                             **settings)  # fmt: skip
    before, after = (safetensors.torch.load_file(f / "model.safetensors") for f in (trained / name, run.folder))
    assert before.keys() == after.keys()
    assert json.loads((run.folder / "run.json").read_text())["asked"]["recipe"] == name  # as it was trained here
    assert all(torch.allclose(before[key], after[key], atol=1e-6) for key in before)
    assert "goes on learning; its head for" in said[0] and "fresh" not in said[0]
    if name == "electra":
        before, after = (safetensors.torch.load_file(f / "generator" / "model.safetensors")
                         for f in (trained / name, run.folder))  # fmt: skip
        assert all(torch.allclose(before[key], after[key], atol=1e-6) for key in before)


def test_an_encoder_without_heads_gets_fresh_ones(corpus, trained, tmp_path):
    """As `transformers` writes a bare BERT: its pooler goes on in the head for sentences."""
    model = transformers.BertModel.from_pretrained(trained / "bert")
    model.save_pretrained(tmp_path / "bare")
    for file in (trained / "bert").glob("*token*"):
        shutil.copy(file, tmp_path / "bare")
    said = []
    run = bertsmith.pretrain(corpus, tmp_path / "out", model=tmp_path / "bare", max_steps=1, rate=1e-12, lengths="32",
                             tokens=256, device="cpu", say=said.append)  # fmt: skip
    assert "a fresh head for mask and follows was put on it" in said[0]
    after = transformers.BertForPreTraining.from_pretrained(run.folder)
    assert torch.allclose(after.bert.pooler.dense.weight, model.pooler.dense.weight, atol=1e-6)


def test_a_model_of_another_tokenizer_or_shape_is_refused(corpus, strange, trained, tmp_path):
    with pytest.raises(BertsmithError, match="was made with another tokenizer"):
        bertsmith.pretrain(strange / "bytes/corpus", tmp_path / "out", model=trained / "bert", device="cpu")
    with pytest.raises(BertsmithError, match="depth is for a fresh encoder, and model is"):
        bertsmith.pretrain(corpus, tmp_path / "out", model=trained / "bert", depth=3, device="cpu", lengths="32")
    for preset in ("bert-tiny", "bert-base"):  # the second is the recipe's own
        with pytest.raises(BertsmithError, match="preset is for a fresh encoder, and model is"):
            bertsmith.pretrain(corpus, tmp_path / "out", model=trained / "bert", preset=preset, device="cpu")
    with pytest.raises(BertsmithError, match=r"first_tokens is for steps that grow .* say over which share"):
        bertsmith.pretrain(corpus, tmp_path / "out", "bert", first_tokens=512, device="cpu")
    with pytest.raises(BertsmithError, match="too long for an encoder that reads 512"):
        bertsmith.pretrain(corpus, tmp_path / "out", model=trained / "bert", lengths="1024", device="cpu")
    assert not (tmp_path / "out").exists()


def test_a_trained_model_is_not_undone_by_the_rate_of_a_fresh_one(corpus, tmp_path):
    """The house model fell from 52.7 % of hidden words to 12.5 in two steps at ModernBERT's 8e-4 without a warm-up."""
    sizes = {"depth": 2, "width": 32, "heads": 2, "inner": 64, "positions": 64, "tokens": 512, "lengths": "32"}
    bertsmith.pretrain(corpus, tmp_path / "m", "modernbert", device="cpu", max_steps=1, **sizes)
    (tmp_path / "m" / "run.json").unlink()
    said = []
    run = bertsmith.pretrain(corpus, tmp_path / "out", model=tmp_path / "m", device="cpu", max_steps=2, tokens=512,
                             say=said.append)  # fmt: skip
    asked = json.loads((tmp_path / "out" / "run.json").read_text())["asked"]
    assert (asked["rate"], asked["warmup"], asked["lengths"]) == (1e-4, 0.06, "64") and run.outcome.steps == 2
    told = "\n".join(said)
    assert "Rows have at most 64 tokens" in told and "The rate is 0.0001, for weights that have learned before" in told
    found = fit_to_trained("albert", {"rate": None}, 512)
    assert "rate" not in found and fit_to_trained("bert", {"rate": 1e-3, "warmup": 0.0}, 512) == {}
    assert fit_to_trained("smith", {}, 128)["lengths"] == "128"


def test_a_trained_model_goes_on_in_steps_for_less_text(corpus, tmp_path):
    """ModernBERT's hold 4.7 million tokens, more than most corpora of one's own."""
    found = [
        fit_to_trained("modernbert", given, 8192).get("tokens") for given in ({}, {"tokens": 9}, {"first_tokens": 9})
    ]
    assert found == [131_072, None, None] and "tokens" not in fit_to_trained("smith", {}, 512)
    bertsmith.pretrain(corpus, tmp_path / "m", "modernbert", device="cpu", max_steps=1, depth=2, width=32, heads=2,
                       inner=64, positions=64, tokens=512, lengths="32")  # fmt: skip
    for minutes, size in ((None, "131,072"), (1, "2,048")):  # a CPU takes small ones where minutes count
        said = []
        bertsmith.pretrain(corpus, model=tmp_path / "m", out=tmp_path / "out", minutes=minutes, device="cpu", plan=True,
                           say=said.append)  # fmt: skip
        assert f"a step: {size} tokens" in "\n".join(said)


def test_reading_onward_first(corpus, tmp_path):
    """A quarter of the run asks for the next token, the rest for hidden ones; a stop in between changes nothing."""
    settings = {**SHORT, "asks": "causal+masked", "log_every": 1}
    pretrain(corpus, tmp_path / "whole", "smith", **settings)
    log = [json.loads(line) for line in (tmp_path / "whole" / "log.jsonl").read_text().splitlines()]
    steps = [set(record) & {"masked", "next_token"} for record in log if "loss" in record]
    assert steps == [{"next_token"}] * 3 + [{"masked"}] * 9
    with pytest.raises(RuntimeError):
        pretrain(corpus, tmp_path / "out", "smith", **settings, watchers=[Stop(6, RuntimeError)])
    pretrain(corpus, tmp_path / "out", "smith", **settings)
    assert_same(tmp_path / "out", tmp_path / "whole")


def test_an_encoder_that_never_filled_a_mask_is_not_said_to(corpus, tmp_path):
    """Its head for tokens learnt to read onward; what the card shows is what the command ends with."""
    run = pretrain(corpus, tmp_path / "out", "bert", asks="causal", max_steps=2)
    assert find_use(run.folder, run.metrics).startswith("info ")
    assert set(run.metrics) == {"next_token_accuracy", "next_token_loss"}
    card = (tmp_path / "out" / "README.md").read_text()
    assert "fill" not in card and "pseudo_perplexity" not in card and "model.hidden(" in card
    assert json.loads((tmp_path / "out" / "metrics.json").read_text())["task"] == "pretrain"


def test_a_student_learns_from_a_teacher(corpus, trained, tmp_path):
    run = pretrain(corpus, tmp_path / "out", "distilbert", asks="distilled", teacher=trained / "bert", max_steps=40)
    log = [json.loads(line) for line in (tmp_path / "out" / "log.jsonl").read_text().splitlines()]
    first, *_, last = (record for record in log if "loss" in record)
    assert last["distilled"] < first["distilled"] and last["cosine"] < first["cosine"]
    scores = {"masked_accuracy", "distilled_loss", "masked_loss", "cosine_loss", "pseudo_perplexity"}
    assert set(run.metrics) == scores
    with pytest.raises(BertsmithError, match="has another tokenizer than"):
        pretrain(make_corpus(tmp_path / "other", documents=10, kind="bytes"), tmp_path / "no", "distilbert",
                 asks="distilled", teacher=trained / "bert")  # fmt: skip


def test_an_angle_alone_wants_the_width_of_the_teacher(corpus, trained, tmp_path):
    given_ = {"teacher": str(trained / "bert"), "distil_weights": "0,0,1", "width": 16}
    with pytest.raises(BertsmithError, match="needs the teacher's width; give width 32, or other weights"):
        pretrain(corpus, tmp_path / "out", "bert", **given_, **SHORT)
    assert not (tmp_path / "out").exists()


def test_a_pass_that_does_not_fit_ends_in_a_sentence(corpus, tmp_path, monkeypatch):
    def fails(*_):
        raise torch.OutOfMemoryError("a made one")

    monkeypatch.setattr(PretrainingStudy, "losses", fails)
    with pytest.raises(BertsmithError, match=r"not enough memory for a pass of 256 tokens; give fewer \(pass_tokens\)"):
        pretrain(corpus, tmp_path / "out", "bert", max_steps=2)
    assert not (tmp_path / "out").exists()
