"""What each layer would say, against the reference's head on the reference's states, and against `fill`."""

import json
from xml.etree import ElementTree

import numpy as np
import pytest
import torch
import transformers
from oracle import make_reference
from tasks.made import CLOSE, bert_pieces, bytelevel_files, open_both, sentencepiece_files, wordpiece_files

import bertsmith
from bertsmith.errors import BertsmithError
from bertsmith.inspection import lens as lenses

TEXT = "Paris is the {} of France, we were walking."
FILES = {
    "bert": lambda: wordpiece_files(bert_pieces()),
    "roberta": bytelevel_files,
    "albert": sentencepiece_files,
}


def make_modern(folder):
    """A pre-norm family, with BERT's kind of vocabulary."""
    (folder / "vocab.txt").write_text(wordpiece_files(bert_pieces())["vocab.txt"])
    tokenizer = transformers.BertTokenizer(str(folder / "vocab.txt"))
    tokenizer.save_pretrained(folder)
    reference = make_reference("modernbert", "mask", vocab_size=len(tokenizer))
    reference.save_pretrained(folder)
    return bertsmith.load(folder, device="cpu"), reference


@pytest.fixture(scope="module", params=[*FILES, "modernbert"])
def pair(request, tmp_path_factory, one_thread):
    folder = tmp_path_factory.mktemp(request.param)
    if request.param == "modernbert":
        return make_modern(folder)
    both = open_both(folder, request.param, "mask", FILES[request.param]())
    return both.ours, both.reference


@pytest.fixture(scope="module")
def bert(tmp_path_factory, one_thread):
    return open_both(tmp_path_factory.mktemp("bert"), "bert", "mask", FILES["bert"]()).ours


def read_head(reference, state):
    """The reference's masked-token head on any state."""
    kind = reference.config.model_type
    if kind == "bert":
        return reference.cls(state)
    if kind == "roberta":
        return reference.lm_head(state)
    if kind == "albert":
        return reference.predictions(state)
    return reference.decoder(reference.head(state))


def expect(reference, ids):
    """(layers, places, vocabulary) probabilities."""
    with torch.no_grad():
        base = getattr(reference, reference.base_model_prefix)
        states = list(base(torch.tensor([ids]), output_hidden_states=True).hidden_states)
        if reference.config.model_type == "modernbert":  # the last has passed the norm already
            last = base(torch.tensor([ids])).last_hidden_state
            states = [*(base.final_norm(state) for state in states[:-1]), last]
        return torch.cat([read_head(reference, state) for state in states]).softmax(dim=-1).numpy()


def test_the_head_on_every_layer(pair, monkeypatch):
    model, reference = pair
    monkeypatch.setattr(lenses, "AT_ONCE", 5)
    text = TEXT.format(model.tokenizer.mask_token)
    ids = model.tokenize(text).ids
    found = bertsmith.inspect.lens(model, text, top_k=4)
    expected = expect(reference, ids)
    assert found.chances.shape == (4, len(ids), 4)
    best = np.sort(expected, axis=-1)[..., ::-1][..., :4]
    assert np.abs(found.chances - best).max() < CLOSE
    assert np.abs(np.take_along_axis(expected, found.top, axis=-1) - best).max() < CLOSE
    final = expected[-1].argmax(axis=-1)
    for layer in range(4):
        for place, id in enumerate(ids):
            for rank, wanted in ((found.ranks, final[place]), (found.own, id)):
                here = expected[layer, place]
                before, unsure = (here > here[wanted]).sum(), (np.abs(here - here[wanted]) < 1e-7).sum() - 1
                assert 1 + before - unsure <= rank[layer, place] <= 1 + before + unsure
    assert (found.ranks[-1] == 1).all()
    assert [ids[place] for place in found.masks] == [model.tokenizer.mask_id]


def test_the_last_layer_says_what_fill_says(pair):
    model, _ = pair
    text = TEXT.format(model.tokenizer.mask_token)
    found = bertsmith.inspect.lens(model, text, top_k=5)
    filled = model.fill(text, top_k=5)
    at = found.at(3, found.masks[0])
    assert [one["token"] for one in at] == [one["token"] for one in filled]
    assert [one["score"] for one in at] == pytest.approx([one["score"] for one in filled], abs=CLOSE)
    assert [one["token_str"] for one in at] == [one["token_str"].strip() or one["token_str"] for one in filled]


