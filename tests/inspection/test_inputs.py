"""What the encoder is given: the reference's own embeddings, piece by piece."""

from xml.etree import ElementTree

import numpy as np
import pytest
import torch
from inspection.subjects import PAIR, TEXT, make_subject

from bertsmith.errors import BertsmithError
from bertsmith.inspection.inputs import input
from bertsmith.inspection.packing import unpack
from bertsmith.inspection.watching import watch

CLOSE = 1e-5
FAMILIES = ["bert", "roberta", "albert", "distilbert", "electra", "modernbert", "mpnet", "deberta-v3", "deberta-mixed"]


@pytest.fixture(scope="module")
def bert(tmp_path_factory):
    return make_subject(tmp_path_factory.mktemp("bert"), "bert")


def embed(subject, ids, segments):
    """The reference's: the normed sum, and what its first layer reads."""
    reference, rows = subject.reference, torch.tensor([ids])
    given = {"token_type_ids": torch.tensor([segments])} if getattr(reference.config, "type_vocab_size", 0) else {}
    with torch.no_grad():
        normed = reference.embeddings(rows, **given)
        widen = getattr(reference, "embeddings_project", None)
        if subject.checkpoint.config.family == "albert":
            widen = reference.encoder.embedding_hidden_mapping_in
        return normed[0].numpy(), (normed if widen is None else widen(normed))[0].numpy()


@pytest.mark.parametrize("family", FAMILIES)
def test_vectors_are_those_of_the_reference(family, tmp_path):
    subject = make_subject(tmp_path, family)
    found = input(subject, TEXT, PAIR)
    normed, given = embed(subject, found.ids, found.segments)
    assert np.abs(found.normed - normed).max() < CLOSE
    assert np.abs(found.vectors - given).max() < CLOSE
    assert np.abs(found.vectors - watch(subject, TEXT, PAIR).hidden[0]).max() < CLOSE
    parts = [part for part in (found.token_vectors, found.segment_vectors, found.position_vectors) if part is not None]
    assert np.abs(sum(parts) - found.summed).max() < CLOSE
    config = subject.checkpoint.config
    assert (found.segment_vectors is None) == (not config.segments)
    assert (found.position_vectors is None) == (config.position != "learned")
    assert (found.widened is None) == (family not in ("albert", "electra"))
    assert found.notes == () if family == "bert" else found.notes
    ElementTree.fromstring(found.svg())


def test_the_tables_rows_are_the_models(bert):
    found = input(bert, TEXT, PAIR)
    tables = bert.reference.embeddings
    assert np.array_equal(found.token_vectors, tables.word_embeddings.weight[found.ids].detach().numpy())
    assert np.array_equal(found.segment_vectors, tables.token_type_embeddings.weight[found.segments].detach().numpy())
    assert np.array_equal(found.position_vectors, tables.position_embeddings.weight[: len(found.ids)].detach().numpy())


@pytest.mark.parametrize("family", ["bert", "distilbert", "roberta"])
def test_padding_is_as_a_padded_batch_has_it(family, tmp_path):
    subject = make_subject(tmp_path, family, pad_token_id=0)
    found = input(subject, TEXT, pad_to=20)
    assert len(found.pieces) == 20 and found.pieces[-found.padding :] == ["[PAD]"] * found.padding
    normed, _ = embed(subject, found.ids, found.segments)
    assert np.abs(found.normed - normed).max() < CLOSE
    assert [row["seen"] for row in found.rows()] == [True] * (20 - found.padding) + [False] * found.padding
    assert "[PAD]" in found.svg() and found.data()["padding"] == found.padding


@pytest.mark.parametrize(
    ("family", "says"),
    [("distilbert", "knows no segments"), ("modernbert", "turns queries and keys"), ("electra", "16 numbers wide"),
     ("roberta", "counts positions from 2"), ("mpnet", "the distance of two tokens adds"),
     ("deberta-v3", "adds no position here: each layer compares")],
)  # fmt: skip
def test_what_a_family_does_otherwise_is_said(family, says, tmp_path):
    found = input(make_subject(tmp_path, family), TEXT)
    assert any(says in note for note in found.notes) and any(says in note for note in found.data()["notes"])
    has_none = family in ("distilbert", "modernbert", "mpnet", "deberta-v3")
    assert ("no segments in this family" in found.svg()) == has_none


def test_data_hold_the_vectors(bert):
    found = input(bert, TEXT)
    names = [layer["name"] for layer in found.data()["layers"]]
    assert names == ["token", "segment", "position", "sum, normed"]
    for layer, (_, _, vectors) in zip(found.data()["layers"], found.layers, strict=True):
        assert np.abs(unpack(layer["vectors"])[0] - vectors).max() < 2e-3 * np.abs(vectors).max()


def test_a_long_row_is_cut_and_drawn_in_part(bert):
    found = input(bert, "the river " * 60)
    assert found.reading.truncated == 58 and "58 tokens did not fit" in " ".join(found.notes)


@pytest.mark.parametrize(
    ("text", "pad_to", "says"),
    [("", None, "the text is empty"), (TEXT, 3, "pad_to is 3, but the row has"), (TEXT, 65, "the model reads 64"),
     (TEXT, 9.5, "whole number")],
)  # fmt: skip
def test_what_cannot_be_given_is_refused(bert, text, pad_to, says):
    with pytest.raises(BertsmithError, match=says):
        input(bert, text, pad_to=pad_to)
