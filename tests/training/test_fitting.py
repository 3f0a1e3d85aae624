"""The head that a task trains: the model's own where it fits, else a fresh one on what pretraining left below it."""

import pytest
import torch
import transformers
from oracle import as_batch, distance, load_saved, make_rows, run_reference, unpad
from training.made import LABELS, make_folder, make_model
from training.texts import make_texts

import bertsmith
from bertsmith.errors import BertsmithError
from bertsmith.finetuning import finetune
from bertsmith.models.checkpoint import load_checkpoint, save_checkpoint
from bertsmith.models.fitting import fit_head

FAMILIES = ["bert", "roberta", "albert", "distilbert", "electra", "modernbert", "mpnet", "deberta-v3"]


def saved(family, head, tmp_path, labels=None, **settings):
    reference = make_model(family, head, **settings)
    if labels:
        reference.config.id2label = dict(enumerate(labels))
    return reference, load_saved(reference, tmp_path / f"{family}-{head}")


def test_a_fresh_head_stands_on_the_pooler(tmp_path):
    reference, checkpoint = saved("bert", "", tmp_path)
    fitted, said = fit_head(checkpoint, "classify", LABELS, seed=3)
    assert said == "a fresh head for classify with 3 outputs was put on the encoder."
    head = fitted.network.heads["classify"]
    assert torch.equal(head.dense.weight, reference.pooler.dense.weight)
    assert torch.equal(head.dense.bias, reference.pooler.dense.bias)
    assert torch.equal(head.out.bias, torch.zeros(3))
    assert 0.01 < head.out.weight.std() < 0.03
    again, _ = fit_head(checkpoint, "classify", LABELS, seed=3)
    other, _ = fit_head(checkpoint, "classify", LABELS, seed=4)
    assert torch.equal(again.network.heads["classify"].out.weight, head.out.weight)
    assert not torch.equal(other.network.heads["classify"].out.weight, head.out.weight)


def test_the_pooler_of_pretraining_is_taken_too(tmp_path):
    """The released BERTs have it below the head for next sentences."""
    reference, checkpoint = saved("bert", "pretraining", tmp_path)
    fitted, said = fit_head(checkpoint, "classify", LABELS)
    assert said.endswith("was put on the encoder; its heads for mask, follows are left out.")
    assert torch.equal(fitted.network.heads["classify"].dense.weight, reference.bert.pooler.dense.weight)
    assert list(fitted.network.heads) == ["classify"]


def test_modernbert_goes_on_from_the_layer_below_its_masks(tmp_path):
    reference, checkpoint = saved("modernbert", "mask", tmp_path)
    head = fit_head(checkpoint, "classify", LABELS)[0].network.heads["classify"]
    assert torch.equal(head.dense.weight, reference.head.dense.weight)
    assert torch.equal(head.norm.weight, reference.head.norm.weight)


@pytest.mark.parametrize("family", ["roberta", "electra", "distilbert"])
def test_a_head_with_a_layer_of_its_own_has_it_fresh(family, tmp_path):
    _, checkpoint = saved(family, "mask", tmp_path)
    head = fit_head(checkpoint, "classify", LABELS)[0].network.heads["classify"]
    assert 0.01 < head.dense.weight.std() < 0.03 and not head.dense.bias.any()


@pytest.mark.parametrize("name", ["classify", "tag"])
def test_a_head_for_the_same_labels_is_kept(name, tmp_path):
    reference, checkpoint = saved("bert", name, tmp_path, LABELS)
    fitted, said = fit_head(checkpoint, name, LABELS)
    assert said == f"the model's own head for {name} goes on training."
    assert torch.equal(fitted.network.heads[name].out.weight, reference.classifier.weight)
    assert fitted.network.heads[name].out.weight.data_ptr() != checkpoint.network.heads[name].out.weight.data_ptr()


