"""Adapters against `peft`: ours open there, theirs open here, and several on one base are as good as models apart."""

import json
from pathlib import Path
from typing import Any

import peft
import pytest
import torch
from oracle import as_batch, distance, load_saved, make_reference, make_rows, run_reference, unpad

from bertsmith.errors import BertsmithError
from bertsmith.models.adapters import fingerprint, read_adapter, write_adapter, write_member
from bertsmith.models.checkpoint import Checkpoint, load_checkpoint, save_checkpoint
from bertsmith.models.files import ADAPTER, ADAPTER_CONFIG
from bertsmith.models.fitting import fit_head
from bertsmith.models.lora import LoraShape, each_low, put_lora

FAMILIES = ("bert", "roberta", "albert", "distilbert", "electra", "modernbert", "mpnet", "deberta-v3", "deberta-v2")
HEADS = {"classify": 5, "tag": 5, "span": 2}


def make_adapter(base: Checkpoint, head: str, outputs: int, seed: int = 0, **shape: Any) -> Checkpoint:
    """An adapter whose every number is random."""
    fitted, _ = fit_head(base, head, [f"label {number}" for number in range(outputs)], seed=seed)
    put_lora(fitted, LoraShape(shape.pop("rank", 4), **shape), seed)
    generator = torch.Generator().manual_seed(seed + 1)
    with torch.no_grad():
        for _, low, place in each_low(fitted):
            low.up[place].normal_(0, 0.2, generator=generator)
        for parameter in fitted.network.heads.parameters():
            parameter.normal_(0, 0.2, generator=generator)
    fitted.network.eval()
    return fitted


def score(checkpoint: Checkpoint, head: str, rows: Any) -> torch.Tensor:
    batch = as_batch(*rows)
    with torch.no_grad():
        return checkpoint.network.score(checkpoint.network(batch), batch, head)


def reference_scores(model: Any, head: str, rows: Any) -> torch.Tensor:
    found = run_reference(model, *rows)
    if head == "span":
        return torch.stack([unpad(found.start_logits, rows[0]), unpad(found.end_logits, rows[0])], dim=1)
    return unpad(found.logits, rows[0]) if head == "tag" else found.logits


@pytest.fixture
def base(tmp_path: Path) -> Path:
    load_saved(make_reference("bert", ""), tmp_path / "base")
    return tmp_path / "base"


@pytest.mark.parametrize("head", HEADS)
@pytest.mark.parametrize("family", FAMILIES)
def test_peft_opens_ours(family: str, head: str, tmp_path: Path) -> None:
    reference = make_reference(family, head)
    base = load_saved(reference, tmp_path / "base")
    adapted = make_adapter(base, head, HEADS[head])
    write_adapter(adapted, tmp_path / "adapter", tmp_path / "base")
    theirs = peft.PeftModel.from_pretrained(reference, str(tmp_path / "adapter")).eval()
    rows = make_rows(reference)
    ours = score(adapted, head, rows)
    inner = theirs.get_base_model()  # the wrapper for questions loses the segments on its way
    assert distance(ours, reference_scores(inner, head, rows)) < 1e-5
    again = read_adapter(tmp_path / "adapter", load_checkpoint(tmp_path / "base"))
    assert torch.equal(score(again, head, rows), ours)


@pytest.mark.parametrize("targets", ["all", "attention", "query-value"])
def test_targets(targets: str, tmp_path: Path) -> None:
    reference = make_reference("bert", "classify")
    base = load_saved(reference, tmp_path / "base")
    adapted = make_adapter(base, "classify", 5, targets=targets, alpha=3.0)
    write_adapter(adapted, tmp_path / "adapter", tmp_path / "base")
    theirs = peft.PeftModel.from_pretrained(reference, str(tmp_path / "adapter")).eval()
    rows = make_rows(reference)
    assert distance(score(adapted, "classify", rows), reference_scores(theirs, "classify", rows)) < 1e-5


