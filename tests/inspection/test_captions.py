"""What small pictures say: whole sentences, however narrow the picture, and one of a thing as one."""

from xml.etree import ElementTree

import numpy as np
import pytest

from bertsmith.evaluation.report.axes import measure, wrap
from bertsmith.inspection.ablation import Effect, HeadEffects
from bertsmith.inspection.heads_drawing import tell_scale, tell_together, tell_whole
from bertsmith.inspection.lens import Lens
from bertsmith.inspection.positions import positions
from bertsmith.inspection.senses import Senses
from bertsmith.inspection.uses import Use

TEXT = "{http://www.w3.org/2000/svg}text"


def read(picture):
    """All that is written in it, the lines of a sentence in one."""
    root = ElementTree.fromstring(picture.svg())
    width, height = float(root.get("width")), float(root.get("height"))
    for one in root.iter(TEXT):
        assert 0 < float(one.get("x")) < width and 0 < float(one.get("y")) < height - 4, one.text
    return " ".join(one.text or "" for one in root.iter(TEXT))


def effects(heads=(), layers=2, across=2):
    some = Effect(-0.0125, -0.0312, 0.0104, 0.213, 12)
    places = {} if heads else {(layer, head): some for layer in range(layers) for head in range(across)}
    return HeadEffects(
        "accuracy", 0.75, (0.5125, 0.875), 4096, (layers, across), places, heads, some if heads else None
    )


@pytest.mark.parametrize("heads", [(), tuple((layer, head) for layer in range(2) for head in range(2))])
def test_heads_tell_their_score_to_its_end(heads):
    found = effects(heads)
    written = read(found)
    assert tell_whole(found.data()) in written
    assert (tell_together(found.data()) or tell_scale(found.data())) in written


def test_of_few_heads_chance_shows_less_than_one():
    assert "of 4 heads chance alone shows 0.2 with" in tell_scale(effects().data())
    assert "of 1 head chance alone shows 0.05 with" in tell_scale(effects(layers=1, across=1).data())


def test_a_narrow_map_of_positions():
    found = positions(None, "rotary")
    assert found.title == "Rotary positions of RoFormer"
    assert found.says in read(found)


def test_a_short_text_in_the_lens():
    top, ranks = np.zeros((2, 3, 1), int), np.ones((2, 3), int)
    found = Lens("a", ["[CLS]", "a", "[SEP]"], [], [0, 1], top, top + 0.5, ranks, ranks, top[0, :, 0], {0: "a"})
    assert "the stronger the colour, the surer" in read(found)


def make_senses(labels, layers=1):
    uses = [Use(f"a bank {label}", 2, 6, label, number) for number, label in enumerate(labels)]
    vectors = np.random.default_rng(0).normal(size=(len(labels), layers, 4)).astype(np.float32)
    return Senses("bank", uses, list(range(layers)), vectors, len(uses))


def test_senses_at_one_layer():
    assert "below, the cosine of each two" in read(make_senses("ab"))


@pytest.mark.parametrize("count", [2, 8, 9, 30])
def test_however_many_labels_stand_clear_of_the_scale(count):
    names = [f"sense {number}" for number in range(count)]
    found = make_senses([name for name in names for _ in range(2)])
    assert all(name in read(found) for name in names)
    root = ElementTree.fromstring(found.svg())
    last = max(float(one.get("y")) for one in root.iter(TEXT) if one.text in names)
    *_, scale = root.iter("{http://www.w3.org/2000/svg}image")
    assert float(scale.get("y")) >= last + 4


def test_lines_hold_all_words():
    says = "one two 東京東京 " + "x" * 30
    lines = wrap(says, 80)
    assert len(lines) > 2 and all(measure(line) <= 80 for line in lines)
    assert " ".join(lines[:-1]) == "one two 東京東京" and lines[-1].endswith("…")
    assert wrap("", 80) == []