def test_chosen_layers_are_judged_by_the_last(bert):
    text = TEXT.format("[MASK]")
    whole = bertsmith.inspect.lens(bert, text)
    some = bertsmith.inspect.lens(bert, text, layers=[2, 0])
    assert some.layers == [2, 0]
    assert np.array_equal(some.top, whole.top[[2, 0]])
    assert np.array_equal(some.ranks, whole.ranks[[2, 0]])
    assert np.array_equal(some.final, whole.top[-1, :, 0]) and not np.array_equal(some.final, some.top[-1, :, 0])
    data = some.data()
    assert [data["words"][number] for number in data["final"]] == [some.words[id] for id in some.final.tolist()]


def test_files_hold_the_numbers(bert, tmp_path):
    found = bertsmith.inspect.lens(bert, "the [MASK] </script> dog")
    page = found.save(tmp_path / "lens.html").read_text()
    data = json.loads(page.partition('id="data">')[2].partition("</script>")[0])
    assert data == found.data()
    words = np.array(data["words"])[np.array(data["top"])]
    assert words[2][1].tolist() == [one["token_str"] for one in found.at(2, 1)]
    assert np.allclose(data["chances"], found.chances, rtol=1e-3)
    drawn = ElementTree.fromstring(found.svg())
    assert sum(one.tag.endswith("}g") for one in drawn.iter()) == 4 * len(found.pieces)
    long = bertsmith.inspect.lens(bert, "dog " * 50 + "[MASK] cat")
    assert "32 of 54 pieces" in long.svg()


def test_masks_compared(pair):
    model, reference = pair
    mask = model.tokenizer.mask_token
    texts = [f"Paris is the {mask} of France.", f"Paris is not the {mask}.", f"Paris is the {mask} of France."]
    found = bertsmith.inspect.compare_masks(model, texts, top_k=3)
    rows = []
    for text in texts:
        ids = model.tokenize(text).ids
        rows.append(expect(reference, ids)[-1, ids.index(model.tokenizer.mask_id)].astype(np.float64))
    assert np.abs(found.chances - np.stack(rows)[:, found.ids]).max() < CLOSE
    assert found.ids[:3] == [one["token"] for one in model.fill(texts[0], top_k=3)]
    assert set(found.ids) >= {one["token"] for one in model.fill(texts[1], top_k=3)}
    assert found.entropies[1] == pytest.approx(-(rows[1] * np.log2(rows[1])).sum(), rel=1e-4)
    assert found.distances == pytest.approx([0, np.abs(rows[0] - rows[1]).sum() / 2, 0], abs=1e-5)
    assert [text[start:end].strip() for text, (start, end) in zip(texts, found.spans, strict=True)] == [mask] * 3
    ElementTree.fromstring(found.svg())
    assert json.loads(json.dumps(found.data()))["variants"][1]["text"] == texts[1]


def test_mistakes(bert, demo_model):
    lens, compare = bertsmith.inspect.lens, bertsmith.inspect.compare_masks
    headless = bertsmith.load(demo_model, device="cpu")
    for look in (lens, compare):
        with pytest.raises(BertsmithError, match=r"no head for masked tokens.*give a model with its pretraining head"):
            look(headless, "a [MASK]")
        with pytest.raises(BertsmithError, match="the text has 102 tokens, but the model reads 64"):
            look(bert, "dog " * 100)
        with pytest.raises(BertsmithError, match="text is empty"):
            look(bert, " ")
    with pytest.raises(BertsmithError, match="text is None; it must be a string"):
        lens(bert, None)
    with pytest.raises(BertsmithError, match="top_k is 0"):
        lens(bert, "dog", top_k=0)
    with pytest.raises(BertsmithError, match="this model has 0 to 3"):
        lens(bert, "dog", layers=[4])
    with pytest.raises(BertsmithError, match="the text has no mask"):
        compare(bert, ["the [MASK]", "the dog"])
    with pytest.raises(BertsmithError, match=r"variant 2 has 2 masks; write \[MASK\] once"):
        compare(bert, ["the [MASK]", "the [MASK] [MASK]"])
    with pytest.raises(BertsmithError, match="0 variants were given"):
        compare(bert, [])