@pytest.mark.parametrize("rslora", [False, True])
@pytest.mark.parametrize("family", ("bert", "roberta", "distilbert", "modernbert"))
def test_ours_opens_pefts(family: str, rslora: bool, tmp_path: Path) -> None:
    reference = make_reference(family, "classify")
    load_saved(reference, tmp_path / "base")
    targets = {"roberta": ["query", "value"], "distilbert": ["q_lin", "ffn.lin1"], "modernbert": ["Wqkv", "Wo"]}
    config = peft.LoraConfig(
        task_type="SEQ_CLS", r=3, lora_alpha=7, use_rslora=rslora,
        target_modules=targets.get(family, ["query", "key", "output.dense"]),
    )  # fmt: skip
    model = peft.get_peft_model(reference, config)
    generator = torch.Generator().manual_seed(5)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "lora_" in name or "modules_to_save" in name:
                parameter.normal_(0, 0.2, generator=generator)
    model.eval().save_pretrained(str(tmp_path / "adapter"))
    ours = read_adapter(tmp_path / "adapter", load_checkpoint(tmp_path / "base"))
    rows = make_rows(reference)
    assert distance(score(ours, "classify", rows), reference_scores(model, "classify", rows)) < 1e-5


def make_theirs(reference: Any, folder: Path, **settings: Any) -> Any:
    """An adapter of `peft`, whose every number is random, written to a folder."""
    model = peft.get_peft_model(reference, peft.LoraConfig(r=3, **settings)).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "lora_" in name or "modules_to_save" in name:
                parameter.normal_(0, 0.2, generator=torch.Generator().manual_seed(len(name)))
    model.save_pretrained(str(folder))
    return model


@pytest.mark.parametrize("family", ("bert", "roberta", "distilbert", "modernbert"))
def test_pefts_for_masked_tokens_have_the_head_of_the_base(family: str, tmp_path: Path) -> None:
    """`peft` knows no such task, so its file does not say which head that is; and it opens ours again."""
    reference = make_reference(family, "mask")
    base = load_saved(reference, tmp_path / "base")
    targets = {"distilbert": ["q_lin"], "modernbert": ["Wqkv"]}.get(family, ["query", "value"])
    model = make_theirs(reference, tmp_path / "adapter", target_modules=targets)
    rows = make_rows(reference)
    theirs = unpad(run_reference(model, *rows).logits, rows[0])
    ours = read_adapter(tmp_path / "adapter", base)
    assert list(ours.heads) == ["mask"] and distance(score(ours, "mask", rows), theirs) < 1e-5
    write_adapter(ours, tmp_path / "ours", tmp_path / "base")
    assert distance(score(read_adapter(tmp_path / "ours", base), "mask", rows), theirs) < 1e-5
    again = type(reference).from_pretrained(tmp_path / "base").eval()
    again = peft.PeftModel.from_pretrained(again, str(tmp_path / "ours")).eval()
    assert distance(unpad(run_reference(again, *rows).logits, rows[0]), theirs) < 1e-5


def test_without_that_head_the_encoder_of_such_a_one_is_there(tmp_path: Path) -> None:
    reference = make_reference("bert", "mask")
    reference.bert.save_pretrained(tmp_path / "base")
    model = make_theirs(reference, tmp_path / "adapter", target_modules=["query"])
    ours, rows = read_adapter(tmp_path / "adapter", load_checkpoint(tmp_path / "base")), make_rows(reference)
    with torch.no_grad():
        hidden = ours.network(as_batch(*rows))
    assert not ours.heads and distance(hidden, unpad(run_reference(model.model.bert, *rows)[0], rows[0])) < 1e-5


def test_an_output_layer_that_an_adapter_did_not_learn_is_the_bases(tmp_path: Path) -> None:
    """`peft` takes that for spans to be called qa_outputs, which ModernBERT's is not."""
    reference = make_reference("modernbert", "span")
    base = load_saved(reference, tmp_path / "base")
    model = make_theirs(reference, tmp_path / "adapter", task_type="QUESTION_ANS", target_modules=["Wqkv"])
    rows = make_rows(reference)
    ours = read_adapter(tmp_path / "adapter", base)
    assert distance(score(ours, "span", rows), reference_scores(model, "span", rows)) < 1e-5


