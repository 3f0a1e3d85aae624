"""Cutting heads: equal to the reference with those columns zeroed, and to `evaluate` where nothing is cut."""

import json

import numpy as np
import pytest
import torch
import transformers
from tasks.made import bert_pieces, open_both, sentencepiece_files, wordpiece_files
from whole import tiny

import bertsmith
from bertsmith.ablating import ablate
from bertsmith.errors import BertsmithError
from bertsmith.inspection.ablation import Scissors, ablate_answer

TEXT = "Paris is the capital of France."


@pytest.fixture(scope="module", autouse=True)
def small_and_alone(one_thread):
    """These models are so small that a second thread only waits."""


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Tiny models with random heads, and data for each."""
    folder = tmp_path_factory.mktemp("place")
    names = {"id2label": {0: "neg", 1: "pos"}, "label2id": {"neg": 0, "pos": 1}, "num_labels": 2}
    (folder / "classify").mkdir()
    both = open_both(folder / "classify", "bert", "classify", wordpiece_files(bert_pieces()), **names)
    given = both.tokenizer([record["text"] for record in tiny.reviews()], return_tensors="pt", padding=True)
    with torch.no_grad():  # so that either class has half of the texts, many of them just so
        both.reference.classifier.bias -= both.reference(**given).logits.median(dim=0).values
    both.reference.save_pretrained(folder / "classify")
    tags = ["O", "B-PER", "I-PER", "B-LOC", "I-LOC"]
    tiny.make_encoder(folder / "tag", "ForTokenClassification", id2label=dict(enumerate(tags)),
                      label2id={tag: i for i, tag in enumerate(tags)})  # fmt: skip
    tiny.make_encoder(folder / "span", "ForQuestionAnswering")
    tiny.make_encoder(folder / "number", "ForSequenceClassification", num_labels=1, problem_type="regression")
    (folder / "train.conll").write_text(tiny.as_conll(tiny.sentences()))
    (folder / "squad.json").write_text(json.dumps(tiny.questions()))
    return folder


def zero(reference, layer, head):
    """The reference with one head's columns in front of the output layer set to zero."""
    module = reference.base_model.encoder.layer[layer].attention.output.dense
    size = module.in_features // reference.config.num_attention_heads

    def hook(_, given):
        mixed = given[0].clone()
        mixed[..., head * size : (head + 1) * size] = 0
        return (mixed,)

    return module.register_forward_pre_hook(hook)


def test_each_head_is_as_in_the_reference(tmp_path):
    both = open_both(tmp_path, "bert", "classify", wordpiece_files(bert_pieces()))
    found = ablate_answer(both.ours, "classify", TEXT, target=1)
    given = both.tokenizer(TEXT, return_tensors="pt")

    def score():
        with torch.no_grad():
            return both.reference(**given).logits[0, 1].item()

    whole = score()
    assert found.value == pytest.approx(whole, abs=1e-5) and found.changes.shape == (3, 4)
    for layer, head in np.ndindex(3, 4):
        hook = zero(both.reference, layer, head)
        assert found.changes[layer, head] == pytest.approx(score() - whole, abs=2e-5)
        hook.remove()
    hooks = [zero(both.reference, 0, 1), zero(both.reference, 2, 3)]
    two = ablate_answer(both.ours, "classify", TEXT, target=1, heads="0.1, 2.3")
    assert two.together.change == pytest.approx(score() - whole, abs=2e-5) and two.heads == ((0, 1), (2, 3))
    assert np.isnan(two.changes).all()
    for hook in hooks:
        hook.remove()


def test_layers_that_share_their_block_are_cut_apart(tmp_path):
    both = open_both(tmp_path, "albert", "classify", sentencepiece_files())
    found = ablate_answer(both.ours, "classify", TEXT, target=0)
    assert len(set(found.changes[:, 0].round(6))) == 3  # one block, three layers
    once = []

    def hook(module, given):
        once.append(1)
        if len(once) == 2:  # the second layer
            mixed = given[0].clone()
            mixed[..., 12:24] = 0
            return (mixed,)
        return None

    group = both.reference.albert.encoder.albert_layer_groups[0].albert_layers[0].attention.dense
    handle = group.register_forward_pre_hook(hook)
    given = both.tokenizer(TEXT, return_tensors="pt")
    with torch.no_grad():
        cut = both.reference(**given).logits[0, 0].item()
        handle.remove()
        whole = both.reference(**given).logits[0, 0].item()
    assert found.changes[1, 1] == pytest.approx(cut - whole, abs=2e-5)


