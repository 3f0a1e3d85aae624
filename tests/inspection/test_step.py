"""Every number of a step of attention, recomputed by hand from the tensors of the file."""

import json
import re
from xml.etree import ElementTree

import numpy as np
import pytest
from inspection.by_hand import run_bert, run_modernbert
from inspection.subjects import PAIR, TEXT, make_subject

from bertsmith.errors import BertsmithError
from bertsmith.inspection.attention import attention
from bertsmith.inspection.step import step

HEADS, SIZE = 4, 12
CLOSE = 2e-5  # of the largest number of its kind: ours are in single precision, those by hand in double


@pytest.fixture(scope="module")
def bert(tmp_path_factory):
    return make_subject(tmp_path_factory.mktemp("bert"), "bert")


@pytest.fixture(scope="module")
def modern(tmp_path_factory):
    return make_subject(tmp_path_factory.mktemp("modern"), "modernbert")


def is_near(ours, by_hand):
    ours, by_hand = np.asarray(ours), np.asarray(by_hand)
    assert ours.shape == by_hand.shape
    assert np.abs(ours - by_hand).max() <= CLOSE * max(np.abs(by_hand).max(), 1e-3)


def check(data, done, hidden):
    """All that the picture, the file and the terminal are made from."""
    is_near(data["x"], done.x)
    is_near(data["norm"], np.linalg.norm(done.x))
    is_near(data["q"], done.q)
    is_near(data["k"], done.k)
    is_near(data["v"], done.v)
    is_near(data["dots"], done.dots)
    is_near(data["scaled"], done.scaled)
    is_near(data["weights"], done.weights)
    is_near(data["contributions"], done.weights[:, None] * done.v)
    is_near(data["result"], done.result)
    assert data["masked"] == hidden
    assert [bool(reason) for reason in data["reasons"]] == hidden
    assert sum(data["weights"]) == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize(("family", "divisor"), [("mpnet", SIZE), ("deberta-v3", 3 * SIZE)])
def test_distances_add_to_scores(family, divisor, tmp_path):
    subject = make_subject(tmp_path, family)
    found = step(subject, TEXT, pair=PAIR, layer=1, head=2, word="river")
    theirs = subject.ask(found.reading.ids, found.reading.segments).attentions[1][0, 2, found.place].numpy()
    is_near(found.weights, theirs)
    assert found.by == f"√{divisor} + distance" and np.abs(found.scaled - found.dots / divisor**0.5).max() > 0.01
    found.save(tmp_path / "step.svg")
    told = [each.text for each in ElementTree.parse(tmp_path / "step.svg").iter() if each.tag.endswith("text")]
    assert f"3  ÷ √{divisor}" in told and "+ distance" in told  # on two lines: one would run into another column
    with pytest.raises(BertsmithError, match=r"distances add to each product .* leave neurons out"):
        attention(subject, TEXT, neurons=True)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("layer", [0, 1, 2])
def test_bert_by_hand(bert, layer, causal):
    found = step(bert, TEXT, pair=PAIR, layer=layer, head=2, word="river", causal=causal)
    reading = found.reading
    layers = run_bert(bert.folder, reading.ids, reading.segments, HEADS, causal)
    count = len(reading.ids)
    hidden = [causal and place > found.place for place in range(count)]
    data = found.data()
    check(data, layers[layer](2, found.place), hidden)
    assert data["turned_q"] is None and data["turned_k"] is None and data["size"] == SIZE
    assert reading.pieces[found.place] == "river" and "2 times" in found.notes[0]


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("layer", [0, 1, 2])
def test_a_rotary_encoder_by_hand(modern, layer, causal):
    found = step(modern, TEXT, layer=layer, head=-1, word="river", causal=causal)
    reading = found.reading
    done = run_modernbert(modern.folder, reading.ids, HEADS, causal, window=4)[layer](3, found.place)
    far = [abs(place - found.place) for place in range(len(reading.ids))]
    hidden = [bool(layer and far[p] > 4) or (causal and p > found.place) for p in range(len(far))]
    data = found.data()
    check(data, done, hidden)
    is_near(data["turned_q"], done.turned_q)
    is_near(data["turned_k"], done.turned_k)
    assert found.window == (4 if layer else 0) and found.head == 3
    if layer:
        assert "over 4 away" in data["reasons"]