def test_labels_of_the_base_are_judged_as_there(tmp_path: Path) -> None:
    reference = make_reference("bert", "classify", problem_type="multi_label_classification")
    base = load_saved(reference, tmp_path / "base")
    make_theirs(reference, tmp_path / "adapter", task_type="SEQ_CLS", target_modules=["query"])
    assert read_adapter(tmp_path / "adapter", base).settings["problem_type"] == "multi_label_classification"


def test_an_adapter_of_other_parts_is_not_called_another_bases(tmp_path: Path) -> None:
    reference = make_reference("bert", "classify")
    base = load_saved(reference, tmp_path / "base")
    make_theirs(reference, tmp_path / "adapter", task_type="SEQ_CLS", target_modules=["query", "pooler.dense"])
    with pytest.raises(BertsmithError, match=r"pooler.dense.lora_A.weight, .* merge it into its base with peft"):
        read_adapter(tmp_path / "adapter", base)


def test_several_on_one_base_are_models_apart(base: Path, tmp_path: Path) -> None:
    """Bit for bit, packed as `load` packs them, whichever was loaded and asked first."""
    asked = {"one": ("classify", 5), "two": ("tag", 7), "three": ("classify", 2)}
    for seed, (name, (head, outputs)) in enumerate(asked.items()):
        write_adapter(make_adapter(load_checkpoint(base), head, outputs, seed), tmp_path / name, base)
    rows = make_rows(make_reference("bert", ""))
    resident = load_checkpoint(base)
    resident.network.pack()
    together = {name: read_adapter(tmp_path / name, resident) for name in asked}
    for adapter in together.values():
        adapter.network.pack()
    for name, (head, _) in reversed(asked.items()):
        alone = read_adapter(tmp_path / name, load_checkpoint(base))
        alone.network.pack()
        assert torch.equal(score(together[name], head, rows), score(alone, head, rows))
    tables = {adapter.network.embed.tokens.weight.data_ptr() for adapter in together.values()}
    assert tables == {resident.network.embed.tokens.weight.data_ptr()}


def test_a_fresh_adapter_changes_nothing(base: Path) -> None:
    checkpoint = load_checkpoint(base)
    rows = make_rows(make_reference("bert", ""))
    before = checkpoint.network(as_batch(*rows))
    fitted, _ = fit_head(checkpoint, "classify", ["a", "b"])
    put_lora(fitted, LoraShape(8), 0)
    fitted.network.eval()
    assert torch.equal(fitted.network(as_batch(*rows)), before)
    learning = {name for name, parameter in fitted.network.named_parameters() if parameter.requires_grad}
    assert learning and all(".low." in name or name.startswith("heads.") for name in learning)


def test_saved_whole_it_is_a_plain_model(base: Path, tmp_path: Path) -> None:
    adapted = make_adapter(load_checkpoint(base), "classify", 5)
    save_checkpoint(adapted, _made(tmp_path / "whole"))
    rows = make_rows(make_reference("bert", ""))
    whole = load_checkpoint(tmp_path / "whole")
    assert distance(score(whole, "classify", rows), score(adapted, "classify", rows)) < 1e-5


def test_the_mark_of_a_base_is_the_same_in_half_precision(base: Path) -> None:
    whole, half = load_checkpoint(base), load_checkpoint(base, torch.bfloat16)
    assert fingerprint(whole.network) == fingerprint(half.network)
    with torch.no_grad():
        whole.network.blocks[0].feed.up.bias[3] += 0.1  # type: ignore[union-attr, index, operator]
    assert fingerprint(whole.network) != fingerprint(half.network)


def test_a_head_alone(base: Path, tmp_path: Path) -> None:
    fitted, _ = fit_head(load_checkpoint(base), "tag", ["a", "b", "c"], seed=3)
    write_member(fitted, "tag", tmp_path / "head")
    rows = make_rows(make_reference("bert", ""))
    fitted.network.eval()
    found = read_adapter(tmp_path / "head", load_checkpoint(base))
    assert torch.equal(score(found, "tag", rows), score(fitted, "tag", rows))


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder


