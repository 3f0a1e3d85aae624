"""What a plan of a pretraining tells is what is done; what its folder holds suits others; what it learns from stays."""

import json
import re
import shutil
from functools import partial

import pytest
import safetensors.torch
import torch
import transformers
from pretraining_made import SMALL, make_corpus, pretrain

import bertsmith
from bertsmith.data.batch import Batch
from bertsmith.data.shards import Corpus
from bertsmith.errors import BertsmithError
from bertsmith.models.checkpoint import load_checkpoint

pytestmark = pytest.mark.usefixtures("one_thread")


def test_a_plan_counts_what_the_steps_read(corpus, tmp_path):
    """The first ones are smaller, and as many as the run itself makes."""
    said = []
    pretrain(corpus, tmp_path / "a", "smith", plan=True, say=said.append, tokens=512, first_tokens=256, ramp=0.5,
             max_steps=4)  # fmt: skip
    assert "4 steps, 1,792 tokens" in "\n".join(said)  # 256, 512, 512 and 512 in passes of 256
    pretrain(corpus, tmp_path / "a", "smith", plan=True, say=said.append, epochs=0.5)
    run = pretrain(corpus, tmp_path / "a", "smith", epochs=0.5)
    assert f"{run.outcome.steps} step" in next(line for line in reversed(said) if "how long" in line)


def test_others_cut_long_texts_where_the_encoder_ends(corpus, tmp_path):
    pretrain(corpus, tmp_path / "roberta", "roberta", max_steps=1)
    pretrain(corpus, tmp_path / "electra", "electra", max_steps=1)
    for folder in (tmp_path / "roberta", tmp_path / "electra", tmp_path / "electra" / "generator"):
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
        cut = tokenizer("river " * 3000, truncation=True)["input_ids"]
        assert len(cut) == tokenizer.model_max_length == load_checkpoint(folder).config.limit


def test_others_read_pairs_with_an_encoder_that_does_not_know_which_text_a_token_is_of(corpus, tmp_path):
    """A WordPiece tokenizer tells the second text apart; a RoBERTa has no row for that, and others would look it up."""
    for recipe in ("roberta", "distilbert"):
        pretrain(corpus, tmp_path / recipe, recipe, max_steps=1)
        tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / recipe)
        read = tokenizer("river bank", "garden", return_tensors="pt")
        assert "token_type_ids" not in read
        theirs = transformers.AutoModel.from_pretrained(tmp_path / recipe).eval()(**read).last_hidden_state[0]
        ours = bertsmith.load(tmp_path / recipe)
        row = ours.tokenizer.encode("river bank", "garden")
        assert row.ids == read["input_ids"][0].tolist()
        hidden = ours.checkpoint.network.eval()(Batch.of([row.ids], [row.segments]))
        assert (hidden - theirs).abs().max() < 1e-5
    pretrain(corpus, tmp_path / "bert", "bert", max_steps=1)
    read = transformers.AutoTokenizer.from_pretrained(tmp_path / "bert")("river bank", "garden")
    assert set(read["token_type_ids"]) == {0, 1}


def test_a_run_never_clears_the_model_it_learns_from(corpus, tmp_path):
    pretrain(corpus, tmp_path / "mine", "electra", max_steps=1)
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "mine").rglob("*")}
    for source in (tmp_path / "mine", tmp_path / "mine" / "generator"):
        for given in ({"model": source}, {"teacher": str(source), "recipe": "distilbert"}):
            with pytest.raises(BertsmithError, match="from which this run learns; give another folder"):
                bertsmith.pretrain(corpus, tmp_path / "mine", overwrite=True, device="cpu", max_steps=1, **given)
    assert before == {path: path.stat().st_mtime_ns for path in (tmp_path / "mine").rglob("*")}


def test_a_tokenizer_is_not_written_into_a_model_or_a_corpus(corpus, tmp_path):
    """Their ids would mean other words."""
    out = pretrain(corpus, tmp_path / "out", "bert", max_steps=1).folder
    words, before = corpus.parent / "texts.txt", (out / "tokenizer.json").read_bytes()
    extend = partial(bertsmith.extend_tokenizer, out, add=5)
    for make in (bertsmith.train_tokenizer, extend):
        with pytest.raises(BertsmithError, match="holds a model, whose ids must stay what they are"):
            make(words, out, overwrite=True)
        with pytest.raises(BertsmithError, match="is the tokenizer of a corpus, whose ids it made"):
            make(words, corpus / "tokenizer", overwrite=True)
    assert (out / "tokenizer.json").read_bytes() == before