def test_a_head_for_spans_is_always_kept(tmp_path):
    reference, checkpoint = saved("bert", "span", tmp_path)
    fitted, _ = fit_head(checkpoint, "span", ["start", "end"])
    assert torch.equal(fitted.network.heads["span"].out.weight, reference.qa_outputs.weight)


OTHER = "the model's head for classify was trained for other labels (red, green, blue); "


@pytest.mark.parametrize(
    ("labels", "said"),
    [
        (["a", "b", "c", "d"], f"{OTHER}its output layer is replaced."),
        (["blue", "red", "green"], "the model's own head for classify goes on training."),
        (["green", "blue"], f"{OTHER}what it learnt of green, blue is kept."),
        (["green", "not green"], f"{OTHER}what it learnt of green is kept, not green begins anew."),
        (["a", "b", "red"], f"{OTHER}what it learnt of red is kept, a, b begin anew."),
    ],
)
def test_of_a_head_for_other_labels_those_it_knows_are_kept(labels, said, tmp_path):
    reference, checkpoint = saved("bert", "classify", tmp_path, LABELS)
    torch.nn.init.normal_(checkpoint.network.heads["classify"].out.weight)  # far from a fresh one
    torch.nn.init.normal_(checkpoint.network.heads["classify"].out.bias)
    fitted, told = fit_head(checkpoint, "classify", labels, seed=3)
    assert told == said
    head, old = fitted.network.heads["classify"], checkpoint.network.heads["classify"]
    fresh = fit_head(checkpoint, "classify", [f"new {label}" for label in labels], seed=3)[0].network.heads["classify"]
    for place, label in enumerate(labels):
        known = LABELS.index(label) if label in LABELS else None
        assert torch.equal(head.out.weight[place], fresh.out.weight[place] if known is None else old.out.weight[known])
        assert head.out.bias[place] == (0 if known is None else old.out.bias[known])
    assert torch.equal(head.dense.weight, reference.bert.pooler.dense.weight)
    assert fitted.labels == labels


@pytest.mark.parametrize("family", FAMILIES)
def test_a_model_of_entailment_begins_with_what_it_knows_of_it(family, tmp_path):
    """As MNLI's model begins RTE: the scores of the shared label are the old ones from the start."""
    reference, checkpoint = saved(family, "classify", tmp_path, ["contradiction", "entailment", "neutral"])
    fitted, _ = fit_head(checkpoint, "classify", ["entailment", "not_entailment"])
    ids, segments = make_rows(reference)
    batch = as_batch(ids, segments)
    fitted.network.eval()
    with torch.no_grad():
        ours = fitted.network.score(fitted.network(batch), batch, "classify")
    assert distance(ours[:, 0], run_reference(reference.eval(), ids, segments).logits[:, 1]) < 1e-5


def test_a_family_without_such_a_head_says_so(tmp_path):
    _, checkpoint = saved("bert", "", tmp_path)
    with pytest.raises(BertsmithError, match=r"^the family bert has no head for jump\.$"):
        fit_head(checkpoint, "jump", LABELS)