def change(folder: Path, **settings: Any) -> None:
    path = folder / ADAPTER_CONFIG
    path.write_text(json.dumps({**json.loads(path.read_text()), **settings}))


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"use_dora": True}, "use_dora"),
        ({"peft_type": "IA3"}, "peft_type"),
        ({"bias": "all"}, "bias"),
        ({"rank_pattern": {"query": 8}}, "rank_pattern"),
        ({"init_lora_weights": "corda"}, "init_lora_weights"),
        ({"r": "four"}, "r and lora_alpha"),
    ],
)
def test_what_is_not_read_is_refused(settings: dict[str, Any], told: str, base: Path, tmp_path: Path) -> None:
    write_adapter(make_adapter(load_checkpoint(base), "classify", 5), tmp_path / "adapter", base)
    change(tmp_path / "adapter", **settings)
    with pytest.raises(BertsmithError, match=told):
        read_adapter(tmp_path / "adapter", load_checkpoint(base))


@pytest.mark.parametrize("begun", ["gaussian", "orthogonal", "pissa", "olora"])
def test_however_an_adapter_began_it_says_what_it_says_in_peft_or_is_refused(begun: str, tmp_path: Path) -> None:
    """Some take what they begin with out of the base's matrices, so that they mean nothing on the base as it is."""
    reference = make_reference("bert", "classify")
    base, rows = load_saved(reference, tmp_path / "base"), make_rows(reference)
    shape = peft.LoraConfig(task_type="SEQ_CLS", r=4, target_modules=["query", "value"], init_lora_weights=begun)
    model = peft.get_peft_model(reference, shape).eval()
    for name, parameter in model.named_parameters():
        if "lora_" in name:
            torch.nn.init.normal_(parameter, std=0.2, generator=torch.Generator().manual_seed(len(name)))
    model.save_pretrained(tmp_path / "adapter")
    if begun in ("pissa", "olora"):
        with pytest.raises(BertsmithError, match=f"init_lora_weights = '{begun}', which is not read here"):
            read_adapter(tmp_path / "adapter", base)
        return
    ours = read_adapter(tmp_path / "adapter", base)
    assert distance(score(ours, "classify", rows), reference_scores(model, "classify", rows)) < 1e-5


def test_another_base_is_refused(base: Path, tmp_path: Path) -> None:
    write_adapter(make_adapter(load_checkpoint(base), "classify", 5), tmp_path / "adapter", base)
    other = load_saved(make_reference("bert", "", seed=9), tmp_path / "other")
    with pytest.raises(BertsmithError, match=f"for another base model.*was trained on; its base is {base}"):
        read_adapter(tmp_path / "adapter", other)
    unlike = load_saved(make_reference("bert", "", hidden_size=24), tmp_path / "narrow")
    with pytest.raises(BertsmithError, match="for another base model"):
        read_adapter(tmp_path / "adapter", unlike)


def test_an_adapter_of_peft_for_another_base_is_refused(tmp_path: Path) -> None:
    reference = make_reference("bert", "classify")
    model = peft.get_peft_model(reference, peft.LoraConfig(task_type="SEQ_CLS", r=3, target_modules=["query"]))
    model.save_pretrained(str(tmp_path / "adapter"))
    narrow = load_saved(make_reference("bert", "", hidden_size=24), tmp_path / "narrow")
    with pytest.raises(BertsmithError, match="another base model"):
        read_adapter(tmp_path / "adapter", narrow)
    other = load_saved(make_reference("distilbert", ""), tmp_path / "other")
    with pytest.raises(BertsmithError, match="another base model"):
        read_adapter(tmp_path / "adapter", other)


def test_damaged_files_end_in_a_sentence(base: Path, tmp_path: Path) -> None:
    write_adapter(make_adapter(load_checkpoint(base), "classify", 5), tmp_path / "adapter", base)
    path = tmp_path / "adapter" / ADAPTER
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(BertsmithError, match=ADAPTER):
        read_adapter(tmp_path / "adapter", load_checkpoint(base))
    path.unlink()
    with pytest.raises(BertsmithError, match=f"no {ADAPTER}"):
        read_adapter(tmp_path / "adapter", load_checkpoint(base))


def test_targets_that_a_family_does_not_have_apart(tmp_path: Path) -> None:
    base = load_saved(make_reference("modernbert", ""), tmp_path / "base")
    with pytest.raises(BertsmithError, match="lora_targets=attention or all"):
        make_adapter(base, "classify", 2, targets="query-value")