@pytest.mark.parametrize("size, is_old", [(60, False), (60, True), (None, False)])
def test_a_corpus_with_another_tokenizer_is_refused(corpus, tmp_path, size, is_old):
    """One of another size, or with other words; of a corpus of before only the size is known."""
    shutil.copytree(corpus, tmp_path / "corpus")
    header, inside = json.loads((corpus / "corpus.json").read_text()), tmp_path / "corpus" / "tokenizer"
    if is_old:
        del header["tokenizer_sha256"]
        (tmp_path / "corpus" / "corpus.json").write_text(json.dumps(header))
    pretrain(tmp_path / "corpus", tmp_path / "before", "bert", max_steps=1)
    bertsmith.train_tokenizer(corpus.parent / "texts.txt", tmp_path / "other", size=size or header["vocabulary"])
    shutil.rmtree(inside)
    shutil.copytree(tmp_path / "other", inside)
    with pytest.raises(BertsmithError, match="is not the tokenizer that made the ids of"):
        pretrain(tmp_path / "corpus", tmp_path / "out", "bert", max_steps=1)
    assert not (tmp_path / "out").exists()


def test_patience_wants_held_out_text(tmp_path):
    corpus = make_corpus(tmp_path / "made", documents=20, held_out=0.0)
    with pytest.raises(BertsmithError, match=r"patience looks at scores on held-out text, .*corpus has none; leave"):
        pretrain(corpus, tmp_path / "out", "bert", max_steps=4, patience=1)
    assert not (tmp_path / "out").exists()


def test_patience_wants_one_question_throughout(corpus, tmp_path):
    with pytest.raises(BertsmithError, match=r"asks for something else in each stage \(causal:0.5,masked:0.5\)"):
        pretrain(corpus, tmp_path / "out", "bert", asks="causal:0.5,masked:0.5", max_steps=4, patience=1)


def test_of_losses_the_lower_is_the_better(corpus, tmp_path):
    teacher = pretrain(corpus, tmp_path / "teacher", "bert", asks="masked", max_steps=2).folder
    run = pretrain(corpus, tmp_path / "out", "bert", asks="relations", teacher=str(teacher), max_steps=6,
                   evaluate_every=1, patience=3)  # fmt: skip
    found = [json.loads(line) for line in (run.folder / "log.jsonl").read_text().splitlines()]
    losses = {one["step"]: one["metrics"]["queries_loss"] for one in found if "metrics" in one}
    assert losses[2] < losses[1] and run.outcome.progress.best_step == min(losses, key=losses.get)


def test_what_learns_beside_grows_with_the_vocabulary(corpus, tmp_path):
    """Nothing that was learnt is thrown away for a few new words."""
    asks = {"asks": "replaced", "stay_hidden": 0.5}
    model = pretrain(corpus, tmp_path / "model", "smith", max_steps=2, **asks).folder
    (tmp_path / "field.txt").write_text("cardiomyopathy hepatocytes angiography cardiology.\n" * 40)
    added = bertsmith.extend_tokenizer(model, tmp_path / "field.txt", tmp_path / "words", add=6).added
    bertsmith.build_corpus(tmp_path / "field.txt", tmp_path / "words", tmp_path / "corpus", held_out=0.0, filters=False,
                           duplicates=False, near_duplicates=False)  # fmt: skip
    said = []
    sizes = {key: SMALL[key] for key in ("tokens", "pass_tokens")}
    on = bertsmith.pretrain(tmp_path / "corpus", tmp_path / "on", "smith", model=model, max_steps=1, rate=1e-12,
                            optimizer="adamw", weight_decay=0.0, lengths="16", device="cpu", say=said.append, **asks,
                            **sizes).folder  # fmt: skip
    assert not any("fresh one" in sentence for sentence in said)
    before, after = (safetensors.torch.load_file(one / "aside" / "model.safetensors") for one in (model, on))
    bias = "generator.heads.mask.out.bias"
    assert len(after[bias]) == len(before[bias]) + len(added)
    for name, tensor in before.items():
        assert torch.allclose(after[name][: len(tensor)], tensor, atol=1e-6), name


@pytest.mark.parametrize("epochs", [1, 4])
def test_an_epoch_reads_the_corpus_once_though_steps_grow(corpus, tmp_path, epochs):
    said = []
    pretrain(corpus, tmp_path / "out", "smith", tokens=512, first_tokens=128, pass_tokens=128, epochs=epochs, plan=True,
             say=said.append)  # fmt: skip
    read = float(re.search(r"([\d.]+) epochs", "\n".join(said)).group(1))
    step = 512 / len(Corpus.open(corpus).tokens)
    assert -0.01 <= read - epochs <= step + 0.01  # a run, not each of its epochs, is a whole number of steps