def test_a_packed_encoder_has_the_same_numbers(bert, tmp_path):
    packed = make_subject(tmp_path, "bert", packed=True)
    ours, other = (step(one, TEXT, layer=1, head=0, word=3) for one in (bert, packed))
    is_near(other.scaled, ours.scaled)
    is_near(other.result, ours.result)


def test_which_piece_asks_is_said(bert):
    first = step(bert, TEXT, layer=0, head=0, word="fishing")
    assert first.pieces[first.place] == "fish" and "2 pieces (fish ##ing)" in first.notes[0]
    second = step(bert, TEXT, layer=0, head=0, word="fishing", piece=1)
    assert second.pieces[second.place] == second.name == "##ing" and "(piece 1)" in second.notes[0]
    assert step(bert, TEXT, layer=0, head=0, word="[CLS]").place == 0


def test_of_a_long_text_the_weightiest_keys_are_drawn(bert):
    found = step(bert, "the river bank " * 40, layer=0, head=0, word=-1)
    assert len(found.shown) == 24 == len(found.rows()) and found.place in found.shown
    rest = [place for place in range(64) if place not in found.shown]
    assert found.weights[rest].max() <= np.sort(found.weights[found.shown])[1]
    assert re.match(r"40 more keys, which have \d+\.\d % of the weight", found.left_out)
    assert "cut: 58 tokens" in found.notes[-1]
    assert len(found.data()["weights"]) == 64
    assert "40 more keys" in found.svg()
    one_more = step(bert, "the river bank " * 7 + "the river", layer=0, head=0, word=-1)
    assert one_more.left_out.startswith("1 more key, which has ") and one_more.left_out.endswith("is not drawn")


@pytest.mark.parametrize("causal", [False, True])
def test_the_sheet_has_every_key_and_is_xml(bert, modern, causal):
    for subject in (bert, modern):
        found = step(subject, 'The <river> & "bank"\x07 was', layer=1, head=1, word="river", causal=causal)
        root = ElementTree.fromstring(found.svg())
        texts = ["".join(node.itertext()) for node in root.iter("{http://www.w3.org/2000/svg}text")]
        assert all(piece in texts for piece in found.pieces)
        assert len([text for text in texts if text.startswith("masked")]) == found.masked.sum()
        assert ("q, turned" in texts) == (subject is modern)
        for weight in found.weights[~found.masked]:
            assert f"{weight:.3f}" in texts
        json.dumps(found.data(), allow_nan=False)


@pytest.mark.parametrize(
    ("changed", "says"),
    [({"layer": 3}, "layer is 3, but there are 3 layers in this model, 0 to 2"), ({"layer": -4}, "layer is -4"),
     ({"head": 4}, "head is 4, but there are 4 heads in each layer, 0 to 3"), ({"head": True}, "whole number"),
     ({"head": 1.0}, "whole number"), ({"word": "zebra"}, "'zebra'.*The, fishing, was"),
     ({"word": 99}, "10 words, 0 to 9"), ({"piece": 2, "word": "fishing"}, "piece is 2, but there are 2 pieces in"),
     ({"piece": 1}, "there is one piece in that word"), ({"text": " "}, "the text is empty")],
)  # fmt: skip
def test_what_is_not_there_is_named(bert, changed, says):
    given = {"text": TEXT, "layer": 0, "head": 0, "word": "river", **changed}
    with pytest.raises(BertsmithError, match=says):
        step(bert, given.pop("text"), **given)
