"""How positions are told: the formulas of the papers, and the tables of models."""

import math
from xml.etree import ElementTree

import numpy as np
import pytest
import torch
from inspection.subjects import make_subject
from sklearn.metrics.pairwise import cosine_similarity

from bertsmith.errors import BertsmithError
from bertsmith.inspection.packing import unpack
from bertsmith.inspection.positions import positions, sinusoids
from bertsmith.layers.position import turn, turns


def test_sinusoids_are_those_of_the_paper():
    found = positions()
    table, alike = (one.values for one in found.maps)
    assert table.shape == (128, 64) and found.way == "sinusoid"
    for place in (0, 1, 17, 127):
        for pair in (0, 5, 31):
            angle = place / 10000 ** (2 * pair / 64)
            assert table[place, 2 * pair] == pytest.approx(math.sin(angle), abs=1e-5)
            assert table[place, 2 * pair + 1] == pytest.approx(math.cos(angle), abs=1e-5)
    assert np.abs(alike - cosine_similarity(table)).max() < 1e-5
    assert np.array_equal(positions(kind="sinusoid").maps[0].values, sinusoids(128, 64))


@pytest.mark.parametrize("family", ["bert", "roberta"])
def test_learned_positions_are_compared_by_their_cosines(family, tmp_path):
    subject = make_subject(tmp_path, family)
    found = positions(subject)
    first = subject.checkpoint.config.first_position
    table = subject.reference.embeddings.position_embeddings.weight.detach().numpy()[first:]
    assert found.way == "learned" and len(table) == 64
    assert np.abs(found.maps[0].values - cosine_similarity(table)).max() < 1e-5
    assert bool(found.notes) == (family == "roberta")


def test_a_long_table_is_thinned_and_says_so(tmp_path):
    subject = make_subject(tmp_path, "bert", max_position_embeddings=1200)
    found = positions(subject)
    assert found.maps[0].values.shape == (400, 400) and found.maps[0].row_step == 3
    assert "One position in 3 of 1,200" in found.notes[0]
    assert len(found.svg()) < 500_000 and len(found.html()) < 500_000


def test_rotary_cosines_are_what_turning_does(tmp_path):
    """Two like pairs of numbers, turned by places that lie so far apart, have this product, wherever they stand."""
    subject = make_subject(tmp_path, "modernbert")
    found = positions(subject)
    assert [one.values.shape for one in found.maps] == [(128, 6), (128, 6)]
    assert "global" in found.maps[0].name and "4 to each side" in found.maps[1].name
    for one, theta in zip(found.maps, (160_000.0, 10_000.0), strict=True):
        for pair in range(6):
            vector = torch.zeros(2, 1, 12)
            vector[:, :, pair] = 1
            for distance in (1, 40, 127):
                query, key = turn(vector, turns(torch.tensor([distance + 3, 3]), theta, 12))[:, 0]
                assert float(query @ key) == pytest.approx(one.values[distance, pair], abs=1e-4)
    assert positions(kind="rotary").maps[0].values.shape == (128, 32)


@pytest.mark.parametrize("kind", ["sinusoid", "rotary"])
def test_pictures_hold_the_numbers(kind):
    found = positions(kind=kind)
    for drawn, one in zip(found.data()["maps"], found.maps, strict=True):
        assert np.abs(unpack(drawn["values"])[0] - one.values).max() < 1 / 128
    root = ElementTree.fromstring(found.svg())
    images = list(root.iter("{http://www.w3.org/2000/svg}image"))
    assert len(images) == len(found.maps) and all(i.get("href").startswith("data:image/png") for i in images)


def test_what_is_not_there_is_refused(tmp_path):
    with pytest.raises(BertsmithError, match="give one"):
        positions(kind="learned")
    with pytest.raises(BertsmithError, match="one of sinusoid, learned, rotary"):
        positions(kind="relative")
    with pytest.raises(BertsmithError, match=r"this model \(deberta-v2\) has no positions"):
        positions(make_subject(tmp_path / "deberta", "deberta-v3"))
    with pytest.raises(BertsmithError, match="has learned positions"):
        positions(make_subject(tmp_path, "bert"), "rotary")
