"""The uses of a word compared: what the numbers say, what is nearest in a file, what the files hold."""

import json
from xml.etree import ElementTree

import numpy as np
import pytest

import bertsmith
from bertsmith.errors import BertsmithError
from bertsmith.inspection import nearest
from bertsmith.inspection.senses import MOST, read_sentences
from bertsmith.inspection.senses_examples import EXAMPLES

HOSTILE = "The bank <b>of</b> </script><script>alert(1)</script> & the river’s 银行 🙂 bank"
LINES = [
    "She paid at the bank. The river bank was muddy! A bank is a bank.",
    "No use here.",
    "",
    "The bank failed in spring.",
    "Herons stood on the bank of the stream.",
    "The bank failed in spring.",
    "A banker is no bank: the bank closed early.",
]


@pytest.fixture(scope="module")
def model(demo_model, one_thread):
    return bertsmith.load(demo_model, device="cpu")


@pytest.fixture(scope="module")
def found(model):
    return bertsmith.inspect.senses(model, "bank", EXAMPLES["bank"])


@pytest.fixture
def corpus(tmp_path):
    path = tmp_path / "lines.txt"
    path.write_text("\n".join(LINES) + "\n")
    return path


def test_context_tells_the_senses_of_bank_apart(found):
    """At layer 0 all uses are nearly the same; at the last the groups that lie best apart are the three senses."""
    by_layer = found.likeness()
    assert by_layer[0]["all"] > 0.95
    assert abs(by_layer[0]["same"] - by_layer[0]["other"]) < 0.02
    assert by_layer[-1]["same"] - by_layer[-1]["other"] > 0.08
    assert not found.groups[0].any()
    labels = [found.labels.index(use.label) for use in found.uses]
    assert found.groups[-1].tolist() == labels


def test_numbers_follow_from_the_vectors(found):
    assert found.vectors.shape == (18, 7, 384)
    ones = found.vectors / np.linalg.norm(found.vectors, axis=-1, keepdims=True)
    assert np.allclose(found.cosines, np.einsum("alw,blw->lab", ones, ones), atol=1e-6)
    centred = found.vectors - found.vectors.mean(axis=0)
    assert ((found.places**2).sum(axis=(1, 2)) <= (centred**2).sum(axis=(0, 2)) * (1 + 1e-5)).all()
    assert found.likeness()[3]["all"] == pytest.approx(found.cosines[3][np.triu_indices(18, 1)].mean(), abs=1e-4)


def test_chosen_layers(model):
    some = bertsmith.inspect.senses(model, "apple", EXAMPLES["apple"], layers=[2, -1])
    assert some.layers == [2, 6]
    assert some.cosines.shape == (2, 12, 12)


@pytest.mark.parametrize("word", sorted(EXAMPLES))
def test_examples_hold_their_word(word):
    assert all(word in one["text"].lower() and one["label"] for one in EXAMPLES[word])


def test_files_hold_the_numbers(model, found, tmp_path):
    page = found.save(tmp_path / "senses.html").read_text()
    written = json.loads(page.partition('id="data">')[2].partition("</script>")[0])
    assert written == found.data() == json.loads(found.save(tmp_path / "senses.json").read_text())
    assert np.allclose(written["cosines"], found.cosines, atol=6e-4)
    assert np.allclose(written["places"], found.places, atol=6e-5)
    assert "bertsmith.pictures.senses" in page
    drawn = ElementTree.fromstring(found.svg())
    dots = [one for one in drawn.iter() if one.get("class", "").startswith("use ") and len(one)]
    assert len(dots) == 7 * 18
    hostile = bertsmith.inspect.senses(model, "bank", [HOSTILE])
    assert "<script>alert" not in hostile.html()
    ElementTree.fromstring(hostile.svg())


def brute_force(model, asked, layer, top_k):
    """All uses of all sentences at once, sorted."""
    texts = [
        "She paid at the bank.", "The river bank was muddy!", "A bank is a bank.", "The bank failed in spring.",
        "Herons stood on the bank of the stream.", "A banker is no bank: the bank closed early.",
    ]  # fmt: skip
    one = bertsmith.inspect.word_vectors(model, "bank", [asked], layers=[layer]).vectors[0, 0]
    others = bertsmith.inspect.word_vectors(model, "bank", texts, layers=[layer])
    scores = others.vectors[:, 0] @ one / np.linalg.norm(others.vectors[:, 0], axis=1) / np.linalg.norm(one)
    ranked = sorted(zip(scores.tolist(), others.uses, strict=True), key=lambda pair: -pair[0])
    return [(score, use.text, use.start) for score, use in ranked[:top_k]]


