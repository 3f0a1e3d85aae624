"""Ten steps of our loop and of a plain one over the reference's model: the same losses, the same weights."""

import re

import pytest
import safetensors.torch
import torch
from oracle import load_saved
from training.looping import fit, make_loop, train_reference
from training.made import LABELS, make_model, make_rows, make_task

from bertsmith.layers import onednn
from bertsmith.models.checkpoint import save_checkpoint
from bertsmith.training.settings import Training

CASES = [
    ("bert", "classify"), ("bert", "tag"), ("bert", "span"), ("roberta", "classify"), ("albert", "classify"),
    ("distilbert", "classify"), ("electra", "classify"), ("modernbert", "classify"), ("modernbert", "tag"),
    ("mpnet", "classify"), ("mpnet", "tag"), ("deberta-v3", "classify"), ("deberta-v2", "tag"),
]  # fmt: skip
SETTINGS = Training(epochs=2, batch=8, batch_tokens=40, rate=1e-3, weight_decay=0.1, log_every=1, warmup=0.3)
# What moves all scores of a softmax alike has no gradient but rounding, which AdamW blows up to a step.
IDLE = re.compile(r"(key|k_lin|attn\.k)\.bias$|qa_outputs\.bias$")


@pytest.mark.parametrize("family, name", CASES)
def test_ten_steps_are_those_of_the_reference(family, name, small_model, tmp_path):
    reference = make_model(family, name)
    if name != "span":
        reference.config.id2label = dict(enumerate(LABELS))
    checkpoint = load_saved(reference, tmp_path / "start")
    reference = reference.double()
    task = make_task(small_model, name)
    fitted = fit(checkpoint, task)
    fitted.network.double()
    rows = make_rows(name, 36, kinds=getattr(reference.config, "type_vocab_size", 0) or 1)
    loop = make_loop(tmp_path / "run", fitted, task, rows, SETTINGS)
    chosen = [[row for i in loop.study.chosen(step) for row in rows[i]] for step in range(10)]
    losses = train_reference(reference, name, chosen, SETTINGS)
    outcome = loop.run()
    assert outcome.steps == 10 and max(len(loop.study.works(step, 0, 1, 40)) for step in range(10)) > 2
    assert [record["loss"] for record in loop.folder.read_log()] == pytest.approx(losses, rel=1e-6)
    (tmp_path / "end").mkdir()
    save_checkpoint(fitted, tmp_path / "end")
    ours = safetensors.torch.load_file(tmp_path / "end" / "model.safetensors")
    theirs = reference.state_dict()
    before = safetensors.torch.load_file(tmp_path / "start" / "model.safetensors")
    assert set(ours) == set(before)
    for key in before:
        is_idle = IDLE.search(key) or (name == "span" and key.endswith("1.output.LayerNorm.bias"))
        # The reference's DeBERTa divides by a root in single precision, whatever the numbers are in.
        least = SETTINGS.rate if is_idle else 1e-6 if family.startswith("deberta") else 1e-7
        torch.testing.assert_close(ours[key], theirs[key], rtol=1e-6, atol=least, msg=lambda text, key=key: key + text)
        assert is_idle or not torch.equal(ours[key].float(), before[key]), key


@pytest.mark.parametrize("by_onednn", [True, False])
def test_full_precision_is_close_too(by_onednn, small_model, tmp_path, monkeypatch):
    monkeypatch.setattr(onednn, "is_quicker", lambda: by_onednn and onednn.can_pack(torch.device("cpu"), torch.float32))
    settings = Training(epochs=2, batch=8, batch_tokens=40, rate=1e-3, eps=1e-5, log_every=1)
    reference = make_model("bert", "tag")
    reference.config.id2label = dict(enumerate(LABELS))
    fitted = fit(load_saved(reference, tmp_path / "start"), task := make_task(small_model, "tag"))
    rows = make_rows("tag", 36)
    loop = make_loop(tmp_path / "run", fitted, task, rows, settings)
    chosen = [[row for i in loop.study.chosen(step) for row in rows[i]] for step in range(10)]
    losses = train_reference(reference, "tag", chosen, settings)
    loop.run()
    assert [record["loss"] for record in loop.folder.read_log()] == pytest.approx(losses, rel=2e-5)
