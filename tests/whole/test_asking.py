"""Questions from the settings to a trained folder: weights in the log, teachers of other widths, generators."""

import json

import pytest
import safetensors.torch
import torch
import transformers
from pretraining_made import SHORT, STEPS, Stop, assert_same, pretrain

import bertsmith
from bertsmith.errors import BertsmithError
from bertsmith.models.checkpoint import load_checkpoint


@pytest.fixture(scope="module")
def teacher(corpus, tmp_path_factory):
    return pretrain(corpus, tmp_path_factory.mktemp("teacher") / "bert", "bert", max_steps=3).folder


def read_log(folder):
    records = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
    return [record for record in records if "loss" in record]


def test_stages_and_weights_resume_to_the_same_end(corpus, tmp_path):
    """Three stages, the ends alike: what each step asks is in the log, a stop in between changes nothing."""
    settings = {**SHORT, "asks": "masked:1,masked+next*0.5:1,masked:1", "log_every": 1}
    pretrain(corpus, tmp_path / "whole", "bert", **settings)
    asked = [set(record) & {"masked", "next_sentence"} for record in read_log(tmp_path / "whole")]
    third = STEPS // 3
    assert asked == [{"masked"}] * third + [{"masked", "next_sentence"}] * third + [{"masked"}] * third
    for record in read_log(tmp_path / "whole")[third : 2 * third]:
        assert record["loss"] == pytest.approx(record["masked"] + 0.5 * record["next_sentence"], rel=1e-4)
        assert record["next_sentence"] > 0.4  # before its weight: a coin's is 0.69
    with pytest.raises(RuntimeError):
        pretrain(corpus, tmp_path / "out", "bert", **settings, watchers=[Stop(6, RuntimeError)])
    pretrain(corpus, tmp_path / "out", "bert", **settings)
    assert_same(tmp_path / "out", tmp_path / "whole")


def test_a_student_of_another_width(corpus, teacher, tmp_path):
    """The angle is left out in one sentence; the recipe knows that a teacher means distillation."""
    said = []
    run = pretrain(corpus, tmp_path / "out", "distilbert", teacher=str(teacher), width=48, heads=3, max_steps=2,
                   say=said.append)  # fmt: skip
    assert "The teacher's states are 32 wide and the student's 48, so their angle is left out." in said[0]
    assert {"distilled_loss", "masked_loss"} <= set(run.metrics) and "cosine_loss" not in run.metrics
    with pytest.raises(BertsmithError, match="rows of 600 tokens are too long for the teacher, which reads 512"):
        pretrain(corpus, tmp_path / "no", "distilbert", teacher=str(teacher), lengths="600", tokens=600,
                 pass_tokens=600, positions=600)  # fmt: skip


def test_weights_of_distillation(corpus, teacher, tmp_path):
    run = pretrain(corpus, tmp_path / "out", "distilbert", teacher=str(teacher), distil_weights="1,0,3", max_steps=2)
    assert {"distilled_loss", "cosine_loss"} <= set(run.metrics) and "masked_loss" not in run.metrics


def test_distributions_of_hidden_words_alone(corpus, teacher, tmp_path):
    """Fewer are compared, at another loss; what is read and hidden stays the same."""
    logs = []
    for number, alone in enumerate((False, True)):
        run = pretrain(corpus, tmp_path / str(number), "distilbert", teacher=str(teacher), distil_masked=alone,
                       distil_weights="1,1,0", dropout=0.0, max_steps=1, log_every=1)  # fmt: skip
        logs.append(read_log(run.folder)[0])
    assert logs[0]["masked"] == pytest.approx(logs[1]["masked"], rel=1e-6)
    assert logs[0]["distilled"] != pytest.approx(logs[1]["distilled"], rel=1e-3)


@pytest.mark.parametrize("asks", ["relations", "masked+relations*0.5", "distilled+relations"])
def test_attention_relations_of_a_teacher(corpus, teacher, tmp_path, asks):
    """Of another width and other heads; in place of other losses, or beside them."""
    run = pretrain(corpus, tmp_path / "out", "bert", asks=asks, teacher=str(teacher), width=48, heads=3, max_steps=3)
    assert {"queries_loss", "keys_loss", "values_loss"} <= set(run.metrics)
    assert ("masked_loss" in run.metrics) == (asks != "relations")
    kind = transformers.BertModel if asks == "relations" else transformers.BertForMaskedLM
    model, told = kind.from_pretrained(run.folder, output_loading_info=True)
    missing = [key for key in told["missing_keys"] if "pooler" not in key]
    assert not missing and not told["unexpected_keys"] and model.config.hidden_size == 48