@pytest.mark.parametrize("block", [1, 3, 256])
@pytest.mark.parametrize(("layer", "top_k"), [(-1, 3), (2, 20)])
def test_nearest_uses_are_those_of_brute_force(model, corpus, monkeypatch, block, layer, top_k):
    monkeypatch.setattr(nearest, "BLOCK", block)
    asked = "We sat on the bank and fished."
    got = bertsmith.inspect.nearest_uses(model, "bank", asked, corpus, layer=layer, top_k=top_k)
    expected = brute_force(model, asked, layer, top_k)
    assert [(one["text"], one["start"]) for one in got] == [(text, start) for _, text, start in expected]
    assert [one["score"] for one in got] == pytest.approx([score for score, _, _ in expected], abs=1e-5)
    assert got.count == 9  # the sentence that comes twice counts as often as it stands there
    assert all(one["where"].startswith(f"{corpus}, byte ") for one in got)
    assert json.loads(json.dumps(got.data()))["layer"] == layer % 7


def test_found_uses_join_the_picture(model, corpus):
    given = ["We sat on the bank of the river.", "The bank failed in spring."]
    found = bertsmith.inspect.senses(model, "bank", given, corpus=corpus, top_k=2)
    assert found.given == 2
    assert [len(some) for some in found.nearest] == [2, 2]
    for i, some in enumerate(found.nearest):
        assert all(score == pytest.approx(found.cosines[-1][i, other], abs=1e-5) for other, score in some)
        assert all(other >= 2 and found.uses[other].where for other, _ in some)
    assert given[1] not in {use.text for use in found.uses[2:]}  # what is given is not found again
    ElementTree.fromstring(found.svg())
    alone = bertsmith.inspect.senses(model, "bank", given[:1], corpus=corpus)
    assert alone.likeness()[0]["all"] is None
    ElementTree.fromstring(alone.svg())


def test_a_sentence_without_end_is_cut_around_the_word(model, tmp_path):
    path = tmp_path / "long.txt"
    path.write_text("water " * 30_000 + "bank " + "money " * 30_000)
    (one,) = bertsmith.inspect.nearest_uses(model, "bank", "a bank", path)
    assert one["text"][one["start"] : one["end"]] == "bank"
    assert len(one["text"]) < 5000
    assert one["text"].startswith("water ") and one["text"].endswith(" money")


def test_labels_in_a_file(tmp_path):
    path = tmp_path / "sentences.tsv"
    path.write_bytes("\ufeffriver\tOn the bank.\r\n\r\nIn the bank.\n".encode())
    assert read_sentences(path) == [{"label": "river", "text": "On the bank."}, {"text": "In the bank."}]
    path.write_text("a\tb\tc\n")
    with pytest.raises(BertsmithError, match="line 1: 3 tab-separated columns"):
        read_sentences(path)
    path.write_text("\n")
    with pytest.raises(BertsmithError, match="holds no sentence"):
        read_sentences(path)
    with pytest.raises(BertsmithError, match=r"none.txt cannot be read: No such file"):
        read_sentences(tmp_path / "none.txt")


def test_mistakes(model, corpus, tmp_path):
    look = bertsmith.inspect.senses
    with pytest.raises(BertsmithError, match="there is one use of 'bank'; give at least two"):
        look(model, "bank", ["a bank"])
    with pytest.raises(BertsmithError, match=f"{MOST + 1} uses .* more than the {MOST}"):
        look(model, "bank", ["bank " * (MOST + 1)])
    with pytest.raises(BertsmithError, match="layers="):
        look(model, "bank", ["a bank", "bank"], layers=[9])
    with pytest.raises(BertsmithError, match="layer 3 is not among the layers looked at"):
        look(model, "bank", ["a bank", "bank"], layers=[0], corpus=corpus, layer=3)
    with pytest.raises(BertsmithError, match="the corpus holds no use of 'heron'"):
        look(model, "heron", ["a heron"], corpus=corpus)
    with pytest.raises(BertsmithError, match=r"none.txt is not there"):
        look(model, "bank", ["a bank"], corpus=tmp_path / "none.txt")
    with pytest.raises(BertsmithError, match="top_k is 0"):
        look(model, "bank", ["a bank"], corpus=corpus, top_k=0)