def test_the_score_is_that_of_evaluate_and_answers_are_counted(place, tmp_path):
    model, data = bertsmith.load(place / "classify", device="cpu"), tiny.reviews()
    found = ablate(model, data)
    real = bertsmith.evaluate(place / "classify", data, device="cpu")["metrics"]["accuracy"]
    assert found.what == "accuracy" and found.examples == len(data) == real["n"]
    assert (found.value, *found.spread) == pytest.approx((real["value"], real["low"], real["high"]))
    theirs = transformers.AutoModelForSequenceClassification.from_pretrained(place / "classify").eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(place / "classify")

    def answer():
        given = tokenizer([record["text"] for record in data], return_tensors="pt", padding=True)
        with torch.no_grad():
            return theirs(**given).logits.argmax(dim=-1).numpy()

    gold, whole = np.array([record["label"] == "pos" for record in data]), answer()
    for (layer, head), effect in found.effects.items():
        hook = zero(theirs, layer, head)
        cut = answer()
        hook.remove()
        assert effect.change == pytest.approx((cut == gold).mean() - (whole == gold).mean(), abs=1e-9)
        assert effect.changed == (cut != whole).sum()
        assert effect.low <= effect.change <= effect.high and 0 <= effect.p <= 1
    assert any(effect.changed for effect in found.effects.values())


@pytest.mark.parametrize(
    "task, data", [("tag", "train.conll"), ("span", "squad.json"), ("number", [{"text": "a film", "label": 1.0},
                                                                               {"text": "a song", "label": 2.5},
                                                                               {"text": "the town", "label": 0.5}])]
)  # fmt: skip
def test_every_kind_of_task(place, task, data):
    model = bertsmith.load(place / task, device="cpu")
    found = ablate(model, place / data if isinstance(data, str) else data)
    assert found.changes.shape == (2, 2) and len(found.effects) == 4
    changed = [effect.changed for effect in found.effects.values()]
    assert all(count is None for count in changed) if task == "number" else all(count >= 0 for count in changed)
    json.dumps(found.data(), allow_nan=False)
    assert found.svg().startswith("<svg ")


def test_the_model_is_left_as_it_was(place):
    model = bertsmith.load(place / "classify", device="cpu")
    before = model.classify("the film was good", raw=True).answers
    scissors = Scissors(model.checkpoint.network)
    scissors.cut([(0, 0), (0, 1), (1, 0), (1, 1)])
    ablate_answer(model, "classify", "the film was good")
    assert model.classify("the film was good", raw=True).answers == before
    weight = model.checkpoint.network.embed.tokens.weight
    assert scissors.network.embed.tokens.weight is weight  # shared, not copied


@pytest.mark.parametrize(
    "heads, says",
    [("9.1", "layers 0 to 2 of heads 0 to 3"), ("one", "names no head"), ([], "is empty"), ("1.2.3", "names no head"),
     ([(0, 1), 7], "names no head")],
)  # fmt: skip
def test_mistakes_end_in_a_sentence(place, heads, says):
    model = bertsmith.load(place / "classify", device="cpu")
    with pytest.raises(BertsmithError, match=says):
        ablate_answer(model, "classify", "a film", heads=heads)


def test_files(place, tmp_path):
    model = bertsmith.load(place / "classify", device="cpu")
    found = ablate(model, tiny.reviews(), heads="1.0,0.1")
    assert found.heads == ((1, 0), (0, 1)) and not found.effects
    assert "without 1.0, 0.1" in found.save(tmp_path / "h.svg").read_text()
    assert json.loads(found.save(tmp_path / "h.json").read_text())["together"]["changed"] == found.together.changed