def test_a_generator_of_another_size(corpus, tmp_path):
    run = pretrain(corpus, tmp_path / "out", "electra", generator_share=0.5, replaced_weight=7.0, max_steps=2,
                   width=64, heads=4, inner=96, log_every=1)  # fmt: skip
    generator = load_checkpoint(run.folder / "generator").config
    assert (generator.width, generator.heads, generator.inner) == (32, 2, 48)
    record = read_log(run.folder)[0]
    assert record["loss"] == pytest.approx(record["generator"] + 7 * record["replaced"], rel=1e-4)
    said = []
    pretrain_on = {"lengths": "32", "tokens": 256, "max_steps": 1, "device": "cpu", "say": said.append}
    bertsmith.pretrain(corpus, tmp_path / "on", model=run.folder, **pretrain_on)
    assert "has another shape; a fresh one begins" in said[0]


def test_some_places_stay_hidden(corpus, tmp_path):
    """The network learns to fill them beside what it tells of the others, and its folder has both heads."""
    run = pretrain(corpus, tmp_path / "out", "electra", stay_hidden=0.5, replaced_weight=7.0, max_steps=3, log_every=1)
    record = read_log(run.folder)[0]
    whole = record["generator"] + 7 * record["replaced"] + record["masked"]
    assert record["loss"] == pytest.approx(whole, rel=1e-4)
    assert {"masked_accuracy", "replaced_accuracy", "generator_accuracy"} <= set(run.metrics)
    assert len(bertsmith.load(run.folder).fill("It was a [MASK].").answers) > 0
    model, told = transformers.ElectraForMaskedLM.from_pretrained(run.folder, output_loading_info=True)
    assert not told["missing_keys"] and model is not None
    with pytest.raises(BertsmithError, match="stay_hidden is for replaced, and asks is 'masked'"):
        pretrain(corpus, tmp_path / "none", "roberta", stay_hidden=0.5, max_steps=1)
    assert not (tmp_path / "none" / "model.safetensors").exists()


def test_a_family_without_a_head_for_replaced_tokens_learns_from_them(corpus, tmp_path):
    """The generator and what tells them lie beside the model, which opens as if they had never been."""
    asked = {"asks": "masked:0.5,replaced:0.5", "stay_hidden": 0.5, **SHORT, "log_every": 1}
    run = pretrain(corpus, tmp_path / "whole", "smith", **asked)
    model, told = transformers.ModernBertForMaskedLM.from_pretrained(run.folder, output_loading_info=True)
    assert not told["missing_keys"] and not told["unexpected_keys"] and model is not None
    assert {"masked_accuracy", "replaced_accuracy", "generator_accuracy"} <= set(run.metrics)
    assert "replaced" not in read_log(run.folder)[0] and "replaced" in read_log(run.folder)[-2]
    beside = safetensors.torch.load_file(run.folder / "aside" / "model.safetensors")
    assert {name.partition(".")[0] for name in beside} == {"generator", "judge"}
    assert "generator.embed.tokens.weight" not in beside  # it reads with the network's own table
    assert len(bertsmith.load(run.folder).fill("It was a [MASK].").answers) > 0

    with pytest.raises((RuntimeError, BertsmithError)):
        pretrain(corpus, tmp_path / "parts", "smith", **asked, watchers=[Stop(STEPS - 2, RuntimeError)])
    pretrain(corpus, tmp_path / "parts", "smith", **asked)
    for name in ("model.safetensors", "aside/model.safetensors"):
        one, other = (safetensors.torch.load_file(tmp_path / part / name) for part in ("whole", "parts"))
        assert all(torch.equal(one[key], other[key]) for key in one)

    on = bertsmith.pretrain(corpus, tmp_path / "on", model=run.folder, recipe="smith", asks="replaced", lengths="32",
                            tokens=256, max_steps=1, rate=1e-12, weight_decay=0.0, device="cpu")  # fmt: skip
    after = safetensors.torch.load_file(on.folder / "aside" / "model.safetensors")
    assert all(torch.allclose(beside[key], after[key], atol=1e-6) for key in beside)


def test_replaced_tokens_alone_leave_a_bare_encoder(corpus, tmp_path):
    run = pretrain(corpus, tmp_path / "out", "bert", asks="replaced", max_steps=2)
    _, told = transformers.BertModel.from_pretrained(run.folder, output_loading_info=True)
    assert [key for key in told["missing_keys"] if "pooler" not in key] == [] and not told["unexpected_keys"]
    said = []
    bertsmith.pretrain(corpus, tmp_path / "on", model=run.folder, recipe="bert", asks="replaced", generator_share=0.5,
                       lengths="32", tokens=256, max_steps=1, device="cpu", say=said.append)  # fmt: skip
    assert "has another shape; a fresh one begins" in said[0]


@pytest.mark.parametrize(
    ("settings", "told"), [({"minutes": 1}, "less than one step of"), ({"max_steps": 3}, None), ({}, "1 step of")]
)
def test_a_plan_of_few_steps_says_so(corpus, tmp_path, settings, told):
    said = []
    pretrain(corpus, tmp_path / "out", "roberta", plan=True, say=said.append, width=512, depth=8, heads=8, inner=2048,
             **{"tokens": 10**9, "pass_tokens": None, **settings})  # fmt: skip
    few = [sentence for sentence in said if "is little to learn in" in sentence]
    assert len(few) == (told is not None) and (not few or (told in few[0] and "(--tokens)" in few[0]))