def test_dropout_replaces_that_of_the_model_everywhere(tmp_path):
    _, checkpoint = saved("bert", "", tmp_path, hidden_dropout_prob=0.2, attention_probs_dropout_prob=0.3)
    kept, _ = fit_head(checkpoint, "classify", LABELS)
    assert (kept.config.dropout, kept.config.attention_dropout, kept.config.head_dropout) == (0.2, 0.3, 0.2)
    changed, _ = fit_head(checkpoint, "classify", LABELS, dropout=0.0)
    assert (changed.config.dropout, changed.config.attention_dropout, changed.config.head_dropout) == (0.0, 0.0, 0.0)
    assert checkpoint.config.dropout == 0.2


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("name", ["classify", "tag", "span"])
@pytest.mark.parametrize("dropout", [None, 0.3])
def test_a_checkpoint_gives_back_what_was_saved(family, name, dropout, tmp_path):
    """All that a run goes on from: the weights to the bit, and how much is dropped."""
    _, checkpoint = saved(family, "mask", tmp_path)
    labels = ["start", "end"] if name == "span" else LABELS
    fitted, _ = fit_head(checkpoint, name, labels, dropout=dropout)
    (tmp_path / "last").mkdir()
    save_checkpoint(fitted, tmp_path / "last")
    again, said = fit_head(load_checkpoint(tmp_path / "last"), name, labels, dropout=dropout)
    assert said == f"the model's own head for {name} goes on training."
    assert again.config == fitted.config and again.heads == fitted.heads
    assert again.network.names == fitted.network.names
    assert all(map(torch.equal, again.network.parameters(), fitted.network.parameters()))


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("name", ["classify", "tag", "span"])
def test_a_fitted_model_opens_elsewhere_with_the_same_scores(family, name, tmp_path):
    _, checkpoint = saved(family, "", tmp_path)
    labels = ["start", "end"] if name == "span" else LABELS
    problem = "single_label_classification" if name == "classify" else None
    fitted, _ = fit_head(checkpoint, name, labels, problem=problem)
    (tmp_path / "out").mkdir()
    save_checkpoint(fitted, tmp_path / "out")
    auto = {"classify": "SequenceClassification", "tag": "TokenClassification", "span": "QuestionAnswering"}[name]
    auto_class = getattr(transformers, f"AutoModelFor{auto}")
    reference, said = auto_class.from_pretrained(tmp_path / "out", output_loading_info=True)
    assert not said["missing_keys"] and not said["unexpected_keys"] and not said["mismatched_keys"]
    assert reference.config.id2label == dict(enumerate(labels))
    assert reference.config.problem_type == problem
    ids, segments = make_rows(reference)
    theirs = run_reference(reference.eval(), ids, segments)
    batch = as_batch(ids, segments)
    fitted.network.eval()
    with torch.no_grad():
        ours = fitted.network.score(fitted.network(batch), batch, name)
    if name == "span":
        wanted = unpad(torch.stack([theirs.start_logits, theirs.end_logits], dim=-1), ids)
    else:
        wanted = theirs.logits if name == "classify" else unpad(theirs.logits, ids)
    assert distance(ours, wanted) < 1e-5


def test_what_a_run_leaves_opens_elsewhere_with_the_same_scores(small_model, tmp_path):
    out = tmp_path / "out"
    run = finetune(
        "classify", make_texts(60), make_texts(20, seed=1), out=out, model=small_model, epochs=1, batch=8, rate=1e-3,
        device="cpu",
    )  # fmt: skip
    reference = transformers.AutoModelForSequenceClassification.from_pretrained(out).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(out)
    assert reference.config.id2label == {0: "no", 1: "yes"}
    assert reference.config.problem_type == "single_label_classification"
    texts = [example["text"] for example in make_texts(12, seed=2)]
    with torch.no_grad():
        chances = reference(**tokenizer(texts, padding=True, return_tensors="pt")).logits.softmax(-1)
    for found, theirs in zip(run.model.classify(texts), chances, strict=True):
        ours = {answer["label"]: answer["score"] for answer in found}
        assert [ours["no"], ours["yes"]] == pytest.approx(theirs.tolist(), abs=1e-5)
    assert bertsmith.load(out).classify(texts[0]).answers == run.model.classify(texts[0]).answers


def test_a_model_with_a_head_is_trained_on_in_another_run(tmp_path):
    model = make_folder(tmp_path / "model", "classify", id2label={0: "no", 1: "yes"}, label2id={"no": 0, "yes": 1})
    said = []
    before = load_checkpoint(model).network.heads["classify"].out.weight.clone()
    finetune(
        "classify", make_texts(16), make_texts(8, seed=1), out=tmp_path / "out", model=model, epochs=1, batch=8,
        rate=1e-6, device="cpu", say=said.append,
    )  # fmt: skip
    assert "The model's own head for classify goes on training." in said
    after = load_checkpoint(tmp_path / "out").network.heads["classify"].out.weight
    assert 0 < (after - before).abs().max() < 1e-5
